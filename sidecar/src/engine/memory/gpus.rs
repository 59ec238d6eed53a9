//! The GPUs this sidecar works with: opened when they are needed, with the digest kernel, a copy
//! stream and the pinned host pool they share.
//!
//! # Rules
//!
//! * Opening takes up to seconds and is therefore never done during a stop: an attempt that meets a
//!   GPU that is not open gives up, opens it, and begins again.
//! * Naming runs on all GPUs at the same time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use phos_gpu::{
    Digest, Digester, Gpu, GpuError, GpuInfo, HostPool, Platform, Quiet, Range, Stream,
};
use phos_policies::transfer::SharedLink;
use phos_protocol::types::GpuUuid;
use phos_storage::Naming;

/// A GPU with what the engine needs on it.
pub(in crate::engine) struct OpenGpu {
    gpu: Arc<dyn Gpu>,
    digester: Mutex<Box<dyn Digester>>,
    /// The stream for copies to and from this GPU.
    pub(in crate::engine) stream: Stream,
    /// What is known of the link that they share with the job's.
    link: Mutex<SharedLink>,
}

impl OpenGpu {
    fn new(driver: &dyn Platform, info: &GpuInfo) -> Result<OpenGpu, GpuError> {
        let gpu = driver.open(info)?;
        let digester = Mutex::new(Arc::clone(&gpu).digester()?);
        let stream = Arc::clone(&gpu).stream()?;
        Ok(OpenGpu {
            gpu,
            digester,
            stream,
            link: Mutex::default(),
        })
    }

    /// The GPU and its context.
    pub(in crate::engine) fn gpu(&self) -> &Arc<dyn Gpu> {
        &self.gpu
    }

    /// What is known of the link to the host.
    pub(in crate::engine) fn link(&self) -> MutexGuard<'_, SharedLink> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names ranges that lie on this GPU. Blocks.
    pub(in crate::engine) fn digest(
        &self,
        ranges: &[&Range],
        naming: &Naming,
    ) -> Result<Vec<Digest>, GpuError> {
        self.digester
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .digest(ranges, naming.key())
    }
}

/// Places in the caller's list, and the digests that belong there.
type Numbered = (Vec<usize>, Vec<Digest>);

/// The GPUs of this sidecar, those that are open, and the host memory they share: see the module's documentation.
#[derive(Clone)]
pub(in crate::engine) struct Gpus {
    driver: Result<Arc<dyn Platform>, GpuError>,
    infos: Vec<GpuInfo>,
    open: BTreeMap<GpuUuid, Arc<OpenGpu>>,
    host: Option<Arc<HostPool>>,
    host_bytes: u64,
    /// What processes call a GPU → which one it is, for jobs that were moved.
    aliases: BTreeMap<GpuUuid, GpuUuid>,
}

impl Gpus {
    /// Looks for the driver and its GPUs. No driver is no error yet: a job may use none. Blocks.
    pub(in crate::engine) fn discover(host_bytes: u64) -> Gpus {
        Gpus::of(phos_gpu::discover(), host_bytes)
    }

    /// The GPUs of this driver. Blocks.
    pub(in crate::engine) fn of(
        driver: Result<Arc<dyn Platform>, GpuError>,
        host_bytes: u64,
    ) -> Gpus {
        let (driver, infos) = match driver {
            Ok(driver) => match driver.gpus() {
                Ok(infos) => (Ok(driver), infos),
                Err(e) => (Err(e), Vec::new()),
            },
            Err(e) => (Err(e), Vec::new()),
        };
        Gpus {
            driver,
            infos,
            open: BTreeMap::new(),
            host: None,
            host_bytes,
            aliases: BTreeMap::new(),
        }
    }

    /// The GPU that a process means: a process that was moved names the one it saw first.
    pub(in crate::engine) fn resolve(&self, uuid: GpuUuid) -> GpuUuid {
        if let Some(now) = self.aliases.get(&uuid) {
            return *now;
        }
        match self.infos.as_slice() {
            // A sidecar that was started after the move does not know of it; with one GPU there is
            // no choice.
            [only] if only.uuid != uuid => only.uuid,
            _ => uuid,
        }
    }

    /// Sets the GPU that stands for each one that processes name, after a restore.
    pub(in crate::engine) fn set_aliases(&mut self, aliases: Vec<(GpuUuid, GpuUuid)>) {
        self.aliases = aliases.into_iter().collect();
    }

