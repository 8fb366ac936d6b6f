//! How full the KV caches of the node's engines are.

use std::time::Duration;

use flexinfer_core::hardware::engines::kv_cache_usage;

use super::cluster::Engine;

/// How long an engine may take for its metrics page.
const LIMIT: Duration = Duration::from_secs(2);

/// The fullest KV cache of `engines`; `None` if none tells.
pub(super) async fn fullest(client: &reqwest::Client, engines: &[Engine]) -> Option<f64> {
    let mut fullest: Option<f64> = None;
    for engine in engines {
        let Some(names) = engine.backend.metrics() else { continue };
        let url = format!("http://{}{}", engine.address, names.path);
        match page(client, &url).await {
            Ok(page) => {
                fullest = kv_cache_usage(&page, names).into_iter().chain(fullest).reduce(f64::max);
            }
            Err(error) => {
                tracing::debug!(url, error = %error, "an engine's metrics could not be read");
            }
        }
    }
    fullest
}

async fn page(client: &reqwest::Client, url: &str) -> reqwest::Result<String> {
    client.get(url).timeout(LIMIT).send().await?.error_for_status()?.text().await
}
