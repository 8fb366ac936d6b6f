//! What gateways report about a model, aged by when it was seen here: a gateway's clock decides
//! nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use flexinfer_crds::model::{ModelStatus, Traffic};
use jiff::Timestamp;

use crate::moment::Moment;
use crate::planning::time::moment;
use crate::scaling::Activity;
use crate::sharing::DEMAND_WINDOW;

/// How often a gateway renews what it reports while it has anything.
const RENEWAL: Duration = Duration::from_secs(30);

/// The shortest time after which a gateway counts as gone.
const SHORTEST: Duration = Duration::from_secs(3);

/// How long a gateway's report counts if it is not renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry(Duration);

impl Expiry {
    /// Three renewals of a model with this idle timeout: gateways renew every 30 seconds, or every
    /// third of a shorter timeout.
    pub fn of(idle_timeout: Duration) -> Self {
        Self((RENEWAL.min(idle_timeout / 3) * 3).max(SHORTEST))
    }

    /// How long it is.
    pub const fn length(self) -> Duration {
        self.0
    }
}

/// What all gateways last reported about one model, and when that was seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    gateways: BTreeMap<String, Sighting>,
    last_active: Option<(Timestamp, Moment)>,
    busy_at: Option<Moment>,
    /// When it was seen first, where it was up then.
    watched_since: Option<Moment>,
    /// It was looked at before.
    known: bool,
    /// Since when the model has not been ready, by its own status.
    unready_since: Option<Timestamp>,
}

/// One gateway's report.
#[derive(Clone, Debug, PartialEq)]
struct Sighting {
    in_flight: u32,
    waiting: u32,
    draining: bool,
    renewed: Timestamp,
    seen: Moment,
    waiting_since: Option<Moment>,
}

impl Demand {
    /// Takes over the reports in a model's `status`, seen `now`.
    pub fn look(&mut self, status: Option<&ModelStatus>, now: Moment) {
        let nothing = ModelStatus::default();
        let status = status.unwrap_or(&nothing);
        let known = std::mem::take(&mut self.gateways);
        for entry in &status.traffic {
            let before = known.get(&entry.gateway);
            let sighting = Sighting::of(entry, before, now);
            let renewed = before.is_none_or(|before| before.renewed != sighting.renewed);
            let was_busy = before.is_some_and(Sighting::busy);
            if renewed && (sighting.busy() || was_busy || entry.peak > 0) {
                self.busy_at = Some(now);
            }
            self.gateways.insert(entry.gateway.clone(), sighting);
        }
        // A gateway that left took its word back; what it had in flight ended now at the latest.
        let left = |gateway: &String| !self.gateways.contains_key(gateway);
        if known.iter().any(|(gateway, before)| left(gateway) && before.busy()) {
            self.busy_at = Some(now);
        }
        self.last_active = status.last_active_time.as_ref().map(|time| match self.last_active {
            Some((known, seen)) if known == time.0 => (known, seen),
            Some(_) => (time.0, now),
            // Seen for the first time: there is only the gateway's own word for how old it is.
            None => (time.0, moment(time).min(now)),
        });
        let ready = status.conditions.iter().find(|condition| condition.type_ == "Ready");
        self.unready_since =
            ready.filter(|ready| ready.status != "True").map(|ready| ready.last_transition_time.0);
        // What gateways could not say while nobody listened is not known, and unknown is not idle: what is up at
        // the first sight has a whole idle time before it.
        if !std::mem::replace(&mut self.known, true)
            && ready.is_some_and(|ready| ready.status == "True")
        {
            self.watched_since = Some(now);
        }
    }

    /// Counts every report as seen `now`: after a time in which nothing could be seen, a gateway
    /// that did not report is not one that is gone.
    pub fn renew_all(&mut self, now: Moment) {
        for sighting in self.gateways.values_mut() {
            sighting.seen = now;
        }
    }

    /// What the model has to do.
    pub fn activity(&self, expiry: Expiry, now: Moment) -> Activity {
        let live = || self.gateways.values().filter(|sighting| sighting.live(expiry, now));
        let asked = self.asked_without_a_gateway(now);
        let waiting = live().map(|sighting| sighting.waiting).fold(0, u32::saturating_add);
        let waits = live().filter_map(|sighting| sighting.waiting_since).chain(asked).min();
        Activity {
            in_flight: live().map(|sighting| sighting.in_flight).fold(0, u32::saturating_add),
            waiting: waiting.saturating_add(u32::from(asked.is_some())),
            waiting_since: waits,
            last_active: self.last_active.map(|(_, seen)| seen).max(self.busy_at),
            watched_since: self.watched_since,
        }
    }

    /// Whether every gateway has said, later than `since`, that it has read that the model leaves. Anything else
    /// that it said may have crossed that word, and it may give the engines more. One that has nothing renews
    /// nothing, so that it has been silent for long does not mean that it is gone.
    pub fn all_promised_since(&self, since: Moment) -> bool {
        self.gateways.values().all(|sighting| sighting.draining && sighting.seen > since)
    }

    /// The next moment at which something that makes the model busy stops to count.
    pub fn expires_at(&self, expiry: Expiry, now: Moment) -> Option<Moment> {
        let asked = self.asked_without_a_gateway(now);
        self.gateways
            .values()
            .filter(|sighting| sighting.busy() && sighting.live(expiry, now))
            .map(|sighting| sighting.seen + expiry.length())
            .chain(asked.map(|seen| seen + DEMAND_WINDOW))
            .min()
    }

    /// `lastActiveTime` moved by somebody who is no gateway, after the model stopped being ready:
    /// since when, for as long as that counts.
    fn asked_without_a_gateway(&self, now: Moment) -> Option<Moment> {
        let (when, seen) = self.last_active?;
        let since_asleep = self.unready_since.is_none_or(|since| when > since);
        let fresh = now.since(seen) < DEMAND_WINDOW;
        let reported = !self.gateways.is_empty();
        (!reported && since_asleep && fresh).then_some(seen)
    }
}

impl Sighting {
    fn of(entry: &Traffic, before: Option<&Self>, now: Moment) -> Self {
        let count = |number: i32| u32::try_from(number).unwrap_or(0);
        let waiting = count(entry.waiting);
        let waited = before.and_then(|before| before.waiting_since);
        let unchanged = before.filter(|before| before.renewed == entry.renew_time.0);
        Self {
            in_flight: count(entry.in_flight),
            waiting,
            draining: entry.draining,
            renewed: entry.renew_time.0,
            seen: unchanged.map_or(now, |before| before.seen),
            waiting_since: (waiting > 0).then(|| waited.unwrap_or(now)),
        }
    }

    fn busy(&self) -> bool {
        self.in_flight > 0 || self.waiting > 0
    }

    fn live(&self, expiry: Expiry, now: Moment) -> bool {
        now.since(self.seen) < expiry.length()
    }
}

#[cfg(test)]
mod tests;
