//! OpenAI's own Python and Node clients, Anthropic's, Ollama's, one of ComfyUI and curl, unchanged, against a local
//! gateway with simulated models, plain and under TLS; the k6 scenarios of loadtest/ under a stand-in for k6; and the
//! README's examples as they lie there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::gateway::Gateway;
use crate::test::{Counts, Steps, watched};
use crate::{cache, prerequisites, program, workspace};

/// The clients as their users install them. A new version is a new line here and a new folder in the cache.
pub(crate) const PYTHON_CLIENT: &str = "openai==3.57.0";
const ANTHROPIC_CLIENT: &str = "anthropic==2.14.0";
const OLLAMA_CLIENT: &str = "ollama==0.6.3";
/// OpenAI's with what its WebSockets need.
const REALTIME_CLIENT: &str = "openai[realtime]==3.57.0";
const COMFYUI_CLIENT: &str = "comfy-toolkit[ws]==0.1.0";
const NODE_CLIENT: &str = "openai@6.30.1";

/// Everything here lies in this folder of the checkout.
pub(crate) const FOLDER: &str = "gateway/tests/clients";

/// All of them as steps of the test run.
pub(crate) fn steps(steps: &mut Steps) {
    let (with_python, with_node) = ([prerequisites::PYTHON], [prerequisites::NODE]);
    steps.needing("OpenAI's Python client", &with_python, python);
    steps.needing("Anthropic's Python client", &with_python, anthropic);
    steps.needing("Ollama's Python client", &with_python, ollama);
    steps.needing("OpenAI's client over a WebSocket", &with_python, realtime);
    steps.needing("a client of ComfyUI", &with_python, comfyui);
    steps.needing("curl", &[prerequisites::PYTHON, prerequisites::CURL], curl);
    let with_tls = [prerequisites::PYTHON, prerequisites::CURL, prerequisites::OPENSSL];
    steps.needing("OpenAI's Python client and curl over TLS", &with_tls, over_tls);
    steps.needing("examples", &with_python, examples);
    steps.needing("OpenAI's Node client", &with_node, node);
    steps.needing("k6 scenarios", &with_node, k6);
}

