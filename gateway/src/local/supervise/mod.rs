//! The supervisor: a small process between the gateway and one engine, so that no engine outlives the
//! gateway, not even one that is killed with SIGKILL. Started through the gateway's own hidden
//! subcommand `supervise`; its standard input is a pipe that only the gateway holds the other end of.
//!
//! Guardrail: every process that the engine makes becomes ours in the end (subreaper), so "no children
//! left" means that nothing of the engine is left. Only then may this process exit.

mod orders;
mod told;
mod tree;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::signal::unix::{Signal as Signals, SignalKind, signal};
use tokio::time::{Instant, sleep, sleep_until};

pub(crate) use orders::stop_order;

pub(crate) use told::Told;

use orders::Orders;

/// How long an engine may take to end once its gateway has died.
const GRACE_WHEN_ABANDONED: Duration = Duration::from_secs(5);
/// How long what an engine left behind may take to end, once the engine itself has ended.
const GRACE_OF_LEFTOVERS: Duration = Duration::from_secs(2);
/// How often a process tree that has been killed is looked at again: a fork may have been under way.
const NEXT_LOOK: Duration = Duration::from_millis(20);

/// Runs `command` (a program and its arguments) until it ends, the gateway asks for its end, or the
/// gateway is gone; then ends whatever is left of it. What happens is told on standard output, one
/// JSON object a line; the engine's own output goes to standard error.
pub fn supervise(command: &[OsString]) -> ExitCode {
    let Some((program, args)) = command.split_first() else {
        let _ = writeln!(
            io::stderr(),
            "supervise: name the program to run: supervise -- PROGRAM ARGS…"
        );
        return ExitCode::from(2);
    };
    let outcome = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| runtime.block_on(watch(program, args)));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "supervise: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn watch(program: &OsString, args: &[OsString]) -> io::Result<()> {
    adopt_orphans()?;
    // Listened for before the engine starts, so that its end cannot be missed.
    let mut children = signal(SignalKind::child())?;
    let mut orders = Orders::listen()?;

    let mut family = match start(program, args) {
        Ok(engine) => Family { engine, engine_runs: true },
        Err(error) => {
            Told::not_started(&error).say();
            return Ok(());
        }
    };
    Told::Started { pid: family.engine.as_raw_nonzero().get() }.say();

    let mut grace = GRACE_OF_LEFTOVERS;
    while family.any_left() && family.engine_runs {
        tokio::select! {
            _ = children.recv() => {}
            order = orders.next() => {
                grace = order.unwrap_or(GRACE_WHEN_ABANDONED);
                break;
            }
        }
    }
    family.end(grace, &mut children, &mut orders).await;
    Ok(())
}

fn start(program: &OsString, args: &[OsString]) -> io::Result<Pid> {
    let output = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(output()?)
        .stderr(output()?)
        .process_group(0)
        .spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the system gave the engine no process id"))
}

/// The engine and everything that descends from it.
struct Family {
    engine: Pid,
    engine_runs: bool,
}

impl Family {
    /// Collects every child that has ended, ours by birth or by adoption, and tells the engine's own
    /// end. Whether any is left.
    fn any_left(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == self.engine => {
                    self.engine_runs = false;
                    let (code, signal) = (status.exit_status(), status.terminating_signal());
                    Told::Exited { code, signal }.say();
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    /// SIGTERM to all, `grace` to end in, SIGKILL to what is left until nothing is. An order that
    /// comes meanwhile can only shorten the grace.
    async fn end(&mut self, grace: Duration, children: &mut Signals, orders: &mut Orders) {
        let mut deadline = Instant::now() + grace;
        self.signal(Signal::TERM);
        while self.any_left() {
            let killing = Instant::now() >= deadline;
            if killing {
                self.signal(Signal::KILL);
            }
            tokio::select! {
                _ = children.recv() => {}
                () = sleep(NEXT_LOOK), if killing => {}
                () = sleep_until(deadline), if !killing => {}
                order = orders.next(), if !orders.closed() => {
                    let grace = order.unwrap_or(GRACE_WHEN_ABANDONED);
                    deadline = deadline.min(Instant::now() + grace);
                }
            }
        }
    }

    fn signal(&self, signal: Signal) {
        // The id of a process that was collected may by now be somebody else's.
        let group = (self.engine_runs || cfg!(not(target_os = "linux"))).then_some(self.engine);
        tree::signal_all(group, signal);
    }
}

#[cfg(target_os = "linux")]
fn adopt_orphans() -> io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

/// Elsewhere grandchildren that leave the engine's process group cannot be followed.
#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> io::Result<()> {
    Ok(())
}
