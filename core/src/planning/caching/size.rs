//! How large weights are: what the containers that fetched or copied them said at their end.

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

/// What `flexinfer-node fetch --report` and `flash --report` write.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    size_bytes: i64,
}

/// The bytes that the containers of `pod` have fetched or copied together; `None` where none says so.
pub(super) fn fetched(pod: &Pod) -> Option<i64> {
    let containers = pod.status.iter().flat_map(|status| {
        let first = status.init_container_statuses.iter().flatten();
        first.chain(status.container_statuses.iter().flatten())
    });
    let ends = containers.filter_map(|container| container.state.as_ref()?.terminated.as_ref());
    let told = ends.filter(|end| end.exit_code == 0).filter_map(|end| end.message.as_ref());
    let sizes = told.filter_map(|message| serde_json::from_str::<Report>(message).ok());
    sizes.map(|report| report.size_bytes).filter(|size| *size > 0).reduce(i64::saturating_add)
}
