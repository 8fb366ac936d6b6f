//! Why an engine did not come up, or did not stay up.

use std::fmt;

use strum::IntoEnumIterator;

/// A failed activation, told so that a person can act on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The stable reason: a condition's reason and a metric's label.
    pub reason: Reason,
    /// What happened and what to do about it, in one or two sentences.
    pub message: String,
}

impl Failure {
    /// A failure for `reason`, explained by `message`.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.reason, self.message)
    }
}

/// The reasons of failure. Trying again by itself may help the ones that [`Reason::transient`]
/// names; the others stay until somebody changes the model, the machine or the source.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr, strum::EnumIter,
)]
pub enum Reason {
    /// The engine's program is not on this machine.
    ProgramNotFound,
    /// The program exists and could not be started (permissions, wrong architecture).
    ProgramNotStarted,
    /// `spec.source` cannot be understood or names something that does not exist.
    BadSource,
    /// The source asks for a licence or a token that we do not have.
    GatedRepository,
    /// The download broke off and could not be resumed.
    DownloadFailed,
    /// A downloaded file is not what its digest says.
    DigestMismatch,
    /// No room left on the disk.
    DiskFull,
    /// The configuration asks for something the backend cannot do, or that the cluster does not allow.
    InvalidConfig,
    /// An engine that somebody else runs does not answer.
    Unreachable,
    /// A file of the engine's own could not be written.
    NotWritable,
    /// The engine could not bind its port.
    PortTaken,
    /// The engine ran out of GPU or host memory.
    OutOfMemory,
    /// The engine ended while it was loading.
    DiedWhileLoading,
    /// The engine was still not ready at its start-up limit.
    LoadTimeout,
    /// The engine answered its probe with something that is not an answer.
    UnhealthyAnswer,
    /// The engine ended while it was serving.
    Crashed,
    /// The model's VRAM estimate is larger than all there is.
    VramInsufficient,
    /// The image cannot be pulled: it does not exist, or we may not have it.
    ImagePullFailed,
    /// The engine starts and dies, again and again.
    CrashLoop,
    /// A container that has to run first failed.
    InitContainerFailed,
    /// The namespace's quota does not allow the pod.
    QuotaExceeded,
}

impl Reason {
    /// Whether the same attempt, made again later, can succeed without anybody changing anything.
    pub const fn transient(self) -> bool {
        matches!(
            self,
            Self::DownloadFailed
                | Self::Unreachable
                | Self::PortTaken
                | Self::OutOfMemory
                | Self::DiedWhileLoading
                | Self::LoadTimeout
                | Self::UnhealthyAnswer
                | Self::Crashed
        )
    }

    /// The exit status by which a program of ours tells that it failed for this reason: those of
    /// `sysexits.h` that come nearest, else 1.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::BadSource => 65,
            Self::DiskFull => 73,
            Self::DownloadFailed => 75,
            Self::DigestMismatch => 76,
            Self::GatedRepository => 77,
            Self::InvalidConfig => 78,
            _ => 1,
        }
    }

    /// The reason that a program of ours told by its exit status; `None` where it told none.
    pub fn of_exit_status(status: u8) -> Option<Self> {
        Self::iter().find(|reason| reason.exit_status() == status && status != 1)
    }

    /// The exit statuses that tell that trying again is no use.
    pub fn lasting_exit_statuses() -> impl Iterator<Item = u8> {
        let lasting = Self::iter().filter(|reason| !reason.transient());
        lasting.map(Self::exit_status).filter(|status| *status != 1)
    }
}
