//! Writes the request for the engine: its own name for the model, its own path, a length; every other
//! byte of the body as the client sent it.

use flexinfer_core::rewriting::{for_engine, splice};
use http::HeaderValue;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use pingora_core::{ErrorType, OrErr, Result};
use pingora_http::RequestHeader;
use pingora_proxy::Session;

use super::receive::REQUEST_ID;
use crate::context::{Body, Context};
use crate::queues::Booking;
use crate::replay::{Replay, Upload};

/// Shapes the head, and puts the body where Pingora takes it from.
pub(crate) fn send(
    session: &mut Session,
    head: &mut RequestHeader,
    context: &mut Context,
) -> Result<()> {
    head.remove_header(&EXPECT);
    if let Some(id) = &context.request_id {
        head.insert_header(REQUEST_ID, id.clone())?;
    }
    let Some((target, booking)) = context.target.as_ref().zip(context.attempt.booking.as_ref())
    else {
        return Ok(());
    };
    if let Some(charged) = &mut context.ruled.charged {
        charged.seen();
    }
    head.insert_header(HOST, booking.address.to_string())?;
    head.set_raw_path(target.path.as_bytes())?;
    if target.stream {
        // A compressed stream of events is held back until a block is full.
        head.insert_header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))?;
    }
    let Some(body) = context.body.as_mut() else { return Ok(()) };
    let upload = upload(body, booking)?;
    head.remove_header(&TRANSFER_ENCODING);
    head.insert_header(CONTENT_LENGTH, upload.len())?;
    context.attempt.replay = Some(Replay::begin(&mut session.downstream_session, upload));
    Ok(())
}

/// Gives the client's session back once the last of the body is on its way, or when there is no way.
pub(crate) fn sent(session: &mut Session, context: &mut Context) {
    if let Some(replay) = context.attempt.replay.take() {
        replay.end(&mut session.downstream_session);
    }
}

/// The body as the booked model's engine shall see it.
fn upload<'a>(body: &'a mut Body, booking: &Booking) -> Result<&'a Upload> {
    let name = booking.served.name_for_engine();
    let mut splices = for_engine(&body.understood, name);
    splices.extend_from_slice(&body.changes);
    // The spans were found in this very body: that they do not fit is a fault of ours, answered as one.
    let rope =
        splice(&body.received, splices).or_err(ErrorType::InternalError, "splicing a body")?;
    Ok(body.upload.insert(Upload::from(rope)))
}
