//! `amd-smi static --json` and `amd-smi metric --json`: what a GPU is, and what it does.

use serde_json::Value;

use super::{architecture, has_no_memory_of_its_own, noise};
use crate::backends::Vendor;
use crate::hardware::reading::{MIB, known, number, whole};
use crate::hardware::{Gpu, Memory, ProbeFailure, Survey};

const TOOL: &str = "amd-smi";

/// Reads what the GPUs are from `facts`, and what they do from `metrics` where that can be read. The memory
/// of an APU is left to sysfs.
pub fn read(facts: &str, metrics: &str) -> Result<Survey, ProbeFailure> {
    let facts = noise::json(TOOL, facts)?;
    let metrics = noise::json(TOOL, metrics).unwrap_or_default();
    let described = gpus(&facts);
    if described.is_empty() {
        return Err(ProbeFailure::unreadable(TOOL, "it lists no GPU"));
    }
    let measured = gpus(&metrics);
    let gpus = described.iter().map(|facts| {
        let number = facts.get("gpu").and_then(Value::as_u64);
        let same =
            measured.iter().find(|measured| measured.get("gpu").and_then(Value::as_u64) == number);
        gpu(facts, same.unwrap_or(&Value::Null))
    });
    Ok(Survey { gpus: gpus.collect(), findings: Vec::new() })
}

/// The GPUs of a page: an array until ROCm 6.4, then the member `gpu_data`.
fn gpus(page: &Value) -> Vec<Value> {
    let list = page.get("gpu_data").unwrap_or(page).as_array();
    let is_gpu = |value: &&Value| value.get("gpu").is_some_and(Value::is_u64);
    list.map(|list| list.iter().filter(is_gpu).cloned().collect()).unwrap_or_default()
}

fn gpu(facts: &Value, metrics: &Value) -> Gpu {
    let text = |path: &str| facts.pointer(path).and_then(Value::as_str).and_then(known);
    let place = facts.get("gpu").map(|number| format!("gpu{number}")).unwrap_or_default();
    let id = text("/asic/asic_serial").or_else(|| text("/bus/bdf")).unwrap_or(place);
    let mut gpu = Gpu::new(Vendor::Amd, id);
    gpu.name = text("/asic/market_name");
    gpu.architecture = text("/asic/target_graphics_version").and_then(|text| architecture(&text));
    gpu.unified = gpu.architecture.as_deref().is_some_and(has_no_memory_of_its_own);
    if !gpu.unified {
        let total =
            mebibytes(metrics, "/mem_usage/total_vram").or_else(|| mebibytes(facts, "/vram/size"));
        gpu.memory = Memory { total, used: mebibytes(metrics, "/mem_usage/used_vram") };
    }
    gpu.utilization = amount(metrics, "/usage/gfx_activity").as_deref().and_then(number);
    let temperature = |sensor: &str| amount(metrics, &format!("/temperature/{sensor}"));
    gpu.temperature =
        temperature("edge").or_else(|| temperature("hotspot")).as_deref().and_then(number);
    gpu
}

/// The amount at `path`: `{"value": 24560, "unit": "MB"}`, or the bare number or text of older releases.
fn amount(page: &Value, path: &str) -> Option<String> {
    let found = page.pointer(path)?;
    match found.get("value").unwrap_or(found) {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => known(text),
        _ => None,
    }
}

/// The tool's `MB` are mebibytes.
fn mebibytes(page: &Value, path: &str) -> Option<u64> {
    whole(&amount(page, path)?)?.checked_mul(MIB)
}
