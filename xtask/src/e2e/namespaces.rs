//! A network and mounts for the tests alone: pods get addresses and volumes, and nothing of the machine changes.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{prerequisites, program};

/// Tells the tests that they may make devices and mounts.
const VARIABLE: &str = "FLEXINFER_E2E_NAMESPACES";

/// What makes them. A user namespace would not do: the files of a container are laid over `/`, and who is root
/// only in a namespace may not do that where other file systems are mounted.
const UNSHARE: [&str; 5] = ["unshare", "--net", "--mount", "--propagation", "private"];

/// Makes `cargo`, which runs tests, run each program that it built in namespaces of its own; cargo itself stays
/// outside, where the network is.
pub(super) fn enclose(cargo: &mut Command) -> Result<()> {
    prerequisites::ensure(&[prerequisites::IPROUTE])?;
    available()?;
    let words = UNSHARE.iter().chain(&["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    let words: Vec<String> = words.map(|word| format!("'{word}'")).collect();
    cargo.arg("--config").arg(format!("target.'cfg(unix)'.runner = [{}]", words.join(", ")));
    cargo.env(VARIABLE, "1");
    Ok(())
}

/// Whether they are to be had here.
pub(super) fn available() -> Result<()> {
    let [program, arguments @ ..] = UNSHARE;
    let made = program::output(Command::new(program).args(arguments).arg("true"));
    made.map(drop).context(
        "network namespaces are not to be had here: run this as root (in a container, with the capability SYS_ADMIN)",
    )
}
