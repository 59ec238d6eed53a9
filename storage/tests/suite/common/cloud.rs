//! The object stores of three clouds in this process: object_store's own clients talk to them, down to the HTTP request
//! and its answer. Conditional writes are honest, listings come in short pages, and whatever can go wrong between a
//! client and a server can be put in.
//!
//! It is a test double: it knows the requests that these clients send, and answers any other with 501.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    missing_docs
)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{ClientOptions, ObjectStore, RetryConfig};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavour {
    S3,
    Gcs,
    Azure,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Put,
    /// A put on condition that there is nothing.
    Create,
    Get,
    List,
    Delete,
    /// The beginning, a part and the end of an upload in parts.
    Begin,
    Part,
    Complete,
}

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and this is the answer.
    Answer(u16, &'static str),
    /// The connection fails and nothing is done.
    Broken(HttpErrorKind),
    /// It is done, and the connection fails before the answer.
    Lost(HttpErrorKind),
    /// The connection fails in the middle of the answer's body.
    BodyBroken,
    /// The answer's body ends in the middle, as if that were all.
    BodyShort,
    /// A bit of the answer's body is another one.
    BodyFlipped,
    /// The condition of a create is not looked at.
    ConditionIgnored,
    /// A deletion that these credentials do not allow, as each of them says that.
    DeletionDenied,
}

type Hook = Box<dyn FnMut(Op, &str) -> Option<Fault> + Send>;

struct Object {
    bytes: Bytes,
    /// Which write this was.
    generation: u64,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Object>,
    /// Parts of unfinished uploads, by upload (Azure: by key) and name of the part.
    uploads: HashMap<String, BTreeMap<String, Bytes>>,
    writes: u64,
}

/// A bucket or container.
pub struct Cloud {
    flavour: Flavour,
    state: Mutex<State>,
    hook: Mutex<Hook>,
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cloud({:?})", self.flavour)
    }
}

/// Keys of a page of a listing.
const PAGE: usize = 5;
const MODIFIED: &str = "Tue, 05 Nov 2024 15:01:15 GMT";
const MODIFIED_ISO: &str = "2024-11-05T15:01:15.000Z";

impl Cloud {
    pub fn new(flavour: Flavour) -> Arc<Self> {
        Self::faulty(flavour, |_, _| None)
    }

    pub fn faulty(
        flavour: Flavour,
        hook: impl FnMut(Op, &str) -> Option<Fault> + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            flavour,
            state: Mutex::default(),
            hook: Mutex::new(Box::new(hook)),
        })
    }

    /// A client of it.
    pub fn store(self: &Arc<Self>, retry: RetryConfig) -> Arc<dyn ObjectStore> {
        let connector = Connector(self.clone());
        match self.flavour {
            Flavour::S3 => Arc::new(
                AmazonS3Builder::new()
                    .with_bucket_name("bucket")
                    .with_region("us-east-1")
                    .with_access_key_id("id")
                    .with_secret_access_key("secret")
                    .with_http_connector(connector)
                    .with_retry(retry)
                    .build()
                    .unwrap(),
            ),
            Flavour::Gcs => Arc::new(
                GoogleCloudStorageBuilder::new()
                    .with_bucket_name("bucket")
                    .with_bearer_token("token")
                    .with_http_connector(connector)
                    .with_retry(retry)
                    .build()
                    .unwrap(),
            ),
            Flavour::Azure => Arc::new(
                MicrosoftAzureBuilder::new()
                    .with_account("account")
                    .with_container_name("bucket")
                    .with_bearer_token_authorization("token")
                    .with_http_connector(connector)
                    .with_retry(retry)
                    .build()
                    .unwrap(),
            ),
        }
    }

    /// All keys, as they stand.
    pub fn keys(&self) -> Vec<String> {
        self.state.lock().unwrap().objects.keys().cloned().collect()
    }
}

#[derive(Debug, Clone)]
struct Connector(Arc<Cloud>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

fn broken(kind: HttpErrorKind) -> HttpError {
    HttpError::new(kind, io::Error::from(io::ErrorKind::ConnectionReset))
}

#[async_trait::async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = Request::of(self.0.flavour, &parts, body);
        // So that requests of several tasks overtake each other.
        tokio::task::yield_now().await;
        let fault = (self.0.hook.lock().unwrap())(request.op, &request.key);
        match fault {
            Some(Fault::Answer(status, text)) => Ok(answer(status, text.to_owned())),
            Some(Fault::Broken(kind)) => Err(broken(kind)),
            Some(Fault::Lost(kind)) => {
                self.0.serve(request, false);
                Err(broken(kind))
            }
            Some(Fault::DeletionDenied) => Ok(self.0.denied_deletion(&request)),
            Some(Fault::ConditionIgnored) => Ok(self.0.serve(request, true)),
            None => Ok(self.0.serve(request, false)),
            Some(damage) => {
                let (parts, body) = self.0.serve(request, false).into_parts();
                let body = body.bytes().await?;
                Ok(Response::from_parts(parts, damaged(damage, &body)))
            }
        }
    }
}

