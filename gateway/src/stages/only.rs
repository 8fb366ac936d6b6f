//! Which engine alone has what a client of ComfyUI's asks for. Another may have a picture of the same name, which is
//! somebody else's: it is not asked.

use std::time::Instant;

use flexinfer_core::ids::EndpointId;
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{KnownBy, Only};

use crate::context::Target;
use crate::parts::Parts;
use crate::pictures::Teller;

/// The engine that has what is asked for; `None` where whoever is asked may have it. `marked` is the one whose mark the
/// client brought, if it is still there.
pub(super) fn holder(
    parts: &Parts,
    target: &Target,
    only: &Only,
    marked: Option<EndpointId>,
) -> Result<Option<EndpointId>, Rejection> {
    let what = || only.what.clone();
    let known = match &only.known_by {
        KnownBy::Mark => {
            return marked.ok_or_else(|| Rejection::MakerGone { what: what() }).map(Some);
        }
        KnownBy::Job(name) => return Ok(parts.remembered.engines.lock().holder(name)),
        KnownBy::Client(name) => parts.remembered.engines.lock().holder(name),
        KnownBy::Told(name) => match parts.remembered.pictures.teller(name, Instant::now()) {
            Some(Teller::Several) => return Err(Rejection::PictureUncertain { file: what() }),
            Some(Teller::One(engine)) => Some(engine),
            None => None,
        },
    };
    if known.is_none() && can_be_several(parts, target) {
        return Err(Rejection::PictureUnknown { file: what() });
    }
    Ok(known)
}

/// Whether the model has several engines, or can have.
fn can_be_several(parts: &Parts, target: &Target) -> bool {
    let model = &target.served.effective;
    model.max_replicas > 1
        || parts.dispatch.engines(&model.id).is_some_and(|engines| engines.len() > 1)
}
