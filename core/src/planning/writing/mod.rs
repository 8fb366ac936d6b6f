//! What of a model's objects was not written, and what becomes of that: what the API server refused is told, what
//! runs goes on, and it is tried again after a while that grows, at the cost of nobody else.

mod contest;
mod dispute;
mod going;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, ConditionType, LoadHindrance};
use flexinfer_crds::model::ModelStatus;

use super::status::Obstacle;
use super::words::line;
use crate::moment::Moment;

pub use contest::{Contest, Stake, writers};
pub use dispute::Dispute;
pub use going::Going;

/// The first wait after a write that was not taken; it doubles with each.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The longest after a refusal.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The longest after what may pass by itself, such as a server that cannot store anything just now.
const LONGEST_PASSING: Duration = Duration::from_secs(10);

/// So often what may pass by itself is tried in vain before it is told: half a minute.
const FAILS: u32 = 6;

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
    /// Pods on nodes that are about to be taken away: what is refused of others must not hold them up.
    Moving,
    /// The Model's status. That it is refused can be told nowhere.
    Status,
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
    /// The namespace is being deleted: nothing is made in it any more.
    NamespaceEnds,
    /// The server fails, as it did the times before. It may pass by itself, and keeps nothing from being tried.
    Fails,
}

/// A refusal, as it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Refused {
    why: Why,
    message: String,
}

/// Something that was tried in vain and has not been written since.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attempt {
    /// What is told of it; nothing at first of what may pass by itself, nor once a trial was taken.
    refused: Option<Refused>,
    /// Of which generation of the Model.
    generation: Option<i64>,
    /// Not tried again before.
    until: Moment,
    tries: u32,
}

/// What is known of the writes of one model's objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    attempts: BTreeMap<Part, Attempt>,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Finalizer,
        Self::Weights,
        Self::Engine,
        Self::Replicas,
        Self::Service,
        Self::Files,
        Self::Jobs,
        Self::Pods,
        Self::Moving,
        Self::Status,
    ];

    /// Whether the model cannot be started without it; whether its weights are there already is `filled`.
    const fn is_needed(self, filled: bool) -> bool {
        match self {
            Self::Jobs | Self::Pods | Self::Moving | Self::Status => false,
            Self::Weights => !filled,
            _ => true,
        }
    }
}

