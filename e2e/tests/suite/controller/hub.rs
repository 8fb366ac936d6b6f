//! A hub in the network of the tests' pods, with small repositories of one file.

use std::sync::Arc;

use flexinfer_e2e::MACHINE;
use flexinfer_testkit::origin::{Action, Origin, Recorded, answer};
use tokio::sync::Notify;

const LIST: &str = r#"{"sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","siblings":[
    {"rfilename":"model.bin","size":2,"blobId":"9e26dfeeb6e641a33dae4961196235bdb965b21b"}]}"#;

/// A repository of one large file.
const LARGE_LIST: &str = r#"{"sha":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","siblings":[{"rfilename":"weights.bin","size":4194304}]}"#;

/// The length of that file.
pub(crate) const LARGE: usize = 4 << 20;

/// The hub: `org/gated` asks for a licence, `org/held` waits to be released, of `org/slow` one quarter comes with each
/// release, every other repository is open.
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

    /// Lets one request for `org/held` or `org/slow` go on.
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
    if target.contains("org/slow") {
        return slow(request, held);
    }
    let body = if target.starts_with("/api/models/") { LIST } else { "{}" };
    let given = Action::Write(answer(200, &[], body.as_bytes()));
    if target.contains("org/held") {
        vec![Action::Wait(Arc::clone(held)), given]
    } else {
        vec![given]
    }
}

/// The first quarter at once, and each further one when it is released, also for whoever asks for the rest.
fn slow(request: &Recorded, held: &Arc<Notify>) -> Vec<Action> {
    if request.head.target().starts_with("/api/models/") {
        return vec![Action::Write(answer(200, &[], LARGE_LIST.as_bytes()))];
    }
    let range = request.head.header("range");
    let from = range
        .and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse::<usize>().ok());
    let (tag, body) = (("etag", "\"one\""), vec![0; LARGE - from.unwrap_or(0)]);
    let mut whole = match from {
        None => answer(200, &[tag], &body),
        Some(from) => {
            let range = format!("bytes {from}-{}/{LARGE}", LARGE - 1);
            answer(206, &[tag, ("content-range", &range)], &body)
        }
    };
    let at_once = if from.is_none() { LARGE / 4 } else { 0 };
    let rest = whole.split_off(whole.len() - body.len() + at_once);
    let quarters = rest.chunks(LARGE / 4).map(|quarter| Action::Write(quarter.to_vec()));
    let released = quarters.flat_map(|quarter| [Action::Wait(Arc::clone(held)), quarter]);
    std::iter::once(Action::Write(whole)).chain(released).collect()
}
