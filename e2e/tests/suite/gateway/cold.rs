//! Many who wait for a cold model, with the real controller and engines: it is woken by few writes, whatever comes
//! between, and nobody is left waiting.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flexinfer_testkit::api_server::refusal;
use flexinfer_testkit::client::Answer;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, EvictParams};
use kube::{Api, ResourceExt as _};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::world::{Gateway, code, start};
use crate::controller::{Desk, simulated};
use crate::middleman::{Call, Middleman, Treatment};
use crate::shared::eventually;

/// Long enough to be disturbed while it lasts, on a busy machine too.
const LOAD: &str = "--load-time=8s";

async fn world() -> (Desk, Gateway) {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    (desk, gateway)
}

/// A model whose engine has these arguments, for which clients wait as long as it takes.
fn with(arguments: &[&str]) -> Value {
    let mut spec = simulated(&json!({ "serverless": { "coldStartTimeout": "4m" } }));
    spec["config"]["args"] = json!(arguments);
    spec
}

fn asking(gateway: &Gateway, model: &str, count: usize) -> Vec<JoinHandle<Answer>> {
    (0..count).map(|_| gateway.asking(model)).collect()
}

/// A pod whose engine runs and is not ready yet, after so many restarts; not that one.
async fn loading(desk: &Desk, model: &str, restarts: i32, not: Option<&str>) -> Pod {
    let loads = |pod: &Pod| {
        let status = pod.status.as_ref().and_then(|status| status.container_statuses.clone());
        status.into_iter().flatten().any(|container| {
            let runs = container.state.is_some_and(|state| state.running.is_some());
            runs && !container.ready && container.restart_count == restarts
        })
    };
    eventually(&format!("an engine of {model} loads"), async || {
        let mut pods = desk.pods(model).await.into_iter().filter(|pod| {
            let stays = pod.metadata.deletion_timestamp.is_none();
            stays && loads(pod) && pod.metadata.name.as_deref() != not
        });
        pods.next()
    })
    .await
}

