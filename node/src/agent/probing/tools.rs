//! Running a vendor's tool, which may hang for ever when its driver does. A tool that did not end is killed
//! with all that it started, and until it is really gone no other of its kind is begun.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use flexinfer_core::hardware::ProbeFailure;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::host;
use crate::in_root::{self, NOT_ENTERED, NOT_FOUND};

/// The most that is taken of what a tool prints: more than the reader accepts, so that it says so.
const OUTPUT_LIMIT: u64 = 9 << 20;

/// Exit statuses of a tool that was not run, in another root or as a shell has them.
const NOT_RUN: [u8; 3] = [NOT_ENTERED, in_root::NOT_RUN, NOT_FOUND];

/// Runs tools here or in the host's root.
pub(super) struct Tools {
    limit: Duration,
    host_root: PathBuf,
    /// Tools that were killed and have not ended, by name.
    hanging: HashMap<&'static str, Child>,
}

/// Where a tool is looked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// On this container's `PATH`.
    Here,
    /// In the host's root, with the host's libraries.
    Host,
}

impl Tools {
    pub(super) fn new(limit: Duration, host_root: PathBuf) -> Self {
        Self { limit, host_root, hanging: HashMap::new() }
    }

    /// What `tool` prints on standard output. Its exit status is only looked at when it printed nothing:
    /// the vendors' tools print what they have and then fail for one GPU of many.
    pub(super) async fn output(
        &mut self,
        place: Place,
        tool: &'static str,
        arguments: &[&str],
    ) -> Result<String, ProbeFailure> {
        let timed_out = ProbeFailure::TimedOut { source_name: tool.to_owned(), limit: self.limit };
        if let Some(earlier) = self.hanging.get_mut(tool) {
            if !matches!(earlier.try_wait(), Ok(Some(_))) {
                return Err(timed_out);
            }
            self.hanging.remove(tool);
        }
        let mut child = self.start(place, tool, arguments)?;
        match timeout(self.limit, ended(&mut child)).await {
            Ok(Ok(Output { text, said, status })) => match status {
                _ if !text.trim().is_empty() => Ok(text),
                Some(status) if NOT_RUN.map(i32::from).contains(&status) => {
                    Err(ProbeFailure::absent(tool))
                }
                Some(0) => Ok(text),
                _ => Err(ProbeFailure::failed(tool, &said)),
            },
            Ok(Err(error)) => Err(ProbeFailure::failed(tool, &error.to_string())),
            Err(_) => {
                kill(&child);
                self.hanging.insert(tool, child);
                Err(timed_out)
            }
        }
    }

    fn start(
        &self,
        place: Place,
        tool: &'static str,
        arguments: &[&str],
    ) -> Result<Child, ProbeFailure> {
        let mut command = match place {
            Place::Here => Command::new(tool),
            Place::Host => {
                let found = host::tool(&self.host_root, tool);
                let (root, path) = found.ok_or_else(|| ProbeFailure::absent(tool))?;
                let failed = |error: io::Error| ProbeFailure::failed(tool, &error.to_string());
                let mut command = Command::new(std::env::current_exe().map_err(failed)?);
                command.arg("in-root").arg(root).arg(path);
                command
            }
        };
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what the tool started ends with it.
        command.process_group(0).kill_on_drop(true);
        command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => ProbeFailure::absent(tool),
            _ => ProbeFailure::failed(tool, &error.to_string()),
        })
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.hanging.values().for_each(kill);
    }
}

struct Output {
    text: String,
    said: String,
    status: Option<i32>,
}

async fn ended(child: &mut Child) -> io::Result<Output> {
    let (mut text, mut said) = (Vec::new(), Vec::new());
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let read_out = async {
        match out {
            Some(pipe) => pipe.take(OUTPUT_LIMIT).read_to_end(&mut text).await,
            None => Ok(0),
        }
    };
    let read_err = async {
        match err {
            Some(pipe) => pipe.take(OUTPUT_LIMIT).read_to_end(&mut said).await,
            None => Ok(0),
        }
    };
    tokio::try_join!(read_out, read_err)?;
    let status = child.wait().await?.code();
    let lossy = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Output { text: lossy(text), said: lossy(said), status })
}

fn kill(child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id {
        // It may have ended meanwhile, which is as well.
        let _ = kill_process_group(id, Signal::KILL);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn gpu_09_no_second_tool_is_begun_while_the_first_one_hangs() {
        let folder = tempfile::tempdir().unwrap();
        let mut tools = Tools::new(Duration::from_secs(5), folder.path().join("no host"));
        // A process that outlived its kill, as one in uninterruptible sleep does.
        let mut hanging = Command::new("sleep");
        let hanging = hanging.arg("1000").process_group(0).kill_on_drop(true).spawn().unwrap();
        tools.hanging.insert("echo", hanging);
        for _ in 0..3 {
            let answer = tools.output(Place::Here, "echo", &["hello"]).await;
            assert!(matches!(answer, Err(ProbeFailure::TimedOut { .. })), "{answer:?}");
        }
        tools.hanging.get_mut("echo").unwrap().kill().await.unwrap();
        assert_eq!(tools.output(Place::Here, "echo", &["hello"]).await.unwrap(), "hello\n");
    }
}
