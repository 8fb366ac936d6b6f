//! What the decision about a group is told of each member.

use super::objects::Drawn;
use super::{Candidate, Engine, Seen, deleted_at, last_load};
use crate::effective::Effective;

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
        last_load: last_load(member.model.status.as_ref()),
        record: member.record.clone(),
    }
}
