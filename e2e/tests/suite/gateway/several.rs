//! Several gateways before the same models.

use std::time::Duration;

use flexinfer_testkit::simulator::{Settings, Timings};
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::world::{BOUND, Site, ask};
use crate::shared::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn each_gateway_reports_its_own_share_and_none_disturbs_the_other() {
    let site = Site::new().await;
    site.simulated("a").await;
    let (one, two) = (site.gateway("one").await, site.gateway("two").await);
    let asking = [one.asking("a"), one.asking("a"), two.asking("a")];
    site.traffic("a", |entry| entry["gateway"] == "one" && entry["waiting"] == 2).await;
    let status =
        site.traffic("a", |entry| entry["gateway"] == "two" && entry["waiting"] == 1).await;
    assert_eq!(status["traffic"].as_array().map(Vec::len), Some(2), "{status}");
    let timings = Timings { first_token: Duration::from_secs(2), ..Timings::default() };
    let engine = site.engine(Settings { timings, ..Settings::default() }).await;
    site.list("a", &engine).await;
    site.traffic("a", |entry| entry["gateway"] == "one" && entry["inFlight"] == 2).await;
    site.traffic("a", |entry| entry["gateway"] == "two" && entry["inFlight"] == 1).await;
    for asking in asking {
        assert_eq!(asking.await.unwrap().status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_keeps_another_model_of_the_group_waiting_reports_at_once() {
    let site = Site::new().await;
    for name in ["a", "b"] {
        let spec = json!({ "backend": "simulator", "gpu": { "shared": "gpu0" } });
        site.models.apply(&crate::crds::model(name, &spec)).await;
    }
    let gateway = site.gateway("one").await;
    let timings = Timings { first_token: Duration::from_secs(2), ..Timings::default() };
    let engine = site.engine(Settings { timings, ..Settings::default() }).await;
    site.list("a", &engine).await;
    site.say("a", &json!({ "phase": "Ready" })).await;
    let holding = gateway.asking("a");
    site.traffic("a", |entry| entry["inFlight"] == 1).await;
    let waiting = gateway.asking("b");
    site.traffic("b", |entry| entry["waiting"] == 1).await;
    assert_eq!(holding.await.unwrap().status(), 200);
    // Were nobody waiting, this would be said ten seconds later.
    site.traffic("a", |entry| entry["inFlight"] == 0).await;
    waiting.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_entry_of_a_gateway_that_died_is_taken_out_by_the_next_that_writes() {
    let site = Site::new().await;
    site.simulated("a").await;
    let dead = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": "a" },
        "status": { "traffic": [{
            "gateway": "dead", "inFlight": 3, "waiting": 0, "peak": 3,
            "renewTime": "2026-01-01T00:00:00.000000Z",
        }] },
    });
    let parameters = PatchParams::apply("flexinfer-gateway-dead").force();
    site.models.api().patch_status("a", &parameters, &Patch::Apply(dead)).await.unwrap();
    let gateway = site.gateway("alive").await;
    let asking = gateway.asking("a");
    site.traffic("a", |entry| entry["gateway"] == "alive").await;
    eventually("the dead entry is gone", async || {
        let status = site.status("a").await;
        let entries = status["traffic"].as_array()?;
        (entries.len() == 1 && entries[0]["gateway"] == "alive").then_some(())
    })
    .await;
    asking.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_in_place_loses_no_request() {
    let site = Site::new().await;
    site.simulated("a").await;
    let kubeconfig = site.kubeconfig().await;
    let socket = site.folder().join("handover").display().to_string();
    let flags = ["--upgrade-socket", socket.as_str(), "--drain-delay", "1s"];
    let mut old = site.gateway_by("one", kubeconfig.clone(), &flags).await;
    let timings = Timings { token: Duration::from_millis(40), ..Timings::default() };
    let engine = site.engine(Settings { timings, ..Settings::default() }).await;
    site.list("a", &engine).await;
    assert_eq!(old.ask("a").await.status(), 200);

    let (address, stop) = (old.address, CancellationToken::new());
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let stop = stop.clone();
            tokio::spawn(async move {
                let mut served = 0;
                while !stop.is_cancelled() {
                    let answer = ask(address, "a").await;
                    assert_eq!(answer.status(), 200, "{}", answer.text());
                    served += 1;
                }
                served
            })
        })
        .collect();
    let new = site.gateway_by("one", kubeconfig, &flags).await;
    assert_eq!(new.address, address);
    assert!(old.program.exited(BOUND).await.unwrap().success());
    assert_eq!(new.ask("a").await.status(), 200);
    stop.cancel();
    for client in clients {
        assert!(client.await.unwrap() > 0);
    }
    // The new one reports under a name of its own, and the old one's entry is gone.
    let status = site.traffic("a", |entry| entry["gateway"] == "one.1").await;
    assert_eq!(status["traffic"].as_array().map(Vec::len), Some(1), "{status}");
}
