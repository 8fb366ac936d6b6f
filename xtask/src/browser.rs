//! A page in headless Chromium before a local gateway that lets pages of other origins in, for a key.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::clients::{FOLDER, node_with};
use crate::gateway::Gateway;
use crate::test::{Counts, Steps, watched};
use crate::{prerequisites, program, workspace};

/// Drives the browser. A new version is a new line here.
const DRIVER: &str = "playwright-core@1.65.1";
/// Known to the page and, by its digest, to the gateway.
const KEY: &str = "key-of-a-page";
const KEY_SHA256: &str = "ebc53201a3681aa85b4865b11bfecacd0ed1d3c27f60e7b071b65350b804008d";

/// The step of the test run.
pub(crate) fn steps(steps: &mut Steps) {
    steps.needing("a browser", &[prerequisites::NODE, prerequisites::CHROMIUM], browser);
}

fn browser(counts: &mut Counts) -> Result<()> {
    let modules = node_with(DRIVER)?;
    let chromium = prerequisites::CHROMIUM.program().context("the browser is gone")?;
    let folder = std::env::temp_dir().join(format!("flexinfer-browser-{}", std::process::id()));
    fs::create_dir_all(&folder).context("cannot create a folder for the keys")?;
    let keys = folder.join("keys.yaml");
    fs::write(&keys, format!("callers: [{{name: page, sha256: {KEY_SHA256}}}]\n"))
        .context("cannot write the keys")?;
    let mut test = program::named("node");
    test.args(["--test", "--test-reporter=tap", &format!("{FOLDER}/browser.test.mjs")]);
    test.env("FLEXINFER_NODE_MODULES", modules).env("FLEXINFER_BROWSER", chromium);
    test.env("FLEXINFER_TEST_KEY", KEY);
    let outcome = before_a_gateway(&keys.to_string_lossy(), &mut test, counts);
    fs::remove_dir_all(&folder).context("cannot remove the folder of the keys")?;
    outcome
}

fn before_a_gateway(keys: &str, test: &mut Command, counts: &mut Counts) -> Result<()> {
    let models = workspace::root().join(FOLDER).join("models");
    let flags = ["--keys-file", keys, "--cors-origins", "http://localhost:*"];
    let gateway = Gateway::start(&workspace::gateway("dev")?, &models, &flags)?;
    gateway.tell(test);
    watched(test, counts).with_context(|| format!("the gateway said:\n{}", gateway.output()))
}
