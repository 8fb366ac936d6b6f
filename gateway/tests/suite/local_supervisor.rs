//! No engine and no grandchild outlives its gateway, whatever ends the gateway.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use crate::local_world::{PROGRAM, eventually};

/// Prints the ids of itself, a child in its group, and a daemon in a session of its own whose parent
/// has ended; none of them minds SIGTERM.
const ENGINE: &str = "trap '' TERM
sleep 1001 & child=$!
(setsid sh -c 'trap \"\" TERM; echo $$; exec sleep 1002' &)
echo $$; echo $child
wait; wait";

/// The gateway's part: a process that holds the supervisor's standard input and does nothing else.
struct Gateway {
    holder: Child,
    processes: Vec<Pid>,
}

fn start() -> Gateway {
    // `sleep` holds the write end of the pipe, as the gateway would.
    let script = format!("sleep 1000 | {PROGRAM} supervise -- sh -c \"$ENGINE\"");
    let mut holder = Command::new("sh")
        .args(["-c", &script])
        .env("ENGINE", ENGINE)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(holder.stderr.take().unwrap()).lines();
    let processes =
        lines.take(3).map(|line| Pid::from_raw(line.unwrap().parse().unwrap()).unwrap());
    let processes = processes.collect();
    Gateway { holder, processes }
}

fn runs(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn no_process_outlives_a_gateway_that_was_killed() {
    let mut gateway = start();
    assert_eq!(gateway.processes.len(), 3);
    assert!(gateway.processes.iter().copied().all(runs));
    let shell = gateway.holder.id();
    let holder = eventually(|| child_called(shell, "sleep")).expect("the pipe is held");
    rustix::process::kill_process(holder, Signal::KILL).unwrap();
    let left = eventually(|| (!gateway.processes.iter().copied().any(runs)).then_some(()));
    assert!(left.is_some(), "something outlived the gateway");
    let _ = gateway.holder.wait();
}

#[test]
fn a_supervisor_that_gets_sigterm_ends_its_engine_first() {
    let mut gateway = start();
    let supervisor = eventually(|| child_called(gateway.holder.id(), "flexinfer-gate"));
    rustix::process::kill_process(supervisor.unwrap(), Signal::TERM).unwrap();
    let left = eventually(|| (!gateway.processes.iter().copied().any(runs)).then_some(()));
    assert!(left.is_some(), "something outlived the supervisor");
    let holder = child_called(gateway.holder.id(), "sleep");
    if let Some(holder) = holder {
        let _ = rustix::process::kill_process(holder, Signal::KILL);
    }
    let _ = gateway.holder.wait();
}

#[test]
fn what_an_engine_leaves_behind_ends_after_it() {
    let script = "(setsid sleep 1003 & echo $!); exit 5";
    let output = Command::new(PROGRAM)
        .args(["supervise", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .spawn_with_output();
    let (told, said) = output;
    assert!(told.contains(r#""told":"started""#), "{told}");
    assert!(told.contains(r#""code":5"#), "{told}");
    let daemon = Pid::from_raw(said.trim().parse().unwrap()).unwrap();
    assert!(!runs(daemon));
}

#[test]
fn a_program_that_cannot_be_run_is_told() {
    let (told, _) = Command::new(PROGRAM)
        .args(["supervise", "--", "/no/such/program"])
        .stdin(Stdio::piped())
        .spawn_with_output();
    assert!(told.contains(r#""told":"not-started","os_error":2"#), "{told}");
}

trait SpawnWithOutput {
    /// Runs it to its end with standard input open all the while; what it wrote, as text.
    fn spawn_with_output(&mut self) -> (String, String);
}

impl SpawnWithOutput for Command {
    fn spawn_with_output(&mut self) -> (String, String) {
        let mut child = self.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let held = child.stdin.take();
        let output = child.wait_with_output().unwrap();
        drop(held);
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    }
}

fn child_called(parent: u32, name: &str) -> Option<Pid> {
    std::fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (pid, rest) = stat.split_once(" (")?;
        let (command, rest) = rest.rsplit_once(')')?;
        let of_parent = rest.split_ascii_whitespace().nth(1)? == parent.to_string();
        (of_parent && command.starts_with(name)).then(|| Pid::from_raw(pid.parse().ok()?))?
    })
}
