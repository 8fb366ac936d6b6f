//! `nvidia-smi --query-gpu=… --format=csv,noheader,nounits`: one line for each GPU.

use super::{SMI, architecture, complaint, shares_the_machines_memory};
use crate::backends::Vendor;
use crate::hardware::reading::{MIB, known, number, whole};
use crate::hardware::{Finding, Gpu, Memory, Partitioning, ProbeFailure, Survey};

/// What is asked with `--query-gpu`.
pub const FIELDS: &str = "uuid,memory.total,memory.used,utilization.gpu,temperature.gpu,\
                          mig.mode.current,mig.mode.pending,compute_cap,name";

/// The same for drivers that refuse `compute_cap`, which came after 495: the architecture stays unknown.
pub const FIELDS_OLDER: &str = "uuid,memory.total,memory.used,utilization.gpu,temperature.gpu,mig.mode.current,mig.mode.pending,name";

/// Reads the answer to either list of fields. `machine_memory` in bytes stands in for GPUs without memory of
/// their own. Partitions are added by [`super::attach`].
pub fn read(output: &str, machine_memory: Memory) -> Result<Survey, ProbeFailure> {
    let mut survey = Survey::default();
    for line in output.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(gpu) = lost(line) {
            survey.findings.push(Finding::Lost { gpu });
        } else if let Some(failure) = complaint(line) {
            return Err(failure);
        } else {
            survey.add(row(line, machine_memory)?);
        }
    }
    if survey == Survey::default() {
        return Err(ProbeFailure::unreadable(SMI, "it listed no GPU"));
    }
    Ok(survey)
}

/// The GPU of a line like `Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.`
fn lost(line: &str) -> Option<String> {
    if !line.contains("Unable to determine the device handle") && !line.contains("GPU is lost") {
        return None;
    }
    let (_, rest) = line.split_once("GPU")?;
    let address = rest.trim_start().split([' ', ',']).next().unwrap_or_default();
    let address = address.trim_end_matches([':', '.']);
    Some(if address.contains(':') { address.to_owned() } else { "of unknown address".to_owned() })
}

fn row(line: &str, machine_memory: Memory) -> Result<Survey, ProbeFailure> {
    let fields: Vec<&str> = line.splitn(9, ',').map(str::trim).collect();
    let (front, capability, name) = match fields.as_slice() {
        [front @ .., capability, name] if front.len() == 7 => (front, Some(*capability), *name),
        [front @ .., name] if front.len() == 7 => (front, None, *name),
        _ => {
            return Err(ProbeFailure::unreadable(
                SMI,
                format!("`{line}` is not a row of GPU facts"),
            ));
        }
    };
    let &[uuid, total, used, utilization, temperature, mig, pending] = front else {
        return Err(ProbeFailure::unreadable(SMI, format!("`{line}` is not a row of GPU facts")));
    };
    if !uuid.starts_with("GPU-") {
        return Err(ProbeFailure::unreadable(SMI, format!("`{line}` begins with no GPU's UUID")));
    }
    let mut gpu = Gpu::new(Vendor::Nvidia, uuid);
    gpu.name = known(name);
    gpu.architecture = capability.and_then(architecture);
    gpu.memory = Memory { total: mebibytes(total), used: mebibytes(used) };
    if gpu.memory.total.is_none() && shares_the_machines_memory(name) {
        gpu.unified = true;
        gpu.memory = machine_memory;
    }
    gpu.utilization = number(utilization);
    gpu.temperature = number(temperature);
    let mut findings = Vec::new();
    if mig == "Enabled" {
        gpu.partitioning = Partitioning::Partitioned(Vec::new());
    }
    if known(mig).is_some() && known(pending).is_some() && mig != pending {
        findings.push(Finding::PartitioningPending { gpu: uuid.to_owned() });
    }
    Ok(Survey { gpus: vec![gpu], findings })
}

fn mebibytes(text: &str) -> Option<u64> {
    whole(text)?.checked_mul(MIB)
}
