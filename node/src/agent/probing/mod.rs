//! Asking the node about its GPUs: for each maker the best source that answers. Every step has a limit.

mod amd;
mod files;
mod host;
mod nvidia;
mod nvml;
mod tools;

use std::path::PathBuf;

use flexinfer_core::backends::Vendor;
use flexinfer_core::hardware::{Finding, ProbeFailure, Survey, intel};

use super::arguments;
use nvml::Library;
use tools::Tools;

/// What one round of questions gave.
pub(super) struct Probed {
    /// The GPUs, or why nobody can tell.
    pub found: Result<Survey, ProbeFailure>,
    /// What is on the bus, though nothing that could tell more is in reach.
    pub out_of_reach: Vec<Finding>,
    /// Whether the bus was listed and has no GPU.
    pub bus_is_empty: Option<bool>,
}

/// Asks the node's tools, libraries and files.
pub(super) struct Prober {
    tools: Tools,
    nvml: Library,
    sysfs: PathBuf,
}

impl Prober {
    pub(super) fn new(arguments: &arguments::Probing) -> Self {
        let limit = arguments.probe_timeout.into();
        Self {
            tools: Tools::new(limit, arguments.host_root.clone()),
            nvml: Library::new(arguments.nvml.clone(), arguments.host_root.clone(), limit),
            sysfs: arguments.sysfs.clone(),
        }
    }

    /// One round.
    pub(super) async fn probe(&mut self) -> Probed {
        let sysfs = self.sysfs.clone();
        let read =
            tokio::task::spawn_blocking(move || (files::tree(&sysfs), files::machine_memory()));
        let (tree, machine) = read.await.unwrap_or_default();
        let nvidia = nvidia::survey(&mut self.nvml, &mut self.tools, &tree, machine).await;
        let amd = amd::survey(&mut self.tools, &tree, machine).await;
        let mut survey = Survey::default();
        let mut failed = None;
        let mut out_of_reach = Vec::new();
        for (vendor, found) in [(Vendor::Nvidia, nvidia), (Vendor::Amd, amd)] {
            match found {
                Ok(found) => survey.add(found),
                Err(_) if tree.has_on_the_bus(vendor) == Some(false) => {}
                Err(failure) if failure.is_absence() => {
                    if tree.has_on_the_bus(vendor) == Some(true) {
                        out_of_reach.push(Finding::OutOfReach { vendor });
                    }
                }
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        survey.add(intel::read(&tree));
        let bus_is_empty = tree.has_no_gpu_on_the_bus();
        Probed { found: failed.map_or(Ok(survey), Err), out_of_reach, bus_is_empty }
    }
}

/// The better answer of two attempts: any answer, else the first failure that is more than an absence.
fn better(
    first: ProbeFailure,
    second: Result<Survey, ProbeFailure>,
) -> Result<Survey, ProbeFailure> {
    second.map_err(|second| if first.is_absence() { second } else { first })
}
