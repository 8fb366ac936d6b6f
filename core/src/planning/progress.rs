//! How much of a model's weights has come, where a pod fetches or copies them: the pod says it to whoever asks, and
//! the status says it in steps, so that nothing is written where nothing moves.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerPort, ContainerStatus, Pod};

use super::model::{ended, ending};
use crate::activation::Share;
use crate::moment::Moment;
use crate::planning::time::time;

/// The port at which pods of ours are asked, beside whatever an engine listens on.
const PORT: i32 = 9877;

/// What that port is called: who has one of this name can be asked.
const NAME: &str = "progress";

/// The variable by which our program learns it.
pub const PORT_VARIABLE: &str = "FLEXINFER_PROGRESS_PORT";

/// So many percent more are told at once.
const STEP: u8 = 5;

/// Fewer are told after so long.
const BETWEEN: Duration = Duration::from_secs(30);

/// Weights of which nothing more has come for so long are said to stand still. A fetch that hears nothing asks anew
/// after 30 seconds.
const STILL: Duration = Duration::from_secs(45);

/// `container` as one that can be asked how far it is.
pub fn can_be_asked(container: &mut Container) {
    let port = ContainerPort {
        name: Some(NAME.to_owned()),
        container_port: PORT,
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    container.ports.get_or_insert_default().push(port);
}

/// The port, as a variable says it.
pub fn port() -> String {
    PORT.to_string()
}

/// Where `pod` can be asked how far it is: while a container of it runs that says so.
pub fn asked_at(pod: &Pod) -> Option<SocketAddr> {
    if ended(pod) || ending(pod) {
        return None;
    }
    let (spec, status) = (pod.spec.as_ref()?, pod.status.as_ref()?);
    let runs = |container: &Container, statuses: &Option<Vec<ContainerStatus>>| {
        let mut statuses = statuses.iter().flatten();
        let status = statuses.find(|status| status.name == container.name);
        status.and_then(|status| status.state.as_ref()).is_some_and(|state| state.running.is_some())
    };
    let first = spec.init_containers.iter().flatten();
    let first = first.filter(|container| runs(container, &status.init_container_statuses));
    let main =
        spec.containers.iter().filter(|container| runs(container, &status.container_statuses));
    let ports = first.chain(main).flat_map(|container| container.ports.iter().flatten());
    let mut named = ports.filter(|port| port.name.as_deref() == Some(NAME));
    let port = u16::try_from(named.next()?.container_port).ok()?;
    Some(SocketAddr::new(status.pod_ip.as_ref()?.parse().ok()?, port))
}

/// Whether `pod` is this one, and can still be asked.
pub fn is_asked(pod: &Pod, uid: &str) -> bool {
    pod.metadata.uid.as_deref() == Some(uid) && asked_at(pod).is_some()
}

/// What the status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// How much has come.
    pub share: Share,
    /// When more was seen to come last.
    pub moved: Moment,
    /// Whether nothing has come for a while.
    pub still: bool,
}

impl fmt::Display for Told {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.share)?;
        if self.still {
            write!(formatter, "; nothing more has come since {}", time(self.moved).0)?;
        }
        Ok(())
    }
}

/// What one pod has said of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The pod's uid.
    pod: String,
    heard: Share,
    /// When more was heard than before.
    moved: Moment,
    told: Told,
    told_at: Moment,
}

impl Progress {
    /// Of `pod`, which is heard for the first time.
    pub fn begin(pod: &str, heard: Share, now: Moment) -> Self {
        let told = Told { share: heard, moved: now, still: false };
        Self { pod: pod.to_owned(), heard, moved: now, told, told_at: now }
    }

    /// Whose it is.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    /// What the status is to say.
    pub const fn told(&self) -> Told {
        self.told
    }

    /// Takes note of what the pod says `now`; whether the status is to say something else.
    pub fn hear(&mut self, heard: Share, now: Moment) -> bool {
        let another = heard.total != self.heard.total;
        if another || heard.done > self.heard.done {
            self.moved = now;
        }
        // Not any other total: one that changes at each answer is no new work each time.
        let anew = another && heard.done < self.heard.done;
        self.heard = heard;
        let still = now.since(self.moved) >= STILL;
        let further = heard.percent().abs_diff(self.told.share.percent()) >= STEP;
        let later = heard != self.told.share && now.since(self.told_at) >= BETWEEN;
        let news = anew || further || later || still != self.told.still;
        if news {
            (self.told, self.told_at) = (Told { share: heard, moved: self.moved, still }, now);
        }
        news
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::after_origin(Duration::from_secs(1000 + seconds))
    }

    fn of(done: u64) -> Share {
        Share::new(done, 1000).unwrap()
    }

