//! What the decision about a group is told of each member.

use flexinfer_crds::conditions::ConditionType;
use flexinfer_crds::model::Phase;

use super::objects::Drawn;
use super::{Candidate, Engine, Seen, deleted_at};
use crate::effective::Effective;
use crate::moment::Moment;
use crate::planning::group::Record;
use crate::planning::status::last_load;
use crate::planning::time::moment;

pub(super) fn candidate<'a>(
    member: &Seen<'a>,
    effective: &'a Effective,
    drawn: &Drawn,
    engine: &Engine,
) -> Candidate<'a> {
    Candidate {
        model: effective,
        engine: engine.clone(),
        demand: member.demand,
        obstructed: drawn.obstacle.is_some(),
        deleted: deleted_at(member.model).is_some(),
        evicted: drawn.pressure.evict,
        serving_since: serving_since(member),
        last_load: last_load(member.model.status.as_ref()),
        record: record(member),
    }
}

/// Since when it has been told to serve, if it is.
fn serving_since(member: &Seen<'_>) -> Option<Moment> {
    let kind: &str = ConditionType::Ready.into();
    let conditions = member.model.status.iter().flat_map(|status| &status.conditions);
    let mut ready = conditions.filter(|found| found.type_ == kind && found.status == "True");
    ready.next().map(|found| moment(&found.last_transition_time))
}

/// What was remembered of it. How it came to its GPU is told when its status turns to Ready, and over then: an engine
/// that is started anew later did not come by that swap.
fn record(member: &Seen<'_>) -> Record {
    let phase = member.model.status.as_ref().and_then(|status| status.phase);
    let coming = member.record.coming.filter(|_| phase != Some(Phase::Ready));
    Record { coming, ..member.record.clone() }
}
