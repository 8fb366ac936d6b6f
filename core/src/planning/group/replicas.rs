//! How many replicas a model that runs shall have: what it has to do over what one takes at once.

use std::time::Duration;

use super::Candidate;
use crate::moment::Moment;
use crate::scaling::Activity;

/// How long fewer must have been enough before one is taken away.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// How many replicas `candidate` shall have, and since when fewer would have been enough. More come
/// at once; fewer only after [`PATIENCE`].
pub(super) fn wanted(
    candidate: &Candidate<'_>,
    activity: &Activity,
    fewer_since: Option<Moment>,
    now: Moment,
) -> (u32, Option<Moment>) {
    let model = candidate.model;
    let load = activity.in_flight.saturating_add(activity.waiting);
    let enough = model.slots.map_or(1, |slots| load.div_ceil(slots.max(1)));
    let enough = enough.clamp(model.min_replicas.max(1), model.max_replicas.max(1));
    let asked = candidate.engine.asked;
    if enough >= asked {
        return (enough, None);
    }
    let since = fewer_since.unwrap_or(now);
    let over = now >= since + PATIENCE || asked > model.max_replicas.max(1);
    if over { (enough, None) } else { (asked, Some(since)) }
}
