//! The words of `status.conditions`: types, reasons, and what a reason means to those who wait.

use strum::{Display, EnumIter, IntoStaticStr};

/// What a condition is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, EnumIter)]
pub enum ConditionType {
    /// The weights are where the engine can load them.
    Cached,
    /// An engine has loaded them.
    Loaded,
    /// The model serves.
    Ready,
    /// There is a node that can run it.
    Schedulable,
    /// The spec can work.
    ConfigValid,
    /// Nobody else claims the model's name or aliases.
    NameUnique,
    /// The model's objects are there as they shall be.
    Applied,
    /// All replicas that it shall have serve; only where it may have several.
    Scaled,
    /// The model's speed was measured; only where the Model asks for that.
    BenchmarkComplete,
}

/// Why a condition is as it is. Reasons that hold up a load are in [`LoadHindrance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, EnumIter)]
pub enum ConditionReason {
    /// No node has the GPU that the model needs.
    NoMatchingNodes,
    /// Nodes of several vendors fit and the model does not say which.
    #[strum(serialize = "AmbiguousGPUVendor")]
    AmbiguousGpuVendor,
    /// The backend is unknown, or cannot run on this GPU.
    BackendUnsupported,
    /// The model needs more GPU memory than there is.
    #[strum(serialize = "VRAMInsufficient")]
    VramInsufficient,
    /// A node can run it.
    Schedulable,
    /// The weights are not there yet.
    CacheNotReady,
    /// The model sleeps.
    WaitingForActivation,
    /// An engine is starting.
    StartingBackend,
    /// An engine serves.
    BackendReady,
    /// All replicas serve that are wanted.
    ReplicasReady,
    /// Not all replicas serve yet.
    ReplicasStarting,
    /// The model waits for the GPU that it shares.
    WaitingForGpu,
    /// Another model took the GPU.
    Preempted,
    /// Another model claims one of the names.
    AliasConflict,
    /// The same name is served from another namespace.
    NameConflict,
    /// Nobody else claims one of the names.
    NameUnique,
    /// The spec can work.
    ConfigValid,
    /// The spec cannot work as it is written.
    ConfigInvalid,
    /// There is no public image for this backend and GPU, and the model names none.
    ImageNotConfigured,
    /// Weights are copied from their claim.
    CacheCopy,
    /// Weights are looked for on their claim.
    CacheCheck,
    /// Nothing has to fill the cache.
    NoCacheJob,
    /// Weights are being fetched.
    PrefetchRunning,
    /// Fetching has not begun.
    PrefetchPending,
    /// Weights were fetched.
    PrefetchSucceeded,
    /// Fetching gave up.
    PrefetchFailed,
    /// Weights are being quantized.
    QuantizationRunning,
    /// Quantizing gave up.
    QuantizationFailed,
    /// The claim has its volume.
    #[strum(serialize = "PVCBound")]
    PvcBound,
    /// The claim waits for its volume.
    #[strum(serialize = "PVCProvisioning")]
    PvcProvisioning,
    /// The model's objects are as they shall be.
    Applied,
    /// Somebody else wrote fields of the model's objects; they were put back.
    FieldConflict,
    /// An object of the model is being deleted and does not go; it is made again when it is gone.
    BeingDeleted,
    /// The API server does not take an object of the model.
    Refused,
    /// The API server fails each time that an object of the model is written.
    WriteFailed,
    /// Something that is not the model's has the name of an object that it needs.
    NameTaken,
    /// The model is measured as soon as it serves.
    BenchmarkPending,
    /// The model is being measured.
    BenchmarkRunning,
    /// The model was measured on the kind of node that serves it.
    BenchmarkSucceeded,
    /// Measuring gave up.
    BenchmarkFailed,
    /// A setting is missing, or the engine cannot be measured.
    BenchmarkNotConfigured,
}

/// What holds up a load on a cluster, as the reason of a condition. This is the one list of what
/// ends a wait early: whoever waits asks [`LoadHindrance::outlook`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Display, IntoStaticStr, EnumIter)]
pub enum LoadHindrance {
    /// The image cannot be pulled: it does not exist, or we may not have it.
    ImagePullFailed,
    /// The engine starts and dies, again and again.
    CrashLoop,
    /// A container that has to run first failed.
    InitContainerFailed,
    /// The namespace's quota does not allow the pod, or another object.
    QuotaExceeded,
    /// The source cannot be understood, or names nothing.
    BadSource,
    /// The source asks for a licence or a token that we do not have.
    GatedRepository,
    /// No node can take the pod at the moment.
    Unschedulable,
    /// The image is being pulled.
    ImagePulling,
    /// A node or a volume is being made.
    Provisioning,
}

/// What those who wait may hope for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outlook {
    /// Waiting does not help: they are told at once, with the reason.
    Terminal,
    /// It may pass by itself: they wait on, up to their own limit.
    Patient,
}

impl LoadHindrance {
    /// Whether waiting can help.
    pub const fn outlook(self) -> Outlook {
        match self {
            Self::ImagePullFailed
            | Self::CrashLoop
            | Self::InitContainerFailed
            | Self::QuotaExceeded
            | Self::BadSource
            | Self::GatedRepository => Outlook::Terminal,
            Self::Unschedulable | Self::ImagePulling | Self::Provisioning => Outlook::Patient,
        }
    }
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn reasons_are_words_that_a_condition_may_carry() {
        let names = ConditionReason::iter()
            .map(<&str>::from)
            .chain(LoadHindrance::iter().map(<&str>::from))
            .chain(ConditionType::iter().map(<&str>::from));
        for name in names {
            let letters_only = name.chars().all(|letter| letter.is_ascii_alphabetic());
            assert!(letters_only && name.starts_with(char::is_uppercase), "{name}");
        }
    }

    #[test]
    fn abbreviations_are_written_as_in_the_original() {
        assert_eq!(ConditionReason::AmbiguousGpuVendor.to_string(), "AmbiguousGPUVendor");
        assert_eq!(ConditionReason::VramInsufficient.to_string(), "VRAMInsufficient");
        assert_eq!(ConditionReason::PvcBound.to_string(), "PVCBound");
    }
}
