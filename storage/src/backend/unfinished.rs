//! Uploads that were begun and never finished, left by a process that died in the middle of a large pack. They are invisible to
//! everything else, and take room all the same.
//!
//! * In a directory they are staging files beside the object (`<name>#<number>`).
//! * On S3 they are incomplete multipart uploads, which object_store can neither list nor end by a key: two requests of
//!   the S3 API do, signed with the same credentials.
//! * Azure forgets uncommitted blocks after a week by itself; on Google Cloud Storage a lifecycle rule is needed
//!   (AbortIncompleteMultipartUpload). Nothing is done there.
//!
//! Which of them are dead is for the caller to say (see `collect`).

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer};
use object_store::client::{
    HttpClient, HttpConnector, HttpRequest, HttpRequestBody, ReqwestConnector,
};
use object_store::path::Path;
use object_store::signer::Signer;
use object_store::{ClientConfigKey, ClientOptions};
use serde::Deserialize;
use url::Url;

use super::directory::{self, StagedFile, blocking};
use crate::fault::{FaultKind, StoreFault};

/// Most bytes of one page of a listing: a thousand entries of a few hundred bytes.
const MAX_PAGE: usize = 8 << 20;

/// An upload that was never finished.
#[derive(Debug, Clone)]
pub(crate) struct Unfinished {
    /// Last part of the key that it was for.
    pub name: String,
    handle: Handle,
}

#[derive(Debug, Clone)]
enum Handle {
    File(StagedFile),
    S3 { key: String, upload: String },
}

/// The place in which unfinished uploads are looked for.
#[derive(Clone)]
pub(crate) enum Uploads {
    /// They cannot be found, or there are none.
    Unknown,
    /// Below this directory.
    Directory(PathBuf),
    /// In a bucket, where they are multipart uploads.
    S3(Arc<Bucket>),
}

/// A bucket, by the operations of the S3 API that object_store lacks.
pub(crate) struct Bucket {
    store: Arc<AmazonS3>,
    region: String,
    client: HttpClient,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    is_truncated: bool,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default)]
    upload: Vec<PageEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct PageEntry {
    key: String,
    upload_id: String,
}

impl Uploads {
    /// The unfinished uploads of a bucket that is opened by a builder.
    pub(crate) fn s3(builder: &AmazonS3Builder, store: Arc<AmazonS3>) -> Self {
        let mut options = ClientOptions::new();
        for key in [ClientConfigKey::AllowHttp, ClientConfigKey::Timeout] {
            if let Some(value) = builder.get_config_value(&AmazonS3ConfigKey::Client(key)) {
                options = options.with_config(key, value);
            }
        }
        let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
        match ReqwestConnector::default().connect(&options) {
            Ok(client) => Self::S3(Arc::new(Bucket {
                store,
                region: region.unwrap_or_else(|| "us-east-1".into()),
                client,
            })),
            Err(_) => Self::Unknown,
        }
    }

    /// Uploads to keys directly below a path.
    pub(crate) async fn list(&self, prefix: &Path) -> Result<Vec<Unfinished>, StoreFault> {
        match self {
            Self::Unknown => Ok(Vec::new()),
            Self::Directory(root) => {
                let (root, below) = (root.clone(), prefix.clone());
                let found = blocking(move || directory::staged_below(&root, &below)).await;
                let found = found.map_err(|e| StoreFault::new("list", prefix.as_ref(), &e))?;
                let unfinished = |file: StagedFile| Unfinished {
                    name: file.object().to_owned(),
                    handle: Handle::File(file),
                };
                Ok(found.into_iter().map(unfinished).collect())
            }
            Self::S3(bucket) => bucket.list(prefix).await,
        }
    }

    /// Ends one. One that is gone counts as ended.
    pub(crate) async fn end(&self, upload: &Unfinished) -> Result<(), StoreFault> {
        match (self, &upload.handle) {
            (Self::Directory(root), Handle::File(file)) => {
                let (root, file) = (root.clone(), file.clone());
                let removed = blocking(move || file.remove(&root)).await;
                removed.map_err(|e| StoreFault::new("delete", &upload.name, &e))
            }
            (Self::S3(bucket), Handle::S3 { key, upload }) => bucket.end(key, upload).await,
            (_, Handle::File(_) | Handle::S3 { .. }) => Ok(()),
        }
    }
}

