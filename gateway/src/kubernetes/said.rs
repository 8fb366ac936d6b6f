//! What a Model's status says, as far as a gateway needs it.

use flexinfer_core::activation::{Place, Standing};
use flexinfer_crds::ModelStatus;
use flexinfer_crds::model::SharedGroupState;
use jiff::Timestamp;

/// What the controller and the gateways said last of one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) standing: Standing,
    /// It holds the GPU that it shares.
    pub(super) holds: bool,
    /// Requests wait for it, at whichever gateway.
    pub(super) wanted: bool,
    /// When it can get its turn at the earliest.
    pub(super) not_before: Option<Timestamp>,
    pub(super) last_active: Option<Timestamp>,
    /// The gateways' entries, and when each was written.
    pub(super) entries: Vec<(String, Timestamp)>,
}

impl Said {
    /// How the model stands towards the GPU that it shares.
    pub(super) fn place(&self) -> Place {
        match (self.standing.draining, self.holds) {
            (true, _) => Place::Leaves,
            (false, true) => Place::Holds,
            (false, false) => Place::Out,
        }
    }
}

impl From<&ModelStatus> for Said {
    fn from(status: &ModelStatus) -> Self {
        Self {
            standing: Standing::from(status),
            holds: status
                .shared_group
                .as_ref()
                .is_some_and(|place| place.state == Some(SharedGroupState::Active)),
            not_before: status
                .shared_group
                .as_ref()
                .and_then(|place| place.not_before.as_ref())
                .map(|time| time.0),
            wanted: status.traffic.iter().any(|traffic| traffic.waiting > 0),
            last_active: status.last_active_time.as_ref().map(|time| time.0),
            entries: status
                .traffic
                .iter()
                .map(|entry| (entry.gateway.clone(), entry.renew_time.0))
                .collect(),
        }
    }
}
