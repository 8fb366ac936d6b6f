//! The Job that makes weights smaller after they were fetched. What the program in its image is told, and how
//! it tells what came of it, is in `docs/kubernetes-objects.md`.

use flexinfer_crds::model::{QuantizationFormat, QuantizationStatus};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;

use super::environment::variable;
use super::initial::{Steps, ours};
use super::jobs::{QUANTIZER, disruptions};
use super::volumes::{MODEL, mounted};
use super::weights::{MODELS, Quantized};
use super::{Blueprint, Refusal};
use crate::backends::{Gpu, Vendor};
use crate::planning::progress;

/// How often it is tried by the cluster before it counts as failed: once more, since it takes hours.
const TRIES: i32 = 1;

impl Blueprint<'_> {
    /// The Job that quantizes the weights on the claim with this uid; `None` where none is asked for.
    pub fn quantizing_job(&self, claim: &str) -> Result<Option<Job>, Refusal> {
        let Some(quantized) = &self.weights.quantized else { return Ok(None) };
        let gpu = self.quantizers_gpu(quantized)?;
        let format = quantized.wanted.format;
        let image = self.settings.images.quantizer(format, &gpu)?;
        let mut variables = self.hub();
        variables.extend(told(quantized));
        variables.push(variable("QUANTIZE_PROGRESS_PORT", &progress::port()));
        if gpu.vendor == Vendor::Amd {
            // Without it the allocator's fragments keep the largest layers from fitting.
            variables.push(variable("PYTORCH_HIP_ALLOC_CONF", "expandable_segments:True"));
        }
        let mounts = vec![mounted(MODEL, MODELS, false)];
        let mut container = ours("quantizer", &image, &[], variables, mounts);
        // The image says what to run.
        container.args = None;
        progress::can_be_asked(&mut container);
        container.resources = Some(self.quantizers_resources(quantized, &gpu));
        let pod = self.quantizers_pod(quantized, container, &gpu)?;
        let work = serde_json::json!([claim, quantized.from, quantized.to]);
        let mut job = self.job("-quantize", QUANTIZER, &work, pod);
        if let Some(spec) = &mut job.spec {
            spec.backoff_limit = Some(TRIES);
            spec.active_deadline_seconds = Some(quantized.limit());
            // Its exit statuses are not those of our own program.
            spec.pod_failure_policy = Some(disruptions());
        }
        Ok(Some(super::metadata::stamped(job)))
    }

    /// The GPU that the Job uses: one of those that the model runs on.
    fn quantizers_gpu(&self, quantized: &Quantized) -> Result<Gpu, Refusal> {
        if !quantized.uses_gpu() {
            return Ok(Gpu { vendor: Vendor::Cpu, architecture: None, count: 0 });
        }
        if self.placement.count == 0 {
            let message = format!(
                "making {} takes a GPU, and the model has none; write gpu: {{count: 1}}, or useGPU: \
                 false where the image can do without",
                quantized.wanted.format
            );
            return Err(Refusal::field("spec.quantize.useGPU", &message));
        }
        Ok(Gpu { count: 1, ..self.placement.gpu() })
    }

    fn quantizers_pod(
        &self,
        quantized: &Quantized,
        container: Container,
        gpu: &Gpu,
    ) -> Result<PodSpec, Refusal> {
        let engine = self.surroundings()?;
        let mut pod = self.job_pod(Steps { containers: vec![container], volumes: Vec::new() })?;
        pod.security_context.get_or_insert_default().fs_group = Some(super::jobs::GROUP);
        if gpu.count > 0 {
            pod.runtime_class_name = engine.runtime_class_name;
            let context = pod.security_context.get_or_insert_default();
            context.supplemental_groups =
                engine.security_context.and_then(|context| context.supplemental_groups);
        }
        let selector = &quantized.wanted.node_selector;
        if !selector.is_empty() {
            pod.node_selector = Some(selector.clone());
        }
        Ok(pod)
    }

    fn quantizers_resources(&self, quantized: &Quantized, gpu: &Gpu) -> ResourceRequirements {
        let memory = Quantity(format!("{}Gi", quantized.memory_gib()));
        let mut amounts = std::collections::BTreeMap::from([("memory".to_owned(), memory)]);
        let resource = self.placement.resource.as_ref().filter(|_| gpu.count > 0);
        amounts.extend(resource.map(|resource| (resource.clone(), Quantity("1".to_owned()))));
        ResourceRequirements {
            limits: Some(amounts.clone()),
            requests: Some(amounts),
            ..ResourceRequirements::default()
        }
    }
}

