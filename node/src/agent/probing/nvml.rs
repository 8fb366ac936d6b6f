//! NVIDIA's library. It is loaded for each look and let go again: held open, it would keep the driver from
//! being reloaded. A call that hangs cannot be ended, so while one does no other is begun.

use std::path::{Path, PathBuf};
use std::time::Duration;

use flexinfer_core::backends::Vendor;
use flexinfer_core::hardware::{
    Finding, Gpu, Memory, Partition, Partitioning, ProbeFailure, Survey, nvidia,
};
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::host;

const NAME: &str = "NVML";

type Answer = Result<Survey, ProbeFailure>;

/// The library at its path, else as the host has it.
pub(super) struct Library {
    path: PathBuf,
    host_root: PathBuf,
    limit: Duration,
    hanging: Option<JoinHandle<Answer>>,
}

impl Library {
    pub(super) fn new(path: PathBuf, host_root: PathBuf, limit: Duration) -> Self {
        Self { path, host_root, limit, hanging: None }
    }

    /// All GPUs, in no more than the limit.
    pub(super) async fn survey(&mut self, machine: Memory) -> Answer {
        let (path, host_root) = (self.path.clone(), self.host_root.clone());
        let mut asked = match self.hanging.take() {
            // The answer of an earlier call that ended late is old; ask anew.
            Some(earlier) if !earlier.is_finished() => earlier,
            _ => tokio::task::spawn_blocking(move || first(&path, &host_root, machine)),
        };
        match timeout(self.limit, &mut asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(ProbeFailure::failed(NAME, "the call did not come back")),
            Err(_) => {
                self.hanging = Some(asked);
                Err(ProbeFailure::TimedOut { source_name: NAME.to_owned(), limit: self.limit })
            }
        }
    }
}

/// The answer of the first library that is one.
fn first(path: &Path, host_root: &Path, machine: Memory) -> Answer {
    let mut answer = survey(path, machine);
    for path in host::libraries(host_root) {
        match answer {
            Err(failure) if failure.is_absence() => answer = survey(&path, machine),
            answer => return answer,
        }
    }
    answer
}

fn survey(path: &Path, machine: Memory) -> Answer {
    let nvml =
        Nvml::builder().lib_path(path.as_os_str()).init().map_err(|error| failure(&error))?;
    let count = nvml.device_count().map_err(|error| failure(&error))?;
    let mut survey = Survey::default();
    let mut last = None;
    for index in 0..count {
        match nvml
            .device_by_index(index)
            .and_then(|device| gpu(&device, machine, &mut survey.findings))
        {
            Ok(gpu) => survey.gpus.push(gpu),
            Err(error @ NvmlError::FailedToLoadSymbol(_)) => return Err(failure(&error)),
            Err(error) => {
                survey.findings.push(Finding::Lost { gpu: format!("number {index}") });
                last = Some(error);
            }
        }
    }
    match last {
        // All at once is the driver's failure, not the loss of each.
        Some(error) if survey.gpus.is_empty() => Err(failure(&error)),
        _ if count == 0 => Err(ProbeFailure::absent(NAME)),
        _ => Ok(survey),
    }
}

fn gpu(
    device: &Device<'_>,
    machine: Memory,
    findings: &mut Vec<Finding>,
) -> Result<Gpu, NvmlError> {
    let mut gpu = Gpu::new(Vendor::Nvidia, device.uuid()?);
    gpu.name = unless_unsupported(device.name())?;
    let capability = unless_unsupported(device.cuda_compute_capability())?;
    gpu.architecture = capability
        .and_then(|version| nvidia::architecture(&format!("{}.{}", version.major, version.minor)));
    match unless_unsupported(device.memory_info())? {
        Some(memory) => gpu.memory = Memory { total: Some(memory.total), used: Some(memory.used) },
        None if gpu.name.as_deref().is_some_and(nvidia::shares_the_machines_memory) => {
            gpu.unified = true;
            gpu.memory = machine;
        }
        None => {}
    }
    gpu.utilization =
        unless_unsupported(device.utilization_rates())?.map(|rates| f64::from(rates.gpu));
    gpu.temperature =
        unless_unsupported(device.temperature(TemperatureSensor::Gpu))?.map(f64::from);
    let Some(mode) = unless_unsupported(device.mig_mode()).ok().flatten() else { return Ok(gpu) };
    if mode.current != mode.pending {
        findings.push(Finding::PartitioningPending { gpu: gpu.id.clone() });
    }
    if mode.current != 0 {
        let parts = partitions(device);
        if parts.is_empty() {
            findings.push(Finding::WithoutPartitions { gpu: gpu.id.clone() });
        }
        gpu.partitioning = Partitioning::Partitioned(parts);
    }
    Ok(gpu)
}

/// The MIG instances; numbers in use need not follow one another.
fn partitions(parent: &Device<'_>) -> Vec<Partition> {
    let most = parent.mig_device_count().unwrap_or_default();
    let devices = (0..most).filter_map(|index| parent.mig_device_by_index(index).ok());
    let partition = |device: Device<'_>| {
        let memory = device.memory_info().ok();
        // The driver calls an instance `NVIDIA A100-SXM4-40GB MIG 3g.20gb`.
        let name = device.name().ok();
        Some(Partition {
            id: device.uuid().ok()?,
            profile: name.and_then(|name| Some(name.rsplit_once("MIG ")?.1.to_owned())),
            memory: Memory {
                total: memory.as_ref().map(|memory| memory.total),
                used: memory.as_ref().map(|memory| memory.used),
            },
        })
    };
    devices.filter_map(partition).collect()
}

/// `None` for what this GPU does not tell or this user may not know.
fn unless_unsupported<T>(answer: Result<T, NvmlError>) -> Result<Option<T>, NvmlError> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(NvmlError::NotSupported | NvmlError::NoPermission) => Ok(None),
        Err(error) => Err(error),
    }
}

fn failure(error: &NvmlError) -> ProbeFailure {
    match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => ProbeFailure::absent(NAME),
        _ => ProbeFailure::failed(NAME, &error.to_string()),
    }
}
