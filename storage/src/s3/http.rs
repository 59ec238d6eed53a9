//! The HTTP client that the AWS crates use here: the one that object_store brings, so that there is one TLS stack, one
//! set of trusted roots and one way to read the environment's proxies.
//!
//! Bodies are small documents on both sides: what is longer than any of them is refused.

use std::net::IpAddr;
use std::time::Duration;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;

/// The most bytes of an answer.
const MAX_ANSWER: usize = 8 << 20;
/// For one request where its client asks for nothing else.
const REQUEST_TIME: Duration = Duration::from_secs(20);
const CONNECT_TIME: Duration = Duration::from_secs(5);
/// For what answers on this machine or not at all.
const CONNECT_TIME_HERE: Duration = Duration::from_secs(1);

/// The HTTP client that the AWS crates are given: see the module's documentation.
#[derive(Debug, Clone)]
pub(super) struct Http {
    outside: reqwest::Client,
    /// For addresses of this machine and its metadata services, which no proxy must see.
    here: reqwest::Client,
}

impl Http {
    pub(super) fn new() -> Result<Self, reqwest::Error> {
        Ok(Self {
            outside: reqwest::Client::builder()
                .connect_timeout(CONNECT_TIME)
                .build()?,
            here: reqwest::Client::builder()
                .connect_timeout(CONNECT_TIME_HERE)
                .no_proxy()
                .build()?,
        })
    }

    fn for_host(&self, host: Option<&str>) -> &reqwest::Client {
        let host = host.unwrap_or_default();
        let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
        let is_here = host == "localhost"
            || address.is_some_and(|address| match address {
                IpAddr::V4(v4) => v4.is_loopback() || v4.is_link_local(),
                // fd00:ec2::/32 is where the metadata services are.
                IpAddr::V6(v6) => v6.is_loopback() || v6.segments()[..2] == [0xfd00, 0x0ec2],
            });
        if is_here { &self.here } else { &self.outside }
    }
}

impl HttpClient for Http {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _components: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let asked = match (settings.connect_timeout(), settings.read_timeout()) {
            (connect, Some(read)) => Some(connect.unwrap_or_default() + read),
            _ => None,
        };
        SharedHttpConnector::new(Connector {
            http: self.clone(),
            timeout: asked.unwrap_or(REQUEST_TIME),
        })
    }
}

#[derive(Debug, Clone)]
struct Connector {
    http: Http,
    timeout: Duration,
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let this = self.clone();
        HttpConnectorFuture::new(async move { this.send(request).await })
    }
}

impl Connector {
    async fn send(self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = request
            .try_into_http1x()
            .map_err(|error| ConnectorError::user(error.into()))?;
        let (parts, body) = request.into_parts();
        let Some(bytes) = body.bytes() else {
            return Err(ConnectorError::user("its body is not in memory".into()));
        };
        let client = self.http.for_host(parts.uri.host()).clone();
        let request = http::Request::from_parts(parts, bytes::Bytes::copy_from_slice(bytes));
        let mut request = reqwest::Request::try_from(request)
            .map_err(|error| ConnectorError::user(error.into()))?;
        *request.timeout_mut() = Some(self.timeout);
        let mut answer = client.execute(request).await.map_err(failed)?;
        let mut built = http::Response::builder().status(answer.status());
        if let Some(headers) = built.headers_mut() {
            headers.clone_from(answer.headers());
        }
        let mut body = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            if body.len() + piece.len() > MAX_ANSWER {
                return Err(ConnectorError::user("its answer is longer than any".into()));
            }
            body.extend_from_slice(&piece);
        }
        let answer = built
            .body(SdkBody::from(body))
            .map_err(|error| ConnectorError::user(error.into()))?;
        HttpResponse::try_from(answer).map_err(|error| ConnectorError::user(error.into()))
    }
}

fn failed(error: reqwest::Error) -> ConnectorError {
    // Its address may hold a token.
    let error = error.without_url();
    if error.is_timeout() {
        ConnectorError::timeout(error.into())
    } else {
        ConnectorError::io(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_services_are_asked_without_a_proxy() {
        let http = Http::new().unwrap();
        for (host, here) in [
            ("169.254.169.254", true),
            ("169.254.170.2", true),
            ("[fd00:ec2::23]", true),
            ("127.0.0.1", true),
            ("localhost", true),
            ("sts.amazonaws.com", false),
            ("10.0.0.1", false),
        ] {
            assert_eq!(
                std::ptr::eq(http.for_host(Some(host)), &http.here),
                here,
                "{host}"
            );
        }
    }
}
