//! How the last pod of a Job ended. What it means is told by the exit status of our own program, never guessed
//! from a text (K8S-20).

use k8s_openapi::api::core::v1::Pod;

/// The end of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// Its exit status.
    pub(super) status: i32,
    /// The last lines of what it said.
    pub(super) message: String,
}

impl Exit {
    /// The end of the container that failed last among `pods`; `None` if none did.
    pub(super) fn of<'p>(pods: impl IntoIterator<Item = &'p Pod>) -> Option<Self> {
        let ends = pods.into_iter().flat_map(|pod| {
            let status = pod.status.as_ref();
            let containers = status.into_iter().flat_map(|status| {
                let initial = status.init_container_statuses.iter().flatten();
                initial.chain(status.container_statuses.iter().flatten())
            });
            containers.filter_map(|container| container.state.as_ref()?.terminated.as_ref())
        });
        let failed = ends.filter(|end| end.exit_code != 0);
        let last = failed.max_by_key(|end| end.finished_at.as_ref().map(|time| time.0))?;
        let message = last.message.clone().unwrap_or_default().trim().to_owned();
        Some(Self { status: last.exit_code, message })
    }
}
