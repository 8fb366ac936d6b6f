//! What a request that waits for a sleeping model on a cluster waits for, by what the controller says.

use flexinfer_crds::model::{LoadingSubstage, ModelStatus, Phase, SharedGroupState};

/// One part of the way from asleep to serving. Their names are those of local mode's phases where it has them.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, strum::Display, strum::IntoStaticStr,
)]
pub enum Stage {
    /// The controller has not taken it up.
    #[default]
    Deciding,
    /// It is not its turn: another model has the GPU, or a lease.
    Queued,
    /// The model before it finishes what it serves.
    Draining,
    /// The engine of the model before it ends.
    Stopping,
    /// Its pod has no node.
    Scheduling,
    /// Weights are being fetched from their source.
    Downloading,
    /// Weights are being made smaller.
    Quantizing,
    /// The image is being pulled.
    ImagePulling,
    /// Its pod has a node, and nothing of it runs.
    Starting,
    /// The engine reads its weights.
    LoadingWeights,
    /// The engine compiles kernels.
    Compiling,
    /// The engine runs; its probe has not answered yet.
    HealthCheckPending,
}

impl Stage {
    /// The same of a model whose turn is not limited by a time, where this is how the others of its group stand.
    #[must_use]
    pub fn among(self, others: impl Iterator<Item = Place>) -> Self {
        if self != Self::Queued {
            return self;
        }
        match others.max().unwrap_or(Place::Out) {
            Place::Leaves => Self::Draining,
            Place::Holds => Self::Queued,
            // Nobody has the GPU, and the model is not started: what is left of an engine is not gone yet.
            Place::Out => Self::Stopping,
        }
    }
}

/// How another member of a group stands towards its GPU; the greatest decides what is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// It has no engine that serves.
    Out,
    /// It has the GPU.
    Holds,
    /// It finishes what it serves.
    Leaves,
}

/// What one model's status says, before the others of its group are looked at.
impl From<&ModelStatus> for Stage {
    fn from(status: &ModelStatus) -> Self {
        let place = status.shared_group.as_ref().and_then(|place| place.state);
        match (status.phase, status.loading_substage) {
            (Some(Phase::Pending | Phase::Loading), Some(substage)) => substage.into(),
            (Some(Phase::Pending), None) if place == Some(SharedGroupState::Queued) => Self::Queued,
            (Some(Phase::Pending), None) => Self::Scheduling,
            (Some(Phase::Loading), None) => Self::Starting,
            (Some(Phase::Ready), _) => Self::HealthCheckPending,
            (Some(Phase::Idle | Phase::Preempted | Phase::Failed) | None, _) => Self::Deciding,
        }
    }
}

impl From<LoadingSubstage> for Stage {
    fn from(substage: LoadingSubstage) -> Self {
        match substage {
            LoadingSubstage::Downloading => Self::Downloading,
            LoadingSubstage::Quantizing => Self::Quantizing,
            LoadingSubstage::ImagePulling => Self::ImagePulling,
            LoadingSubstage::LoadingWeights => Self::LoadingWeights,
            LoadingSubstage::Compiling => Self::Compiling,
            LoadingSubstage::HealthCheckPending => Self::HealthCheckPending,
            LoadingSubstage::Preempted => Self::Queued,
        }
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_crds::model::SharedGroupStatus;
    use strum::IntoEnumIterator;

    use super::*;

    fn status(phase: Phase, state: Option<SharedGroupState>) -> ModelStatus {
        let shared_group = Some(SharedGroupStatus { state, ..SharedGroupStatus::default() });
        ModelStatus { phase: Some(phase), shared_group, ..ModelStatus::default() }
    }

    #[test]
    fn a_status_says_what_is_waited_for() {
        let queued = status(Phase::Pending, Some(SharedGroupState::Queued));
        let pending = status(Phase::Pending, Some(SharedGroupState::Active));
        let loading = status(Phase::Loading, Some(SharedGroupState::Active));
        let pulling = ModelStatus {
            loading_substage: Some(LoadingSubstage::ImagePulling),
            ..loading.clone()
        };
        for (status, expected) in [
            (ModelStatus::default(), Stage::Deciding),
            (status(Phase::Preempted, Some(SharedGroupState::Preempted)), Stage::Deciding),
            (queued, Stage::Queued),
            (pending, Stage::Scheduling),
            (loading, Stage::Starting),
            (pulling, Stage::ImagePulling),
            (status(Phase::Ready, Some(SharedGroupState::Active)), Stage::HealthCheckPending),
        ] {
            assert_eq!(Stage::from(&status), expected, "{status:?}");
        }
    }

    #[test]
    fn who_has_the_gpu_decides_what_a_queued_model_waits_for() {
        let among = |others: &[Place]| Stage::Queued.among(others.iter().copied());
        assert_eq!(among(&[Place::Out, Place::Holds]), Stage::Queued);
        assert_eq!(among(&[Place::Leaves, Place::Out]), Stage::Draining);
        assert_eq!(among(&[Place::Out]), Stage::Stopping);
        assert_eq!(Stage::Starting.among([Place::Leaves].into_iter()), Stage::Starting);
    }

    #[test]
    fn every_part_of_a_load_goes_by_the_name_that_statuses_have() {
        for substage in LoadingSubstage::iter() {
            let stage = Stage::from(substage);
            let same = stage.to_string() == substage.to_string();
            assert!(same || (substage, stage) == (LoadingSubstage::Preempted, Stage::Queued));
        }
    }
}
