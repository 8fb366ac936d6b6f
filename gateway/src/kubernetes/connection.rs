//! The connection to the API server, in a runtime of its own: reading long lists takes no time from
//! requests, and the client stays where it was made.

use anyhow::Context as _;
use kube::Client;
use tokio::runtime::{Builder, Handle, Runtime};

/// A client and the runtime that it belongs to, which ends with it.
pub(super) struct Connection {
    /// The client.
    pub(super) client: Client,
    runtime: Owned,
}

/// A runtime that may be dropped inside another: it is not waited for.
struct Owned(Option<Runtime>);

impl Connection {
    /// By the service account of the pod, or by KUBECONFIG. Nothing is asked of the API server yet.
    pub(super) async fn open() -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("cluster")
            .enable_all()
            .build()
            .context("the cluster's runtime cannot be started")?;
        // It has its owner before anything can fail: a runtime that is dropped inside another panics.
        let runtime = Owned(Some(runtime));
        let client = runtime.handle().spawn(Client::try_default()).await;
        let client = client.context("connecting was interrupted")?.context(
            "cannot tell which cluster to connect to; run in a pod with a service account, or set KUBECONFIG",
        )?;
        Ok(Self { client, runtime })
    }

    /// Where everything runs that uses the client.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.handle()
    }
}

impl Owned {
    fn handle(&self) -> Handle {
        self.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
