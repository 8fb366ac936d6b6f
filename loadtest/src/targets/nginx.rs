//! nginx as a plain reverse proxy with a warm pool of connections, set up as well as one knows how.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Name, Setting, Target, free_address, spawn};

pub(crate) fn start(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let folder = setting.folder_of("nginx")?;
    let (address, stream_address) = (free_address()?, free_address()?);
    let Setting { engine, threads, .. } = *setting;
    let settings = settings(&folder, engine, threads, &address, &stream_address);
    let file = folder.join("nginx.conf");
    fs::write(&file, settings).context("cannot write nginx's settings")?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&file).arg("-p").arg(&folder);
    // Before it has read its settings it complains to a log that is root's.
    command.arg("-e").arg(folder.join("error.log"));
    let mut target = Target::new(Name::Nginx, address, spawn(&mut command)?);
    target.stream_address = stream_address;
    Ok(target)
}

/// Buffering of answers is nginx's default and its best for whole ones; events would wait in the buffer, so
/// streams have a server without it.
fn settings(
    folder: &Path,
    engine: &str,
    workers: usize,
    address: &str,
    stream_address: &str,
) -> String {
    let folder = folder.display();
    let proxy =
        "proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection \"\";";
    format!(
        "daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    upstream engine {{
        server {engine};
        keepalive 1024;
        keepalive_requests 1000000000;
    }}
    server {{ listen {address}; location / {{ {proxy} }} }}
    server {{ listen {stream_address}; location / {{ {proxy} proxy_buffering off; }} }}
}}
"
    )
}
