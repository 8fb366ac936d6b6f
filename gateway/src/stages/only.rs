//! Which engine alone has what a client of ComfyUI's asks for. Another may have a picture of the same name, which is
//! somebody else's: it is not asked.

use std::time::Instant;

use flexinfer_core::backends::Backend;
use flexinfer_core::ids::EndpointId;
use flexinfer_core::rejection::Rejection;
use flexinfer_core::routing::{KnownBy, Only};

use crate::context::Target;
use crate::parts::Parts;
use crate::pictures::Teller;

/// The engine that has what is asked for, which may be gone: that is said by the queue, which sees it go. `None` where whoever
/// is asked may have it. `marked` is the one whose mark the client brought, if it is still there: where a mark leads to none,
/// there is no engine to ask the queue for, and that it is gone is said here.
pub(super) fn holder(
    parts: &Parts,
    target: &Target,
    only: &Only,
    marked: Option<EndpointId>,
) -> Result<Option<EndpointId>, Rejection> {
    if has_one(parts, target) {
        return Ok(None);
    }
    let what = || only.what.clone();
    let gone = || Rejection::MakerGone { what: what() };
    let pictures = &parts.remembered.pictures;
    let known = match &only.known_by {
        KnownBy::Mark => return marked.ok_or_else(gone).map(Some),
        KnownBy::Job(name) => parts.remembered.engines.lock().holder(name),
        KnownBy::Own(name) | KnownBy::Moved(name) => pictures.last(name),
        KnownBy::Marked(name) => match pictures.last(name) {
            None => return marked.ok_or_else(gone).map(Some),
            told => told,
        },
        KnownBy::Told(name) => match pictures.teller(name, Instant::now()) {
            Some(Teller::Several) => return Err(Rejection::PictureUncertain { file: what() }),
            Some(Teller::One(engine)) => Some(engine),
            None => None,
        },
    };
    if known.is_none() && must_be_known(parts, target, &only.known_by) {
        return Err(Rejection::PictureUnknown { file: what() });
    }
    Ok(known)
}

/// Whether nobody is asked for what nobody is known to have. Any engine may be asked for a job, and the only one for a
/// picture, unless its client was at another before.
fn must_be_known(parts: &Parts, target: &Target, known_by: &KnownBy) -> bool {
    match known_by {
        KnownBy::Job(_) => false,
        KnownBy::Moved(_) => true,
        _ => can_be_several(parts, target),
    }
}

/// Whether the model has one engine at a time, which is asked for everything, as if nothing stood before it. Of one that
/// others run, nobody says how many there will be.
fn has_one(parts: &Parts, target: &Target) -> bool {
    let runs_elsewhere = Backend::named(&target.served.backend) == Some(Backend::External);
    !runs_elsewhere && !can_be_several(parts, target)
}

/// Whether the model has several engines, or can have.
fn can_be_several(parts: &Parts, target: &Target) -> bool {
    let model = &target.served.effective;
    let engines = parts.dispatch.engines(&model.id);
    let may_be = model.max_replicas > 1 || model.scaled_elsewhere;
    engines.is_some_and(|engines| engines.len() > 1 || may_be)
}
