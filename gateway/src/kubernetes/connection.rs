//! The connection to the API server, in a runtime of its own: reading long lists takes no time from
//! requests, and the client stays where it was made.

use anyhow::Context as _;
use kube::Client;
use tokio::runtime::{Builder, Handle, Runtime};

/// A client and the runtime that it belongs to, which ends with it.
pub(super) struct Connection {
    /// The client.
    pub(super) client: Client,
    runtime: Option<Runtime>,
}

impl Connection {
    /// By the service account of the pod, or by KUBECONFIG. Nothing is asked of the API server yet.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("cluster")
            .enable_all()
            .build()
            .context("the cluster's runtime cannot be started")?;
        let client = runtime.spawn(Client::try_default()).await;
        let held = Self { client: client.context("connecting was interrupted")?.context(
            "cannot tell which cluster to connect to; run in a pod with a service account, or set KUBECONFIG",
        )?, runtime: Some(runtime) };
        Ok(held)
    }

    /// Where everything runs that uses the client.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A runtime must not be dropped where others run, unless it need not be waited for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
