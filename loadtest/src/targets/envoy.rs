//! Envoy with one route and one cluster, no access log, and its metrics on as they are by default.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{Name, Setting, Target, free_address, spawn};

pub(crate) fn start(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let folder = setting.folder_of("envoy")?;
    let address = free_address()?;
    let file = folder.join("envoy.json");
    let text = settings(setting.engine, &address)?.to_string();
    fs::write(&file, text).context("cannot write Envoy's settings")?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&file).args(["--concurrency", &setting.threads.to_string()]);
    command.args(["--log-level", "error", "--use-dynamic-base-id", "--disable-hot-restart"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Ok(Target::new(Name::Envoy, address, spawn(&mut command)?))
}

fn settings(engine: &str, address: &str) -> Result<Value> {
    let manager =
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let router = "envoy.extensions.filters.http.router.v3.Router";
    let kind = |name: &str| format!("type.googleapis.com/{name}");
    let many = json!({ "thresholds": [{ "max_connections": 20000, "max_pending_requests": 20000, "max_requests": 20000 }] });
    let route =
        json!({ "match": { "prefix": "/" }, "route": { "cluster": "engine", "timeout": "0s" } });
    let filter = json!({
        "name": "http",
        "typed_config": {
            "@type": kind(manager),
            "stat_prefix": "bench",
            "generate_request_id": false,
            "route_config": { "virtual_hosts": [{ "name": "all", "domains": ["*"], "routes": [route] }] },
            "http_filters": [{ "name": "router", "typed_config": { "@type": kind(router) } }],
        },
    });
    let end = json!({ "endpoint": { "address": socket(engine)? } });
    Ok(json!({ "static_resources": {
        "listeners": [{ "address": socket(address)?, "filter_chains": [{ "filters": [filter] }] }],
        "clusters": [{
            "name": "engine",
            "connect_timeout": "5s",
            "circuit_breakers": many,
            "load_assignment": { "cluster_name": "engine", "endpoints": [{ "lb_endpoints": [end] }] },
        }],
    } }))
}

fn socket(address: &str) -> Result<Value> {
    let (host, port) = address.rsplit_once(':').context("an address without a port")?;
    let port: u16 = port.parse().context("an address without a port")?;
    Ok(json!({ "socket_address": { "address": host, "port_value": port } }))
}