/// What the program is told of its work.
fn told(quantized: &Quantized) -> Vec<EnvVar> {
    let wanted = &quantized.wanted;
    let calibration = wanted.calibration.clone().unwrap_or_default();
    let number = |number: i32| Some(number.to_string());
    let measured = matches!(
        wanted.format,
        QuantizationFormat::Awq | QuantizationFormat::Gptq | QuantizationFormat::Exl2
    );
    let of_measuring = |text: Option<String>| text.filter(|_| measured);
    [
        ("FORMAT", Some(wanted.format.to_string())),
        ("SOURCE", Some(quantized.from.clone())),
        ("OUTPUT_DIR", Some(quantized.to.clone())),
        ("OUTPUT_FILE", quantized.file.clone()),
        ("GGUF_TYPE", quantized.gguf_type().map(str::to_owned)),
        ("BITS", quantized.bits().and_then(number)),
        ("GROUP_SIZE", quantized.group_size().and_then(number)),
        ("SYM", of_measuring(Some(wanted.sym.unwrap_or(true).to_string()))),
        ("DESC_ACT", of_measuring(Some(wanted.desc_act.unwrap_or(false).to_string()))),
        (
            "DYNAMIC_EXCLUSION",
            of_measuring(Some(
                wanted.dynamic_exclusion.map_or("auto".to_owned(), |of| of.to_string()),
            )),
        ),
        ("MAX_MEMORY_GB", number(quantized.memory_gib())),
        (
            "GPU_MEMORY_FRACTION",
            Some(wanted.gpu_memory_fraction.clone().unwrap_or_else(|| "0.80".to_owned()))
                .filter(|_| quantized.uses_gpu()),
        ),
        ("CALIBRATION_MAX_SEQ_LEN", of_measuring(number(calibration.max_seq_len.unwrap_or(4096)))),
        ("CALIBRATION_MAX_SAMPLES", of_measuring(number(calibration.max_samples.unwrap_or(256)))),
        (
            "CALIBRATION_PARALLEL_SAMPLES",
            of_measuring(calibration.n_parallel_calib_samples.and_then(number)),
        ),
        (
            "CALIBRATION_DATASET",
            of_measuring(Some(
                calibration.dataset.unwrap_or_else(|| "mit-han-lab/pile-val-backup".to_owned()),
            )),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some(variable(&format!("QUANTIZE_{name}"), &value?)))
    .collect()
}

/// What the program says at its end, in its container's termination message: JSON of which any part may be
/// missing, and more may be there.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Outcome {
    original_size_bytes: Option<i64>,
    compressed_size_bytes: Option<i64>,
    quantization_time_seconds: Option<f64>,
}

impl Quantized {
    /// What the status says of weights that are made, from the last words of the program that made them.
    pub fn outcome(&self, last_words: Option<&str>) -> QuantizationStatus {
        let line = last_words.and_then(|words| words.trim().lines().last());
        let outcome: Outcome =
            line.and_then(|line| serde_json::from_str(line).ok()).unwrap_or_default();
        let sizes = outcome.original_size_bytes.zip(outcome.compressed_size_bytes);
        QuantizationStatus {
            original_size_bytes: outcome.original_size_bytes,
            compressed_size_bytes: outcome.compressed_size_bytes,
            compression_ratio: sizes.and_then(|(before, after)| ratio(before, after)),
            quantization_time: outcome.quantization_time_seconds.map(|took| format!("{took:.0}s")),
            progress: Some(100),
            ..self.status()
        }
    }

    /// What the status says of weights that are not made yet.
    pub fn status(&self) -> QuantizationStatus {
        QuantizationStatus {
            format: Some(self.wanted.format),
            kind: self.gguf_type().map(str::to_owned),
            ..QuantizationStatus::default()
        }
    }
}

/// `before` over `after`, with two decimals.
fn ratio(before: i64, after: i64) -> Option<String> {
    let hundredths = before.checked_mul(100)?.checked_div(after)?;
    Some(format!("{}.{:02}", hundredths / 100, hundredths % 100))
}
