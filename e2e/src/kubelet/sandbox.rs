//! What a pod's containers share: its network, its volumes, and the cluster they are told of.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{self, Pod};
use kube::ResourceExt;

use super::volumes::{Unready, Volumes};
use super::{Machine, hosts};
use crate::network::{self, PodNetwork};
use crate::root::{Mount, Root};

/// A pod's place on the machine, there before its containers and gone after them.
pub(super) struct Sandbox {
    machine: Arc<Machine>,
    volumes: Volumes,
    /// None where the pod shares the machine's.
    network: Option<PodNetwork>,
    folder: PathBuf,
    /// The names that it knows.
    hosts: PathBuf,
}

impl Sandbox {
    /// Makes it, or says what the pod waits for.
    pub(super) async fn new(pod: &Pod, machine: &Arc<Machine>) -> Result<Self, Unready> {
        let folder = machine.pods.join(pod.uid().unwrap_or_default());
        fs::create_dir_all(&folder).map_err(Unready::writing("a folder for the pod"))?;
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let memory = machine.memory.join(node);
        let volumes = Volumes::new(pod, &machine.client, &folder, &memory).await?;
        let hosts = hosts::write(&machine.client, &folder).await?;
        let shares = pod.spec.as_ref().and_then(|spec| spec.host_network).unwrap_or_default();
        let network = if shares { None } else { Some(PodNetwork::new(&folder).await?) };
        Ok(Self { machine: Arc::clone(machine), volumes, network, folder, hosts })
    }

    pub(super) fn address(&self) -> Ipv4Addr {
        self.network.as_ref().map_or(network::MACHINE, PodNetwork::address)
    }

    pub(super) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// `pod` with the addresses that its downward API may tell.
    pub(super) fn addressed(&self, pod: &Pod) -> Pod {
        let mut pod = pod.clone();
        let address = self.address().to_string();
        let status = pod.status.get_or_insert_default();
        status.pod_ips = Some(vec![v1::PodIP { ip: address.clone() }]);
        status.pod_ip = Some(address);
        status.host_ip = Some(network::MACHINE.to_string());
        pod
    }

    /// How a program is started in this pod: the words before its own.
    pub(super) fn entrance(&self, container: &v1::Container) -> Result<Vec<String>, Unready> {
        let mut words = self.network_entrance();
        words.extend(["unshare", "--mount", "--propagation", "private"].map(str::to_owned));
        let folder = tempfile::Builder::new().prefix(&container.name).tempdir_in(&self.folder);
        let folder = folder.map_err(Unready::writing("a folder for the container"))?;
        let mut mounts = self.volumes.mounts(container)?;
        let (source, target) = (self.hosts.clone(), PathBuf::from(hosts::PLACE));
        mounts.push(Mount { source, target, read_only: true });
        let root = Root {
            // Gone with the sandbox: the container that lives in it cannot say when it ends.
            folder: folder.keep(),
            carried: self.machine.mounted.clone(),
            mounts,
            directory: container.working_dir.as_ref().map(PathBuf::from),
        };
        let root = serde_json::to_string(&root).map_err(|error| {
            Unready::Content("a container's root".to_owned(), error.to_string())
        })?;
        words.extend([self.machine.entrance.display().to_string(), root]);
        Ok(words)
    }

    fn network_entrance(&self) -> Vec<String> {
        let Some(network) = &self.network else { return Vec::new() };
        vec!["nsenter".to_owned(), format!("--net={}", network.path().display()), "--".to_owned()]
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.volumes.release();
        self.network = None;
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// The words that bring a further program to where a container's process is.
pub(super) fn entrance_beside(process: u32) -> Vec<String> {
    let mut words = vec!["nsenter".to_owned(), format!("--target={process}")];
    words.extend(["--net", "--mount", "--root", "--wd", "--"].map(str::to_owned));
    words
}

/// The program that turns into a container's, beside the tests' own.
pub(super) fn entrance() -> Option<PathBuf> {
    crate::programs::built("flexinfer-e2e-container").filter(|path| Path::exists(path))
}
