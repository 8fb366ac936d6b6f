//! A hub in the network of the tests' pods, with small repositories of one file.

use std::sync::Arc;

use flexinfer_e2e::MACHINE;
use flexinfer_testkit::origin::{Action, Origin, Recorded, answer};
use tokio::sync::Notify;

const LIST: &str = r#"{"sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","siblings":[
    {"rfilename":"config.json","size":2,"blobId":"9e26dfeeb6e641a33dae4961196235bdb965b21b"}]}"#;

/// The hub: `org/gated` asks for a licence, `org/held` waits to be released, every other repository is open.
pub(crate) struct FakeHub {
    origin: Origin,
    release: Arc<Notify>,
}

impl FakeHub {
    /// Needs the bridge that a kubelet has made.
    pub(crate) async fn start() -> Self {
        let release = Arc::new(Notify::new());
        let held = Arc::clone(&release);
        let origin = Origin::start_at(MACHINE, move |request| answered(request, &held)).await;
        Self { origin: origin.unwrap(), release }
    }

    pub(crate) fn url(&self) -> String {
        self.origin.url()
    }

    /// Lets one request for `org/held` go on.
    pub(crate) fn release(&self) {
        self.release.notify_one();
    }

    /// Requests about `repository` that have come whole.
    pub(crate) fn asked_for(&self, repository: &str) -> usize {
        let about = |request: &&Recorded| request.head.target().contains(repository);
        self.origin.requests().iter().filter(about).count()
    }
}

fn answered(request: &Recorded, held: &Arc<Notify>) -> Vec<Action> {
    let target = request.head.target();
    if target.contains("org/gated") {
        return vec![Action::Write(answer(403, &[("x-error-code", "GatedRepo")], b""))];
    }
    let body = if target.starts_with("/api/models/") { LIST } else { "{}" };
    let given = Action::Write(answer(200, &[], body.as_bytes()));
    if target.contains("org/held") {
        vec![Action::Wait(Arc::clone(held)), given]
    } else {
        vec![given]
    }
}
