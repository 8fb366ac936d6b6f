//! One container as one process: started, watched, started again by the pod's restart policy.

use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{
    self, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, Pod, SleepAction,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::sleep;

use super::asking::Surroundings;
use super::environment;
use super::probe::{self, Probing};
use super::sandbox::{self, Sandbox};
use super::volumes::{Reader, Unready};

/// A twentieth of a kubelet's: tests wait for restarts.
const FIRST_BACK_OFF: Duration = Duration::from_millis(500);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(15);

/// How soon what cannot be started is tried again: a Secret may come.
const RETRY: Duration = Duration::from_millis(500);

/// The most that is kept of a container's output, in bytes.
const LONGEST_MESSAGE: usize = 2048;

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
    restart: Restart,
    log: PathBuf,
    state: State,
    last: Option<ContainerStateTerminated>,
    restarts: i32,
}

struct Launch {
    /// The words that bring the program into the pod, before its own.
    entrance: Vec<String>,
    command: Vec<String>,
    surroundings: Surroundings,
}

/// Why it cannot be started, in a kubelet's words for it.
#[derive(Clone)]
struct Refusal {
    reason: &'static str,
    message: String,
}

impl From<Unready> for Refusal {
    fn from(unready: Unready) -> Self {
        Self { reason: "CreateContainerConfigError", message: unready.to_string() }
    }
}

enum State {
    Created,
    Refused { refusal: Refusal, until: Instant },
    BackingOff { until: Instant },
    Running(Run),
    Ended(ContainerStateTerminated),
}

struct Run {
    child: Child,
    since: Time,
    surroundings: Arc<Surroundings>,
    probing: Probing,
}

impl Container {
    pub(super) fn new(pod: &Pod, spec: &v1::Container, restart: Restart, logs: &Path) -> Self {
        let namespace = pod.namespace().unwrap_or_default();
        Self {
            log: logs.join(format!("{namespace}_{}_{}.log", pod.name_any(), spec.name)),
            spec: spec.clone(),
            restart,
            state: State::Created,
            last: None,
            restarts: 0,
        }
    }

    /// Starts it if its time has come, and sees whether it has ended.
    pub(super) async fn step(&mut self, pod: &Pod, sandbox: &Sandbox) {
        match &self.state {
            State::Created => self.start(pod, sandbox).await,
            State::Refused { until, .. } if Instant::now() >= *until => {
                self.start(pod, sandbox).await;
            }
            State::BackingOff { until } if Instant::now() >= *until => {
                self.restarts += 1;
                self.start(pod, sandbox).await;
            }
            State::Refused { .. } | State::BackingOff { .. } | State::Ended(_) => {}
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
            let end = ended(status, run.since.clone());
            let message = last_words(&self.spec, &end, &self.log);
            self.state = State::Ended(ContainerStateTerminated { message, ..end });
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let State::Running(run) = &self.state {
            // It may have ended meanwhile, which is what a signal is for.
            let _: Result<(), _> = kill_process_group(Pid::from_child(&run.child), signal);
        }
    }

    /// What its spec has done before it is told to end.
    pub(super) async fn before_its_end(&self) -> io::Result<()> {
        let hook = self.spec.lifecycle.as_ref().and_then(|lifecycle| lifecycle.pre_stop.as_ref());
        let (State::Running(run), Some(hook)) = (&self.state, hook) else { return Ok(()) };
        if let Some(SleepAction { seconds }) = hook.sleep {
            sleep(Duration::from_secs(seconds.try_into().unwrap_or_default())).await;
            return Ok(());
        }
        run.surroundings.ask(&self.spec, hook.into()).await.map(drop)
    }

    pub(super) fn running(&self) -> bool {
        matches!(self.state, State::Running(_))
    }

    /// Whether the next init container's turn has come.
    pub(super) fn initialised(&self) -> bool {
        match &self.state {
            State::Ended(end) => end.exit_code == 0,
            State::Running(run) => self.sidecar() && run.probing.started(),
            State::Created | State::Refused { .. } | State::BackingOff { .. } => false,
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
            State::Created | State::Refused { .. } | State::BackingOff { .. } => (false, false),
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
        match &self.state {
            State::Created => state.waiting = Some(waiting("ContainerCreating", None)),
            State::Refused { refusal, .. } => {
                state.waiting = Some(waiting(refusal.reason, Some(refusal.message.clone())));
            }
            State::BackingOff { .. } => state.waiting = Some(waiting("CrashLoopBackOff", None)),
            State::Running(run) => {
                let started_at = Some(run.since.clone());
                state.running = Some(ContainerStateRunning { started_at });
            }
            State::Ended(end) => state.terminated = Some(end.clone()),
        }
        state
    }

    async fn start(&mut self, pod: &Pod, sandbox: &Sandbox) {
        let launch = match launch(pod, &self.spec, sandbox).await {
            Ok(launch) => launch,
            Err(refusal) => {
                self.state = State::Refused { refusal, until: Instant::now() + RETRY };
                return;
            }
        };
        let since = Time(Timestamp::now());
        self.state = match spawn(&launch, &self.log) {
            Ok(child) => {
                let beside = sandbox::entrance_beside(child.id());
                let surroundings = Arc::new(Surroundings { beside, ..launch.surroundings });
                let probing = probe::begin(&self.spec, Arc::clone(&surroundings));
                State::Running(Run { child, since, surroundings, probing })
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

async fn launch(pod: &Pod, spec: &v1::Container, sandbox: &Sandbox) -> Result<Launch, Refusal> {
    probe::check(spec).map_err(Unready::from)?;
    let machine = sandbox.machine();
    let image = spec.image.as_deref().unwrap_or_default();
    let entry_point = machine.images.entry_point(image).ok_or_else(|| Refusal {
        reason: "ErrImagePull",
        message: format!("image {image} is not in the table of this kubelet"),
    })?;
    let pod = sandbox.addressed(pod);
    let mut variables = machine.cluster_variables();
    let reader = Reader::new(&machine.client, &pod);
    variables.extend(environment::variables(&pod, spec, &reader).await?);
    Ok(Launch {
        entrance: sandbox.entrance(spec)?,
        command: environment::command(spec, entry_point, &variables),
        surroundings: Surroundings {
            host: sandbox.address().to_string(),
            beside: Vec::new(),
            variables,
        },
    })
}

/// The process dies with the thread that starts it, so also when the test is killed. What it started itself
/// may be left then: only a drop reaches the whole group.
fn spawn(launch: &Launch, log: &Path) -> io::Result<Child> {
    let output = File::options().create(true).append(true).open(log)?;
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).args(&launch.entrance).args(&launch.command);
    command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    let variables = launch.surroundings.variables.iter();
    command.envs(variables.map(|(name, value)| (name, value)));
    command.process_group(0).stdin(Stdio::null());
    command.stderr(output.try_clone()?).stdout(output);
    command.spawn()
}

/// What a container that failed is remembered by, where it asks for the end of its output to be that.
fn last_words(spec: &v1::Container, end: &ContainerStateTerminated, log: &Path) -> Option<String> {
    let asked = spec.termination_message_policy.as_deref() == Some("FallbackToLogsOnError");
    if !asked || end.exit_code == 0 {
        return None;
    }
    let said = std::fs::read(log).ok()?;
    let begin = said.len().saturating_sub(LONGEST_MESSAGE);
    Some(String::from_utf8_lossy(said.get(begin..)?).into_owned())
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
