//! One engine of a pool: where it is, and whether it answers. What is on it, the roster knows.

use std::net::SocketAddr;

use crate::ids::EndpointId;

/// An engine as a list of endpoints has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Which engine; another one at the same address has another id.
    pub id: EndpointId,
    /// Where it listens.
    pub address: SocketAddr,
    /// Whether the list calls it ready. It is asked itself all the same.
    pub ready: bool,
    /// It ends, or its machine does: nothing new is sent to it.
    pub leaving: bool,
}

/// An engine as a pool knows it.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) listed: Listed,
    /// It answered its probe, and nothing has cast doubt on it since.
    pub(super) proven: bool,
    /// The controller has stopped it, though it is listed still: it may answer for a while, and would break off.
    pub(super) stopped: bool,
}

impl Endpoint {
    pub(super) fn new(listed: Listed) -> Self {
        Self { listed, proven: false, stopped: false }
    }

    /// Whether it takes requests, leaving aside how many it has.
    pub(super) fn open(&self) -> bool {
        self.proven && !self.goes()
    }

    /// Whether it has to be asked before it can be open.
    pub(super) fn in_question(&self) -> bool {
        !self.proven && !self.goes()
    }

    /// Whether it takes nothing more, by what is known.
    pub(super) fn goes(&self) -> bool {
        self.listed.leaving || self.stopped
    }
}
