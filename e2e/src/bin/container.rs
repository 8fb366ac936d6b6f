//! Becomes a container's program: `flexinfer-e2e-container ROOT PROGRAM ARGUMENTS…`, where ROOT is a `Root` as JSON.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use flexinfer_e2e::Root;

fn main() -> ExitCode {
    let complaint = become_container().unwrap_or_else(|complaint| complaint);
    eprintln!("{complaint}");
    // A container runtime's word for what could not be started.
    ExitCode::from(128)
}

/// Comes back only with a complaint, of whichever kind.
fn become_container() -> Result<String, String> {
    let mut arguments = std::env::args_os().skip(1);
    let root = arguments.next().ok_or("the first argument must be the root")?;
    let program = arguments.next().ok_or("the second argument must be the program")?;
    let root: Root = serde_json::from_slice(root.as_encoded_bytes())
        .map_err(|error| format!("cannot read the root: {error}"))?;
    root.enter().map_err(|error| format!("cannot make the container's files: {error}"))?;
    let error = Command::new(&program).args(arguments).exec();
    Ok(format!("cannot start {}: {error}", program.display()))
}
