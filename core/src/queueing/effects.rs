//! What a group wants done, in the order in which it wants it.

use std::net::SocketAddr;
use std::time::Duration;

use super::SwapWait;
use crate::activation::{Failure, Stage};
use crate::ids::{BookingId, InstanceId, ModelId, Ticket};
use crate::rejection::Rejection;

/// The effects of one event.
pub type Effects = Vec<Effect>;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The request of `ticket` has a slot at `address`, until `booking` is finished.
    Grant { ticket: Ticket, booking: BookingId, model: ModelId, address: SocketAddr },
    /// The request of `ticket` is answered with `rejection`.
    Reject { ticket: Ticket, rejection: Rejection },
    /// An engine of this model and generation shall be started as `instance`.
    Start { instance: InstanceId, model: ModelId, generation: u64 },
    /// The engine shall end, and be reported gone.
    Stop { instance: InstanceId, model: ModelId },
    /// Something that an operator wants to read.
    Tell { model: ModelId, notice: Notice },
}

/// What a person is told about a model, at the moment it is decided or learnt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It is started because `waiting` requests wait, or because it is kept warm. `swap` is what they waited
    /// for, where another model had to leave.
    Waking { waiting: usize, swap: Option<SwapWait> },
    /// Its turn has to wait for `leaving` to finish and go.
    Swapping { leaving: ModelId },
    /// It takes nothing new and leaves once `in_flight` requests are done.
    Draining { in_flight: u32 },
    /// It left with `in_flight` requests cut off at the drain limit.
    CutOff { in_flight: u32 },
    /// It serves, after a load of `took`; `waiting` requests go out now. `stages` is what the wait was spent on,
    /// where somebody else starts engines and says how far that is.
    Ready { took: Duration, waiting: usize, stages: Vec<(Stage, Duration)> },
    /// It goes to sleep, having had nothing to do for `idle`.
    Sleeping { idle: Duration },
    /// It is stopped because its file changed or went away.
    Replaced,
    /// It failed; `retry_in` is when it is tried again: by itself if it is `retrying` for those
    /// who wait, else if anybody asks.
    Failed { failure: Failure, retry_in: Duration, retrying: bool },
    /// Its engine has ended.
    Gone,
}
