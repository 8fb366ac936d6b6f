//! A network and mounts for the tests alone: pods get addresses and volumes, and nothing of the machine changes.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{prerequisites, program};

/// Tells the tests that they may make devices and mounts.
const VARIABLE: &str = "FLEXINFER_E2E_NAMESPACES";

/// Makes `cargo`, which runs tests, run each program that it built in namespaces of its own; cargo itself stays
/// outside, where the network is.
pub(super) fn enclose(cargo: &mut Command) -> Result<()> {
    prerequisites::ensure(&[prerequisites::IPROUTE])?;
    let mut words = unshare()?;
    words.extend(["sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    cargo.arg("--config").arg(format!("target.'cfg(unix)'.runner = [{}]", words.join(", ")));
    cargo.env(VARIABLE, "1");
    Ok(())
}

/// The command that makes the namespaces: as root, or as a user who is root in one of them.
pub(super) fn unshare() -> Result<Vec<&'static str>> {
    let plain = vec!["unshare", "--net", "--mount", "--propagation", "private"];
    let mapped = [plain.as_slice(), &["--user", "--map-root-user"]].concat();
    let works = |words: &[&str]| {
        let (program, arguments) = words.split_first()?;
        program::output(Command::new(program).args(arguments).arg("true")).ok()
    };
    let found = [plain, mapped].into_iter().find(|words| works(words).is_some());
    found.context(
        "network namespaces are not to be had here: run this as root, or allow users to make them \
         (kernel.unprivileged_userns_clone=1; in a container, add the capability SYS_ADMIN)",
    )
}
