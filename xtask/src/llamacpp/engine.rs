//! The real `llama-server`, built from the llama.cpp that llama-cpp-python's source package carries.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cache, program};

const PACKAGE: &str = "llama-cpp-python==0.3.36";

/// Plain and portable: no downloads, no TLS, no shared libraries, no instructions only this machine has.
const OPTIONS: &[&str] = &[
    "-DCMAKE_BUILD_TYPE=Release",
    "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DBUILD_SHARED_LIBS=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DGGML_NATIVE=OFF",
];

/// Where the server is, built if this machine has not built this version with these options before.
pub(crate) fn llama_server() -> Result<PathBuf> {
    let mut ingredients = vec![PACKAGE];
    ingredients.extend(OPTIONS);
    let place = cache::kept("llama-server", &ingredients, build)?;
    Ok(place.join("llama-server"))
}

fn build(place: &Path) -> Result<()> {
    println!("Building llama-server from {PACKAGE}: about 11 minutes of one core, once");
    let sources = place.join("sources");
    let python = crate::clients::python_with(&["scikit-build-core"])?;
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]);
    pip.args(["--no-binary", ":all:", "--no-build-isolation", "--dest"]).arg(&sources);
    program::run(pip.arg(PACKAGE))?;
    let archive = only_entry(&sources)?;
    program::run(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&sources))?;
    std::fs::remove_file(&archive)?;
    let tree = only_entry(&sources)?.join("vendor/llama.cpp");
    let output = place.join("build");
    program::run(Command::new("cmake").arg("-S").arg(tree).arg("-B").arg(&output).args(OPTIONS))?;
    let mut compile = Command::new("nice");
    compile.args(["-n", "10", "cmake", "--build"]).arg(&output);
    program::run(compile.args(["--target", "llama-server", "--parallel", "2"]))?;
    std::fs::copy(output.join("bin/llama-server"), place.join("llama-server"))
        .context("the build left no llama-server")?;
    // Only the program is wanted again; sources and objects are most of a gigabyte.
    std::fs::remove_dir_all(&sources)?;
    std::fs::remove_dir_all(&output)?;
    Ok(())
}

fn only_entry(folder: &Path) -> Result<PathBuf> {
    let entry = std::fs::read_dir(folder)?.next();
    let entry = entry.with_context(|| format!("{} is empty", folder.display()))?;
    Ok(entry?.path())
}
