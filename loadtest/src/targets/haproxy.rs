//! HAProxy as a plain reverse proxy that keeps and shares its connections to the engine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Name, Setting, Target, free_address, spawn};

pub(crate) fn start(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let folder = setting.folder_of("haproxy")?;
    let address = free_address()?;
    let file = folder.join("haproxy.cfg");
    let text = settings(setting, &address);
    fs::write(&file, text).context("cannot write HAProxy's settings")?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
    // Packages of PyPI have their libraries beside the program.
    let libraries = program.parent().map(|folder| folder.join("lib"));
    if let Some(libraries) = libraries.filter(|libraries| libraries.is_dir()) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    Ok(Target::new(Name::Haproxy, address, spawn(&mut command)?))
}

fn settings(setting: &Setting<'_>, address: &str) -> String {
    let Setting { engine, threads, .. } = setting;
    format!(
        "global
    nbthread {threads}
    maxconn 8000
defaults
    mode http
    timeout connect 5s
    timeout client 1h
    timeout server 1h
    http-reuse always
frontend clients
    bind {address}
    default_backend engine
backend engine
    server engine {engine} pool-max-conn 4096
"
    )
}
