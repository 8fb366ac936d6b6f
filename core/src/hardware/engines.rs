//! How full the KV caches of a node's engines are, from their metrics pages.

use crate::backends::MetricNames;

/// The share of the KV cache in use on one engine's `page`, 0 to 1; the highest where the engine has
/// several. `None` where the page does not say.
pub fn kv_cache_usage(page: &str, names: &MetricNames) -> Option<f64> {
    names.kv_cache_usage.iter().find_map(|name| {
        let values = page.lines().filter_map(|line| value(line, name));
        values.map(|share| share.clamp(0.0, 1.0)).reduce(f64::max)
    })
}

/// The value of a line like `name{labels} 0.25 1700000000`, if it is of the series `name`.
fn value(line: &str, name: &str) -> Option<f64> {
    let rest = line.trim_start().strip_prefix(name)?;
    let rest = match rest.strip_prefix('{') {
        // A label's value may hold any character, but the value of the series has no brace after it.
        Some(labelled) => labelled.rsplit_once('}')?.1,
        None => rest.strip_prefix([' ', '\t'])?,
    };
    let number: f64 = rest.split_whitespace().next()?.parse().ok()?;
    number.is_finite().then_some(number)
}
