//! The life of one pod on a node: init containers in their order, then the others, until it ends or is deleted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Pod, PodSpec, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Machine;
use super::container::{Container, Restart};
use super::ending::Ending;
use super::sandbox::Sandbox;
use super::status::{self, Containers, Initialisation};

/// How soon a process that ended or a probe's new verdict is noticed.
const TICK: Duration = Duration::from_millis(50);

/// How soon volumes that were not there are looked for again.
const RETRY: Duration = Duration::from_millis(500);

/// A pod and its containers. Dropping it ends their processes.
pub(super) struct Life {
    pods: Api<Pod>,
    machine: Arc<Machine>,
    seen: watch::Receiver<Pod>,
    initial: Vec<Container>,
    main: Vec<Container>,
    /// Below the containers that live in it: fields are dropped in their order.
    sandbox: Option<Sandbox>,
    /// What it takes to make one is not there yet: the message, and when to look again.
    unready: Option<(String, Instant)>,
    /// Once true it stays so: a sidecar that is started again does not hold up the others.
    initialised: bool,
    started: Time,
    published: Option<PodStatus>,
}

impl Life {
    pub(super) fn new(machine: &Arc<Machine>, seen: watch::Receiver<Pod>) -> Self {
        let pod = seen.borrow().clone();
        let spec = pod.spec.clone().unwrap_or_default();
        let policy = policy(&spec);
        let new = |container, restart| Container::new(&pod, container, restart, &machine.logs);
        let initial = spec.init_containers.iter().flatten();
        let initial = initial.map(|container| {
            let sidecar = container.restart_policy.as_deref() == Some("Always");
            new(container, if sidecar { Restart::Always } else { once(policy) })
        });
        Self {
            pods: Api::namespaced(machine.client.clone(), &pod.namespace().unwrap_or_default()),
            initial: initial.collect(),
            main: spec.containers.iter().map(|container| new(container, policy)).collect(),
            machine: Arc::clone(machine),
            sandbox: None,
            unready: None,
            initialised: false,
            started: Time(Timestamp::now()),
            published: None,
            seen,
        }
    }

    pub(super) async fn live(mut self) {
        // One that has ended before, or was evicted, is only waited for to be deleted.
        let over = phase(&self.seen.borrow())
            .is_some_and(|phase| phase != "Pending" && phase != "Running");
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let deleted = self.seen.borrow().metadata.deletion_timestamp.is_some();
            if deleted {
                return self.end().await;
            }
            if !over {
                self.step().await;
                self.publish().await;
            }
        }
    }

    async fn step(&mut self) {
        let pod = self.seen.borrow().clone();
        self.prepare(&pod).await;
        let Some(sandbox) = &self.sandbox else { return };
        for container in &mut self.initial {
            container.step(&pod, sandbox).await;
            if !self.initialised && !container.initialised() {
                return;
            }
        }
        self.initialised = true;
        for container in &mut self.main {
            container.step(&pod, sandbox).await;
        }
    }

    /// Gives the pod its network and volumes, as soon as all they need is there.
    async fn prepare(&mut self, pod: &Pod) {
        let waits = self.unready.as_ref().is_some_and(|(_, until)| Instant::now() < *until);
        if self.sandbox.is_some() || waits {
            return;
        }
        match Sandbox::new(pod, &self.machine).await {
            Ok(sandbox) => self.sandbox = Some(sandbox),
            Err(unready) => self.unready = Some((unready.to_string(), Instant::now() + RETRY)),
        }
    }

    /// Ends the containers, sidecars last, within the pod's grace period, and lets the object go.
    async fn end(mut self) {
        let mut ending = Ending::of(&mut self.seen);
        for containers in [&mut self.main, &mut self.initial] {
            ending.of_all(containers).await;
        }
        self.publish().await;
        let at_once = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: self.seen.borrow().uid(),
                ..Preconditions::default()
            }),
            ..DeleteParams::default()
        };
        let name = self.seen.borrow().name_any();
        while let Err(error) = self.pods.delete(&name, &at_once).await {
            if matches!(&error, kube::Error::Api(status) if status.is_not_found() || status.is_conflict())
            {
                return;
            }
            sleep(TICK).await;
        }
    }

    /// Publishes what changed; what does not get through is tried again at the next tick.
    async fn publish(&mut self) {
        let now = Time(Timestamp::now());
        let status =
            status::of_pod(self.containers(), self.published.as_ref(), &self.started, &now);
        if self.published.as_ref() == Some(&status) {
            return;
        }
        let (name, uid) = {
            let pod = self.seen.borrow();
            (pod.name_any(), pod.uid())
        };
        // With the uid, a pod that came later under the same name is not mistaken for this one.
        let patch = Patch::Strategic(json!({ "metadata": { "uid": uid }, "status": status }));
        if self.pods.patch_status(&name, &PatchParams::default(), &patch).await.is_ok() {
            self.published = Some(status);
        }
    }

    fn containers(&self) -> Containers {
        let initialisation = if self.initialised {
            Initialisation::Done
        } else if self.initial.iter().any(Container::failed) {
            Initialisation::Failed
        } else {
            Initialisation::Underway
        };
        Containers {
            address: self.sandbox.as_ref().map(Sandbox::address),
            unready: self.unready.as_ref().map(|(message, _)| message.clone()),
            initialisation,
            initial: self.initial.iter().map(Container::status).collect(),
            main: self.main.iter().map(Container::status).collect(),
        }
    }
}

fn policy(spec: &PodSpec) -> Restart {
    match spec.restart_policy.as_deref() {
        Some("Never") => Restart::Never,
        Some("OnFailure") => Restart::OnFailure,
        _ => Restart::Always,
    }
}

/// An init container runs until it has succeeded once.
fn once(policy: Restart) -> Restart {
    match policy {
        Restart::Always | Restart::OnFailure => Restart::OnFailure,
        Restart::Never => Restart::Never,
    }
}

fn phase(pod: &Pod) -> Option<&str> {
    pod.status.as_ref()?.phase.as_deref()
}
