//! A node's annotations: what changes while it works.

use flexinfer_crds::keys;

use super::Texts;
use crate::hardware::Gpu;

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
        (keys::KV_CACHE_USAGE.to_owned(), kv_cache_usage.map(|share| format!("{share:.4}"))),
    ])
}

/// No annotation about GPUs, for a node that is proven to have none.
pub fn no_annotations() -> Texts {
    let written = annotations(&[], None).into_keys();
    let more = [keys::GPU_HEALTH, keys::GPU_PROVEN].map(str::to_owned);
    written.chain(more).map(|key| (key, None)).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
    Some(values.iter().sum::<f64>() / f64::from(count))
}
