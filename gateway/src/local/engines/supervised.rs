//! The gateway's side of a supervisor: starts one, hears what it tells, and asks it to end its engine.
//!
//! Guardrail: [`Supervised`] holds the pipe whose closing ends the engine. Dropping it is a stop.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::output::Output;
use crate::local::supervise::{Told, stop_order};

/// How long the rest of an ended engine's output may take.
const PATIENCE_WITH_OUTPUT: Duration = Duration::from_secs(2);

/// What shall run.
pub(super) struct Order {
    /// Our own program, which has the subcommand `supervise`.
    pub(super) supervisor: PathBuf,
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: Vec<(String, String)>,
    pub(super) folder: PathBuf,
}

/// Why no engine runs after it was asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("cannot start the supervisor {program}")]
    Supervisor { program: PathBuf, source: io::Error },
    #[error("the supervisor ended before it could start the engine")]
    Silent,
    /// The engine's own program could not be run.
    #[error("{message}")]
    Program { os_error: Option<i32>, message: String },
}

/// How an engine's own process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ending {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
}

/// A running engine under its supervisor.
pub(super) struct Supervised {
    supervisor: Child,
    orders: ChildStdin,
    told: Lines<BufReader<ChildStdout>>,
    output_read: Option<oneshot::Receiver<()>>,
    engine: i32,
    ending: Option<Ending>,
}

impl Supervised {
    /// Starts a supervisor and, through it, the engine. Everything that the engine says goes to `output`.
    pub(super) async fn start(order: &Order, output: Arc<Output>) -> Result<Self, StartError> {
        let failed = |source| StartError::Supervisor { program: order.supervisor.clone(), source };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let mut supervisor = Command::new(&order.supervisor)
            .arg("supervise")
            .arg("--")
            .arg(&order.program)
            .args(&order.args)
            .envs(order.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&order.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(writer)
            // Not in the terminal's group: Ctrl-C is the gateway's to act on.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let output_read = output.read_all(reader).map_err(failed)?;
        let (Some(orders), Some(told)) = (supervisor.stdin.take(), supervisor.stdout.take()) else {
            return Err(StartError::Silent);
        };
        let mut told = BufReader::new(told).lines();
        loop {
            let line = told.next_line().await.map_err(failed)?.ok_or(StartError::Silent)?;
            match Told::heard(&line) {
                Some(Told::Started { pid: engine }) => {
                    let output_read = Some(output_read);
                    return Ok(Self {
                        supervisor,
                        orders,
                        told,
                        output_read,
                        engine,
                        ending: None,
                    });
                }
                Some(Told::NotStarted { os_error, message }) => {
                    let _ = supervisor.wait().await;
                    return Err(StartError::Program { os_error, message });
                }
                Some(Told::Exited { .. }) | None => {}
            }
        }
    }

    /// Waits until nothing of the engine is left. May be dropped and called again.
    pub(super) async fn ended(&mut self) -> Ending {
        while let Ok(Some(line)) = self.told.next_line().await {
            if let Some(Told::Exited { code, signal }) = Told::heard(&line) {
                self.ending = Some(Ending { code, signal });
            }
        }
        let _ = self.supervisor.wait().await;
        if self.ending.is_none() {
            self.end_without_supervisor();
        }
        if let Some(output_read) = &mut self.output_read {
            // Read to its end at once, unless the supervisor was killed and something survived it.
            let _ = timeout(PATIENCE_WITH_OUTPUT, output_read).await;
            self.output_read = None;
        }
        self.ending.unwrap_or_default()
    }

    /// Asks for the engine's end within `grace` and waits until nothing of it is left.
    pub(super) async fn stop(&mut self, grace: Duration) -> Ending {
        // Fails only when the supervisor is ending already.
        let _ = self.orders.write_all(stop_order(grace).as_bytes()).await;
        self.ended().await
    }

    /// Somebody killed the supervisor: the engine's group is the last thing we know of it.
    fn end_without_supervisor(&self) {
        if let Some(group) = rustix::process::Pid::from_raw(self.engine) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
