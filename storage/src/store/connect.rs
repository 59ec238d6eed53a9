//! Which store an address means.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ClientConfigKey, ObjectStore};
use url::Url;

use super::OpenError;
use crate::backend::{Backend, Directory, Uploads};
use crate::medium::{self, Medium};
use crate::options::StoreOptions;
use crate::private::make_private;
use crate::s3;

/// Whether the address means a directory of this machine that is not there.
pub(super) fn is_missing_directory(address: &str) -> bool {
    let path = medium::directory_of(address);
    // Any other error is told by opening it.
    path.is_some_and(|path| matches!(path.try_exists(), Ok(false)))
}

/// Opens the store that an address means.
pub(super) async fn connect(address: &str, options: &StoreOptions) -> Result<Backend, OpenError> {
    let retry = &options.retry;
    let backend = |store: Arc<dyn ObjectStore>, base, medium| {
        Backend::new(store, base, options, medium).without_s3()
    };
    if !address.contains("://") {
        let path = PathBuf::from(address);
        let (store, uploads) = directory(address, path.clone())?;
        return Ok(backend(store, Path::default(), Medium::of(&path)).with_uploads(uploads));
    }
    let invalid = |detail: String| OpenError::Address {
        address: address.to_owned(),
        detail,
    };
    let url = Url::parse(address).map_err(|error| invalid(error.to_string()))?;
    let base = || Path::from_url_path(url.path()).map_err(|error| invalid(error.to_string()));
    let bucket = |what: &str| match url.host_str() {
        Some(host) if !host.is_empty() => Ok(()),
        _ => Err(invalid(format!(
            "it names no {what}, as in {}://{what}/prefix",
            url.scheme()
        ))),
    };
    let refused = |error: object_store::Error| invalid(error.to_string());
    let timeout = format!("{} seconds", retry.request_timeout.as_secs().max(1));
    match url.scheme() {
        "file" => {
            let path = url
                .to_file_path()
                .map_err(|()| invalid("write it as file:///absolute/path".into()))?;
            let (store, uploads) = directory(address, path.clone())?;
            Ok(backend(store, Path::default(), Medium::of(&path)).with_uploads(uploads))
        }
        "memory" => Ok(backend(Arc::new(InMemory::new()), base()?, Medium::Local)),
        "discard" => Ok(backend(Arc::new(InMemory::new()), base()?, Medium::Discard)),
        "s3" | "s3a" => {
            bucket("bucket")?;
            let connection = s3::Connection::new(address, retry, &options.s3).await;
            let connection = connection.map_err(|error| invalid(error.to_string()))?;
            let builder = connection.builder;
            let store = Arc::new(builder.clone().build().map_err(refused)?);
            let uploads = Uploads::s3(&builder, store.clone());
            let backend = Backend::new(store, base()?, options, Medium::Remote);
            Ok(backend.with_uploads(uploads))
        }
        "gs" => {
            bucket("bucket")?;
            let store = GoogleCloudStorageBuilder::from_env()
                .with_url(address)
                .with_config(GoogleConfigKey::Client(ClientConfigKey::Timeout), timeout)
                .with_retry(retry.client())
                .build()
                .map_err(refused)?;
            Ok(backend(Arc::new(store), base()?, Medium::Remote))
        }
        "az" | "azure" => {
            bucket("container")?;
            let store = MicrosoftAzureBuilder::from_env()
                .with_url(address)
                .with_config(AzureConfigKey::Client(ClientConfigKey::Timeout), timeout)
                .with_retry(retry.client())
                .build()
                .map_err(refused)?;
            Ok(backend(Arc::new(store), base()?, Medium::Remote))
        }
        scheme => Err(OpenError::Scheme {
            address: address.to_owned(),
            scheme: scheme.to_owned(),
        }),
    }
}

fn directory(address: &str, path: PathBuf) -> Result<(Arc<dyn ObjectStore>, Uploads), OpenError> {
    let failed = |path: &FilePath, error: &std::io::Error| OpenError::Directory {
        path: path.to_owned(),
        detail: error.to_string(),
    };
    if path.as_os_str().is_empty() {
        return Err(OpenError::Address {
            address: address.to_owned(),
            detail: "it is empty".into(),
        });
    }
    let path = std::path::absolute(&path).map_err(|error| failed(&path, &error))?;
    make_private(&path).map_err(|error| failed(&path, &error))?;
    let store = Directory::new(path.clone());
    Ok((Arc::new(store), Uploads::Directory(path)))
}
