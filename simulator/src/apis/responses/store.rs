//! Responses that are kept: to be shown, gone on from, cancelled and deleted. The oldest go first.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::apis::answer::set;

/// Responses kept at once.
const KEPT: usize = 1_024;

/// One kept response.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    /// As it is shown.
    pub(super) object: Value,
    /// The conversation up to and with it, for a response that goes on from here.
    pub(super) conversation: String,
    /// Ends the work on a response in the background.
    pub(super) work: Option<CancellationToken>,
}

/// Why a response is not cancelled.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CancelError {
    Unknown,
    NotInBackground,
}

/// The responses of one engine.
#[derive(Debug, Default)]
pub(crate) struct StoredResponses {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_id: HashMap<String, Stored>,
    by_age: VecDeque<String>,
}

impl StoredResponses {
    pub(super) fn keep(&self, id: &str, stored: Stored) {
        let mut kept = self.kept.lock();
        if kept.by_id.insert(id.to_owned(), stored).is_none() {
            kept.by_age.push_back(id.to_owned());
        }
        while kept.by_age.len() > KEPT {
            let Some(oldest) = kept.by_age.pop_front() else { break };
            kept.by_id.remove(&oldest);
        }
    }

    /// Changes a response that is still kept and still under way.
    pub(super) fn progress(&self, id: &str, stored: Stored) {
        let mut kept = self.kept.lock();
        if let Some(entry) = kept.by_id.get_mut(id)
            && is_under_way(&entry.object)
        {
            *entry = stored;
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<Stored> {
        self.kept.lock().by_id.get(id).cloned()
    }

    /// False when it was not kept.
    pub(super) fn remove(&self, id: &str) -> bool {
        let mut kept = self.kept.lock();
        kept.by_age.retain(|kept| kept != id);
        let removed = kept.by_id.remove(id);
        if let Some(Stored { work: Some(work), .. }) = &removed {
            work.cancel();
        }
        removed.is_some()
    }

    /// Ends the work on a response in the background; one that is over stays as it is.
    pub(super) fn cancel(&self, id: &str) -> Result<Value, CancelError> {
        let mut kept = self.kept.lock();
        let entry = kept.by_id.get_mut(id).ok_or(CancelError::Unknown)?;
        let work = entry.work.as_ref().ok_or(CancelError::NotInBackground)?;
        work.cancel();
        if is_under_way(&entry.object) {
            set(&mut entry.object, "status", json!("cancelled"));
        }
        Ok(entry.object.clone())
    }
}

fn is_under_way(object: &Value) -> bool {
    matches!(object.get("status").and_then(Value::as_str), Some("queued" | "in_progress"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(status: &str, work: Option<CancellationToken>) -> Stored {
        Stored { object: json!({ "status": status }), conversation: String::new(), work }
    }

    #[test]
    fn the_oldest_response_is_forgotten() {
        let responses = StoredResponses::default();
        for number in 0..=KEPT {
            responses.keep(&number.to_string(), stored("completed", None));
        }
        assert!(responses.get("0").is_none());
        assert!(responses.get("1").is_some());
    }

    #[test]
    fn a_cancelled_response_is_not_completed_afterwards() {
        let responses = StoredResponses::default();
        responses.keep("a", stored("in_progress", Some(CancellationToken::new())));
        assert_eq!(responses.cancel("a").unwrap()["status"], "cancelled");
        responses.progress("a", stored("completed", None));
        assert_eq!(responses.get("a").unwrap().object["status"], "cancelled");
    }

    #[test]
    fn only_work_in_the_background_is_cancelled() {
        let responses = StoredResponses::default();
        responses.keep("a", stored("completed", None));
        assert_eq!(responses.cancel("a"), Err(CancelError::NotInBackground));
        assert_eq!(responses.cancel("b"), Err(CancelError::Unknown));
    }
}
