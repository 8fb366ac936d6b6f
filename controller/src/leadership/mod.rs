//! Which of several controllers acts: the one that holds a Lease. Who cannot renew it in time stops
//! before its next write, by its own steady clock, and goes on where nobody else has led meanwhile.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

/// The Lease's name.
const NAME: &str = "flexinfer-controller";

/// How long a holder that does not renew is waited for.
const LENGTH: Duration = Duration::from_secs(15);

/// How often a holder renews, and how often others look.
const RENEWAL: Duration = Duration::from_secs(3);

/// How long before the end of its lease a holder stops: others begin at the end, and a write that
/// is on its way takes a moment.
const MARGIN: Duration = Duration::from_secs(5);

/// Whether this process may write.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    /// `None` where there is only one controller.
    until: Option<watch::Receiver<Instant>>,
}

impl Leadership {
    /// Of the only controller.
    pub(crate) const fn alone() -> Self {
        Self { until: None }
    }

    /// How long this process may go on writing; `None` if not at all.
    pub(crate) fn left(&self) -> Option<Duration> {
        let Some(until) = &self.until else { return Some(Duration::MAX) };
        let left = until.borrow().checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(left)
    }

    /// Waits until this process may write again. One that has lost the lead for good ends meanwhile.
    pub(crate) async fn regained(&self) {
        let Some(mut until) = self.until.clone() else { return };
        let _ = until.wait_for(|until| *until > Instant::now()).await;
    }
}

/// A candidate for the lead.
pub(crate) struct Candidate {
    leases: Api<Lease>,
    name: String,
    /// The holder's record as it was last seen to change, and when that was.
    seen: Option<(LeaseSpec, Instant)>,
    /// Whether it has won: then a lease that is not its own is lost, even if nobody holds it.
    leads: bool,
}

impl Candidate {
    /// The candidate `name`, for the Lease in `namespace`.
    pub(crate) fn new(client: Client, namespace: &str, name: &str) -> Self {
        let leases = Api::namespaced(client, namespace);
        Self { leases, name: name.to_owned(), seen: None, leads: false }
    }

    /// Waits until this process leads.
    pub(crate) async fn win(mut self) -> Holder {
        loop {
            let begun = Instant::now();
            match self.try_to_hold().await {
                Ok(true) => {
                    tracing::info!(name = self.name, "this controller leads");
                    self.leads = true;
                    let (until, _) = watch::channel(begun + LENGTH.saturating_sub(MARGIN));
                    return Holder { candidate: self, until };
                }
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, "the lease cannot be had"),
            }
            sleep(RENEWAL).await;
        }
    }

    /// Takes or renews the lease; whether this process holds it.
    async fn try_to_hold(&mut self) -> Result<bool, kube::Error> {
        let now = MicroTime(Timestamp::now());
        let Some(mut lease) = self.leases.get_opt(NAME).await? else {
            let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
            let spec = Some(self.record(None, now));
            let lease = Lease { metadata, spec };
            return settled(self.leases.create(&PostParams::default(), &lease).await);
        };
        let held = lease.spec.take().unwrap_or_default();
        let holder = held.holder_identity.clone().unwrap_or_default();
        let free = !self.leads && (holder.is_empty() || self.is_over(&held));
        if holder != self.name && !free {
            return Ok(false);
        }
        lease.spec = Some(self.record(Some(&held), now));
        // It carries the version that was read: of two who take it, one is refused.
        settled(self.leases.replace(NAME, &PostParams::default(), &lease).await)
    }

    /// Whether another's lease has run out: nobody renewed it for its whole length, as seen here.
    fn is_over(&mut self, held: &LeaseSpec) -> bool {
        let now = Instant::now();
        let known = self.seen.take().filter(|(seen, _)| seen == held);
        let (_, since) = self.seen.insert(known.unwrap_or_else(|| (held.clone(), now)));
        let seconds = held.lease_duration_seconds.and_then(|length| u64::try_from(length).ok());
        now.duration_since(*since) >= seconds.map_or(LENGTH, Duration::from_secs)
    }

    fn record(&self, before: Option<&LeaseSpec>, now: MicroTime) -> LeaseSpec {
        let mine = before.filter(|held| held.holder_identity.as_ref() == Some(&self.name));
        let transitions = before.and_then(|held| held.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.name.clone()),
            lease_duration_seconds: i32::try_from(LENGTH.as_secs()).ok(),
            acquire_time: mine.map_or(Some(now.clone()), |held| held.acquire_time.clone()),
            renew_time: Some(now),
            lease_transitions: Some(transitions + i32::from(mine.is_none())),
            ..LeaseSpec::default()
        }
    }
}

/// Another who was quicker is no error.
fn settled(written: Result<Lease, kube::Error>) -> Result<bool, kube::Error> {
    match written {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        Err(error) => Err(error),
    }
}

/// The one that leads.
pub(crate) struct Holder {
    candidate: Candidate,
    until: watch::Sender<Instant>,
}

impl Holder {
    /// What writers ask before each write.
    pub(crate) fn leadership(&self) -> Leadership {
        Leadership { until: Some(self.until.subscribe()) }
    }

    /// Renews for as long as that works; returns when the lead is lost. A renewal that comes too late counts if the
    /// lease was still ours: nobody else has acted, and to begin anew would ask still more of a slow server.
    pub(crate) async fn hold(&mut self) {
        loop {
            let begun = Instant::now();
            match timeout(RENEWAL, self.candidate.try_to_hold()).await {
                Ok(Ok(true)) => {
                    self.until.send_replace(begun + LENGTH.saturating_sub(MARGIN));
                }
                Ok(Ok(false)) => return,
                Ok(Err(error)) => tracing::warn!(%error, "the lease was not renewed"),
                Err(_) => tracing::warn!("the lease was not renewed: no answer"),
            }
            if *self.until.borrow() <= Instant::now() {
                return;
            }
            sleep(RENEWAL).await;
        }
    }

    /// Gives the lead to whoever wants it, so that nobody waits for its end.
    pub(crate) async fn give_up(self) {
        let Ok(Some(mut lease)) = self.candidate.leases.get_opt(NAME).await else { return };
        let held = lease.spec.get_or_insert_default();
        if held.holder_identity.as_ref() == Some(&self.candidate.name) {
            held.holder_identity = None;
            let _ = self.candidate.leases.replace(NAME, &PostParams::default(), &lease).await;
        }
    }
}

#[cfg(test)]
mod tests;
