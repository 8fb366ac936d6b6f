//! `flexinfer-controller scheduler`: the extender that kube-scheduler asks which nodes can hold a pod and
//! which of them suit it best. What the answers are is decided in `flexinfer_core::placement`.
//!
//! `view` is the cluster as watches keep it, `protocol` what kube-scheduler asks and is told, `deciding` goes
//! from the one to the other, `server` is the HTTP around them. A pod with a GPU is refused while a watch has
//! not shown everything yet: an answer from half a view would be a guess.

mod arguments;
mod deciding;
mod metrics;
mod protocol;
mod recent;
mod server;
mod view;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use anyhow::{Context as _, anyhow};
use kube::Client;

pub use arguments::Arguments;

use deciding::Extender;
use metrics::Metrics;
use view::View;

/// Answers until it is told to stop.
pub async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if arguments.print_settings {
        println!("{}", serde_json::to_string_pretty(&arguments.shown())?);
        return Ok(());
    }
    let client = Client::try_default().await.map_err(|error| {
        anyhow!("no cluster is configured; run it in a cluster or set KUBECONFIG ({error})")
    })?;
    let view = Arc::new(View::new(arguments.tenant_label().map(str::to_owned)));
    let metrics = Metrics::new().context("the metrics cannot be registered")?;
    let watches = view::watch(&client, arguments, &view, &metrics);
    let extender = Arc::new(Extender::new(arguments, view, metrics));
    let ended = server::serve(arguments, extender).await;
    watches.iter().for_each(tokio::task::JoinHandle::abort);
    ended
}
