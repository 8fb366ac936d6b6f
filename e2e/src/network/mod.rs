//! The network of the tests' pods. The test's process has a network namespace to itself (`cargo xtask e2e`
//! makes it); in it lies one bridge, and behind the bridge a namespace per pod. So two engines may both bind
//! 0.0.0.0:8000, and the test reaches each by its pod's address.

mod ip;
mod pod;

use std::env;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::root;
pub(crate) use pod::PodNetwork;

/// Set where the test's process has network and mounts of its own, so that it may change them.
const VARIABLE: &str = "FLEXINFER_E2E_NAMESPACES";

/// The machine's own address among its pods: the API server, Services and the test itself are behind it.
pub const MACHINE: Ipv4Addr = Ipv4Addr::new(10, 88, 0, 1);

const BRIDGE: &str = "pods";

/// The last two bytes of an address that no pod has had yet; the first few are the machine's.
static NEXT_ADDRESS: AtomicU16 = AtomicU16::new(16);

/// A part of 10.96.0.0/12 for the Services of each cluster of this process, since all have one network.
static NEXT_SERVICE_RANGE: AtomicU16 = AtomicU16::new(0);

/// Why pods cannot be given addresses.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    #[error(
        "this process shares its network and mounts with the machine: run the tests by `cargo xtask e2e`, which \
         gives them their own"
    )]
    Shared,
    #[error("cannot {act}")]
    Failed { act: &'static str, source: io::Error },
    #[error("all 65,000 addresses were given out")]
    Exhausted,
}

/// Whether this process may make devices and mounts.
pub(crate) fn is_our_own() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Sees to it that the bridge is there, once in the process.
pub(crate) fn ensure_bridge() -> Result<(), NetworkError> {
    static MADE: Mutex<bool> = Mutex::new(false);
    if !is_our_own() {
        return Err(NetworkError::Shared);
    }
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if !*made {
        let act = "make a bridge for the pods";
        ip::batch_blocking(&format!(
            "link add {BRIDGE} type bridge\naddress add {MACHINE}/16 dev {BRIDGE}\nlink set {BRIDGE} up\n"
        ))
        .map_err(|source| NetworkError::Failed { act, source })?;
        *made = true;
    }
    Ok(())
}

/// What is mounted beside `/`, as it was when this was first asked: before any pod's volumes.
pub(crate) fn machine_mounts() -> io::Result<Vec<PathBuf>> {
    static MOUNTED: OnceLock<Vec<PathBuf>> = OnceLock::new();
    if let Some(mounted) = MOUNTED.get() {
        return Ok(mounted.clone());
    }
    let mounted = root::mounted()?;
    Ok(MOUNTED.get_or_init(|| mounted).clone())
}

/// Gives the machine one more address, for a Service.
pub(crate) async fn add_machine_address(address: Ipv4Addr) -> Result<(), NetworkError> {
    let commands = format!("address replace {address}/32 dev {BRIDGE}\n");
    let act = "give the machine a Service's address";
    ip::batch(None, &commands).await.map_err(|source| NetworkError::Failed { act, source })
}

/// Where the Services of one more cluster have their addresses: room for 4,000.
pub(crate) fn next_service_range() -> String {
    let [high, low] = (NEXT_SERVICE_RANGE.fetch_add(1, Ordering::Relaxed) % 256 * 16).to_be_bytes();
    format!("10.{}.{low}.0/20", 96 + u16::from(high))
}

/// An address that nobody has had: a pod that comes back is somewhere else.
pub(crate) fn next_pod_address() -> Result<Ipv4Addr, NetworkError> {
    let number = NEXT_ADDRESS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |number| {
        number.checked_add(1).filter(|next| *next < u16::MAX)
    });
    let [high, low] = number.map_err(|_| NetworkError::Exhausted)?.to_be_bytes();
    let [first, second, ..] = MACHINE.octets();
    Ok(Ipv4Addr::new(first, second, high, low))
}
