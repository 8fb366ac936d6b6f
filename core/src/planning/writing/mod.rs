//! What of a model's objects the API server did not take, and what becomes of that: it is told, what runs goes on,
//! and it is tried again after a while that grows, at the cost of nobody else.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, ConditionType, LoadHindrance};
use flexinfer_crds::model::ModelStatus;

use super::status::Obstacle;
use super::words::line;
use crate::moment::Moment;

/// The first wait after a refusal; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The most that a message carries of the server's words, in characters.
const LONGEST: usize = 400;

/// What is written for a model, each apart from the others; what matters most to people comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The Model's finalizer.
    Finalizer,
    /// The claim of its weights, or a Job that sees to them.
    Weights,
    /// Its engines' Deployment.
    Engine,
    /// Only how many replicas that has.
    Replicas,
    /// Its Service.
    Service,
    /// Files that its engines read.
    Files,
    /// Jobs that nobody waits for: they measure the model, or clean up after it.
    Jobs,
    /// Pods that are to go.
    Pods,
}

/// Why something was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The namespace's quota is used up.
    Quota,
    /// A rule, a policy or a right that is missing.
    Refused,
    /// Something that is not the model's has the name.
    NameTaken,
}

/// How long it is told that somebody else wrote what is ours.
const DISPUTE: Duration = Duration::from_secs(600);

/// Somebody else wrote fields of a model's objects, which were put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispute {
    message: String,
    until: Moment,
}

impl Dispute {
    /// What was put back `now`, and from whom.
    pub fn new(said: &str, now: Moment) -> Self {
        Self { message: line(said, LONGEST), until: now + DISPUTE }
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

/// Something that was not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    why: Why,
    message: String,
    /// Of which generation of the Model.
    generation: Option<i64>,
    /// Not tried again before.
    until: Moment,
    tries: u32,
}

/// What is known of the writes of one model's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    refused: BTreeMap<Part, Refused>,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Finalizer,
        Self::Weights,
        Self::Engine,
        Self::Replicas,
        Self::Service,
        Self::Files,
        Self::Jobs,
        Self::Pods,
    ];

    /// Whether the model cannot be started without it; whether its weights are there already is `filled`.
    const fn is_needed(self, filled: bool) -> bool {
        match self {
            Self::Jobs | Self::Pods => false,
            Self::Weights => !filled,
            _ => true,
        }
    }
}

impl Why {
    /// Of a refusal in the server's words.
    pub fn of(said: &str) -> Self {
        // The server's code and reason are those of any rule; only its words name a quota.
        if said.contains("exceeded quota") { Self::Quota } else { Self::Refused }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Quota => LoadHindrance::QuotaExceeded.into(),
            Self::Refused => ConditionReason::Refused.into(),
            Self::NameTaken => ConditionReason::NameTaken.into(),
        }
    }
}

impl Writing {
    /// What a status lets a controller remember that has just begun: that something was refused. It is tried at
    /// once, but before the model may win anybody's GPU by it.
    pub fn remembered(status: Option<&ModelStatus>) -> Self {
        let kind: &str = ConditionType::Applied.into();
        let conditions = status.into_iter().flat_map(|status| &status.conditions);
        let mut lost = conditions.filter(|found| found.type_ == kind && found.status == "False");
        let whys = [Why::Quota, Why::Refused, Why::NameTaken];
        let known = lost.find_map(|found| {
            let why = whys.into_iter().find(|why| why.reason() == found.reason)?;
            let message = found.message.clone();
            let generation = found.observed_generation;
            Some(Refused { why, message, generation, until: Moment::ORIGIN, tries: 0 })
        });
        Self { refused: known.map(|refused| (Part::Engine, refused)).into_iter().collect() }
    }

    /// `part` was not taken, of this generation of the Model, for the reason that was `said`.
    pub fn refuse(
        &mut self,
        part: Part,
        (why, said): (Why, &str),
        generation: Option<i64>,
        now: Moment,
    ) {
        let before = self.refused.get(&part).filter(|before| before.generation == generation);
        let tries = before.map_or(0, |before| before.tries);
        let factor = 2_u32.saturating_pow(tries);
        let until = now + FIRST_WAIT.saturating_mul(factor).min(LONGEST_WAIT);
        let (message, tries) = (line(said, LONGEST), tries.saturating_add(1));
        self.refused.insert(part, Refused { why, message, generation, until, tries });
    }

    /// `part` was taken, or there is nothing to write of it.
    pub fn take(&mut self, part: Part) {
        self.refused.remove(&part);
    }

    /// Whether `part` was refused the last time.
    pub fn is_refused(&self, part: Part) -> bool {
        self.refused.contains_key(&part)
    }

    /// Whether `part` has to be left alone for now: it was refused not long ago, and the Model is the same.
    pub fn withholds(&self, part: Part, generation: Option<i64>, now: Moment) -> bool {
        let refused = self.refused.get(&part);
        refused.is_some_and(|refused| refused.generation == generation && now < refused.until)
    }

    /// When the next of what was refused is to be tried again.
    pub fn next_try(&self, now: Moment) -> Option<Moment> {
        self.refused.values().map(|refused| refused.until).filter(|until| *until > now).min()
    }

    /// Whether people have to be told something else than by `before`.
    pub fn differs(&self, before: &Self) -> bool {
        let told = |writing: &Self| -> Vec<(Part, Why, String)> {
            let all = writing.refused.iter();
            all.map(|(part, refused)| (*part, refused.why, refused.message.clone())).collect()
        };
        told(self) != told(before)
    }

    /// What keeps the model from being started, where its weights are there already if `filled`.
    pub fn obstacle(&self, filled: bool) -> Option<Obstacle> {
        let (part, refused) = self.refused.iter().find(|(part, _)| part.is_needed(filled))?;
        let condition = match part {
            Part::Weights => ConditionType::Cached,
            _ => ConditionType::Applied,
        };
        let (reason, message) = (refused.why.reason(), refused.message.clone());
        Some(Obstacle { condition, reason, message, lasting: true })
    }

    /// What of all that was refused is told, where anything was: its reason and what the server said. The reason ends
    /// no wait where nobody has to wait for it.
    pub fn trouble(&self, filled: bool) -> Option<(&'static str, String)> {
        let (part, first) = self.refused.iter().next()?;
        let awaited = part.is_needed(filled);
        let reason = if awaited { first.why } else { Why::Refused }.reason();
        let messages: Vec<&str> =
            self.refused.values().map(|refused| refused.message.as_str()).collect();
        Some((reason, messages.join("; ")))
    }

    /// What is wrong with the Jobs that nobody waits for.
    pub fn of_jobs(&self) -> Option<&str> {
        self.refused.get(&Part::Jobs).map(|refused| refused.message.as_str())
    }
}