impl Why {
    /// Of a refusal in the server's words.
    pub fn of(said: &str) -> Self {
        // The server's code and reason are those of any rule; only its words name a quota or an end.
        if said.contains("exceeded quota") {
            Self::Quota
        } else if said.contains("because it is being terminated") {
            Self::NamespaceEnds
        } else {
            Self::Refused
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::Quota => LoadHindrance::QuotaExceeded.into(),
            Self::Refused | Self::NamespaceEnds => ConditionReason::Refused.into(),
            Self::NameTaken => ConditionReason::NameTaken.into(),
            Self::Fails => ConditionReason::WriteFailed.into(),
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
            let refused = Some(Refused { why, message: found.message.clone() });
            let generation = found.observed_generation;
            Some(Attempt { refused, generation, until: Moment::ORIGIN, tries: 0 })
        });
        Self { attempts: known.map(|attempt| (Part::Engine, attempt)).into_iter().collect() }
    }

    /// `part` was refused, of this generation of the Model, for the reason that was `said`.
    pub fn refuse(
        &mut self,
        part: Part,
        (why, said): (Why, &str),
        generation: Option<i64>,
        now: Moment,
    ) {
        let refused = Some(Refused { why, message: line(said, LONGEST) });
        self.try_in_vain(part, refused, generation, (now, LONGEST_WAIT));
    }

    /// `part` was not taken, of this generation of the Model, for a reason that may pass by itself. What was `said` is
    /// told when it goes on, in the words of then: those of each try may differ.
    pub fn fail(&mut self, part: Part, said: &str, generation: Option<i64>, now: Moment) {
        let before = self.attempts.get(&part);
        let told = before.and_then(|before| before.refused.clone());
        let goes_on = before.is_some_and(|before| {
            before.generation == generation && before.tries.saturating_add(1) >= FAILS
        });
        let fails = || Refused { why: Why::Fails, message: line(said, LONGEST) };
        let told = told.or_else(|| goes_on.then(fails));
        self.try_in_vain(part, told, generation, (now, LONGEST_PASSING));
    }

    fn try_in_vain(
        &mut self,
        part: Part,
        refused: Option<Refused>,
        generation: Option<i64>,
        (now, longest): (Moment, Duration),
    ) {
        let before = self.attempts.get(&part).filter(|before| before.generation == generation);
        let tries = before.map_or(0, |before| before.tries);
        let factor = 2_u32.saturating_pow(tries);
        let until = now + FIRST_WAIT.saturating_mul(factor).min(longest);
        let tries = tries.saturating_add(1);
        self.attempts.insert(part, Attempt { refused, generation, until, tries });
    }

    /// `part` was written.
    pub fn take(&mut self, part: Part) {
        self.attempts.remove(&part);
    }

    /// There is nothing to write of `part` now, or it would be taken: nothing is told of it any more. How often it was
    /// tried in vain counts on until it is written, or it would be tried ever faster again whenever nothing is to do.
    pub fn rest(&mut self, part: Part) {
        if let Some(attempt) = self.attempts.get_mut(&part) {
            attempt.refused = None;
        }
    }

    /// Whether `part` was refused the last time.
    pub fn is_refused(&self, part: Part) -> bool {
        self.refused().any(|(of, refused)| of == part && refused.why != Why::Fails)
    }

    /// Whether `part` has to be left alone for now: it was tried in vain not long ago, and the Model is the same.
    pub fn withholds(&self, part: Part, generation: Option<i64>, now: Moment) -> bool {
        let attempt = self.attempts.get(&part);
        attempt.is_some_and(|attempt| attempt.generation == generation && now < attempt.until)
    }

    /// When the next of what was not taken is to be tried again.
    pub fn next_try(&self, now: Moment) -> Option<Moment> {
        self.attempts.values().map(|attempt| attempt.until).filter(|until| *until > now).min()
    }

    /// What is told of what was not taken, what matters most first.
    fn refused(&self) -> impl Iterator<Item = (Part, &Refused)> {
        self.attempts.iter().filter_map(|(part, attempt)| Some((*part, attempt.refused.as_ref()?)))
    }

    /// Whether people have to be told something else than by `before`.
    pub fn differs(&self, before: &Self) -> bool {
        !self.refused().eq(before.refused())
    }

    /// What keeps the model from being started, where its weights are there already if `filled`.
    pub fn obstacle(&self, filled: bool) -> Option<Obstacle> {
        let mut needed = self.refused().filter(|(part, _)| part.is_needed(filled));
        let (part, refused) = needed.find(|(_, refused)| refused.why != Why::Fails)?;
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
        let fails = |refused: &Refused| refused.why == Why::Fails;
        let (part, first) = self.refused().min_by_key(|(part, found)| (fails(found), *part))?;
        let own = part.is_needed(filled) || fails(first);
        let reason = if own { first.why } else { Why::Refused }.reason();
        let messages: Vec<&str> =
            self.refused().map(|(_, refused)| refused.message.as_str()).collect();
        Some((reason, messages.join("; ")))
    }

    /// Whether `part` will never be taken.
    pub fn is_hopeless(&self, part: Part) -> bool {
        self.refused().any(|(of, refused)| of == part && refused.why == Why::NamespaceEnds)
    }

    /// What is wrong with the Jobs that nobody waits for.
    pub fn of_jobs(&self) -> Option<&str> {
        let attempt = self.attempts.get(&Part::Jobs)?;
        attempt.refused.as_ref().map(|refused| refused.message.as_str())
    }
}
