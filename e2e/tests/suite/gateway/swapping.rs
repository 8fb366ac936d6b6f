//! Models that take turns on one GPU while clients ask for all of them: none is lost, and the GPU does more than
//! load.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::world::{Gateway, ask, get, start};
use crate::controller::{Desk, simulated};

/// How long clients go on asking.
const TRAFFIC: Duration = Duration::from_secs(30);
/// How long the winner of a swap keeps the GPU while it has work.
const COOLDOWN: Duration = Duration::from_secs(3);

/// Each time that an engine was started, by the controller's log.
fn starts(desk: &Desk) -> usize {
    let started =
        |line: &&str| line.contains("the Deployment was applied") && line.contains("replicas=1");
    desk.log().lines().filter(started).count()
}

/// What the events say of how long the parts of swaps took.
async fn times(desk: &Desk, model: &str) -> Vec<String> {
    let fields = format!("--field-selector=involvedObject.name={model},reason=Ready");
    let arguments = ["get", "events", &fields, "--output=custom-columns=:.message"];
    let printed = desk.models.succeed(&arguments, "").await;
    let lines = printed.stdout.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// How often a model's waits had this phase in them, by the gateway's metrics.
async fn waited_for(gateway: &Gateway, model: &str, phase: &str) -> u64 {
    let metric = "flexinfer_proxy_activation_phase_duration_seconds_count";
    let series = format!("{metric}{{model=\"{model}\",phase=\"{phase}\"}}");
    let page = get(gateway.admin, "/metrics").await.text();
    let line = page.lines().find_map(|line| line.strip_prefix(&series)).unwrap_or("0");
    line.trim().parse().unwrap()
}

async fn swapped_under_traffic(models: &[&str]) {
    let desk = Desk::new().await;
    let gateway = start(&desk.models, "one", desk.world().gateways_kubeconfig().await, &[]).await;
    for name in models {
        let cooldown = format!("{}s", COOLDOWN.as_secs());
        let gpu = json!({ "vendor": "nvidia", "shared": "gpu0", "swapCooldown": cooldown });
        let patient = json!({ "coldStartTimeout": "4m" });
        let mut spec = simulated(&json!({ "gpu": gpu, "serverless": patient }));
        spec["config"]["args"] = json!(["--load-time=500ms"]);
        desk.apply(name, &spec).await;
        gateway.knows(name).await;
    }
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for name in models {
        let (address, name) = (gateway.address, (*name).to_owned());
        clients.spawn(async move {
            let mut answers = Vec::new();
            while begun.elapsed() < TRAFFIC {
                answers.push(ask(address, &name).await);
                sleep(Duration::from_millis(100)).await;
            }
            answers
        });
    }
    let clients = clients.join_all().await;
    let elapsed = begun.elapsed();
    for answers in &clients {
        for answer in answers {
            assert_eq!(answer.status(), 200, "{}\n{}", answer.text(), desk.log());
        }
    }
    let answered: Vec<usize> = clients.iter().map(Vec::len).collect();
    let starts = starts(&desk);
    println!("{answered:?} answers, {starts} engines started in {elapsed:?}");
    // All clients wait for the GPU in turn, so each model had it more than once.
    assert!(starts > models.len(), "the GPU stayed with who had it: {starts} starts");
    // Who came kept it for its cooldown while it had work, which it always had.
    let allowed = elapsed.as_secs() / COOLDOWN.as_secs() + u64::try_from(models.len()).unwrap();
    assert!(u64::try_from(starts).unwrap() <= allowed, "{starts} starts in {elapsed:?}");
    // An event that comes again is counted, so that each model tells of its first time only.
    let mut told = Vec::new();
    for name in models {
        told.extend(times(&desk, name).await);
    }
    println!("{told:?}");
    let whole = |line: &String| {
        ["draining", "stopping", "loading took"].iter().all(|part| line.contains(part))
    };
    assert!(told.iter().any(whole), "no event tells how long a swap took: {told:?}");
    for phase in ["Stopping", "LoadingWeights"] {
        let mut times = 0;
        for name in models {
            times += waited_for(&gateway, name, phase).await;
        }
        assert!(times > 0, "no wait was spent on {phase}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_18_two_models_are_swapped_under_traffic_and_no_request_is_lost() {
    swapped_under_traffic(&["a", "b"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queue_18_three_models_are_swapped_under_traffic_and_no_request_is_lost() {
    swapped_under_traffic(&["a", "b", "c"]).await;
}
