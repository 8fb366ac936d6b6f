//! MIG instances: their names from `nvidia-smi -L`, their sizes from `nvidia-smi -q -x`.

use std::collections::BTreeMap;

use crate::hardware::reading::{MIB, whole};
use crate::hardware::{Finding, Memory, Partition, Partitioning, Survey};

/// The instances of each GPU, by the GPU's UUID and the instance's number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Instances(BTreeMap<String, BTreeMap<u64, Partition>>);

/// The memory of each instance, by the GPU's UUID and the instance's number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceSizes(BTreeMap<String, BTreeMap<u64, Memory>>);

impl Instances {
    /// Reads `nvidia-smi -L`; lines that are neither a GPU nor an instance are passed over.
    pub fn read(listing: &str) -> Self {
        let mut found = Self::default();
        let mut gpu = None;
        for line in listing.lines().map(str::trim) {
            let Some(uuid) = between(line, "(UUID: ", ")") else { continue };
            if line.starts_with("GPU ") {
                gpu = Some(uuid);
            } else if let (Some(gpu), Some(rest)) = (gpu, line.strip_prefix("MIG ")) {
                let Some((profile, rest)) = rest.split_once("Device") else { continue };
                let Some(number) = whole(rest) else { continue };
                let profile = Some(profile.trim().to_owned()).filter(|profile| !profile.is_empty());
                let partition =
                    Partition { id: uuid.to_owned(), profile, memory: Memory::default() };
                found.0.entry(gpu.to_owned()).or_default().insert(number, partition);
            }
        }
        found
    }
}

impl InstanceSizes {
    /// Reads `nvidia-smi -q -x`, of which only `<mig_device>` elements matter here.
    pub fn read(xml: &str) -> Self {
        let mut found = Self::default();
        for gpu in elements(xml, "gpu") {
            let Some(uuid) =
                elements(gpu, "uuid").map(str::trim).find(|uuid| uuid.starts_with("GPU-"))
            else {
                continue;
            };
            for device in elements(gpu, "mig_device") {
                let number = elements(device, "index").next().and_then(whole);
                let memory = elements(device, "fb_memory_usage").next();
                let (Some(number), Some(memory)) = (number, memory) else { continue };
                let size = |name| whole(elements(memory, name).next()?)?.checked_mul(MIB);
                let memory = Memory { total: size("total"), used: size("used") };
                found.0.entry(uuid.to_owned()).or_default().insert(number, memory);
            }
        }
        found
    }
}

/// Gives each partitioned GPU of `survey` its instances. One without any offers nothing, and that is said.
pub fn attach(survey: &mut Survey, mut instances: Instances, sizes: &InstanceSizes) {
    for gpu in &mut survey.gpus {
        let Partitioning::Partitioned(parts) = &mut gpu.partitioning else { continue };
        let sizes = sizes.0.get(&gpu.id);
        let own = instances.0.remove(&gpu.id).unwrap_or_default();
        parts.extend(own.into_iter().map(|(number, mut partition)| {
            partition.memory =
                sizes.and_then(|sizes| sizes.get(&number)).copied().unwrap_or_default();
            partition
        }));
        if parts.is_empty() {
            survey.findings.push(Finding::WithoutPartitions { gpu: gpu.id.clone() });
        }
    }
}

/// What stands between `open` and the next `close`.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// The contents of each `<name …>` element in order; elements of that name are never nested here.
fn elements<'a>(xml: &'a str, name: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut rest = xml;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once(open.as_str())?;
            rest = after;
            // `<gpu` also begins `<gpu_name>`.
            if !after.starts_with(['>', ' ']) {
                continue;
            }
            let (content, after) = after.split_once('>')?.1.split_once(close.as_str())?;
            rest = after;
            return Some(content);
        }
    })
}
