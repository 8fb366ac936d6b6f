//! When a gateway says what it has of a model's requests, so that the controller can decide.
//!
//! What decides something is written at once; steady traffic is written seldom, with its peak; and
//! nothing is written while nothing happens. One write is under way at a time.

use std::time::Duration;

use crate::moment::Moment;

/// Counts that change nothing at once are written no more often than this.
const CALM: Duration = Duration::from_secs(10);
/// The same while the controller is deciding about the model.
const ATTENTIVE: Duration = Duration::from_secs(1);
/// Even what decides something is written no more often than this.
const BREATH: Duration = Duration::from_millis(100);
/// An entry of a busy model is written anew at least this often, so that it does not expire.
const RENEWAL: Duration = Duration::from_secs(30);
/// The wait after the first failed write; doubles with each.
const FIRST_RETRY: Duration = Duration::from_millis(500);
/// The longest wait after a failed write.
const LONGEST_RETRY: Duration = Duration::from_secs(10);

/// What one gateway has of a model's requests: an entry of `status.traffic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Requests that an engine works on.
    pub in_flight: u32,
    /// Requests that wait, and demand that may not wait.
    pub waiting: u32,
    /// The most of both together since the last entry.
    pub peak: u32,
    /// The model leaves, and its engines get nothing more from here.
    pub draining: bool,
    /// How long ago the model was last in use; `None` is never.
    pub quiet: Option<Duration>,
}

/// What there is to say now.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) in_flight: u32,
    pub(super) waiting: u32,
    pub(super) last_active: Option<Moment>,
    /// It has been read that the model leaves.
    pub(super) draining: bool,
    /// The controller is deciding: the model is cold, leaves, or keeps another one waiting.
    pub(super) pressing: bool,
}

impl Now {
    fn all(&self) -> u32 {
        self.in_flight.saturating_add(self.waiting)
    }
}

/// What was said last.
#[derive(Clone, Copy, Debug)]
struct Said {
    at: Moment,
    in_flight: u32,
    waiting: u32,
    peak: u32,
}

impl Said {
    fn nothing(&self) -> bool {
        (self.in_flight, self.waiting, self.peak) == (0, 0, 0)
    }

    /// Whether something became nothing, or nothing something.
    fn turned(&self, now: &Now) -> bool {
        (self.in_flight > 0, self.waiting > 0) != (now.in_flight > 0, now.waiting > 0)
    }
}

/// The schedule of one model's entries.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    said: Option<Said>,
    /// The most at once since `window`.
    peak: u32,
    /// The same of the window before, if nothing was said since.
    before: u32,
    window: Moment,
    writing: bool,
    /// What the last write said may not have arrived.
    owed: bool,
    /// It was said that nothing more is given to engines, since the model began to leave.
    promised: bool,
    failures: u32,
    not_before: Moment,
}

impl Schedule {
    pub(super) fn new() -> Self {
        Self {
            said: None,
            peak: 0,
            before: 0,
            window: Moment::ORIGIN,
            writing: false,
            owed: false,
            promised: false,
            failures: 0,
            not_before: Moment::ORIGIN,
        }
    }

    /// Takes in what there is now; to be called after every event.
    pub(super) fn observe(&mut self, at: Moment, now: &Now) {
        self.peak = self.peak.max(now.all());
        self.promised &= now.draining;
        // A window that only repeats what was said makes room for the next.
        let same = self.said.is_some_and(|said| said.peak == self.peak);
        if same && at >= self.window + CALM {
            self.before = self.peak;
            (self.window, self.peak) = (at, now.all());
        }
    }

    /// When the next entry is due, which may have passed; `None` if there is nothing to say.
    pub(super) fn due(&self, now: &Now, idle_timeout: Duration) -> Option<Moment> {
        if self.writing {
            return None;
        }
        let wanted = match &self.said {
            _ if self.owed => Some(Moment::ORIGIN),
            None => (self.peak > 0).then_some(Moment::ORIGIN),
            Some(said) => self.change(said, now, idle_timeout),
        };
        wanted.map(|at| at.max(self.not_before))
    }

    fn change(&self, said: &Said, now: &Now, idle_timeout: Duration) -> Option<Moment> {
        // The controller waits for this of every gateway that has an entry before it takes the engines away.
        let promises = now.draining && !self.promised;
        if promises || now.pressing && said.turned(now) {
            return Some(said.at + BREATH);
        }
        let counts = (said.in_flight, said.waiting) != (now.in_flight, now.waiting);
        let pressing = (now.pressing && counts).then(|| said.at + ATTENTIVE);
        // Once nothing was said, the next something is news at any time.
        let peak = match (said.nothing(), self.peak) {
            (true, 0) => None,
            (true, _) => Some(said.at + CALM),
            // Looked at when the window is over: until then the peak may still be reached again.
            (false, _) => Some(self.window + CALM),
        };
        let renewal = (!said.nothing()).then(|| said.at + RENEWAL.min(idle_timeout / 3));
        [pressing, peak, renewal].into_iter().flatten().min()
    }

    /// The entry that is due at `at`, if one is. It counts as under way until [`Schedule::ended`].
    pub(super) fn begin(
        &mut self,
        at: Moment,
        now: &Now,
        idle_timeout: Duration,
    ) -> Option<Traffic> {
        if self.due(now, idle_timeout).is_none_or(|due| at < due) {
            return None;
        }
        // A window that has only begun says little of how high it goes.
        let before = if at < self.window + CALM { self.before } else { 0 };
        let peak = self.peak.max(now.all()).max(before);
        let (in_flight, waiting) = (now.in_flight, now.waiting);
        self.said = Some(Said { at, in_flight, waiting, peak });
        (self.window, self.peak, self.before) = (at, now.all(), 0);
        (self.writing, self.owed) = (true, false);
        self.promised = now.draining;
        let quiet = if now.all() > 0 {
            Some(Duration::ZERO)
        } else {
            now.last_active.map(|last| at.since(last))
        };
        Some(Traffic { in_flight, waiting, peak, draining: now.draining, quiet })
    }

    /// The write under way has arrived, or may not have. `jitter` in 0.0..1.0 spreads retries.
    pub(super) fn ended(&mut self, at: Moment, arrived: bool, jitter: f64) {
        self.writing = false;
        if arrived {
            self.failures = 0;
            self.not_before = Moment::ORIGIN;
            return;
        }
        self.owed = true;
        let factor = 2_u32.checked_pow(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let wait = FIRST_RETRY.saturating_mul(factor).min(LONGEST_RETRY);
        self.not_before = at + wait.mul_f64(0.5 + 0.5 * jitter.clamp(0.0, 1.0));
        self.peak = self.peak.max(self.said.map_or(0, |said| said.peak));
    }
}
