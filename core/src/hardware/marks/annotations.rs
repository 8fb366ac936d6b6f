//! A node's annotations: what changes while it works.

use flexinfer_crds::keys;
use jiff::Timestamp;

use super::{Node, Texts};
use crate::hardware::{Gpu, representative};

const MIB: u64 = 1 << 20;

/// The annotations of a node with these `gpus`. What is not known is removed: an old number would
/// pass for a new one. `kv_cache_usage` is `None` where no engine told it.
pub fn annotations(gpus: &[&Gpu], kv_cache_usage: Option<f64>) -> Texts {
    let busy: Vec<f64> = gpus.iter().filter_map(|gpu| gpu.utilization).collect();
    let free: Vec<Option<u64>> = gpus
        .iter()
        .flat_map(|gpu| gpu.offered())
        .map(|memory| memory.free().map(|bytes| bytes / MIB))
        .collect();
    let known: Vec<u64> = free.iter().copied().flatten().collect();
    // Devices in their order; one unknown number would shift the others, so then nothing is told of each.
    let each = (known.len() == free.len() && !free.is_empty())
        .then(|| known.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
    Texts::from([
        (keys::GPU_UTILIZATION.to_owned(), mean(&busy).map(|percent| format!("{percent:.2}"))),
        (
            keys::GPU_FREE_MEMORY.to_owned(),
            (!known.is_empty()).then(|| known.iter().sum::<u64>().to_string()),
        ),
        (keys::GPU_FREE_MEMORY_EACH.to_owned(), each),
        (keys::GPU_PRODUCT.to_owned(), representative(gpus).and_then(|chosen| chosen.product)),
        (keys::KV_CACHE_USAGE.to_owned(), kv_cache_usage.map(|share| format!("{share:.4}"))),
    ])
}

/// When the free memory in `annotations` was measured, for the node to tell: `now` if the node tells other
/// memory or no time, or if a pod has become ready since (at `newest_ready`), whose memory is in this
/// measurement and perhaps not in that one. Otherwise the time that the node tells already, so that nothing is
/// written where nothing changed.
pub fn measured_at(
    node: &Node,
    annotations: &Texts,
    newest_ready: Option<Timestamp>,
    now: Timestamp,
) -> Option<String> {
    let measured = |key: &str| annotations.get(key).and_then(Option::as_deref);
    let told = |key: &str| node.annotations.get(key).map(String::as_str);
    let memory = [keys::GPU_FREE_MEMORY, keys::GPU_FREE_MEMORY_EACH];
    memory.into_iter().find_map(measured)?;
    let same = memory.into_iter().all(|key| measured(key) == told(key));
    let earlier = told(keys::GPU_MEASURED_AT);
    let covers = |earlier: &str| {
        let earlier = earlier.parse::<Timestamp>().ok()?;
        Some(newest_ready.is_none_or(|ready| ready < earlier))
    };
    let holds = earlier.filter(|earlier| same && covers(earlier) == Some(true));
    // Kubernetes' own times have no fractions either.
    let seconds = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Some(holds.map_or_else(|| seconds.to_string(), str::to_owned))
}

/// No annotation about GPUs, for a node that is proven to have none.
pub fn no_annotations() -> Texts {
    let written = annotations(&[], None).into_keys();
    let more = [keys::GPU_HEALTH, keys::GPU_PROVEN, keys::GPU_MEASURED_AT].map(str::to_owned);
    written.chain(more).map(|key| (key, None)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}
