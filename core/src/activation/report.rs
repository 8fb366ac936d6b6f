//! What a platform (processes on this machine, pods on a cluster) tells about an engine.

use std::net::SocketAddr;

use super::Failure;
use crate::ids::InstanceId;

/// One observed step in the life of an engine instance.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// It is on its way; shown to people, and extends the deadline of a download.
    Progress { instance: InstanceId, progress: Progress },
    /// Its own probe answered: requests may be sent to `address`.
    Ready { instance: InstanceId, address: SocketAddr },
    /// It ended, or never began, without having been asked to. Its resources are free again.
    Failed { instance: InstanceId, failure: Failure },
    /// It ended because it was asked to. Its resources are free again.
    Gone { instance: InstanceId },
}

/// How far a load has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Which part of the load this is.
    pub substage: Substage,
    /// Parts done and parts in all (bytes for a download), where known.
    pub done: Option<(u64, u64)>,
    /// One line for people.
    pub message: String,
}

/// The parts of a load, with the names of `status.loadingSubstage`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr)]
pub enum Substage {
    /// Weights are being fetched from a source.
    Downloading,
    /// A container image is being pulled.
    ImagePulling,
    /// The engine reads its weights.
    LoadingWeights,
    /// The engine compiles kernels.
    Compiling,
    /// The engine runs; its probe has not answered yet.
    HealthCheckPending,
}
