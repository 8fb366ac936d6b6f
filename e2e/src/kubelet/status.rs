//! A pod's phase and conditions from what its containers do.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{ContainerStatus, HostIP, PodCondition, PodIP, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::network;

/// How far a pod's init containers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initialisation {
    Underway,
    Done,
    /// One failed and is not started again.
    Failed,
}

/// What a pod's containers do, and where.
pub(super) struct Containers {
    /// None until they have a place.
    pub(super) address: Option<Ipv4Addr>,
    /// Why they have none.
    pub(super) unready: Option<String>,
    pub(super) initialisation: Initialisation,
    pub(super) initial: Vec<ContainerStatus>,
    pub(super) main: Vec<ContainerStatus>,
}

/// The status to publish. A condition that has not changed since `previous` keeps its time.
pub(super) fn of_pod(
    containers: Containers,
    previous: Option<&PodStatus>,
    started: &Time,
    now: &Time,
) -> PodStatus {
    let phase = phase(&containers);
    let ended = phase == "Succeeded" || phase == "Failed";
    let initialised = containers.initialisation == Initialisation::Done;
    let ready = initialised && !ended && containers.main.iter().all(|container| container.ready);
    let before = previous.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let conditions = [
        ("PodReadyToStartContainers", containers.address.is_some()),
        ("Initialized", initialised),
        ("ContainersReady", ready),
        ("Ready", ready),
    ]
    .map(|(name, holds)| condition(name, holds, before, now));
    let address = containers.address.map(|address| address.to_string());
    let machine = network::MACHINE.to_string();
    PodStatus {
        message: containers.unready.filter(|_| address.is_none()),
        pod_ips: address.clone().map(|ip| vec![PodIP { ip }]),
        pod_ip: address,
        host_ips: Some(vec![HostIP { ip: machine.clone() }]),
        host_ip: Some(machine),
        phase: Some(phase.to_owned()),
        conditions: Some(conditions.into()),
        init_container_statuses: Some(containers.initial),
        container_statuses: Some(containers.main),
        start_time: Some(started.clone()),
        ..PodStatus::default()
    }
}

fn phase(containers: &Containers) -> &'static str {
    match containers.initialisation {
        Initialisation::Failed => return "Failed",
        Initialisation::Underway => return "Pending",
        Initialisation::Done => {}
    }
    let states = || containers.main.iter().filter_map(|container| container.state.as_ref());
    let mut ends = states().filter_map(|state| state.terminated.as_ref());
    if states().all(|state| state.terminated.is_some()) {
        return if ends.all(|end| end.exit_code == 0) { "Succeeded" } else { "Failed" };
    }
    let begun = |container: &ContainerStatus| {
        let state = container.state.as_ref();
        let waiting = state.is_some_and(|state| state.waiting.is_some());
        !waiting || container.last_state.is_some()
    };
    if containers.main.iter().all(begun) { "Running" } else { "Pending" }
}

fn condition(name: &str, holds: bool, before: &[PodCondition], now: &Time) -> PodCondition {
    let status = if holds { "True" } else { "False" };
    let same = before.iter().find(|old| old.type_ == name && old.status == status);
    let since = same.and_then(|same| same.last_transition_time.clone());
    PodCondition {
        type_: name.to_owned(),
        status: status.to_owned(),
        last_transition_time: Some(since.unwrap_or_else(|| now.clone())),
        ..PodCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::jiff::Timestamp;
    use serde_json::{Value, json};

    use super::*;

    fn container(state: &Value, ready: bool) -> ContainerStatus {
        serde_json::from_value(json!({
            "name": "c",
            "image": "",
            "imageID": "",
            "restartCount": 0,
            "ready": ready,
            "state": state,
        }))
        .unwrap()
    }

    fn done(main: Vec<ContainerStatus>) -> Containers {
        let initialisation = Initialisation::Done;
        let address = Some(Ipv4Addr::new(10, 88, 0, 16));
        Containers { address, unready: None, initialisation, initial: Vec::new(), main }
    }

    fn at(second: i64) -> Time {
        Time(Timestamp::from_second(second).unwrap())
    }

    fn ended(code: i32) -> ContainerStatus {
        container(&json!({ "terminated": { "exitCode": code } }), code == 0)
    }

    fn running(ready: bool) -> ContainerStatus {
        container(&json!({ "running": {} }), ready)
    }

    #[test]
    fn the_phase_follows_the_containers() {
        let waiting = container(&json!({ "waiting": { "reason": "ErrImagePull" } }), false);
        for (main, expected) in [
            (vec![waiting, running(true)], "Pending"),
            (vec![running(true), ended(0)], "Running"),
            (vec![ended(0), ended(0)], "Succeeded"),
            (vec![ended(0), ended(1)], "Failed"),
        ] {
            assert_eq!(phase(&done(main)), expected);
        }
        let underway = Containers { initialisation: Initialisation::Underway, ..done(vec![]) };
        assert_eq!(phase(&underway), "Pending");
    }

    #[test]
    fn a_condition_keeps_its_time_until_it_changes() {
        let first = of_pod(done(vec![running(false)]), None, &at(1), &at(1));
        let same = of_pod(done(vec![running(false)]), Some(&first), &at(1), &at(2));
        assert_eq!(first, same);
        let ready = of_pod(done(vec![running(true)]), Some(&same), &at(1), &at(3));
        let times: Vec<_> =
            ready.conditions.unwrap().into_iter().map(|c| c.last_transition_time).collect();
        assert_eq!(times, [1, 1, 3, 3].map(|second| Some(at(second))));
    }
}
