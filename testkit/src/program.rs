//! A child program of a test: its output is kept, its lines can be waited for, and it dies with its whole
//! group when the test drops it, also when the test panics.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::client::{Client, request};
use crate::eventually::{eventually, eventually_async};

/// A running child program.
#[derive(Debug)]
pub struct Program {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
    ended: Option<ExitStatus>,
}

impl Program {
    /// Starts the program in a process group of its own. Its output is read line by line.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        let shown = format!("{command:?}");
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {shown}"))?;
        let lines = Arc::new(Mutex::new(Vec::new()));
        read_lines(child.stdout.take(), &lines);
        read_lines(child.stderr.take(), &lines);
        Ok(Self { child, lines, ended: None })
    }

    /// The process id, which is also the id of its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lines of standard output and standard error so far, mixed as they came.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Waits until a line contains `text` and returns the line; an error with all lines when none did
    /// within `bound` or the program ended before.
    pub async fn line(&mut self, text: &str, bound: Duration) -> anyhow::Result<String> {
        let found = |lines: &[String]| lines.iter().find(|line| line.contains(text)).cloned();
        let lines = Arc::clone(&self.lines);
        let mut over = false;
        let mut seen = eventually(bound, || {
            over = self.exit_status().is_some();
            over || found(&lines.lock()).is_some()
        })
        .await;
        if over {
            // The reading threads may be a moment behind the end of the program.
            seen = eventually(Duration::from_secs(1), || found(&lines.lock()).is_some()).await;
        }
        let lines = lines.lock();
        found(&lines).filter(|_| seen).with_context(|| {
            format!("no line has {text:?} (ended: {over}); the lines are:\n{}", lines.join("\n"))
        })
    }

    /// Waits until GET `path` at `address` answers with a status of the 200s.
    pub async fn healthy(
        &mut self,
        address: std::net::SocketAddr,
        path: &str,
        bound: Duration,
    ) -> anyhow::Result<()> {
        let healthy = eventually_async(bound, || async move {
            let Ok(mut client) = Client::connect(address).await else { return false };
            let sent = client.send(&request("GET", path, &[], b"")).await.is_ok();
            sent && matches!(client.answer().await, Ok(answer) if answer.status() / 100 == 2)
        })
        .await;
        anyhow::ensure!(
            healthy,
            "{address}{path} was not healthy; the lines are:\n{}",
            self.lines().join("\n")
        );
        Ok(())
    }

    /// How it ended, once it has.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Waits until it has ended; an error when it has not within `bound`.
    pub async fn exited(&mut self, bound: Duration) -> anyhow::Result<ExitStatus> {
        let ended = eventually(bound, || self.exit_status().is_some()).await;
        anyhow::ensure!(ended, "process {} is still running", self.id());
        self.ended.context("a process that has ended has a status")
    }

    /// Asks it to end, as a service manager does.
    pub fn terminate(&self) {
        self.signal(Signal::TERM, false);
    }

    /// Kills it alone, and leaves its children.
    pub fn kill(&self) {
        self.signal(Signal::KILL, false);
    }

    fn signal(&self, signal: Signal, group: bool) {
        let id = i32::try_from(self.id()).ok().and_then(Pid::from_raw);
        // A process that is gone needs no signal.
        if let Some(id) = id {
            let _ = if group {
                kill_process_group(id, signal)
            } else if self.ended.is_none() {
                rustix::process::kill_process(id, signal)
            } else {
                Ok(())
            };
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(Signal::KILL, true);
        // Takes the dead process out of the process table.
        let _ = self.child.wait();
    }
}

fn read_lines(output: Option<impl Read + Send + 'static>, lines: &Arc<Mutex<Vec<String>>>) {
    let Some(output) = output else { return };
    let lines = Arc::clone(lines);
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            lines.lock().push(line);
        }
    });
}

/// The signal that ended a program, if one did.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Program {
        Program::start(Command::new("sh").args(["-c", script])).unwrap()
    }

    #[tokio::test]
    async fn a_line_is_found_and_the_end_is_seen() {
        let mut program = shell("echo listening on 1234; exit 3");
        let line = program.line("listening", BOUND).await.unwrap();
        assert_eq!(line, "listening on 1234");
        assert_eq!(program.exited(BOUND).await.unwrap().code(), Some(3));
        let error = program.line("never", BOUND).await.unwrap_err();
        assert!(error.to_string().contains("listening on 1234"), "{error}");
    }

    #[tokio::test]
    async fn terminate_ends_it_by_that_signal() {
        let mut program = shell("echo up; exec sleep 1000");
        program.line("up", BOUND).await.unwrap();
        program.terminate();
        let status = program.exited(BOUND).await.unwrap();
        assert_eq!(ending_signal(status), Some(15));
    }

    #[tokio::test]
    async fn its_children_die_with_it_when_it_is_dropped() {
        let mut program = shell("sleep 1000 & echo child $!; wait");
        let line = program.line("child", BOUND).await.unwrap();
        let child: i32 = line.trim_start_matches("child ").parse().unwrap();
        drop(program);
        // A process that was killed stays a zombie until its new parent has looked at it.
        let gone = || match std::fs::read_to_string(format!("/proc/{child}/stat")) {
            Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")),
            Err(_) => true,
        };
        assert!(eventually(BOUND, gone).await);
    }
}
