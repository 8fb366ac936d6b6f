//! Several controllers, of which one acts.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use flexinfer_crds::model::Phase;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Child;
use tokio::time::timeout;

use super::{Desk, simulated};
use crate::middleman::{Call, Middleman, Treatment};
use crate::shared::eventually;

/// Starts a controller that leads when it may, under a name of its own.
fn candidate(desk: &Desk, name: &str) -> Child {
    desk.controller(&["--leader-elect", "--pod-name", name])
}

async fn holder(desk: &Desk) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    let holder = leases.get_opt("flexinfer-controller").await.unwrap()?.spec?.holder_identity?;
    Some(holder.split('_').next()?.to_owned())
}

async fn until_held_by(desk: &Desk, name: &str) {
    eventually(&format!("the lease is held by {name}"), async || {
        (holder(desk).await.as_deref() == Some(name)).then_some(())
    })
    .await;
}

fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn a_leader_that_is_told_to_stop_hands_over_at_once() {
    let desk = Desk::without_controller().await;
    let mut first = candidate(&desk, "first");
    until_held_by(&desk, "first").await;
    let _second = candidate(&desk, "second");
    signal(&first, Signal::TERM);
    assert!(first.wait().await.unwrap().success());
    until_held_by(&desk, "second").await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
}

/// Who wrote, and what, in the order in which it was tried: `PATCH models/a/status`.
type Writes = Arc<Mutex<Vec<(&'static str, String)>>>;

/// A candidate whose writes are noted on their way.
struct Noted {
    name: &'static str,
    program: Child,
    way: Middleman,
    writes: Writes,
}

impl Noted {
    async fn start(desk: &Desk, name: &'static str, writes: &Writes) -> Self {
        let way = Middleman::before(desk.world()).await;
        let arguments = ["--leader-elect", "--pod-name", name];
        let program = desk.controller_by(&way.kubeconfig(), &arguments);
        let noted = Self { name, program, way, writes: Arc::clone(writes) };
        noted.reaches_the_api_server(true);
        noted
    }

    /// What is lost is noted too. Watches that have begun go on, so that it still learns of everything.
    fn reaches_the_api_server(&self, reaches: bool) {
        let (name, writes) = (self.name, Arc::clone(&self.writes));
        self.way.rule(move |call: &Call| {
            if call.writes() {
                writes.lock().unwrap().push((name, call.act()));
            }
            if reaches { Treatment::Pass } else { Treatment::Lost(Arc::default()) }
        });
    }
}

/// How a leader is kept from renewing its lease.
#[derive(Clone, Copy, Debug)]
enum Away {
    /// Its process stands still.
    Paused,
    /// It goes on, but what it asks of the API server does not arrive.
    CutOff,
}

async fn writes_nothing_once_another_leads(away: Away) {
    let desk = Desk::without_controller().await;
    let writes = Writes::default();
    let mut first = Noted::start(&desk, "first", &writes).await;
    until_held_by(&desk, "first").await;
    let _second = Noted::start(&desk, "second", &writes).await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;

    match away {
        Away::Paused => signal(&first.program, Signal::STOP),
        Away::CutOff => first.reaches_the_api_server(false),
    }
    // Something to do, which the first one sees at once, or as soon as it goes on.
    desk.apply("later", &simulated(&json!({}))).await;
    until_held_by(&desk, "second").await;
    desk.until_phase("later", Phase::Idle).await;
    desk.apply("last", &simulated(&json!({}))).await;
    match away {
        Away::Paused => signal(&first.program, Signal::CONT),
        Away::CutOff => first.reaches_the_api_server(true),
    }
    let ended = timeout(Duration::from_secs(60), first.program.wait()).await;
    assert!(!ended.unwrap().unwrap().success(), "{away:?}: it goes on");
    desk.until_phase("last", Phase::Idle).await;
    assert_eq!(holder(&desk).await.as_deref(), Some("second"), "{away:?}");

    let writes = writes.lock().unwrap();
    let of_lease = |act: &str| act.contains(" leases");
    let taken = writes.iter().position(|(who, act)| *who == "second" && of_lease(act)).unwrap();
    let (before, after) = writes.split_at(taken);
    // A renewal that was under way is refused, since the lease has changed.
    let by = |writes: &[(&str, String)], name: &str| -> Vec<String> {
        let by = writes.iter().filter(|(who, act)| *who == name && !of_lease(act));
        by.map(|(_, act)| act.clone()).collect()
    };
    assert!(!by(before, "first").is_empty() && !by(after, "second").is_empty(), "{writes:?}");
    let none = Vec::<String>::new();
    assert_eq!(by(before, "second"), none, "{away:?}: the second one wrote before it led");
    assert_eq!(by(after, "first"), none, "{away:?}: the first one wrote after another led");
}

#[tokio::test(flavor = "multi_thread")]
async fn k8s_04_a_leader_that_was_paused_or_cut_off_writes_nothing_once_another_leads() {
    tokio::join!(
        writes_nothing_once_another_leads(Away::Paused),
        writes_nothing_once_another_leads(Away::CutOff),
    );
}
