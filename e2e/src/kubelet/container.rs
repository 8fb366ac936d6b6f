//! One container as one process: started, watched, started again by the pod's restart policy.

use std::fs::File;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{
    self, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, Pod,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use rustix::process::{Pid, Signal, kill_process_group};

use super::environment::{self, Unsupported, Variables};
use super::images::Images;
use super::probe::{self, Probing};

/// A twentieth of a kubelet's: tests wait for restarts.
const FIRST_BACK_OFF: Duration = Duration::from_millis(500);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(15);

/// The service account's token is mounted into every pod; nothing here reads it.
const TOKEN_VOLUME: &str = "kube-api-access-";

/// When a container that ended is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Restart {
    fn after(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

/// A container of a pod, with the processes it has had.
pub(super) struct Container {
    spec: v1::Container,
    launch: Result<Launch, Refusal>,
    restart: Restart,
    log: PathBuf,
    state: State,
    last: Option<ContainerStateTerminated>,
    restarts: i32,
}

struct Launch {
    command: Vec<String>,
    variables: Variables,
}

/// Why it cannot be started, in a kubelet's words for it.
struct Refusal {
    reason: &'static str,
    message: String,
}

impl From<Unsupported> for Refusal {
    fn from(unsupported: Unsupported) -> Self {
        Self { reason: "CreateContainerConfigError", message: unsupported.to_string() }
    }
}

enum State {
    Created,
    BackingOff { until: Instant },
    Running(Run),
    Ended(ContainerStateTerminated),
}

struct Run {
    child: Child,
    since: Time,
    probing: Probing,
}

impl Container {
    pub(super) fn new(
        pod: &Pod,
        spec: &v1::Container,
        restart: Restart,
        images: &Images,
        logs: &Path,
    ) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        Self {
            launch: launch(pod, spec, images),
            log: logs.join(format!("{namespace}_{}_{}.log", pod.name_any(), spec.name)),
            spec: spec.clone(),
            restart,
            state: State::Created,
            last: None,
            restarts: 0,
        }
    }

    /// Starts it if its time has come, and sees whether it has ended.
    pub(super) fn step(&mut self) {
        match &self.state {
            State::Created => self.start(),
            State::BackingOff { until } if Instant::now() >= *until => {
                self.restarts += 1;
                self.start();
            }
            State::BackingOff { .. } | State::Ended(_) => {}
            State::Running(run) => {
                if run.probing.unhealthy() {
                    self.signal(Signal::KILL);
                }
                self.reap();
                self.back_off();
            }
        }
    }

    /// Notes its end if it has ended, without starting it again.
    pub(super) fn reap(&mut self) {
        let State::Running(run) = &mut self.state else { return };
        // A status that cannot be had now can be had later.
        if let Ok(Some(status)) = run.child.try_wait() {
            self.state = State::Ended(ended(status, run.since.clone()));
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let State::Running(run) = &self.state {
            // It may have ended meanwhile, which is what a signal is for.
            let _: Result<(), _> = kill_process_group(Pid::from_child(&run.child), signal);
        }
    }

    pub(super) fn running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether the next init container's turn has come.
    pub(super) fn initialised(&self) -> bool {
        match &self.state {
            State::Ended(end) => end.exit_code == 0,
            State::Running(run) => self.sidecar() && run.probing.started(),
            State::Created | State::BackingOff { .. } => false,
        }
    }

    /// Whether it failed for good.
    pub(super) fn failed(&self) -> bool {
        matches!(&self.state, State::Ended(end) if end.exit_code != 0)
    }

    /// An init container that runs on beside the others.
    pub(super) fn sidecar(&self) -> bool {
        self.spec.restart_policy.as_deref() == Some("Always")
    }

    pub(super) fn status(&self) -> ContainerStatus {
        let (started, ready) = match &self.state {
            State::Running(run) => (run.probing.started(), run.probing.ready()),
            State::Ended(end) => (false, end.exit_code == 0 && self.restart != Restart::Always),
            State::Created | State::BackingOff { .. } => (false, false),
        };
        ContainerStatus {
            name: self.spec.name.clone(),
            image: self.spec.image.clone().unwrap_or_default(),
            started: Some(started),
            ready,
            restart_count: self.restarts,
            state: Some(self.container_state()),
            last_state: self
                .last
                .clone()
                .map(|end| ContainerState { terminated: Some(end), ..ContainerState::default() }),
            ..ContainerStatus::default()
        }
    }

    fn container_state(&self) -> ContainerState {
        let mut state = ContainerState::default();
        let waiting = |reason: &str, message: Option<String>| ContainerStateWaiting {
            reason: Some(reason.to_owned()),
            message,
        };
        match (&self.state, &self.launch) {
            (State::Created, Err(refusal)) => {
                state.waiting = Some(waiting(refusal.reason, Some(refusal.message.clone())));
            }
            (State::Created, Ok(_)) => state.waiting = Some(waiting("ContainerCreating", None)),
            (State::BackingOff { .. }, _) => {
                state.waiting = Some(waiting("CrashLoopBackOff", None));
            }
            (State::Running(run), _) => {
                let started_at = Some(run.since.clone());
                state.running = Some(ContainerStateRunning { started_at });
            }
            (State::Ended(end), _) => state.terminated = Some(end.clone()),
        }
        state
    }

    fn start(&mut self) {
        let Ok(launch) = &self.launch else { return };
        let since = Time(Timestamp::now());
        self.state = match spawn(launch, &self.log) {
            Ok(child) => {
                let probing = probe::begin(&self.spec, &launch.variables);
                State::Running(Run { child, since, probing })
            }
            Err(error) => State::Ended(ContainerStateTerminated {
                exit_code: 128,
                reason: Some("StartError".to_owned()),
                message: Some(error.to_string()),
                started_at: Some(since.clone()),
                finished_at: Some(since),
                ..ContainerStateTerminated::default()
            }),
        };
        self.back_off();
    }

    fn back_off(&mut self) {
        let State::Ended(end) = &self.state else { return };
        if self.restart.after(end.exit_code) {
            self.last = Some(end.clone());
            let times = 2_u32.saturating_pow(self.restarts.unsigned_abs().min(16));
            let pause = FIRST_BACK_OFF.saturating_mul(times).min(LONGEST_BACK_OFF);
            self.state = State::BackingOff { until: Instant::now() + pause };
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let State::Running(run) = &mut self.state {
            drop(run.child.wait());
        }
    }
}

fn launch(pod: &Pod, spec: &v1::Container, images: &Images) -> Result<Launch, Refusal> {
    for mount in spec.volume_mounts.iter().flatten() {
        if !mount.name.starts_with(TOKEN_VOLUME) {
            return Err(Unsupported::Volume(mount.name.clone()).into());
        }
    }
    probe::check(spec)?;
    let image = spec.image.as_deref().unwrap_or_default();
    let entry_point = images.entry_point(image).ok_or_else(|| Refusal {
        reason: "ErrImagePull",
        message: format!("image {image} is not in the table of this kubelet"),
    })?;
    let variables = environment::variables(pod, spec)?;
    Ok(Launch { command: environment::command(spec, entry_point, &variables), variables })
}

/// The process dies with the thread that starts it, so also when the test is killed. What it started itself
/// may be left then: only a drop reaches the whole group.
fn spawn(launch: &Launch, log: &Path) -> std::io::Result<Child> {
    let output = File::options().create(true).append(true).open(log)?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(&launch.command);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command.envs(launch.variables.iter().map(|(name, value)| (name, value)));
    command.process_group(0).stdin(Stdio::null());
    command.stderr(output.try_clone()?).stdout(output);
    command.spawn()
}

fn ended(status: ExitStatus, since: Time) -> ContainerStateTerminated {
    // A shell's and a kubelet's way to tell a signal in an exit code.
    let by_signal = status.signal().map(|signal| 128 + signal);
    let exit_code = status.code().or(by_signal).unwrap_or(-1);
    ContainerStateTerminated {
        exit_code,
        reason: Some(if exit_code == 0 { "Completed" } else { "Error" }.to_owned()),
        started_at: Some(since),
        finished_at: Some(Time(Timestamp::now())),
        ..ContainerStateTerminated::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_started_again_as_its_policy_says() {
        assert!(Restart::Always.after(0) && Restart::Always.after(1));
        assert!(!Restart::OnFailure.after(0) && Restart::OnFailure.after(1));
        assert!(!Restart::Never.after(0) && !Restart::Never.after(1));
    }
}
