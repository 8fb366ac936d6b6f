//! Which engine a model runs on, as the gateway tells it of each model that it lists.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::{Client, Url};
use serde::Deserialize;

use super::arguments::Arguments;
use super::client;

/// How long the gateway may take to tell it.
const LIMIT: Duration = Duration::from_secs(10);

/// A model as `GET /v1/models/<name>` tells of it; other gateways leave `metadata` out.
#[derive(Deserialize)]
struct Listed {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    backend: String,
}

/// The engine of the model that `arguments` name: their own word, else the gateway's. None where that is not there yet,
/// knows no such model, or does not say it: who asks for answers then is told what is wrong.
pub(super) async fn named(arguments: &Arguments) -> anyhow::Result<Option<String>> {
    if arguments.backend.is_some() {
        return Ok(arguments.backend.clone());
    }
    let client = client::client(arguments.ca.as_deref())?;
    let mut url = Url::parse(&arguments.url).context("--url is no URL")?;
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(["v1", "models", arguments.served_name()]);
    }
    Ok(told(&client, url, arguments.api_key.as_ref()).await)
}

async fn told(client: &Client, url: Url, key: Option<&String>) -> Option<String> {
    let mut request = client.get(url).timeout(LIMIT);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await.ok()?.error_for_status().ok()?;
    let listed: Listed = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
    Some(listed.metadata.backend).filter(|backend| !backend.is_empty())
}