    /// The GPU that stands for each one that processes name, for the manifest.
    pub(in crate::engine) fn aliases(&self) -> Vec<(GpuUuid, GpuUuid)> {
        self.aliases.iter().map(|(a, b)| (*a, *b)).collect()
    }

    /// Every GPU that the driver lists, open or not.
    pub(in crate::engine) fn infos(&self) -> &[GpuInfo] {
        &self.infos
    }

    /// The driver, or why it cannot be used.
    pub(in crate::engine) fn driver(&self) -> Result<Arc<dyn Platform>, GpuError> {
        self.driver.clone()
    }

    /// Which of the wanted GPUs are not open yet.
    pub(in crate::engine) fn missing(
        &self,
        wanted: impl IntoIterator<Item = GpuUuid>,
    ) -> Vec<GpuUuid> {
        let mut missing: Vec<_> = wanted
            .into_iter()
            .filter(|uuid| !self.open.contains_key(uuid))
            .collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Opens GPUs. Blocks for seconds.
    pub(in crate::engine) fn open(&mut self, wanted: &[GpuUuid]) -> Result<(), GpuError> {
        let driver = self.driver.clone()?;
        for &uuid in wanted {
            if self.open.contains_key(&uuid) {
                continue;
            }
            let info = self
                .infos
                .iter()
                .find(|info| info.uuid == uuid)
                .ok_or(GpuError::NoSuchGpu(uuid))?;
            let open = Arc::new(OpenGpu::new(&*driver, info)?);
            if self.host.is_none() {
                let pool = HostPool::new(open.gpu(), self.host_bytes);
                self.host = Some(pool);
            }
            self.open.insert(uuid, open);
        }
        Ok(())
    }

    /// The open GPU with this UUID.
    pub(in crate::engine) fn get(&self, uuid: GpuUuid) -> Result<&Arc<OpenGpu>, GpuError> {
        self.open.get(&uuid).ok_or(GpuError::NoSuchGpu(uuid))
    }

    /// Every open GPU with its UUID.
    pub(in crate::engine) fn all(&self) -> impl Iterator<Item = (&GpuUuid, &Arc<OpenGpu>)> {
        self.open.iter()
    }

    /// Pinned memory. There is some as soon as one GPU is open.
    pub(in crate::engine) fn host(&self) -> Result<&Arc<HostPool>, GpuError> {
        self.host.as_ref().ok_or(GpuError::NoGpu)
    }

    /// No host memory is pinned in the background until what this returns is dropped.
    pub(in crate::engine) fn pause_pinning(&self) -> Option<Quiet> {
        self.host.as_ref().map(HostPool::pause_pinning)
    }

    /// Names ranges on whatever GPUs they lie, all at the same time; answers in the order of
    /// `ranges`. Blocks.
    pub(in crate::engine) fn digest(
        &self,
        ranges: &[Range],
        naming: &Naming,
    ) -> Result<Vec<Digest>, GpuError> {
        let mut per_gpu: BTreeMap<GpuUuid, Vec<usize>> = BTreeMap::new();
        for (i, range) in ranges.iter().enumerate() {
            per_gpu.entry(range.memory.gpu()).or_default().push(i);
        }
        // The job is held meanwhile, and the usual case needs none of what follows.
        if let (1, Some(&uuid)) = (per_gpu.len(), per_gpu.keys().next()) {
            let all: Vec<&Range> = ranges.iter().collect();
            return self.get(uuid)?.digest(&all, naming);
        }
        let mut digests = vec![[0_u8; 32]; ranges.len()];
        let results: Vec<Result<Numbered, GpuError>> = std::thread::scope(|scope| {
            let workers: Vec<_> = per_gpu
                .into_iter()
                .map(|(uuid, indices)| {
                    scope.spawn(move || {
                        let own: Vec<&Range> = indices.iter().map(|&i| &ranges[i]).collect();
                        let digests = self.get(uuid)?.digest(&own, naming)?;
                        Ok((indices, digests))
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|w| w.join().unwrap_or(Err(GpuError::Cancelled)))
                .collect()
        });
        for result in results {
            let (indices, found) = result?;
            for (i, digest) in indices.into_iter().zip(found) {
                digests[i] = digest;
            }
        }
        Ok(digests)
    }
}
