//! What answers told, for later requests that name it: which engine has what; and of a stored response, which model
//! made it, and what was charged for it.

use flexinfer_core::ids::{EndpointId, ModelId};
use flexinfer_core::limits::Paid;
use flexinfer_core::routing::Pins;
use parking_lot::Mutex;

use crate::pictures::Pictures;

/// Things of which it is known which engine has them; never more than has room in a few tens of megabytes.
const PINS: usize = 100_000;

/// What answers told.
pub struct Remembered {
    /// Which engine has what.
    pub(crate) engines: Mutex<Pins<EndpointId>>,
    /// Which engine told whom of a picture.
    pub(crate) pictures: Pictures,
    /// Which client queued which job, where it said who it is.
    queued: Mutex<Pins<String>>,
    /// The stored responses that were seen made, by their ids.
    responses: Mutex<Pins<Made>>,
}

/// A stored response.
#[derive(Clone, Debug)]
struct Made {
    model: ModelId,
    paid: Paid,
}

impl Default for Remembered {
    fn default() -> Self {
        Self {
            engines: Mutex::new(Pins::new(PINS)),
            pictures: Pictures::new(),
            queued: Mutex::new(Pins::new(PINS)),
            responses: Mutex::new(Pins::new(PINS)),
        }
    }
}

impl Remembered {
    /// `client` queued `job`, which takes from `owner`'s share of what is remembered.
    pub(crate) fn queued_by(&self, owner: &str, job: &str, client: &str) {
        self.queued.lock().pin_of(owner, job, client.to_owned());
    }

    /// The client that queued `job`, if that was seen here.
    pub(crate) fn who_queued(&self, job: &str) -> Option<String> {
        self.queued.lock().holder(job)
    }

    /// `model` is making the response `id`, for which so many tokens are reserved.
    pub(crate) fn made(&self, id: &str, model: &ModelId, reserved: u64) {
        let made = Made { model: model.clone(), paid: Paid { reserved, tokens: 0 } };
        self.responses.lock().pin(id, made);
    }

    /// The model that made the response `id`, if that was seen here.
    pub(crate) fn maker(&self, id: &str) -> Option<ModelId> {
        self.responses.lock().holder_mut(id).map(|made| made.model.clone())
    }

    /// The response `id` has taken so many tokens so far: what was charged for it before, where that is known. From
    /// now on those count as charged.
    pub(crate) fn took(&self, id: &str, tokens: u64) -> Option<Paid> {
        let mut responses = self.responses.lock();
        let paid = &mut responses.holder_mut(id)?.paid;
        let before = *paid;
        paid.tokens = before.tokens.max(tokens);
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_queues_very_many_jobs_drives_out_nobody_elses() {
        let remembered = Remembered::default();
        remembered.queued_by("me", "mine", "my client");
        for number in 0..=PINS {
            remembered.queued_by("another", &number.to_string(), "its client");
        }
        assert_eq!(remembered.who_queued("mine").as_deref(), Some("my client"));
        assert_eq!(remembered.who_queued("0"), None);
    }
}
