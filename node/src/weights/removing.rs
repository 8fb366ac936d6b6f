//! Removes weights whose Model is gone. What is needed is asked of the cluster each time; a list that cannot be
//! had removes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use flexinfer_core::loading::Unneeded;
use flexinfer_core::moment::Moment;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(60);

/// Who knows what is needed. Folders are named `<namespace>/<model>`.
#[async_trait]
pub(crate) trait Cluster: Send + Sync {
    /// All Models.
    async fn models(&self) -> anyhow::Result<BTreeSet<String>>;

    /// Models that have a pod on this node.
    async fn in_use(&self) -> anyhow::Result<BTreeSet<String>>;
}

/// Looks again and again, and removes what is not needed below `folder`.
pub(crate) async fn remove_unneeded(folder: PathBuf, cluster: impl Cluster) {
    let begun = Instant::now();
    let mut unneeded = Unneeded::default();
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let held = held(&folder);
        if held.is_empty() {
            continue;
        }
        let (models, in_use) = match (cluster.models().await, cluster.in_use().await) {
            (Ok(models), Ok(in_use)) => (models, in_use),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(error = %format!("{error:#}"), "weights are kept: nobody knows what is needed");
                continue;
            }
        };
        let now = Moment::after_origin(begun.elapsed());
        for name in unneeded.of(&held, &models, &in_use, now) {
            let place = folder.join(&name);
            match fs::remove_dir_all(&place) {
                Ok(()) => tracing::info!(path = %place.display(), "removed: its Model is gone"),
                Err(error) => {
                    tracing::warn!(path = %place.display(), %error, "weights that nobody needs are left");
                }
            }
        }
    }
}

/// The folders of models, as `<namespace>/<model>`.
fn held(folder: &std::path::Path) -> BTreeSet<String> {
    let folders = |path: &std::path::Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        real.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let namespaces = folders(folder).into_iter();
    let models = namespaces.flat_map(|namespace| {
        let models = folders(&folder.join(&namespace));
        models.into_iter().map(move |model| format!("{namespace}/{model}"))
    });
    models.collect()
}
