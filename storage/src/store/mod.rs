//! A store: where it is, what may be done there, and the format marker that stands at its root.

mod connect;

use std::path::PathBuf;
use std::sync::Arc;

use async_recursion::async_recursion as boxed;
use object_store::ObjectStore;
use object_store::path::Path;
use serde::{Deserialize, Serialize};

use crate::STORE_FORMAT;
use crate::backend::{Backend, Created};
use crate::envelope::{self, EnvelopeError, Kind, SEALED_VERSION};
use crate::fault::{FaultKind, StoreFault};
use crate::medium::Medium;
use crate::names::Nonce;
use crate::options::StoreOptions;
use crate::probe::{self, ProbeError};

const MARKER: &str = "phos-format";

const MARKER_KIND: Kind = Kind {
    what: "store",
    magic: *b"PHOSMARK",
    version: STORE_FORMAT,
    sealed: SEALED_VERSION,
    max_stored: 4096,
    max_plain: 4096,
};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The scheme of the address is not known.
    #[error(
        "--store {address}: unknown scheme \"{scheme}\": use a directory, file:///path, s3://bucket/prefix, \
         gs://bucket/prefix, az://container/prefix, memory:// or discard://"
    )]
    Scheme {
        /// The address that was given.
        address: String,
        /// The scheme of the address.
        scheme: String,
    },
    /// The address cannot be used.
    #[error("--store {address}: {detail}")]
    Address {
        /// The address that was given.
        address: String,
        /// What is wrong with the address.
        detail: String,
    },
    /// The directory cannot be made or opened.
    #[error("--store {}: {detail}: make the directory writable for phos-ft or choose another one", path.display())]
    Directory {
        /// The path of the directory.
        path: PathBuf,
        /// The error of the operating system, in words.
        detail: String,
    },
    /// A newer phos-ft made the store.
    #[error(
        "--store {address}: the store has format {found}, this phos-ft knows up to {known}: use the newer phos-ft that \
         made it, or another store"
    )]
    Newer {
        /// The address that was given.
        address: String,
        /// Format of the store.
        found: u16,
        /// Newest format known here.
        known: u16,
    },
    /// The format marker of the store is damaged.
    #[error(
        "--store {address}: its object {MARKER} is damaged ({source}): nothing there was touched"
    )]
    Marker {
        /// The address that was given.
        address: String,
        /// What is wrong with the marker.
        source: EnvelopeError,
    },
    /// A request to the store failed.
    #[error("--store {address}: {source}")]
    Store {
        /// The address that was given.
        address: String,
        /// The request that failed.
        source: StoreFault,
    },
}

impl OpenError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Store { source, .. } => source.is_permanent(),
            _ => true,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Marker {
    /// Makes the bytes unique to who wrote them; means nothing else.
    nonce: Nonce,
}

/// An open store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) backend: Backend,
    pub(crate) options: StoreOptions,
    address: String,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Store({})", self.inner.address)
    }
}

impl Store {
    /// Opens a store: a directory (created if it is not there), `file://`, `s3://`, `gs://`, `az://`, `memory://` (gone
    /// with the last handle) or `discard://` (packs are dropped: to measure stops). Credentials and endpoints of object
    /// stores come from the environment (`AWS_*`, `GOOGLE_*`, `AZURE_*`), those of S3 from every source of the AWS tools.
    ///
    /// Reads the format marker, if there is one; nothing is written.
    #[boxed]
    pub async fn open(address: &str, options: StoreOptions) -> Result<Self, OpenError> {
        let backend = connect::connect(address, &options).await?;
        Self::with_backend(backend, address, options).await
    }

    /// Opens a store to look at it: `None` if it is a directory that is not there, which is not made.
    #[boxed]
    pub async fn open_existing(
        address: &str,
        options: StoreOptions,
    ) -> Result<Option<Self>, OpenError> {
        if connect::is_missing_directory(address) {
            return Ok(None);
        }
        Self::open(address, options).await.map(Some)
    }

