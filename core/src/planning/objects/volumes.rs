//! The volumes of an engine's pod.

use flexinfer_crds::Quantity;
use flexinfer_crds::model::Vendor as Asked;
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, EmptyDirVolumeSource, EnvVar, HostPathVolumeSource,
    PersistentVolumeClaimVolumeSource, Volume, VolumeMount,
};

use super::environment::variable;
use super::weights::{Held, host_folder_allowed, not_allowed};
use super::{Blueprint, Refusal};
use crate::backends::Vendor;
use crate::ids::GroupId;

/// The volume with the weights.
pub(super) const MODEL: &str = "model";
/// Shared memory: what Kubernetes gives by itself, 64 MiB, is too little for engines with many GPUs.
const SHARED_MEMORY: &str = "shm";
/// Kernels that the engine compiled.
const COMPILED: &str = "compile-cache";
const COMPILED_MOUNT: &str = "/cache/compile";
const COMPILED_FOLDER: &str = "/var/lib/flexinfer/compile-cache";

pub(super) fn memory(limit: Option<&Quantity>) -> EmptyDirVolumeSource {
    EmptyDirVolumeSource {
        medium: Some("Memory".to_owned()),
        size_limit: limit.map(Into::into),
        ..EmptyDirVolumeSource::default()
    }
}

pub(super) fn empty(name: &str, source: EmptyDirVolumeSource) -> Volume {
    Volume { name: name.to_owned(), empty_dir: Some(source), ..Volume::default() }
}

/// A folder of the node; `made` makes it where it is missing.
pub(super) fn host_folder(name: &str, path: &str, made: bool) -> Volume {
    let kind = if made { "DirectoryOrCreate" } else { "Directory" };
    let source = HostPathVolumeSource { path: path.to_owned(), type_: Some(kind.to_owned()) };
    Volume { name: name.to_owned(), host_path: Some(source), ..Volume::default() }
}

pub(super) fn claim(name: &str, claim: &str, read_only: bool) -> Volume {
    let source = PersistentVolumeClaimVolumeSource {
        claim_name: claim.to_owned(),
        read_only: read_only.then_some(true),
    };
    Volume { name: name.to_owned(), persistent_volume_claim: Some(source), ..Volume::default() }
}

pub(super) fn config_map(name: &str, map: &str) -> Volume {
    let source = ConfigMapVolumeSource { name: map.to_owned(), ..ConfigMapVolumeSource::default() };
    Volume { name: name.to_owned(), config_map: Some(source), ..Volume::default() }
}

pub(super) fn mounted(name: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

/// Volumes with where the engine has them, and what it has to be told of them.
#[derive(Debug, Default)]
pub(super) struct Mounted {
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<VolumeMount>,
    pub(super) variables: Vec<EnvVar>,
}

impl Mounted {
    pub(super) fn add(&mut self, volume: Volume, path: &str, read_only: bool) {
        self.mounts.push(mounted(&volume.name, path, read_only));
        self.volumes.push(volume);
    }
}

impl Blueprint<'_> {
    /// The volume with the weights, if anything holds them.
    pub(super) fn weights_volume(&self) -> Option<Volume> {
        let writable = self.weights.writable;
        Some(match &self.weights.held {
            Held::Nowhere => return None,
            Held::Claim { name, .. } => claim(MODEL, name, !writable),
            Held::HostFolder(path) => host_folder(MODEL, path, writable),
            Held::Memory(limit) => empty(MODEL, memory(limit.as_ref())),
            Held::Disk => empty(MODEL, EmptyDirVolumeSource::default()),
        })
    }

    pub(super) fn shared_memory(&self, mounted: &mut Mounted) {
        let source = memory(Some(&self.settings.shm_size));
        mounted.add(empty(SHARED_MEMORY, source), "/dev/shm", false);
    }

    /// Kernels that outlive the pod, where the Model asks for that or shares an AMD GPU: there they take
    /// longest to compile, and a swap would wait for them.
    pub(super) fn compiled_kernels(&self, mounted: &mut Mounted) -> Result<(), Refusal> {
        let cache = self.model.spec.cache.as_ref();
        let settings = cache.and_then(|cache| cache.compilation_cache.as_ref());
        let shared = matches!(self.effective.group, GroupId::Shared { .. });
        let asked = self.model.spec.gpu.as_ref().and_then(|gpu| gpu.vendor).unwrap_or(Asked::Auto);
        let default = shared && matches!(asked, Asked::Amd | Asked::Auto);
        if !settings.and_then(|settings| settings.enabled).unwrap_or(default) {
            return Ok(());
        }
        let own = settings.and_then(|settings| settings.host_path.as_deref());
        let top = own.unwrap_or(COMPILED_FOLDER).trim_end_matches('/');
        if !host_folder_allowed(top, self.settings) {
            let field = "spec.cache.compilationCache.hostPath";
            return Err(not_allowed(field, top, self.settings));
        }
        mounted.add(host_folder(COMPILED, &self.own_folder(top), true), COMPILED_MOUNT, false);
        let mut told = vec![
            ("VLLM_CACHE_ROOT", "vllm"),
            ("TRITON_CACHE_DIR", "triton"),
            ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
        ];
        if self.placement.vendor == Vendor::Amd {
            told.extend([("MIOPEN_USER_DB_PATH", "miopen"), ("MIOPEN_CUSTOM_CACHE_DIR", "miopen")]);
        }
        let told = told.into_iter();
        let told = told.map(|(name, folder)| variable(name, &format!("{COMPILED_MOUNT}/{folder}")));
        mounted.variables.extend(told);
        Ok(())
    }
}
