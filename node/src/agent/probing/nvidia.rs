//! NVIDIA's GPUs: a Jetson by its device tree, others by NVML, by `nvidia-smi`, by the host's `nvidia-smi`.

use flexinfer_core::hardware::nvidia::{self, InstanceSizes, Instances};
use flexinfer_core::hardware::sysfs::Tree;
use flexinfer_core::hardware::{Memory, Partitioning, ProbeFailure, Survey};

use super::better;
use super::nvml::Library;
use super::tools::{Place, Tools};

pub(super) async fn survey(
    nvml: &mut Library,
    tools: &mut Tools,
    tree: &Tree,
    machine: Memory,
) -> Result<Survey, ProbeFailure> {
    if let Some(gpu) = nvidia::jetson(tree, machine) {
        return Ok(Survey { gpus: vec![gpu], findings: Vec::new() });
    }
    let mut answer = nvml.survey(machine).await;
    for place in [Place::Here, Place::Host] {
        match answer {
            // A driver that hangs would hang the next one too.
            Ok(_) | Err(ProbeFailure::TimedOut { .. }) => break,
            Err(failure) => answer = better(failure, smi(tools, place, machine).await),
        }
    }
    answer
}

async fn smi(tools: &mut Tools, place: Place, machine: Memory) -> Result<Survey, ProbeFailure> {
    let mut ask = async |fields: &str| {
        let query = format!("--query-gpu={fields}");
        let output =
            tools.output(place, nvidia::SMI, &[&query, "--format=csv,noheader,nounits"]).await?;
        nvidia::read(&output, machine)
    };
    let survey = match ask(nvidia::FIELDS).await {
        Err(ProbeFailure::Unreadable { .. } | ProbeFailure::Failed { .. }) => {
            ask(nvidia::FIELDS_OLDER).await
        }
        answer => answer,
    };
    let mut survey = survey?;
    if survey.gpus.iter().any(|gpu| gpu.partitioning != Partitioning::Whole) {
        let listing = tools.output(place, nvidia::SMI, &["-L"]).await?;
        let sizes = tools.output(place, nvidia::SMI, &["-q", "-x"]).await.unwrap_or_default();
        nvidia::attach(&mut survey, Instances::read(&listing), &InstanceSizes::read(&sizes));
    }
    Ok(survey)
}
