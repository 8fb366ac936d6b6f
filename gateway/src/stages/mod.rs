//! The way of a request, in the order it takes (blank lines keep rustfmt from sorting it). Each stage is
//! one file or folder named for what it does; `proxy.rs` says which of Pingora's hooks calls it, and
//! `docs/request-path.md` tells the way in words: a test compares the two.

// request_filter

pub(crate) mod receive;

pub(crate) mod cors;

pub(crate) mod identify;

pub(crate) mod lists;

pub(crate) mod read;

pub(crate) mod understand;

pub(crate) mod resolve;

pub(crate) mod limit;

pub(crate) mod tie;

pub(crate) mod dispatch;

pub(crate) mod adapt;

// upstream_peer

pub(crate) mod connect;

// upstream_request_filter, request_body_filter

pub(crate) mod send;

// fail_to_connect, error_while_proxy, fail_to_proxy

pub(crate) mod judge;

// upstream_response_filter, upstream_response_body_filter

pub(crate) mod relay;

pub(crate) mod settle;

// logging

pub(crate) mod account;

// Not stages: how those that read bodies do so with long ones, how the fields of a head are changed, what clients of
// ComfyUI come back with and for, where engines lead clients on to, what the gateway says by itself from any of
// them, what realtime sessions cost, and what a trace tells of all of them.

pub(crate) mod aside;
mod fields;
mod marks;
mod only;
mod redirect;
pub(crate) mod respond;
pub(crate) mod sessions;
pub(crate) mod spans;

use flexinfer_core::rejection::Rejection;
use pingora_core::{BError, Error, ErrorType};

/// Why a request goes no further.
pub(crate) enum Stop {
    /// The gateway answers by itself.
    Answered(respond::Own),
    /// A browser is told whether its page may ask.
    Preflight,
    /// The gateway says why not.
    Rejected(Rejection),
    /// Nobody is there to be answered.
    ClientLeft,
}

impl From<Rejection> for Stop {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// The error that tells Pingora to close a connection whose client has left.
#[expect(clippy::unnecessary_box_returns, reason = "Pingora hands its errors around in boxes")]
pub(crate) fn client_left() -> BError {
    Error::explain(ErrorType::ConnectionClosed, "the client left").into_down()
}
