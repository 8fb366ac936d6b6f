//! A slot on an engine, given back when it is dropped.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use flexinfer_core::fleet::Served;
use flexinfer_core::ids::{BookingId, EndpointId};

type GiveBack = Box<dyn FnOnce(BookingId) + Send + Sync>;

/// One request's slot on one engine.
pub struct Booking {
    /// Which slot this is.
    pub id: BookingId,
    /// The model as it is now: a wait can outlast a change of the model.
    pub served: Arc<Served>,
    /// Where the engine listens.
    pub address: SocketAddr,
    /// Which of several engines it is, where there can be several.
    pub endpoint: Option<EndpointId>,
    give_back: Option<GiveBack>,
}

impl Booking {
    /// The slot `id`; `give_back` is called once, when the booking is dropped.
    pub fn new(
        id: BookingId,
        served: Arc<Served>,
        address: SocketAddr,
        give_back: impl FnOnce(BookingId) + Send + Sync + 'static,
    ) -> Self {
        Self { id, served, address, endpoint: None, give_back: Some(Box::new(give_back)) }
    }
}

impl Drop for Booking {
    fn drop(&mut self) {
        if let Some(give_back) = self.give_back.take() {
            give_back(self.id);
        }
    }
}

impl fmt::Debug for Booking {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Booking")
            .field("id", &self.id)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
