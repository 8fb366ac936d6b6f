//! The flash loader: an init container that copies the weights to memory by many readers at once. For a model
//! that shares its GPU the copy is kept on the node, so that the next swap finds it there.

use std::path::Path;

use flexinfer_crds::model::{CacheStrategy, FlashLoader};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, Volume};

use super::environment::variable;
use super::initial::{as_root, ours, tells_progress};
use super::volumes::{MODEL, empty, host_folder, memory, mounted};
use super::{Blueprint, Refusal};
use crate::ids::GroupId;

/// Where the weights are read from.
const SOURCE: &str = "/src";
/// The volume that they are copied to.
pub(super) const MEMORY: &str = "flash-tmpfs";
/// The folder of the node's memory that is kept between swaps.
pub(super) const KEPT: &str = "/dev/shm/flexinfer";

/// The loader, and where it copies to.
#[derive(Debug)]
pub(super) struct Flash {
    pub(super) loader: Container,
    pub(super) memory: Volume,
}

impl Blueprint<'_> {
    /// The flash loader, where the Model or the settings ask for it and there is something to copy.
    pub(super) fn flash(&self) -> Result<Option<Flash>, Refusal> {
        let own = self.model.spec.cache.as_ref().and_then(|cache| cache.flash_loader.clone());
        let own = own.unwrap_or_default();
        let shared = self.shares();
        let by_itself = shared && self.weights.strategy == Some(CacheStrategy::Local);
        let wanted = own.enabled.unwrap_or(by_itself || self.settings.flash.enabled);
        let (Some(from), Some(to)) = (self.folder_below(SOURCE), self.weights.folder.clone())
        else {
            return Ok(None);
        };
        if !wanted || !self.weights.persistent() {
            return Ok(None);
        }
        let image = match own.image.as_deref().map(str::trim).filter(|image| !image.is_empty()) {
            Some(image) => image.to_owned(),
            None => self.settings.images.flash_loader()?,
        };
        let limit = own.tmpfs_size_limit.as_ref().or(self.settings.flash.tmpfs_size_limit.as_ref());
        let memory = if shared {
            host_folder(MEMORY, &self.own_folder(KEPT), true)
        } else {
            empty(MEMORY, memory(limit))
        };
        let mounts =
            vec![mounted(MODEL, SOURCE, true), mounted(MEMORY, &self.weights.mount, false)];
        let mut variables = vec![variable("FLASH_SRC", &from), variable("FLASH_DST", &to)];
        if shared {
            // What an older source left there would be nobody's.
            variables.push(variable("FLASH_ALONE_IN", &self.weights.mount));
        }
        variables.extend(self.flash_settings(&own));
        variables.extend(self.peers(&own, &to));
        let mut loader = ours("flash-loader", &image, &["flash".to_owned()], variables, mounts);
        tells_progress(&mut loader);
        if shared {
            as_root(&mut loader);
        }
        Ok(Some(Flash { loader, memory }))
    }

    /// How it copies: the Model's own word, else the settings'.
    fn flash_settings(&self, own: &FlashLoader) -> Vec<EnvVar> {
        let defaults = &self.settings.flash;
        let number = |own: Option<i32>, default: u32| {
            own.and_then(|own| u32::try_from(own).ok()).unwrap_or(default).to_string()
        };
        let verify = own.verify_integrity.unwrap_or(defaults.verify);
        let mut variables = vec![
            variable("FLASH_CONCURRENCY", &number(own.concurrency, defaults.concurrency)),
            variable("FLASH_BUFFER_KB", &number(own.buffer_size_kb, defaults.buffer_kb)),
            variable("FLASH_VERIFY", &verify.to_string()),
        ];
        if !self.weights.only.is_empty() {
            variables.push(variable("FLASH_ONLY", &self.weights.only.join(",")));
        }
        if !defaults.exclude.is_empty() {
            variables.push(variable("FLASH_EXCLUDE", &defaults.exclude.join(",")));
        }
        variables
    }

    /// Whether copies of the weights stay in the memory of nodes when the model's pods go.
    pub fn keeps_in_memory(&self) -> Result<bool, Refusal> {
        Ok(self.shares() && self.flash()?.is_some())
    }

    fn shares(&self) -> bool {
        matches!(self.effective.group, GroupId::Shared { .. })
    }

    /// Where other nodes' copies are: those that outlive a pod are handed on by the nodes' agents.
    fn peers(&self, own: &FlashLoader, to: &str) -> Vec<EnvVar> {
        let known = self.settings.flash.peers.iter();
        let peers: Vec<String> = known.map(|peer| with_port(peer, own.p2p_port)).collect();
        let asked = self.shares() && own.p2p != Some(false) && !peers.is_empty();
        let Some(below) = to.strip_prefix(&self.weights.mount).filter(|_| asked) else {
            return Vec::new();
        };
        let id = &self.effective.id;
        let name = format!("{}/{}{below}", id.namespace, id.name);
        vec![variable("FLASH_PEERS", &peers.join(",")), variable("FLASH_PEERS_NAME", &name)]
    }
}

/// Whether a pod reads its weights from the memory of its node that is kept.
pub(in crate::planning) fn reads_kept_copy(pod: &PodSpec) -> bool {
    let mut paths = pod.volumes.iter().flatten().filter_map(|volume| volume.host_path.as_ref());
    paths.any(|folder| Path::new(&folder.path).starts_with(KEPT))
}

/// A `host:port` with another port, where the Model names one.
fn with_port(peer: &str, port: Option<i32>) -> String {
    match (peer.rsplit_once(':'), port) {
        (Some((host, _)), Some(port)) => format!("{host}:{port}"),
        _ => peer.to_owned(),
    }
}