    fn begun() -> Progress {
        Progress::begin("p", of(0), at(0))
    }

    #[test]
    fn a_step_is_told_at_once_and_less_after_a_while() {
        let mut progress = begun();
        assert!(!progress.hear(of(49), at(10)));
        assert!(progress.hear(of(50), at(20)));
        assert_eq!(progress.told(), Told { share: of(50), moved: at(20), still: false });
        assert!(!progress.hear(of(60), at(49)));
        assert!(progress.hear(of(70), at(50)));
        assert!(!progress.hear(of(70), at(60)), "nothing moves");
    }

    #[test]
    fn a_fast_download_is_told_in_twenty_steps_at_most_however_often_it_is_asked() {
        let mut progress = begun();
        let told = (1..=1000).filter(|done| progress.hear(of(*done), at(1))).count();
        assert_eq!(told, 20);
    }

    #[test]
    fn what_stands_still_is_told_once_and_again_when_it_moves() {
        let mut progress = begun();
        progress.hear(of(100), at(5));
        assert!(!progress.hear(of(100), at(49)));
        assert!(progress.hear(of(100), at(50)));
        assert_eq!(progress.told(), Told { share: of(100), moved: at(5), still: true });
        let words = progress.told().to_string();
        assert_eq!(
            words,
            "100 bytes of 1000 bytes; nothing more has come since 1970-01-01T00:16:45Z"
        );
        assert!((51..5000).all(|later| !progress.hear(of(100), at(later))));
        assert!(progress.hear(of(101), at(5000)), "it goes on");
        assert_eq!(progress.told(), Told { share: of(101), moved: at(5000), still: false });
    }

    #[test]
    fn going_back_is_told_and_is_no_going_on() {
        let mut progress = begun();
        progress.hear(of(500), at(5));
        assert!(progress.hear(of(100), at(10)));
        assert_eq!(progress.told(), Told { share: of(100), moved: at(5), still: false });
    }

    #[test]
    fn the_next_work_of_the_same_pod_is_told_at_once() {
        let mut progress = begun();
        progress.hear(of(1), at(0));
        let next = Share::new(0, 7).unwrap();
        assert!(progress.hear(next, at(1)));
        assert_eq!(progress.told(), Told { share: next, moved: at(1), still: false });
    }

    #[test]
    fn a_total_that_changes_at_each_answer_is_told_as_rarely_as_anything_else() {
        // Of a pod that counts what there is while it fetches, and of one that does so before.
        for step in [1, 0] {
            let mut progress = begun();
            let counted = |second: u64| Share::new(step * second, 1_000_000 + second).unwrap();
            let told = (1..=3600).filter(|second| second % 10 == 0);
            let told = told.filter(|second| progress.hear(counted(*second), at(*second))).count();
            assert!(told <= 3600 / 30, "{told} times an hour, {step} bytes a second");
        }
    }

    /// A pod with a fetching init container and an engine, whose containers are in these states.
    fn pod(first: &Value, main: &Value) -> Pod {
        let mut fetch = Container { name: "fetch".to_owned(), ..Container::default() };
        can_be_asked(&mut fetch);
        let status = |name: &str, state: &Value| {
            json!({ "name": name, "image": "", "imageID": "", "ready": false, "restartCount": 0,
                "state": state })
        };
        let pod = json!({
            "metadata": { "uid": "p" },
            "spec": {
                "initContainers": [fetch],
                "containers": [{ "name": "model", "ports": [{ "name": "http", "containerPort": 8000 }] }],
            },
            "status": {
                "podIP": "10.0.0.7",
                "initContainerStatuses": [status("fetch", first)],
                "containerStatuses": [status("model", main)],
            },
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_pod_is_asked_while_a_container_of_it_runs_that_can_be() {
        let (running, waiting) = (json!({ "running": {} }), json!({ "waiting": {} }));
        let ended = json!({ "terminated": { "exitCode": 0 } });
        let fetching = pod(&running, &waiting);
        assert_eq!(asked_at(&fetching), Some("10.0.0.7:9877".parse().unwrap()));
        assert!(is_asked(&fetching, "p") && !is_asked(&fetching, "q"));
        assert_eq!(asked_at(&pod(&waiting, &waiting)), None);
        assert_eq!(asked_at(&pod(&ended, &running)), None, "an engine is not asked");
        let mut nowhere = fetching.clone();
        nowhere.status.as_mut().unwrap().pod_ip = Some("nowhere".to_owned());
        assert_eq!(asked_at(&nowhere), None);
        let mut leaving = fetching;
        leaving.metadata.deletion_timestamp = Some(time(at(0)));
        assert_eq!(asked_at(&leaving), None);
    }
}
