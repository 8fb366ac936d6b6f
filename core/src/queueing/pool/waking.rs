//! What a wait for a model's first endpoint is spent on, by what the controller says meanwhile.

use std::time::Duration;

use crate::activation::Stage;
use crate::moment::Moment;

/// A wait that goes on.
#[derive(Clone, Debug)]
pub(super) struct Waking {
    since: Moment,
    stage: Stage,
    entered: Moment,
    /// The stages that are over, in the order in which they were first entered.
    spent: Vec<(Stage, Duration)>,
}

impl Waking {
    /// It begins `now`.
    pub(super) fn begin(now: Moment, stage: Stage) -> Self {
        Self { since: now, stage, entered: now, spent: Vec::new() }
    }

    /// The stage is this one now.
    pub(super) fn enter(&mut self, now: Moment, stage: Stage) {
        if stage == self.stage {
            return;
        }
        let took = now.since(self.entered);
        match self.spent.iter_mut().find(|(known, _)| *known == self.stage) {
            Some((_, known)) => *known = known.saturating_add(took),
            None => self.spent.push((self.stage, took)),
        }
        (self.stage, self.entered) = (stage, now);
    }

    /// What it is at, and since when.
    pub(super) fn at(&self) -> (Stage, Moment) {
        (self.stage, self.entered)
    }

    /// It is over: how long it was, and what each stage took of that.
    pub(super) fn end(mut self, now: Moment) -> (Duration, Vec<(Stage, Duration)>) {
        let last = self.stage;
        self.enter(now, if last == Stage::Deciding { Stage::Queued } else { Stage::Deciding });
        (now.since(self.since), self.spent)
    }
}