fn damaged(damage: Fault, body: &Bytes) -> HttpResponseBody {
    let half = body.len() / 2;
    match damage {
        Fault::BodyBroken => {
            let sent = Full::new(body.slice(..half)).map_err(|never| match never {});
            let end = async { Some(Err(broken(HttpErrorKind::Interrupted))) };
            HttpResponseBody::new(sent.with_trailers(end))
        }
        Fault::BodyFlipped => {
            let mut bytes = body.to_vec();
            if let Some(byte) = bytes.get_mut(half) {
                *byte ^= 4;
            }
            bytes.into()
        }
        _ => body.slice(..half).into(),
    }
}

/// A request as all three mean it.
struct Request {
    method: Method,
    op: Op,
    key: String,
    query: HashMap<String, String>,
    headers: http::HeaderMap,
    body: Bytes,
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%')
            .then(|| std::str::from_utf8(after.get(..2)?).ok())
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap()
}

impl Request {
    fn of(flavour: Flavour, parts: &http::request::Parts, body: Bytes) -> Self {
        let path = percent_decoded(parts.uri.path());
        let path = path.trim_start_matches('/');
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        assert_eq!(bucket, "bucket", "{path}");
        let query: HashMap<String, String> =
            url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes())
                .into_owned()
                .collect();
        let has = |name: &str| query.contains_key(name);
        let comp = query.get("comp").map_or("", String::as_str);
        let conditional = parts.headers.contains_key("if-none-match")
            || parts.headers.contains_key("x-goog-if-generation-match");
        let mut key = key.to_owned();
        let op = match (parts.method.clone(), flavour) {
            (Method::POST, _) if has("delete") || comp == "batch" => {
                let text = String::from_utf8_lossy(&body);
                key = batch_keys(flavour, &text).swap_remove(0);
                Op::Delete
            }
            (Method::POST, _) if has("uploads") => Op::Begin,
            (Method::POST, _) if has("uploadId") => Op::Complete,
            (Method::PUT, _) if comp == "blocklist" => Op::Complete,
            (Method::PUT, _) if comp == "block" || has("partNumber") => Op::Part,
            (Method::PUT, _) if conditional => Op::Create,
            (Method::PUT, _) => Op::Put,
            (Method::DELETE, _) => Op::Delete,
            _ if key.is_empty() => Op::List,
            _ => Op::Get,
        };
        if op == Op::List {
            key = query.get("prefix").cloned().unwrap_or_default();
        }
        Self {
            method: parts.method.clone(),
            op,
            key,
            query,
            headers: parts.headers.clone(),
            body,
        }
    }

    fn query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    /// The range that is asked for, of an object so long.
    fn range(&self, length: usize) -> Option<(usize, usize)> {
        let range = self.headers.get("range")?.to_str().unwrap();
        let (from, to) = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap();
        let from: usize = from.parse().unwrap();
        let to = to.parse().map_or(length, |last: usize| last + 1);
        Some((from, to.min(length)))
    }
}

/// What stands between two words, each time.
fn all_between<'a>(text: &'a str, before: &'a str, after: &'a str) -> Vec<&'a str> {
    (text.split(before).skip(1))
        .filter_map(|rest| rest.split_once(after).map(|(found, _)| found))
        .collect()
}

fn batch_keys(flavour: Flavour, text: &str) -> Vec<String> {
    match flavour {
        Flavour::Azure => (all_between(text, "\r\nDELETE /", " HTTP/1.1").into_iter())
            .map(|path| {
                percent_decoded(path)
                    .trim_start_matches("bucket/")
                    .to_owned()
            })
            .collect(),
        _ => (all_between(text, "<Key>", "</Key>").into_iter())
            .map(str::to_owned)
            .collect(),
    }
}

fn answer(status: u16, text: String) -> HttpResponse {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .body(text.into())
        .unwrap()
}

fn with_etag(status: u16, etag: &str, text: String) -> HttpResponse {
    let mut response = answer(status, text);
    let headers = response.headers_mut();
    headers.insert("etag", etag.parse().unwrap());
    headers.insert("last-modified", MODIFIED.parse().unwrap());
    response
}

