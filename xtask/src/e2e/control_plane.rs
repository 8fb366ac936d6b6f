//! etcd, kube-apiserver, kube-controller-manager and kube-scheduler: one Go program under four names, built
//! from `e2e/cluster`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cache, prerequisites, program, workspace};

/// What the program can be called. Its main looks at the name.
const NAMES: [&str; 4] = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];

/// The names are looked for beside each other, so they point to this file there.
const PROGRAM: &str = "control-plane";

/// The folder of the programs, built if this machine has not built these versions before.
pub(crate) fn folder() -> Result<PathBuf> {
    prerequisites::ensure(&[prerequisites::GO])?;
    let sources = workspace::root().join("e2e/cluster");
    let read = |name| {
        let path = sources.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let (main, module, sums) = (read("main.go")?, read("go.mod")?, read("go.sum")?);
    let flags = linker_flags(&module)?;
    let go = program::output(Command::new("go").arg("version"))?;
    let ingredients = [main.as_str(), &module, &sums, &flags, go.trim()];
    cache::kept("control-plane", &ingredients, |place| build(&sources, &flags, place))
}

fn build(sources: &Path, flags: &str, place: &Path) -> Result<()> {
    println!("Building etcd and Kubernetes' programs: about 12 minutes of one core, once");
    let mut go = Command::new("nice");
    go.args(["-n", "19", "go", "build", "-trimpath", "-ldflags", flags, "-o"]);
    go.arg(place.join(PROGRAM)).arg(".").current_dir(sources).env("CGO_ENABLED", "0");
    program::run(&mut go)?;
    for name in NAMES {
        symlink(PROGRAM, place.join(name)).with_context(|| format!("cannot link {name}"))?;
    }
    Ok(())
}

/// No symbols, and the version by which clients tell whether they understand the server: a plain build calls
/// itself v0.0.0, which kubectl and Helm refuse.
fn linker_flags(module: &str) -> Result<String> {
    let version = module.lines().find_map(|line| line.trim().strip_prefix("k8s.io/kubernetes "));
    let version = version.context("e2e/cluster/go.mod does not require k8s.io/kubernetes")?;
    Ok(format!("-s -w -X k8s.io/component-base/version.gitVersion={}", version.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_calls_itself_by_the_version_of_its_module() {
        let flags = linker_flags("require (\n\tk8s.io/kubernetes v1.36.3\n)\n").unwrap();
        assert!(flags.ends_with("gitVersion=v1.36.3"), "{flags}");
        assert!(linker_flags("module empty\n").is_err());
    }
}
