//! A real Kubernetes for tests: the control plane as child processes of the test, each cluster its own; nodes
//! whose pods are processes too; and the real kubectl before it.

mod attendants;
mod cluster;
mod helm;
pub mod images;
mod kubectl;
mod kubelet;
mod network;
mod programs;
mod root;
mod tool;

pub use attendants::storage_class;
pub use cluster::{AccountError, Cluster, Flags, Scheduler, Stall, StartError, Write};
pub use helm::Helm;
pub use kubectl::Kubectl;
pub use kubelet::{Images, Kubelet, KubeletError, Node, Pretence};
pub use network::{MACHINE, NetworkError};
pub use root::{Mount, Root};
pub use tool::Printed;
