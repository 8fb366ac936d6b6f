//! A pod's volumes as folders of the machine, from which each container mounts what it asks for.

mod claims;
mod content;

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flexinfer_crds::Quantity;
use k8s_openapi::api::core::v1::{self, EmptyDirVolumeSource, HostPathVolumeSource, Pod, Volume};
use kube::Client;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::environment::Unsupported;
use crate::network::NetworkError;
use crate::root::Mount;
pub(super) use content::Reader;

/// Why a pod's containers cannot be started yet. A kubelet tries again, and so does this one.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unready {
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error("{kind} {name}: {source}")]
    Object { kind: &'static str, name: String, source: Box<kube::Error> },
    #[error("{0}: {1}")]
    Content(String, String),
    #[error("cannot write {what}: {source}")]
    Write { what: String, source: io::Error },
}

impl Unready {
    pub(super) fn writing(what: &str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Write { what: what.to_owned(), source }
    }
}

/// The volumes of one pod.
pub(super) struct Volumes {
    folders: BTreeMap<String, PathBuf>,
    /// Those in memory, which are mounts of this process.
    in_memory: Vec<PathBuf>,
}

impl Volumes {
    /// Makes all of them in `folder`, from what the cluster has. `memory` is the node's `/dev/shm`.
    pub(super) async fn new(
        pod: &Pod,
        client: &Client,
        folder: &Path,
        memory: &Path,
    ) -> Result<Self, Unready> {
        let reader = Reader::new(client, pod);
        let mut volumes = Self { folders: BTreeMap::new(), in_memory: Vec::new() };
        let asked = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        for volume in asked {
            let own = folder.join("volumes").join(&volume.name);
            let made = match &volume.host_path {
                Some(source) => on_machine(source, memory)?,
                None => volumes.make(volume, own, &reader).await?,
            };
            volumes.folders.insert(volume.name.clone(), made);
        }
        Ok(volumes)
    }

    async fn make(
        &mut self,
        volume: &Volume,
        own: PathBuf,
        reader: &Reader<'_>,
    ) -> Result<PathBuf, Unready> {
        if let Some(claim) = &volume.persistent_volume_claim {
            return claims::folder(reader, &claim.claim_name).await;
        }
        fs::create_dir_all(&own).map_err(Unready::writing(&volume.name))?;
        if let Some(source) = &volume.empty_dir {
            self.fill_empty(&volume.name, source, &own)?;
        } else {
            reader.write(volume, &own).await?;
        }
        Ok(own)
    }

    fn fill_empty(
        &mut self,
        name: &str,
        source: &EmptyDirVolumeSource,
        own: &Path,
    ) -> Result<(), Unready> {
        if source.medium.as_deref() != Some("Memory") || self.in_memory.iter().any(|had| had == own)
        {
            return Ok(());
        }
        let size = source.size_limit.as_ref().map(|size| Quantity::new(&size.0).bytes());
        let size = size
            .transpose()
            .map_err(|error| Unready::Content(name.to_owned(), error.to_string()))?;
        let options = size.map(|size| CString::new(format!("size={size}"))).transpose();
        let options = options.map_err(|error| Unready::writing(name)(error.into()))?;
        mount("none", own, "tmpfs", MountFlags::empty(), options.as_deref())
            .map_err(|error| Unready::writing(name)(error.into()))?;
        self.in_memory.push(own.to_path_buf());
        Ok(())
    }

    /// What a container mounts, and where.
    pub(super) fn mounts(&self, container: &v1::Container) -> Result<Vec<Mount>, Unready> {
        let mut mounts = Vec::new();
        for mount in container.volume_mounts.iter().flatten() {
            let folder = self.folders.get(&mount.name);
            let folder = folder.ok_or_else(|| Unsupported::Volume(mount.name.clone()))?;
            let part = mount.sub_path.as_deref().unwrap_or_default();
            let source = folder.join(part);
            if !part.is_empty() && !source.exists() {
                fs::create_dir_all(&source).map_err(Unready::writing(&mount.name))?;
            }
            mounts.push(Mount {
                source,
                target: PathBuf::from(&mount.mount_path),
                read_only: mount.read_only.unwrap_or_default(),
            });
        }
        Ok(mounts)
    }

    /// Gives the memory back; files go with the pod's folder.
    pub(super) fn release(&mut self) {
        for folder in self.in_memory.drain(..) {
            let _: Result<(), _> = unmount(&folder, UnmountFlags::DETACH);
        }
    }
}

impl Drop for Volumes {
    fn drop(&mut self) {
        self.release();
    }
}

fn on_machine(source: &HostPathVolumeSource, memory: &Path) -> Result<PathBuf, Unready> {
    let path = match Path::new(&source.path).strip_prefix("/dev/shm") {
        Ok(below) => memory.join(below),
        Err(_) => PathBuf::from(&source.path),
    };
    match source.type_.as_deref() {
        Some("DirectoryOrCreate") => {
            fs::create_dir_all(&path).map_err(Unready::writing(&source.path))?;
        }
        Some("FileOrCreate") => {
            let file = fs::File::options().create(true).append(true).open(&path);
            file.map_err(Unready::writing(&source.path))?;
        }
        _ if path.exists() => {}
        _ => {
            return Err(Unready::Content(source.path.clone(), "is not on this machine".to_owned()));
        }
    }
    Ok(path)
}
