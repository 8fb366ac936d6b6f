//! Tests of the backends: what they start, what they refuse, what they make of an engine's words.

mod command_lines;
mod documentation;
mod explanations;
mod options;
mod probes;
mod properties;
mod registry;
mod sources;

use serde_json::{Map, Value, json};
use strum::IntoEnumIterator;

use super::*;

/// A Model as the tests write it.
struct Sample {
    backend: &'static str,
    source: &'static str,
    config: Map<String, Value>,
    block_size: Option<i64>,
    swap_space: bool,
    wants_gpu: bool,
}

impl Sample {
    fn new(backend: &'static str, source: &'static str, config: Value) -> Self {
        let Value::Object(config) = config else { panic!("options are an object") };
        Self { backend, source, config, block_size: None, swap_space: false, wants_gpu: true }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            name: "writer",
            backend: self.backend,
            source: self.source,
            config: Config::of(Some(&self.config)),
            block_size: self.block_size,
            swap_space: self.swap_space,
            quantized: None,
            wants_gpu: self.wants_gpu,
        }
    }

    fn backend(&self) -> Backend {
        Backend::of(self.subject()).expect("a backend that exists")
    }

    fn launch(&self, placement: &Placement) -> Result<Launch, LaunchError> {
        self.backend().launch(self.subject(), placement)
    }

    fn complaints(&self) -> Vec<String> {
        let complaints = self.backend().check(self.subject());
        complaints
            .iter()
            .map(|complaint| {
                let kind = if complaint.warning { "warning" } else { "error" };
                format!("{kind}: {complaint}")
            })
            .collect()
    }
}

/// This machine: one NVIDIA GPU, the model at `model`.
fn machine(model: &str) -> Placement {
    let model =
        if model.is_empty() { ModelPlace::Nothing } else { ModelPlace::Path(model.to_owned()) };
    Placement {
        platform: Platform::Process,
        host: "127.0.0.1".to_owned(),
        port: 40_000,
        model,
        gpu: gpu(Vendor::Nvidia, "sm_89", 1),
        adapters: 0,
        adapter_rank: None,
        simulator_program: Some("/opt/flexinfer-gateway".to_owned()),
        data_dir: "/data/writer".to_owned(),
        store: None,
    }
}

/// A pod with one AMD GPU.
fn pod(model: &str) -> Placement {
    Placement {
        platform: Platform::Pod,
        host: "0.0.0.0".to_owned(),
        port: 8000,
        gpu: gpu(Vendor::Amd, "gfx1100", 1),
        ..machine(model)
    }
}

fn gpu(vendor: Vendor, architecture: &str, count: u32) -> Gpu {
    Gpu { vendor, architecture: Some(architecture.to_owned()), count }
}

/// A launch as text: one option a line, so that a change of one is a change of one line.
fn rendered(launch: &Launch) -> String {
    let mut lines = vec![launch.program.clone()];
    let mut after_flag = false;
    for argument in &launch.args {
        let flag = argument.starts_with('-');
        match lines.last_mut() {
            Some(line) if after_flag && !flag => *line = format!("{line} {argument}"),
            _ => lines.push(format!("  {argument}")),
        }
        after_flag = flag;
    }
    lines.extend(launch.env.iter().map(|(name, value)| format!("env {name}={value}")));
    lines.push(format!("at {}:{}", launch.host, launch.port));
    lines.push(format!("{:?}", launch.probe));
    for call in &launch.after_start {
        lines.extend(call.unless.iter().map(|unless| format!("unless {}", one_call(unless))));
        lines.push(format!("then {}", one_call(call)));
    }
    lines.extend(launch.files.iter().map(|file| format!("file {}\n{}", file.path, file.contents)));
    lines.push(format!("within {:?}", launch.startup_limit));
    lines.join("\n")
}

fn one_call(call: &Call) -> String {
    let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
    let streamed = if call.streams_progress { " (streams)" } else { "" };
    format!("{} {} {body}{streamed}", call.method, call.path)
}
