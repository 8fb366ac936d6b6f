//! AMD's GPUs: by `amd-smi`, by `rocm-smi`, each here or in the host's root, and by sysfs where neither says.

use flexinfer_core::backends::Vendor;
use flexinfer_core::hardware::sysfs::{self, Tree};
use flexinfer_core::hardware::{Memory, ProbeFailure, Survey, amd};

use super::better;
use super::tools::{Place, Tools};

pub(super) async fn survey(
    tools: &mut Tools,
    tree: &Tree,
    machine: Memory,
) -> Result<Survey, ProbeFailure> {
    let mut answer = Err(ProbeFailure::absent("amd-smi"));
    for place in [Place::Here, Place::Host] {
        answer = match answer {
            Err(failure) if !hangs(&failure) => better(failure, amd_smi(tools, place).await),
            answer => answer,
        };
        answer = match answer {
            Err(failure) if !hangs(&failure) => better(failure, rocm_smi(tools, place).await),
            answer => answer,
        };
    }
    match answer {
        Ok(mut survey) => {
            sysfs::fill_in_apus(&mut survey, tree, machine);
            Ok(survey)
        }
        Err(failure) => {
            let survey = sysfs::amd(tree, machine);
            // No card there is no proof that there is none while the tools fail.
            if survey.gpus.is_empty() && tree.has_on_the_bus(Vendor::Amd) != Some(false) {
                return Err(failure);
            }
            Ok(survey)
        }
    }
}

fn hangs(failure: &ProbeFailure) -> bool {
    matches!(failure, ProbeFailure::TimedOut { .. })
}

async fn amd_smi(tools: &mut Tools, place: Place) -> Result<Survey, ProbeFailure> {
    let facts = tools.output(place, "amd-smi", &["static", "--json"]).await?;
    let metrics = tools.output(place, "amd-smi", &["metric", "--json"]).await.unwrap_or_default();
    amd::read_amd_smi(&facts, &metrics)
}

async fn rocm_smi(tools: &mut Tools, place: Place) -> Result<Survey, ProbeFailure> {
    let asked = [
        "--showproductname",
        "--showuniqueid",
        "--showbus",
        "--showmeminfo",
        "vram",
        "--showuse",
        "--showtemp",
        "--json",
    ];
    let output = tools.output(place, "rocm-smi", &asked).await?;
    let mut survey = amd::read_rocm_smi(&output)?;
    if survey.gpus.iter().any(|gpu| gpu.architecture.is_none()) {
        let output = tools.output(place, "rocminfo", &[]).await.unwrap_or_default();
        amd::name_architectures(&mut survey.gpus, &amd::architectures(&output));
    }
    Ok(survey)
}
