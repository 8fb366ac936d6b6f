//! `rocm-smi … --json`: an object with one member for each card. Names of its fields changed between
//! releases; each is looked up by all names that it had.

use serde_json::{Map, Value};

use super::{architecture, has_no_memory_of_its_own, noise};
use crate::backends::Vendor;
use crate::hardware::reading::{known, number, whole};
use crate::hardware::{Gpu, Memory, ProbeFailure, Survey};

const TOOL: &str = "rocm-smi";

const ID: &[&str] = &["Unique ID", "PCI Bus"];
const NAME: &[&str] = &["Card Series", "Card series", "Device Name", "Card model", "Card Model"];
const ARCHITECTURE: &[&str] = &["GFX Version"];
const TOTAL: &[&str] = &["VRAM Total Memory (B)"];
const USED: &[&str] = &["VRAM Total Used Memory (B)"];
const UTILIZATION: &[&str] = &["GPU use (%)"];
const TEMPERATURE: &[&str] =
    &["Temperature (Sensor edge) (C)", "Temperature (Sensor junction) (C)"];

/// Reads the cards. The memory of an APU is left out: what it shows as VRAM is not what it can use, which
/// sysfs tells.
pub fn read(output: &str) -> Result<Survey, ProbeFailure> {
    let Value::Object(members) = noise::json(TOOL, output)? else {
        return Err(ProbeFailure::unreadable(TOOL, "it is no object of cards"));
    };
    let mut cards: Vec<(u64, Gpu)> = members
        .iter()
        .filter_map(|(name, card)| {
            let index = name.strip_prefix("card")?.parse().ok()?;
            Some((index, gpu(index, card.as_object()?)))
        })
        .collect();
    if cards.is_empty() {
        return Err(ProbeFailure::unreadable(TOOL, "it has no cards"));
    }
    cards.sort_by_key(|(index, _)| *index);
    Ok(Survey { gpus: cards.into_iter().map(|(_, gpu)| gpu).collect(), findings: Vec::new() })
}

fn gpu(index: u64, card: &Map<String, Value>) -> Gpu {
    let mut gpu = Gpu::new(Vendor::Amd, field(card, ID).unwrap_or_else(|| format!("card{index}")));
    gpu.name = field(card, NAME);
    gpu.architecture = field(card, ARCHITECTURE).and_then(|text| architecture(&text));
    gpu.unified = gpu.architecture.as_deref().is_some_and(has_no_memory_of_its_own);
    if !gpu.unified {
        let bytes = |names| field(card, names).as_deref().and_then(whole);
        gpu.memory = Memory { total: bytes(TOTAL), used: bytes(USED) };
    }
    gpu.utilization = field(card, UTILIZATION).as_deref().and_then(number);
    gpu.temperature = field(card, TEMPERATURE).as_deref().and_then(number);
    gpu
}

/// The first of `names` that says something; older releases wrote texts, newer ones numbers too.
fn field(card: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match card.get(*name)? {
        Value::String(text) => known(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}
