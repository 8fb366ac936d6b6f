//! How a subcommand ends, and the signals that ask it to.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use flexinfer_core::activation::{Failure, Reason};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How a subcommand ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was asked.
    Done,
    /// It was asked to stop and stopped cleanly.
    Stopped(Stop),
    /// It failed for a reason that the exit status tells, and has said more about it.
    Failed(Reason),
}

/// The signal that asked the process to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// SIGTERM, as a service manager or a cluster sends it.
    Terminated,
    /// SIGINT, as Ctrl-C sends it.
    Interrupted,
}

impl From<Ending> for ExitCode {
    /// 128 and the signal's number for a stop, as a shell has it: the work is not done.
    fn from(ending: Ending) -> Self {
        match ending {
            Ending::Done => Self::SUCCESS,
            Ending::Stopped(Stop::Interrupted) => Self::from(130),
            Ending::Stopped(Stop::Terminated) => Self::from(143),
            Ending::Failed(reason) => Self::from(reason.exit_status()),
        }
    }
}

/// Says why something failed, for whoever reads the last line, and gives the ending that tells programs.
pub fn failed(failure: &Failure) -> Ending {
    eprintln!("flexinfer-node: {failure}");
    Ending::Failed(failure.reason)
}

/// Tells how large the weights are, in a file that shows in the pod's status. Who cannot be told, need not.
pub(crate) fn report_size(file: &Path, size: u64) {
    let told = serde_json::json!({ "sizeBytes": size }).to_string();
    if size > 0
        && let Err(error) = std::fs::write(file, told)
    {
        tracing::warn!(file = %file.display(), %error, "the size could not be reported");
    }
}

/// Listens for the signals from its making on, so that none is missed.
pub struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    /// Begins to listen, in place of the system's way, which ends the process.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::Terminated,
            _ = self.interrupt.recv() => Stop::Interrupted,
        }
    }
}
