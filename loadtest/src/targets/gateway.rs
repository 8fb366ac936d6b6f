//! The gateway in local mode before one model, under a name that it must rewrite.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::{Name, Setting, Target, free_address, spawn};
use crate::work::{ENGINE_MODEL, MODEL};

/// Callers and limits as a shared gateway has them, each so high that it never refuses: what it costs to ask
/// is measured. The digest is that of the key in `work::BEARER`.
const KEYS: &str = "callers:
  - name: bench
    sha256: 103af05ff42af08d3a90b57ce403d132a08f706b5bc2ef1452442ecdeed24edd
    limits: {requestsPerSecond: 10000000, concurrentRequests: 1000000, tokensPerMinute: 4000000000}
";
const LIMITS: [&str; 4] =
    ["rate-limit-per-model", "rate-limit-burst", "rate-limit-global", "rate-limit-global-burst"];

/// Before an engine that already runs: names are found and rewritten, slots booked, everything counted.
pub(crate) fn start(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let folder = setting.folder_of("gateway")?;
    let threads = setting.threads.to_string();
    serve(Name::Gateway, program, &folder, &running(setting), &["--threads", &threads])
}

/// The same as on a cluster, where it takes requests for a while after it was asked to end: a kept connection
/// that is closed at once may have a request on its way.
pub(crate) fn with_drain(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let folder = setting.folder_of("gateway-with-drain")?;
    serve(Name::Gateway, program, &folder, &running(setting), &["--drain-delay", "2s"])
}

/// The same with callers' keys and every kind of limit.
pub(crate) fn with_everything(program: &Path, setting: &Setting<'_>) -> Result<Target> {
    let folder = setting.folder_of("gateway-with-everything")?;
    let keys = folder.join("keys.yaml");
    fs::write(&keys, KEYS).context("cannot write the keys file")?;
    let (threads, keys) = (setting.threads.to_string(), keys.to_string_lossy());
    let mut flags =
        vec!["--threads", &threads, "--keys-file", &keys, "--rate-limit-enabled", "true"];
    let limits = LIMITS.map(|limit| format!("--{limit}"));
    flags.extend(limits.iter().flat_map(|limit| [limit.as_str(), "1000000"]));
    serve(Name::Everything, program, &folder, &running(setting), &flags)
}

fn running(setting: &Setting<'_>) -> String {
    let engine = setting.engine;
    format!(
        "  backend: external
  config:
    url: http://{engine}
    servedModelName: {ENGINE_MODEL}
    maxConcurrency: 10000
"
    )
}

/// Before a simulated model that sleeps, and takes as long to load as `waiters` need to arrive.
pub(crate) fn asleep(program: &Path, folder: &Path, waiters: usize) -> Result<Target> {
    let spec = "  backend: simulator
  config: { loadTime: 5s, slots: 64, timeToFirstToken: 1ms, timePerToken: 0ms }
";
    let waiters = waiters.to_string();
    let flags = ["--max-queue-size", &waiters, "--cold-start-timeout", "2m"];
    serve(Name::Gateway, program, folder, spec, &flags)
}

fn serve(name: Name, program: &Path, folder: &Path, spec: &str, flags: &[&str]) -> Result<Target> {
    let (models, own) = (folder.join("models"), folder.join("own"));
    for folder in [&models, &own] {
        fs::create_dir_all(folder).context("cannot create a folder for the gateway")?;
    }
    let head = "apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model";
    let manifest = format!("{head}\nmetadata: {{ name: {MODEL} }}\nspec:\n{spec}");
    fs::write(models.join("bench.yaml"), manifest).context("cannot write the model")?;
    let (address, admin) = (free_address()?, free_address()?);
    let mut command = Command::new(program);
    command.arg("local").arg(models).args(["--listen", &address, "--admin-listen", &admin]);
    command.args(["--log-level", "warn", "--data-dir"]).arg(own).args(flags);
    // Its greeting belongs to people; what it warns of goes to stderr.
    let child = spawn(command.stdout(Stdio::null()))?;
    let mut target = Target::new(name, address, child);
    target.admin = Some(admin);
    Ok(target)
}
