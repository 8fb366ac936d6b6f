//! One program of a cluster: a child process in a group of its own, with its output in a file.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::StartError;

/// Asks the programs to end when their standard input does: the pipe's other end is ours, so they end with
/// us even when nobody is left to drop this.
const EXIT_WITH_STDIN: &str = "EXIT_WITH_STDIN";

/// Enough of a log to see why a program ended.
const LAST_LINES: usize = 15;

/// A running program, killed when dropped.
pub(super) struct Process {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `name` of the folder `programs`; its output goes to `NAME.log` in `folder`.
    pub(super) fn start(
        programs: &Path,
        name: &'static str,
        arguments: &[String],
        folder: &Path,
    ) -> Result<Self, StartError> {
        let log = folder.join(format!("{name}.log"));
        let output =
            File::create(&log).map_err(StartError::prepare(format!("create {}", log.display())))?;
        let complaints = output.try_clone().map_err(StartError::prepare("share a log file"))?;
        let program = programs.join(name);
        let mut command = Command::new(&program);
        command.args(arguments).current_dir(folder).process_group(0).env(EXIT_WITH_STDIN, "1");
        command.stdin(Stdio::piped()).stdout(output).stderr(complaints);
        let child = command.spawn().map_err(|source| StartError::Start { program, source })?;
        Ok(Self { name, child, log })
    }

    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name
    }

    pub(super) fn signal(&self, signal: Signal) {
        // One that has ended hears nothing, which whoever waits for it will see.
        let _: Result<(), _> = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Fails if the program has ended, with the last it said.
    pub(super) fn check_alive(&mut self) -> Result<(), StartError> {
        let status = self.child.try_wait().map_err(StartError::prepare("look after a process"))?;
        let Some(status) = status else { return Ok(()) };
        let said = fs::read(&self.log).unwrap_or_default();
        let said = last_lines(&String::from_utf8_lossy(&said));
        Err(StartError::Ended { program: self.name, status: status.to_string(), said })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing of a test's cluster is worth a tidy end. Before `wait`, the number is still this child's.
        self.signal(Signal::KILL);
        drop(self.child.wait());
    }
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LAST_LINES);
    lines.into_iter().skip(skipped).collect::<Vec<_>>().join("\n")
}