impl Bucket {
    async fn list(&self, prefix: &Path) -> Result<Vec<Unfinished>, StoreFault> {
        let below = format!("{prefix}/");
        let mut found = Vec::new();
        let mut markers: Option<(String, String)> = None;
        loop {
            let mut url = self.bucket_url().await?;
            {
                let mut query = url.query_pairs_mut();
                query
                    .append_pair("uploads", "")
                    .append_pair("prefix", &below);
                if let Some((key, upload)) = &markers {
                    query.append_pair("key-marker", key);
                    query.append_pair("upload-id-marker", upload);
                }
            }
            let body = self
                .request("list uploads to", &below, Method::GET, url)
                .await?;
            let invalid = |detail: String| {
                StoreFault::with_kind("list uploads to", &below, FaultKind::Invalid, detail)
            };
            let text = std::str::from_utf8(&body).map_err(|e| invalid(e.to_string()))?;
            let page: Page = quick_xml::de::from_str(text).map_err(|e| invalid(e.to_string()))?;
            for entry in page.upload {
                if let Some(name) = entry.key.strip_prefix(&below)
                    && !name.contains('/')
                {
                    found.push(Unfinished {
                        name: name.to_owned(),
                        handle: Handle::S3 {
                            key: entry.key.clone(),
                            upload: entry.upload_id,
                        },
                    });
                }
            }
            let next = (page.next_key_marker, page.next_upload_id_marker);
            match next {
                // A server that does not get further would be asked for ever.
                (Some(key), Some(upload))
                    if page.is_truncated
                        && markers.as_ref() != Some(&(key.clone(), upload.clone())) =>
                {
                    markers = Some((key, upload));
                }
                _ => return Ok(found),
            }
        }
    }

    async fn end(&self, key: &str, upload: &str) -> Result<(), StoreFault> {
        let mut url = self.url(key).await?;
        url.query_pairs_mut().append_pair("uploadId", upload);
        match self
            .request("end an upload to", key, Method::DELETE, url)
            .await
        {
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(()),
            other => other.map(drop),
        }
    }

    /// The address of an object, without a query: what the store would sign, whatever style it is configured for.
    async fn url(&self, key: &str) -> Result<Url, StoreFault> {
        let signed = self
            .store
            .signed_url(Method::GET, &Path::from(key), Duration::from_secs(60))
            .await;
        let mut url = signed.map_err(|error| StoreFault::new("sign", key, &error))?;
        url.set_query(None);
        Ok(url)
    }

    async fn bucket_url(&self) -> Result<Url, StoreFault> {
        let mut url = self.url("x").await?;
        let path = url.path().strip_suffix('x').unwrap_or("/").to_owned();
        let path = if path.len() > 1 {
            path.trim_end_matches('/')
        } else {
            &path
        };
        url.set_path(path);
        Ok(url)
    }

    async fn request(
        &self,
        action: &'static str,
        key: &str,
        method: Method,
        url: Url,
    ) -> Result<bytes::Bytes, StoreFault> {
        let failed = |error: &object_store::Error| StoreFault::new(action, key, error);
        let credentials = self.store.credentials().get_credential().await;
        let credentials = credentials.map_err(|error| failed(&error))?;
        let invalid =
            |detail: String| StoreFault::with_kind(action, key, FaultKind::Invalid, detail);
        let mut request: HttpRequest = http::Request::builder()
            .method(method)
            .uri(url.as_str())
            .body(HttpRequestBody::empty())
            .map_err(|error| invalid(error.to_string()))?;
        AwsAuthorizer::new(&credentials, "s3", &self.region)
            .try_authorize(&mut request, None)
            .map_err(|error| failed(&error))?;
        let generic = |source: Box<dyn std::error::Error + Send + Sync>| {
            failed(&object_store::Error::Generic {
                store: "S3",
                source,
            })
        };
        let answer = self.client.execute(request).await;
        let answer = answer.map_err(|error| generic(error.into()))?;
        let status = answer.status();
        let length = answer.headers().get("content-length");
        let length: Option<usize> = length.and_then(|l| l.to_str().ok()?.parse().ok());
        if length.is_some_and(|length| length > MAX_PAGE) {
            return Err(invalid("its answer is longer than any".into()));
        }
        let body = answer.into_body().bytes().await;
        let body = body.map_err(|error| generic(error.into()))?;
        if status.is_success() {
            return Ok(body);
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        Err(generic(
            format!("Server returned non-2xx status code: {status}: {text}").into(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_as_s3_writes_it() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListMultipartUploadsResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
              <Bucket>bucket</Bucket><KeyMarker/><UploadIdMarker/>
              <NextKeyMarker>a</NextKeyMarker><NextUploadIdMarker>u2</NextUploadIdMarker>
              <MaxUploads>1000</MaxUploads><IsTruncated>true</IsTruncated>
              <Upload><Key>a</Key><UploadId>u1</UploadId><StorageClass>STANDARD</StorageClass></Upload>
              <Upload><Key>b</Key><UploadId>u2</UploadId></Upload>
            </ListMultipartUploadsResult>"#;
        let page: Page = quick_xml::de::from_str(text).unwrap();
        assert!(page.is_truncated);
        let found: Vec<_> = page
            .upload
            .iter()
            .map(|u| (&*u.key, &*u.upload_id))
            .collect();
        assert_eq!(found, [("a", "u1"), ("b", "u2")]);
        let none = "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>";
        let page: Page = quick_xml::de::from_str(none).unwrap();
        assert!(!page.is_truncated && page.upload.is_empty());
    }
}
