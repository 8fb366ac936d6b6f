//! A real Kubernetes for tests: the control plane as child processes of the test, each cluster its own; nodes
//! whose pods are processes too; and the real kubectl before it.

mod cluster;
mod kubectl;
mod kubelet;

pub use cluster::{Cluster, StartError, Write};
pub use kubectl::{Kubectl, Printed};
pub use kubelet::{Images, Kubelet, Node};
