//! What can be seen of a pool from outside: for status pages and metrics.

use std::net::SocketAddr;
use std::time::Duration;

use flexinfer_crds::model::Phase;

use super::Pool;
use super::endpoint::Endpoint;
use super::waking::Waking;
use crate::activation::{Failure, Stage};
use crate::ids::{EndpointId, ModelId};
use crate::moment::Moment;

/// How an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum EndpointState {
    /// It is being asked whether it serves.
    Asked,
    /// It takes requests.
    Open,
    /// It takes nothing new.
    Leaving,
}

/// One endpoint of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointView {
    /// Which engine.
    pub id: EndpointId,
    /// Where it listens.
    pub address: SocketAddr,
    /// How it is.
    pub state: EndpointState,
    /// Requests on it.
    pub in_flight: u32,
}

/// One model's pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolView {
    /// Which model.
    pub id: ModelId,
    /// What the controller calls its phase.
    pub phase: Option<Phase>,
    /// It takes nothing new and leaves.
    pub draining: bool,
    /// Why waiting for it does not help.
    pub failure: Option<Failure>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointView>,
    /// Requests on engines.
    pub in_flight: usize,
    /// Requests in the queue.
    pub waiting: usize,
    /// How long requests last waited for its first endpoint.
    pub last_load: Option<Duration>,
    /// What that wait was spent on, in order.
    pub last_wait: Vec<(Stage, Duration)>,
    /// What requests that wait for its first endpoint wait for now, and since when.
    pub waits_for: Option<(Stage, Moment)>,
    /// When its last request ended.
    pub last_active: Option<Moment>,
}

impl PoolView {
    /// Endpoints that take requests.
    pub fn open(&self) -> usize {
        self.endpoints.iter().filter(|endpoint| endpoint.state == EndpointState::Open).count()
    }

    /// Whether a request would be served without waiting for the controller.
    pub fn ready(&self) -> bool {
        !self.draining && self.open() > 0
    }
}

impl Pool {
    /// What can be seen now.
    pub fn view(&self) -> PoolView {
        PoolView {
            id: self.terms.id.clone(),
            phase: self.standing.phase,
            draining: self.standing.draining,
            failure: self.standing.failure.clone(),
            endpoints: self.endpoints.values().map(|endpoint| self.seen(endpoint)).collect(),
            in_flight: self.bookings.len(),
            waiting: self.waiting.len(),
            last_load: self.last_load,
            last_wait: self.last_wait.clone(),
            waits_for: self.waking.as_ref().map(Waking::at),
            last_active: self.last_active,
        }
    }

    fn seen(&self, endpoint: &Endpoint) -> EndpointView {
        let state = match (endpoint.open(), endpoint.in_question()) {
            (true, _) => EndpointState::Open,
            (_, true) => EndpointState::Asked,
            _ => EndpointState::Leaving,
        };
        EndpointView {
            id: endpoint.listed.id.clone(),
            address: endpoint.listed.address,
            state,
            in_flight: self.roster.in_flight(&endpoint.listed.id),
        }
    }
}
