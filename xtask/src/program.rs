//! Starting other programs: from the workspace's root, with an error that says which one failed.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A command that runs in the workspace's root.
pub(crate) fn named(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(workspace::root());
    command
}

/// The cargo that runs this task, so that the toolchain is the same.
pub(crate) fn cargo() -> Command {
    let mut cargo = named(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // It told this program about its own package. Build scripts that look at such variables would take what a
    // plain `cargo build` made for stale, and that of the crates above them.
    for (name, _) in env::vars_os() {
        let told = ["CARGO_PKG_", "CARGO_MANIFEST_"];
        if name.to_str().is_some_and(|name| told.iter().any(|prefix| name.starts_with(prefix))) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// Runs a command to its end; failing is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = spelled(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` ended with {status}");
    }
    Ok(())
}

/// Runs a command to its end and gives what it printed; what it complained about is part of the error.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let shown = spelled(command);
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` ended with {}: {}", output.status, complaint.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed no UTF-8"))
}

/// Where a program is on PATH, if it is.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // nginx and its like live in sbin, which is on the path of root alone.
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// A command as a person would type it.
pub(crate) fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
