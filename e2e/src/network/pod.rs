//! The network of one pod: a namespace with an address of its own, gone with it.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process;

use rustix::mount::{UnmountFlags, unmount};

use super::{BRIDGE, MACHINE, NetworkError, ip, next_pod_address};

/// A network namespace with one device on the bridge. Processes join it by its path.
#[derive(Debug)]
pub(crate) struct PodNetwork {
    address: Ipv4Addr,
    path: PathBuf,
}

impl PodNetwork {
    /// Makes the namespace and keeps it at a file in `folder`.
    pub(crate) async fn new(folder: &Path) -> Result<Self, NetworkError> {
        let failed = |act| move |source| NetworkError::Failed { act, source };
        let address = next_pod_address()?;
        let path = folder.join(format!("network-{address}"));
        File::create(&path).map_err(failed("create a file for a pod's network"))?;
        let network = Self { address, path };
        let [.., high, low] = address.octets();
        let outside = format!("pod{}", u16::from_be_bytes([high, low]));
        let test = process::id();
        let inside = format!(
            "link set lo up\nlink add eth0 type veth peer name {outside} netns {test}\n\
             address add {address}/16 dev eth0\nlink set eth0 up\nroute add default via {MACHINE}\n"
        );
        let made = ip::batch(Some(&network.path), &inside).await;
        made.map_err(failed("make a network namespace for a pod"))?;
        let joined = ip::batch(None, &format!("link set {outside} master {BRIDGE} up\n")).await;
        joined.map_err(failed("put a pod on the bridge"))?;
        Ok(network)
    }

    pub(crate) fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// What `nsenter --net=` takes.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PodNetwork {
    fn drop(&mut self) {
        // What is not there was not made. The devices go with the last process that is in the namespace.
        let _: Result<(), _> = unmount(&self.path, UnmountFlags::DETACH);
        drop(fs::remove_file(&self.path));
    }
}
