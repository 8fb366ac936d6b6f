//! That somebody else writes what is this controller's, as it is told.

use std::time::Duration;

use flexinfer_crds::keys;

use super::{LONGEST, line};
use crate::moment::Moment;

/// How long it is told.
const TOLD: Duration = Duration::from_secs(600);

/// The most that is named of who wrote what, in characters, so that there is room for what to do about it.
const NAMED: usize = 160;

/// Put-backs in a row from which on it is told that they go on.
const MANY: u32 = 3;

/// Somebody else wrote fields of a model's objects, which were put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    message: String,
    until: Moment,
}

impl Dispute {
    /// What was put back `now`, and from whom.
    pub fn new(said: &str, now: Moment) -> Self {
        Self { message: line(said, LONGEST), until: now + TOLD }
    }

    /// That an object of this kind and name was put back now, for so many times in a row, with who wrote which of its
    /// fields; `None` where there is nothing to tell: nobody is known to have written it, and it does not go on.
    pub fn of(
        (kind, name): (&str, &str),
        others: &[(String, String)],
        put_backs: u32,
        now: Moment,
    ) -> Option<Self> {
        let goes_on = put_backs >= MANY;
        if others.is_empty() && !goes_on {
            return None;
        }
        let said: Vec<String> =
            others.iter().map(|(who, field)| format!("{who} wrote {field}")).collect();
        let said = line(&said.join(", "), NAMED);
        let said = if said.is_empty() { "it is not known who".to_owned() } else { said };
        let told = if goes_on {
            let instead = instead(others);
            format!(
                "{kind} `{name}` is changed again and again: {said}; {instead}. It is put back less and less often"
            )
        } else {
            format!(
                "somebody else changed the {kind} `{name}`: {said}; it was put back, change the Model instead"
            )
        };
        Some(Self::new(&told, now))
    }

    /// That an object of this kind and name, which somebody had deleted, was made anew now, for so many times in a row;
    /// `None` where that does not go on. Who deletes what is gone, nothing tells.
    pub fn of_deletions((kind, name): (&str, &str), times: u32, now: Moment) -> Option<Self> {
        let ours = ours();
        let told = format!(
            "{kind} `{name}` is deleted again and again. It is made anew each time, at most ten seconds later: delete the \
             Model instead, or keep who does it from what has the label {ours}; the API server's audit log names them"
        );
        (times >= MANY).then(|| Self::new(&told, now))
    }

    /// What is told of it, as long as that is.
    pub fn told(&self, now: Moment) -> Option<&str> {
        (now < self.until).then_some(self.message.as_str())
    }

    /// When it is over.
    pub const fn until(&self) -> Moment {
        self.until
    }
}

/// What to do where it goes on.
fn instead(others: &[(String, String)]) -> String {
    let scaled = others.iter().any(|(_, field)| field == ".spec.replicas");
    let annotation = keys::AUTOSCALER;
    let or = if scaled {
        format!(", or give the Model `{annotation}: external`")
    } else {
        String::new()
    };
    format!("keep it from what has the label {}{or}", ours())
}

/// The label of all that is this controller's.
fn ours() -> String {
    format!("`{}: {}`", keys::MANAGED_BY, keys::MANAGED_BY_FLEXINFER)
}
