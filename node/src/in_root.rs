//! `flexinfer-node in-root`, hidden: becomes a tool of another root, with that root's libraries. The agent runs the
//! host's tools so; its image has no program but this one, and no `chroot` either.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::chroot;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

/// Exit statuses as `chroot` and a shell have them: the root cannot be entered, the tool cannot be run, there is none.
pub(crate) const NOT_ENTERED: u8 = 125;
pub(crate) const NOT_RUN: u8 = 126;
pub(crate) const NOT_FOUND: u8 = 127;

/// Where the vendors' tools find what they call, whatever this container's own `PATH` is.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/rocm/bin";

/// The root and the tool.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// The root to enter
    pub root: PathBuf,
    /// The tool, as its path is there, and what it is to be given
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
}

/// Enters the root and becomes the tool; returns only where that fails.
pub fn run(arguments: &Arguments) -> ExitCode {
    let Arguments { root, command } = arguments;
    if let Err(error) = chroot(root).and_then(|()| std::env::set_current_dir("/")) {
        eprintln!("flexinfer-node: {} cannot be entered: {error}", root.display());
        return ExitCode::from(NOT_ENTERED);
    }
    let Some((tool, given)) = command.split_first() else { return ExitCode::from(NOT_FOUND) };
    let error = Command::new(tool).args(given).env("PATH", PATH).exec();
    eprintln!("flexinfer-node: {} cannot be run: {error}", tool.display());
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN })
}
