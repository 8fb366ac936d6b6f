//! ComfyUI: `python main.py` in its own folder, by its `comfy/cli_args.py`. Its models and custom
//! nodes are named in a paths file, since it has no flag for either that all versions know.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::engine::{Engine, MINUTE};
use super::explain::{Clue, clue};
use super::keys::{Key, Takes};
use super::{
    Api, Complaint, Config, Expected, Launch, LaunchError, LaunchFile, Placement, Platform, Probe,
    Subject, Support, Vendor,
};
use crate::activation::Reason;
use crate::sources::Scheme;

pub(super) struct ComfyUi;

const KEYS: &[Key] = &[
    Key::read("directory", Takes::Text),
    Key::read("enableCORS", Takes::Flag),
    Key::read("modelsPath", Takes::Text),
    Key::read("customNodesPath", Takes::Text),
    Key::read("outputDirectory", Takes::Text),
    Key::variable("hipVisibleDevices", Takes::Text, "HIP_VISIBLE_DEVICES"),
];

const CLUES: &[Clue] = &[
    clue(
        &["can't open file", "main.py"],
        Reason::ProgramNotFound,
        "ComfyUI is not there; set config.directory to its folder",
    ),
    clue(
        &["found no nvidia driver"],
        Reason::ProgramNotStarted,
        "PyTorch sees no GPU; install the driver, or run on the processor by leaving `gpu` out",
    ),
];

/// The folders of a models directory, as ComfyUI names them.
const MODEL_FOLDERS: [&str; 14] = [
    "checkpoints",
    "clip",
    "clip_vision",
    "configs",
    "controlnet",
    "diffusion_models",
    "embeddings",
    "gligen",
    "hypernetworks",
    "loras",
    "style_models",
    "text_encoders",
    "upscale_models",
    "vae",
];

const PATHS_FILE: &str = "extra_model_paths.yaml";

impl Engine for ComfyUi {
    fn keys(&self) -> &'static [Key] {
        KEYS
    }

    fn apis(&self) -> &'static [Api] {
        &[Api::ComfyUi]
    }

    fn port(&self) -> u16 {
        8188
    }

    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError> {
        let config = subject.config;
        let statistics = Expected::Json { field: "system", value: None };
        let probe = Probe::Http { path: "/system_stats".into(), expected: statistics };
        let mut launch = Launch::of("python", placement, probe);
        // With a program of the user's own, where main.py lies is that program's business.
        if !config.has("command") {
            launch.word(main_script(config, placement)?);
        }
        launch.arg("--listen", &placement.host).arg("--port", placement.port);
        launch.word("--disable-auto-launch");
        if placement.gpu.vendor == Vendor::Cpu {
            launch.word("--cpu");
        }
        if config.flag("enableCORS")?.unwrap_or(true) {
            launch.word("--enable-cors-header");
        }
        paths(&mut launch, config, placement)?;
        if let Some(folder) = config.text("outputDirectory")? {
            launch.arg("--output-directory", folder);
        }
        Ok(launch)
    }

    fn idle_timeout(&self) -> Duration {
        10 * MINUTE
    }

    fn drain_limit(&self) -> Duration {
        5 * MINUTE
    }

    fn vendors(&self) -> &'static [Vendor] {
        &[Vendor::Nvidia, Vendor::Amd, Vendor::Intel, Vendor::Cpu]
    }

    fn sources(&self) -> &'static [Scheme] {
        &[]
    }

    fn architectures(&self) -> &'static [(&'static str, Support)] {
        &[("sm_5", Support::None), ("gfx906", Support::Experimental)]
    }

    fn check(&self, _subject: &Subject<'_>) -> Vec<Complaint> {
        Vec::new()
    }

    fn clues(&self) -> &'static [Clue] {
        CLUES
    }
}

fn main_script(config: Config<'_>, placement: &Placement) -> Result<String, Complaint> {
    match config.text("directory")? {
        Some(folder) => Ok(format!("{}/main.py", folder.trim_end_matches('/'))),
        // An image starts in ComfyUI's folder.
        None if placement.platform == Platform::Pod => Ok("main.py".to_owned()),
        None => Err(Complaint::error(
            "spec.config.directory",
            "missing; write the folder that holds ComfyUI's main.py, or a program in \
             config.command",
        )),
    }
}

/// A paths file as it is, or one written for a folder of models and one of custom nodes.
fn paths(launch: &mut Launch, config: Config<'_>, placement: &Placement) -> Result<(), Complaint> {
    let mut section = serde_json::Map::new();
    match config.text("modelsPath")? {
        Some(file) if names_a_yaml_file(file) => {
            launch.arg("--extra-model-paths-config", file);
        }
        Some(folder) => {
            let folder = folder.trim_end_matches('/');
            for kind in MODEL_FOLDERS {
                section.insert(kind.to_owned(), json!(format!("{folder}/{kind}")));
            }
        }
        None => {}
    }
    if let Some(folder) = config.text("customNodesPath")? {
        section.insert("custom_nodes".to_owned(), json!(folder));
    }
    if !section.is_empty() {
        launch.arg("--extra-model-paths-config", format!("{}/{PATHS_FILE}", placement.data_dir));
        // JSON is YAML, too, and quotes every path as it must be.
        let contents = format!("{:#}\n", json!({"flexinfer": section}));
        launch.files.push(LaunchFile { path: PATHS_FILE.to_owned(), contents });
    }
    Ok(())
}

fn names_a_yaml_file(path: &str) -> bool {
    let extension = Path::new(path).extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("yaml") || extension.eq_ignore_ascii_case("yml")
}