/// Azure's answer to several requests in one.
fn batch(body: String) -> HttpResponse {
    let mut response = answer(202, body);
    let kind = "multipart/mixed; boundary=batch".parse().unwrap();
    response.headers_mut().insert("content-type", kind);
    response
}

impl Cloud {
    fn serve(&self, request: Request, ignore_condition: bool) -> HttpResponse {
        let mut state = self.state.lock().unwrap();
        match request.op {
            Op::Put | Op::Create => {
                let taken = state.objects.contains_key(&request.key);
                if request.op == Op::Create && taken && !ignore_condition {
                    return match self.flavour {
                        Flavour::Azure => answer(409, "<Code>BlobAlreadyExists</Code>".into()),
                        _ => answer(412, "<Code>PreconditionFailed</Code>".into()),
                    };
                }
                state.put(request.key, request.body)
            }
            Op::Get => state.get(&request),
            Op::List => self.list(&state, &request),
            Op::Delete => self.delete(&mut state, &request),
            Op::Begin => {
                state.writes += 1;
                let upload = format!("upload-{}", state.writes);
                state.uploads.insert(upload.clone(), BTreeMap::new());
                answer(
                    200,
                    format!(
                        "<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
                    ),
                )
            }
            Op::Part => {
                let (upload, part) = match self.flavour {
                    Flavour::Azure => (request.key.clone(), request.query("blockid").to_owned()),
                    _ => (
                        request.query("uploadId").to_owned(),
                        request.query("partNumber").to_owned(),
                    ),
                };
                if self.flavour != Flavour::Azure && !state.uploads.contains_key(&upload) {
                    return answer(404, "<Code>NoSuchUpload</Code>".into());
                }
                let etag = format!("\"part-{part}\"");
                let parts = state.uploads.entry(upload).or_default();
                parts.insert(part, request.body);
                with_etag(201, &etag, String::new())
            }
            Op::Complete => self.complete(&mut state, request),
        }
    }

    fn complete(&self, state: &mut State, request: Request) -> HttpResponse {
        let text = String::from_utf8_lossy(&request.body).into_owned();
        let (upload, named) = match self.flavour {
            Flavour::Azure => (
                request.key.clone(),
                all_between(&text, "<Uncommitted>", "</Uncommitted>"),
            ),
            _ => (
                request.query("uploadId").to_owned(),
                all_between(&text, "<PartNumber>", "</PartNumber>"),
            ),
        };
        let Some(mut parts) = state.uploads.remove(&upload) else {
            return match self.flavour {
                Flavour::Azure => answer(400, "<Code>InvalidBlockList</Code>".into()),
                _ => answer(404, "<Code>NoSuchUpload</Code>".into()),
            };
        };
        let mut whole = Vec::new();
        for name in named {
            match parts.remove(name) {
                Some(part) => whole.extend_from_slice(&part),
                None => return answer(400, "<Code>InvalidPart</Code>".into()),
            }
        }
        let generation = state.writes + 1;
        let mut done = state.put(request.key, whole.into());
        *done.body_mut() = format!(
            "<CompleteMultipartUploadResult><ETag>\"{generation}\"</ETag></CompleteMultipartUploadResult>"
        )
        .into();
        done
    }

    fn delete(&self, state: &mut State, request: &Request) -> HttpResponse {
        if !request.query("uploadId").is_empty() {
            state.uploads.remove(request.query("uploadId"));
            return answer(204, String::new());
        }
        if request.method == Method::DELETE {
            return match state.objects.remove(&request.key) {
                Some(_) => answer(204, String::new()),
                None => answer(404, "<Code>NoSuchKey</Code>".into()),
            };
        }
        let text = String::from_utf8_lossy(&request.body);
        let keys = batch_keys(self.flavour, &text);
        let gone: Vec<bool> = (keys.iter())
            .map(|key| state.objects.remove(key).is_some())
            .collect();
        if self.flavour == Flavour::S3 {
            let deleted: String = (keys.iter())
                .map(|key| format!("<Deleted><Key>{key}</Key></Deleted>"))
                .collect();
            return answer(200, format!("<DeleteResult>{deleted}</DeleteResult>"));
        }
        let mut body = String::new();
        for (number, gone) in gone.into_iter().enumerate() {
            let status = if gone {
                "202 Accepted"
            } else {
                "404 Not Found"
            };
            body += &format!(
                "--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\nHTTP/1.1 {status}\r\n\r\n"
            );
        }
        body += "--batch--\r\n";
        batch(body)
    }