/// Kills the process that is a pod's engine, as the kernel does when memory is short.
fn kill_engine_of(pod: &Pod) {
    let name = format!("POD_NAME={}", pod.name_any());
    let namespace = format!("POD_NAMESPACE={}", pod.namespace().unwrap());
    let of_pod = |process: &Path| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        [&name, &namespace].iter().all(|wanted| variables.contains(&wanted.as_bytes()))
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    for process in processes.filter(|process| of_pod(process)) {
        let id = process.file_name().and_then(|name| name.to_str()?.parse().ok());
        // It may have ended just now.
        let _ = kill_process(id.and_then(Pid::from_raw).unwrap(), Signal::KILL);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_05_an_engine_that_is_evicted_or_killed_while_it_loads_leaves_nobody_waiting() {
    let (desk, gateway) = world().await;
    for name in ["evicted", "killed"] {
        desk.apply(name, &with(&[LOAD])).await;
        gateway.knows(name).await;
    }
    let (evicted, killed) = (asking(&gateway, "evicted", 5), asking(&gateway, "killed", 5));
    let evicting = async {
        let pods: Api<Pod> = Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
        let mut last = None;
        for _ in 0..3 {
            let pod = loading(&desk, "evicted", 0, last.as_deref()).await.name_any();
            let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
            let at_once = EvictParams { delete_options: Some(at_once), ..EvictParams::default() };
            pods.evict(&pod, &at_once).await.unwrap();
            last = Some(pod);
        }
        for asked in evicted {
            let answer = asked.await.unwrap();
            assert_eq!(answer.status(), 200, "evicted: {}\n{}", answer.text(), desk.log());
        }
    };
    let killing = async {
        for restarts in 0..3 {
            kill_engine_of(&loading(&desk, "killed", restarts, None).await);
        }
        for asked in killed {
            let answer = asked.await.unwrap();
            let told = code(&answer) == "activation_failed" && answer.text().contains("137");
            assert!(answer.status() == 200 || told, "{}\n{}", answer.text(), desk.log());
        }
        // Nobody kills it any more.
        eventually("it is served", async || {
            (gateway.ask("killed").await.status() == 200).then_some(())
        })
        .await;
    };
    tokio::join!(evicting, killing);
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_21_who_waits_is_told_that_the_model_is_gone_but_not_that_its_deployment_is() {
    let (desk, gateway) = world().await;
    desk.apply("m", &with(&[LOAD])).await;
    gateway.knows("m").await;
    let first = asking(&gateway, "m", 20);
    gateway.waits("m", 20).await;
    loading(&desk, "m", 0, None).await;
    desk.api().delete("m", &DeleteParams::default()).await.unwrap();
    for asked in first {
        assert_eq!(code(&asked.await.unwrap()), "model_not_found");
    }
    eventually("the old Model is gone", async || {
        desk.api().get_opt("m").await.unwrap().is_none().then_some(())
    })
    .await;
    desk.apply("m", &with(&[LOAD, "--seed=7"])).await;
    gateway.knows("m").await;

    let second = asking(&gateway, "m", 20);
    gateway.waits("m", 20).await;
    let old = loading(&desk, "m", 0, None).await;
    desk.deployments().delete("m", &DeleteParams::background()).await.unwrap();
    for asked in second {
        let answer = asked.await.unwrap();
        assert_eq!(answer.status(), 200, "{}\n{}", answer.text(), desk.log());
    }
    let pods = desk.pods("m").await;
    let serving = pods.iter().find(|pod| pod.metadata.deletion_timestamp.is_none()).unwrap();
    assert_ne!(serving.uid(), old.uid(), "the deleted Deployment's pod serves");
    let arguments = serving.spec.as_ref().unwrap().containers[0].args.clone().unwrap();
    assert!(arguments.contains(&"--seed=7".to_owned()), "the old Model's engine: {arguments:?}");
}

/// How long the API server has no time for gateways, and says so.
const BUSY: Duration = Duration::from_secs(2);

/// A gateway whose reports are refused with 429 for a while; how often that was.
async fn gateway_that_is_refused(
    desk: &Desk,
    name: &str,
) -> (Gateway, Middleman, Arc<AtomicUsize>) {
    let middleman = Middleman::before(desk.world()).await;
    let refused = Arc::new(AtomicUsize::new(0));
    let (count, mut since) = (Arc::clone(&refused), None);
    middleman.rule(move |call: &Call| {
        if !call.writes() || since.get_or_insert_with(Instant::now).elapsed() > BUSY {
            return Treatment::Pass;
        }
        count.fetch_add(1, Ordering::Relaxed);
        Treatment::Answered(refusal(429, "TooManyRequests", "please try again later"))
    });
    let room = ["--max-queue-size", "400"];
    let gateway = start(&desk.models, name, middleman.kubeconfig(), &room).await;
    gateway.knows("m").await;
    (gateway, middleman, refused)
}

/// Each who asks holds a connection.
fn allow_many_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // Where more is not allowed, what was allowed has to do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_15_a_thousand_requests_for_a_cold_model_are_few_writes_to_a_busy_api_server() {
    allow_many_open_files();
    let desk = Desk::new().await;
    desk.apply("m", &with(&["--load-time=1s", "--time-per-token=1ms"])).await;
    let mut gateways = Vec::new();
    for name in ["one", "two", "three"] {
        gateways.push(gateway_that_is_refused(&desk, name).await);
    }
    let asked: Vec<_> =
        (0..999).map(|number| gateways[number % gateways.len()].0.asking("m")).collect();
    for asked in asked {
        let answer = asked.await.unwrap();
        assert_eq!(answer.status(), 200, "{}\n{}", answer.text(), desk.log());
    }
    for (gateway, middleman, refused) in &gateways {
        let refused = refused.load(Ordering::Relaxed);
        // On a busy machine the refusals take longer; each of the 333 who wait would be far more.
        assert!((1..=20).contains(&refused), "{refused} writes while they were refused");
        assert_eq!(middleman.most_writes_at_once(), 1, "a write did not wait for the one before");
        gateway
            .sees("m", |shown| (&shown["waiting"], &shown["inFlight"]) == (&json!(0), &json!(0)))
            .await;
    }
    // Whoever waited was told of once by each gateway, or twice.
    let of_models = |write: &&flexinfer_e2e::Write| {
        write.namespace == desk.world().namespace && write.resource.starts_with("models")
    };
    let writes = desk.world().cluster.writes().unwrap();
    let writes = writes.iter().filter(of_models).count();
    assert!(writes < 100, "{writes} writes for 999 requests");
}