    /// Opens a store on any object store below a prefix: for tests that inject failures.
    #[boxed]
    pub async fn from_object_store(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let address = format!("{store}/{prefix}");
        let base = Path::parse(prefix).map_err(|error| OpenError::Address {
            address: address.clone(),
            detail: error.to_string(),
        })?;
        let backend = Backend::new(store, base, &options, Medium::Local);
        Self::with_backend(backend, &address, options).await
    }

    async fn with_backend(
        backend: Backend,
        address: &str,
        options: StoreOptions,
    ) -> Result<Self, OpenError> {
        let store = Self {
            inner: Arc::new(Inner {
                backend,
                options,
                address: address.to_owned(),
            }),
        };
        store.format().await?;
        Ok(store)
    }

    fn failed(&self, source: StoreFault) -> OpenError {
        OpenError::Store {
            address: self.inner.address.clone(),
            source,
        }
    }

    /// The format version that the marker says, if this version can use it.
    fn check_marker(&self, bytes: &[u8]) -> Result<u16, OpenError> {
        let address = self.inner.address.clone();
        match envelope::open(&MARKER_KIND, bytes) {
            Ok((version, _)) => Ok(version),
            Err(EnvelopeError::Newer { found, known, .. }) => Err(OpenError::Newer {
                address,
                found,
                known,
            }),
            Err(source) => Err(OpenError::Marker { address, source }),
        }
    }

    /// Makes the store ready for writing: sets the format marker if there is none, and raises that of an older format.
    /// Call it once before the first
    /// [`Job::take_over`](crate::Job::take_over); [`Self::probe`] first, to have a better message when writing is not allowed.
    #[boxed]
    pub async fn initialise(&self) -> Result<(), OpenError> {
        let marker = Marker {
            nonce: self.inner.options.nonces.next(),
        };
        let bytes = envelope::to_cbor(MARKER_KIND.what, &marker)
            .and_then(|payload| envelope::seal(&MARKER_KIND, &payload))
            .map_err(|source| OpenError::Marker {
                address: self.inner.address.clone(),
                source,
            })?;
        let bytes = bytes::Bytes::from(bytes);
        match self
            .inner
            .backend
            .create(MARKER, bytes.clone(), MARKER_KIND.max_object())
            .await
        {
            Ok(Created::Done) => Ok(()),
            Ok(Created::Taken(found)) => {
                if self.check_marker(&found.unwrap_or_default())? < STORE_FORMAT {
                    // What is written from here on is not for older ones. Racing with another that does the same, or
                    // repeating it, changes nothing.
                    let raised = self.inner.backend.write(MARKER, bytes).await;
                    raised.map_err(|source| self.failed(source))?;
                }
                Ok(())
            }
            Err(source) => Err(self.failed(source)),
        }
    }

    /// The store's format, by its marker; `None` if it has none yet.
    #[boxed]
    pub async fn format(&self) -> Result<Option<u16>, OpenError> {
        let backend = &self.inner.backend;
        match backend.read(MARKER, MARKER_KIND.max_object()).await {
            Ok(bytes) => self.check_marker(&bytes).map(Some),
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(None),
            Err(source) => Err(self.failed(source)),
        }
    }

    /// Tries what phos-ft needs: writing, reading, listing, deleting, and conditional writes that are honest, also when
    /// they race. A store that fails is not fit for checkpoints; the error says why.
    #[boxed]
    pub async fn probe(&self) -> Result<(), ProbeError> {
        probe::run(&self.inner.backend, &self.inner.options.nonces).await
    }

    /// The address of the store, as it was given.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.inner.address
    }

    /// The directory that it is, if it is one.
    #[must_use]
    pub fn directory(&self) -> Option<&std::path::Path> {
        self.inner.backend.directory()
    }

    /// Whether packs are dropped, so that nothing can be restored from it.
    #[must_use]
    pub fn is_discarding(&self) -> bool {
        self.inner.backend.medium() == Medium::Discard
    }
}