/// A Python of our own with packages in it, outside the checkout.
pub(crate) fn python_with(packages: &[&str]) -> Result<PathBuf> {
    let version = program::output(Command::new("python3").arg("--version"))?;
    let mut ingredients = vec![version.trim()];
    ingredients.extend(packages);
    let place = cache::kept("python", &ingredients, |place| {
        program::run(Command::new("python3").args(["-m", "venv"]).arg(place))?;
        if packages.is_empty() {
            return Ok(());
        }
        println!("Installing {} for Python", packages.join(" "));
        let mut pip = Command::new(place.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        program::run(pip.args(packages))
    })?;
    Ok(place.join("bin/python"))
}

fn python(counts: &mut Counts) -> Result<()> {
    against_gateway(&mut python_test("openai_client", &[PYTHON_CLIENT])?, counts)
}

fn anthropic(counts: &mut Counts) -> Result<()> {
    against_gateway(&mut python_test("anthropic_client", &[ANTHROPIC_CLIENT])?, counts)
}

fn ollama(counts: &mut Counts) -> Result<()> {
    against_gateway(&mut python_test("ollama_client", &[OLLAMA_CLIENT])?, counts)
}

fn realtime(counts: &mut Counts) -> Result<()> {
    against_gateway(&mut python_test("realtime_client", &[REALTIME_CLIENT])?, counts)
}

fn comfyui(counts: &mut Counts) -> Result<()> {
    against_gateway(&mut python_test("comfyui_client", &[COMFYUI_CLIENT])?, counts)
}

fn curl(counts: &mut Counts) -> Result<()> {
    against_gateway(&mut python_test("curl_client", &[])?, counts)
}

/// The same clients and tests, which are told no more than whose certificates to trust.
fn over_tls(counts: &mut Counts) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("flexinfer-tls-{}", std::process::id()));
    fs::create_dir_all(&folder).context("cannot create a folder for the certificate")?;
    let [certificate, key] = ["tls.crt", "tls.key"].map(|name| folder.join(name));
    let mut openssl = program::named("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
    ]);
    openssl.args(["-days", "2", "-subj", "/CN=gateway", "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.arg("-out").arg(&certificate).arg("-keyout").arg(&key);
    program::output(&mut openssl)?;
    let mut test = python_test("openai_client", &[PYTHON_CLIENT])?;
    test.arg("curl_client").env("SSL_CERT_FILE", &certificate).env("CURL_CA_BUNDLE", &certificate);
    let (certificate, key) = (certificate.to_string_lossy(), key.to_string_lossy());
    let flags = ["--tls-cert", &*certificate, "--tls-key", &*key];
    let models = workspace::root().join(FOLDER).join("models");
    let outcome = run_against(&workspace::gateway("dev")?, &models, &flags, &mut test, counts);
    fs::remove_dir_all(&folder).context("cannot remove the certificate's folder")?;
    outcome
}

/// Each folder of examples is read without complaint; the quickstart is used as its reader would.
fn examples(counts: &mut Counts) -> Result<()> {
    let binary = workspace::gateway("dev")?;
    let examples = workspace::root().join("examples");
    for entry in fs::read_dir(&examples).context("cannot list the examples")? {
        let folder = entry?.path();
        // Only its engines are on every machine.
        let module = if folder.ends_with("quickstart") { "examples" } else { "examples.Folder" };
        let mut test = python_test(module, &[PYTHON_CLIENT])?;
        test.env("FLEXINFER_EXAMPLE", &folder);
        run_against(&binary, &folder, &[], &mut test, counts)?;
    }
    Ok(())
}

/// A module of `FOLDER` with Python's own test runner.
pub(crate) fn python_test(module: &str, packages: &[&str]) -> Result<Command> {
    let mut test = program::named(python_with(packages)?);
    test.args(["-m", "unittest", "--verbose", module]);
    test.current_dir(workspace::root().join(FOLDER)).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(test)
}

fn node(counts: &mut Counts) -> Result<()> {
    let mut test = program::named("node");
    test.args(["--test", "--test-reporter=tap", &format!("{FOLDER}/openai_client.test.mjs")]);
    test.env("FLEXINFER_NODE_MODULES", node_with(NODE_CLIENT)?);
    against_gateway(&mut test, counts)
}

/// The modules of a package for Node, outside the checkout.
pub(crate) fn node_with(package: &str) -> Result<PathBuf> {
    let version = program::output(Command::new("node").arg("--version"))?;
    let place = cache::kept("node", &[version.trim(), package], |place| {
        println!("Installing {package} for Node");
        fs::write(place.join("package.json"), "{\"private\": true}")?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(place);
        program::run(npm.arg(package))
    })?;
    Ok(place.join("node_modules"))
}

fn k6(counts: &mut Counts) -> Result<()> {
    let mut check = program::named("node");
    check.args(["--test", "--test-reporter=tap", "loadtest/k6/check.test.mjs"]);
    against_gateway(&mut check, counts)
}

fn against_gateway(test: &mut Command, counts: &mut Counts) -> Result<()> {
    let binary = workspace::gateway("dev")?;
    let models = workspace::root().join(FOLDER).join("models");
    run_against(&binary, &models, &[], test, counts)
}

/// Runs a test against a gateway of its own, whose output is shown if the test fails.
pub(crate) fn run_against(
    binary: &Path,
    models: &Path,
    flags: &[&str],
    test: &mut Command,
    counts: &mut Counts,
) -> Result<()> {
    let gateway = Gateway::start(binary, models, flags)?;
    gateway.tell(test);
    watched(test, counts).with_context(|| format!("the gateway said:\n{}", gateway.output()))
}