    fn denied_deletion(&self, request: &Request) -> HttpResponse {
        let key = &request.key;
        match self.flavour {
            Flavour::S3 => answer(
                200,
                format!(
                    "<DeleteResult><Error><Key>{key}</Key><Code>AccessDenied</Code><Message>Access Denied</Message>\
                     </Error></DeleteResult>"
                ),
            ),
            Flavour::Gcs => answer(403, "<Code>AccessDenied</Code>".into()),
            Flavour::Azure => batch(
                "--batch\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\nHTTP/1.1 403 This request is not \
                 authorized\r\n\r\n--batch--\r\n"
                    .into(),
            ),
        }
    }

    fn list(&self, state: &State, request: &Request) -> HttpResponse {
        let after = match self.flavour {
            Flavour::Azure => request.query("marker"),
            _ => request.query("continuation-token"),
        };
        let prefix = request.query("prefix");
        let delimiter = request.query("delimiter");
        let mut objects = Vec::new();
        let mut directories = BTreeSet::new();
        let mut next = None;
        let matching = state.objects.iter().filter(|(key, _)| {
            key.starts_with(prefix) && (after.is_empty() || key.as_str() > after)
        });
        for (seen, (key, object)) in matching.enumerate() {
            if seen == PAGE {
                break;
            }
            next = (seen + 1 == PAGE).then_some(key);
            match key[prefix.len()..].split_once('/') {
                Some((directory, _)) if !delimiter.is_empty() => {
                    directories.insert(format!("{prefix}{directory}/"));
                }
                _ => objects.push((key, object)),
            }
        }
        let objects = objects.into_iter();
        let directories = directories.into_iter();
        if self.flavour == Flavour::Azure {
            let blobs: String = objects
                .map(|(key, o)| {
                    format!(
                        "<Blob><Name>{key}</Name><Properties><Last-Modified>{MODIFIED}</Last-Modified><Content-Length>{}\
                         </Content-Length><Content-Type>application/octet-stream</Content-Type><Etag>{}</Etag>\
                         </Properties></Blob>",
                        o.bytes.len(), o.generation
                    )
                })
                .collect();
            let prefixes: String = directories
                .map(|name| format!("<BlobPrefix><Name>{name}</Name></BlobPrefix>"))
                .collect();
            let next = next.map_or("", String::as_str);
            return answer(
                200,
                format!(
                    "<EnumerationResults><Blobs>{blobs}{prefixes}</Blobs><NextMarker>{next}</NextMarker>\
                     </EnumerationResults>"
                ),
            );
        }
        let contents: String = objects
            .map(|(key, o)| {
                format!(
                    "<Contents><Key>{key}</Key><Size>{}</Size><LastModified>{MODIFIED_ISO}</LastModified><ETag>\"{}\"\
                     </ETag></Contents>",
                    o.bytes.len(), o.generation
                )
            })
            .collect();
        let prefixes: String = directories
            .map(|name| format!("<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"))
            .collect();
        let next = next.map_or(String::new(), |key| {
            format!("<NextContinuationToken>{key}</NextContinuationToken>")
        });
        answer(
            200,
            format!("<ListBucketResult>{contents}{prefixes}{next}</ListBucketResult>"),
        )
    }
}

impl State {
    fn put(&mut self, key: String, bytes: Bytes) -> HttpResponse {
        self.writes += 1;
        let generation = self.writes;
        self.objects.insert(key, Object { bytes, generation });
        with_etag(200, &format!("\"{generation}\""), String::new())
    }

    fn get(&self, request: &Request) -> HttpResponse {
        let Some(object) = self.objects.get(&request.key) else {
            return answer(404, "<Code>NoSuchKey</Code>".into());
        };
        let length = object.bytes.len();
        let (status, body, range) = match request.range(length) {
            Some((from, _)) if from >= length => {
                return answer(416, "<Code>InvalidRange</Code>".into());
            }
            Some((from, to)) => {
                let range = format!("bytes {from}-{}/{length}", to - 1);
                (206, object.bytes.slice(from..to), Some(range))
            }
            None => (200, object.bytes.clone(), None),
        };
        let mut response = with_etag(status, &format!("\"{}\"", object.generation), String::new());
        let headers = response.headers_mut();
        headers.insert("content-length", body.len().into());
        if let Some(range) = range {
            headers.insert("content-range", range.parse().unwrap());
        }
        if request.method != Method::HEAD {
            *response.body_mut() = body.into();
        }
        response
    }
}
