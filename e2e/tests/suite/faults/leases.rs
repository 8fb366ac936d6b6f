//! The controller killed at each write of its lease: another leads, and none is left in the dead one's name.

use std::sync::Arc;

use flexinfer_crds::model::Phase;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::process::Child;
use tokio::sync::Notify;

use crate::controller::{Desk, simulated};
use crate::middleman::{Call, Middleman, Treatment};
use crate::shared::eventually;

/// At which write of the lease the first one dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Point {
    Taking,
    Renewing,
    GivingUp,
}

async fn holder(desk: &Desk) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    leases.get_opt("flexinfer-controller").await.unwrap()?.spec?.holder_identity
}

async fn until_held_by(desk: &Desk, name: &str) {
    eventually(&format!("the lease is held by {name}"), async || {
        holder(desk).await.filter(|holder| holder.starts_with(name))
    })
    .await;
}

fn is_lease(call: &Call) -> bool {
    call.writes() && call.path.contains("/leases")
}

fn terminate(child: &Child) {
    let pid = i32::try_from(child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
}

async fn killed_while(point: Point, carried_out: bool) {
    let desk = Desk::without_controller().await;
    let middleman = Middleman::before(desk.world()).await;
    let reached = Arc::new(Notify::new());
    let (told, mut passed) = (Arc::clone(&reached), 0);
    let pass_first = match point {
        Point::Taking => 0,
        Point::Renewing => 1,
        // Told to stop, it writes the lease once more; what comes before is renewals.
        Point::GivingUp => usize::MAX,
    };
    let stop = move |passed: &mut usize, pass_first: usize| {
        *passed += 1;
        match (*passed > pass_first, carried_out) {
            (false, _) => Treatment::Pass,
            (true, true) => Treatment::Unanswered(Arc::clone(&told)),
            (true, false) => Treatment::Lost(Arc::clone(&told)),
        }
    };
    let again = stop.clone();
    middleman.rule(
        move |call| {
            if is_lease(call) { stop(&mut passed, pass_first) } else { Treatment::Pass }
        },
    );
    let leads = ["--leader-elect", "--pod-name"];
    let kubeconfig = middleman.kubeconfig();
    let mut first = desk.controller_by(&kubeconfig, &[&leads[..], &["first"]].concat());
    if point == Point::GivingUp {
        until_held_by(&desk, "first").await;
        let mut passed = 0;
        middleman.rule(
            move |call| {
                if is_lease(call) { again(&mut passed, 0) } else { Treatment::Pass }
            },
        );
        terminate(&first);
    }
    reached.notified().await;
    first.kill().await.unwrap();

    let mut second = desk.controller(&[&leads[..], &["second"]].concat());
    until_held_by(&desk, "second").await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
    terminate(&second);
    assert!(second.wait().await.unwrap().success(), "{point:?}: {}", desk.log());
    assert_eq!(holder(&desk).await, None, "{point:?}: a lease is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_any_write_of_its_lease_another_leads_and_no_lease_is_left() {
    use Point::{GivingUp, Renewing, Taking};
    tokio::join!(
        killed_while(Taking, false),
        killed_while(Taking, true),
        killed_while(Renewing, false),
        killed_while(Renewing, true),
        killed_while(GivingUp, false),
        killed_while(GivingUp, true),
    );
}
