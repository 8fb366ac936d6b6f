//! Thousands of Models on nodes that only pretend to run what they are given: how long until everything is as it
//! shall be, how much is written and kept for that, and that nothing is written afterwards.

mod crowd;
mod figures;
mod seen;

use std::sync::Arc;
use std::time::Duration;

use flexinfer_e2e::{Cluster, Flags};
use tokio::time::{Instant, sleep};

use crate::shared::{World, full};
use crowd::Crowd;
use figures::Figures;

/// How many of what, and how long it is watched that nothing is written.
#[derive(Clone, Copy, Debug)]
struct Size {
    models: usize,
    groups: usize,
    nodes: usize,
    quiet: Duration,
}

impl Size {
    /// `FLEXINFER_SCALE=MODELS/GROUPS/NODES/SECONDS`, else as the test run wants it.
    fn wanted() -> Self {
        let written = std::env::var("FLEXINFER_SCALE").ok();
        let usual = if full() { "2000/200/1000/600" } else { "40/4/20/15" };
        let text = written.as_deref().unwrap_or(usual);
        let numbers: Vec<usize> = text.split('/').map(|part| part.parse().unwrap()).collect();
        let [models, groups, nodes, quiet] = numbers[..] else { panic!("{text}: four numbers") };
        // The plain Deployments run beside ours, one for each group.
        assert!(nodes >= 2 * groups, "{text}: each group needs a GPU, and its copy another");
        Self { models, groups, nodes, quiet: Duration::from_secs(u64::try_from(quiet).unwrap()) }
    }
}

/// The control plane's own limits on what it asks of its API server, out of the way for everybody.
fn unhurried() -> Flags {
    let flags = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect();
    Flags {
        api_server: flags(&[
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
        ]),
        controller_manager: flags(&[
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--concurrent-deployment-syncs=20",
            "--concurrent-replicaset-syncs=20",
        ]),
        scheduler: flags(&["--kube-api-qps=1000", "--kube-api-burst=2000"]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_models_settle_about_as_fast_as_their_deployments_and_then_nothing_is_written() {
    let size = Size::wanted();
    let cluster = Arc::new(Cluster::start_with(&unhurried()).await.unwrap());
    let crowd = Crowd::start(World::of(cluster).await, size).await;

    let begun = Instant::now();
    crowd.apply_models().await;
    crowd.models_settle().await;
    let settled = begun.elapsed();
    crowd.writes_end().await;
    let writes = crowd.writes();
    let memory = crowd.memory();

    sleep(size.quiet).await;
    let later = crowd.writes();
    let new = later.get(writes.len()..).unwrap_or_default();
    assert!(new.is_empty(), "{} writes while nothing happened: {new:?}", new.len());

    let plain = crowd.plainly_create().await;
    let figures = Figures { size, settled, plain, memory, writes: &writes };
    println!("{figures}");
    memory.leaves_room();
    let per_model = figures.writes_per_model();
    assert!(per_model < 12.0, "{per_model:.1} writes for each Model\n{figures}");
    let ratio = figures.ratio();
    // Plain Deployments of a small crowd are there at once, so that this says little below hundreds.
    let bound = if size.models < 200 { 15.0 } else { 5.0 };
    assert!(ratio < bound, "{ratio:.1} times as long as plain Deployments\n{figures}");
}
