//! What there is of a cache, and the one next step.

mod quantizing;
mod trying_again;

use flexinfer_crds::keys;
use serde_json::{Value, json};

use super::*;
use crate::backends::Vendor;
use crate::effective::{Defaults, Effective};
use crate::planning::objects::{Images, Settings, spec_hash};
use crate::planning::placing::Placement;

/// A Model with its surroundings, and what there is on the cluster.
struct Scene {
    model: flexinfer_crds::Model,
    effective: Effective,
    settings: Settings,
    claim: Option<PersistentVolumeClaim>,
    source: Option<PersistentVolumeClaim>,
    awaited_since: Option<Timestamp>,
    job: Option<Job>,
    pods: Vec<Pod>,
    come: Option<Told>,
    size: Option<i64>,
    quantizer: Option<Job>,
    quantizer_pods: Vec<Pod>,
    quantized: Option<QuantizationStatus>,
    can_grow: Option<bool>,
    now: Timestamp,
}

const NODE_IMAGE: &str = "registry.example/node:1";

fn from(source: &str) -> Scene {
    Scene::of(json!({ "backend": "vllm", "source": source, "gpu": { "count": 1 } }))
}

fn claim(name: &str, size: &str) -> PersistentVolumeClaim {
    let claim = json!({
        "metadata": { "name": name, "uid": "c1" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
            "resources": { "requests": { "storage": size } },
        },
        "status": { "phase": "Bound" },
    });
    serde_json::from_value(claim).unwrap()
}

/// A Job's pod whose container ended like this.
fn ended(status: i32, message: &str) -> Pod {
    container_in("Failed", &json!({ "terminated": { "exitCode": status, "message": message } }))
}

fn container_in(phase: &str, state: &Value) -> Pod {
    let pod = json!({ "metadata": {}, "spec": { "containers": [] }, "status": {
        "phase": phase,
        "containerStatuses": [{
            "name": "fetch", "image": "node:1", "imageID": "", "ready": false, "restartCount": 0,
            "state": state,
        }],
    } });
    serde_json::from_value(pod).unwrap()
}

impl Scene {
    fn of(spec: Value) -> Self {
        let mut model = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": "writer", "namespace": "models", "uid": "u" },
        });
        model["spec"] = spec;
        let model = serde_json::from_value(model).unwrap();
        let effective = Effective::of(&model, 1, &Defaults::default()).unwrap();
        let images = [("FLEXINFER_NODE_IMAGE".to_owned(), NODE_IMAGE.to_owned())];
        Self {
            model,
            effective,
            settings: Settings { images: Images::of(images), ..Settings::default() },
            claim: None,
            source: None,
            awaited_since: None,
            job: None,
            pods: Vec::new(),
            come: None,
            size: None,
            quantizer: None,
            quantizer_pods: Vec::new(),
            quantized: None,
            can_grow: None,
            now: "2026-01-01T00:00:00Z".parse().unwrap(),
        }
    }

    /// With the claim that it wants.
    fn with_claim(mut self) -> Self {
        self.claim = Some(claim("writer-cache", "50Gi"));
        self
    }

    /// With the Job that it wants, whose status is `status`.
    fn with_job(mut self, status: Value) -> Self {
        let Some(CacheStep::Make(mut job)) = self.look().step else { panic!("a Job is wanted") };
        job.status = Some(serde_json::from_value(status).unwrap());
        self.job = Some(*job);
        self
    }

    fn failed(self, exit: i32) -> Self {
        let since = "2026-01-01T00:00:00Z";
        let failed = json!({ "conditions": [{
            "type": "Failed", "status": "True", "lastTransitionTime": since, "message": "backoff",
        }] });
        let mut scene = self.with_job(failed);
        scene.pods = vec![ended(exit, "first\nflexinfer-node: told")];
        scene
    }

    fn later(mut self, minutes: u64) -> Self {
        self.now += Duration::from_mins(minutes);
        self
    }

    fn look(&self) -> Caching {
        self.try_look().unwrap()
    }

    fn try_look(&self) -> Result<Caching, Refusal> {
        let placement = Placement::gpus(Vendor::Nvidia, 1);
        let blueprint =
            Blueprint::of(&self.model, &self.effective, &placement, &self.settings).unwrap();
        let seen = Seen {
            claim: self.claim.as_ref(),
            source: self.source.as_ref(),
            awaited_since: self.awaited_since,
            job: self.job.as_ref(),
            pods: &self.pods.iter().collect::<Vec<_>>(),
            quantizer: self.quantizer.as_ref(),
            quantizer_pods: &self.quantizer_pods.iter().collect::<Vec<_>>(),
            come: self.come,
            size: self.size,
            quantized: self.quantized.as_ref(),
            can_grow: self.can_grow,
            now: self.now,
        };
        caching(&blueprint, seen)
    }

    /// The step in a word, and the reason.
    fn told(&self) -> (String, ConditionReason) {
        let caching = self.look();
        let step = match caching.step {
            None if caching.ready => "open".to_owned(),
            None => "wait".to_owned(),
            Some(CacheStep::Claim(_)) => "claim".to_owned(),
            Some(CacheStep::Make(job)) => format!("make {}", job.metadata.name.unwrap()),
            Some(CacheStep::Delete(name)) => format!("delete {name}"),
        };
        (step, caching.reason)
    }
}

fn told(step: &str, reason: ConditionReason) -> (String, ConditionReason) {
    (step.to_owned(), reason)
}

#[test]
fn weights_are_fetched_step_by_step() {
    use ConditionReason::{PrefetchPending, PrefetchRunning, PrefetchSucceeded, PvcProvisioning};
    let scene = from("HF://a/b");
    assert_eq!(scene.told(), told("claim", PvcProvisioning));
    let scene = scene.with_claim();
    assert_eq!(scene.told(), told("make writer-cache-prefetch", PrefetchPending));
    let scene = scene.with_job(json!({}));
    assert_eq!(scene.told(), told("wait", PrefetchPending));
    let scene = from("HF://a/b").with_claim().with_job(json!({ "active": 1 }));
    assert_eq!(scene.told(), told("wait", PrefetchRunning));
    let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let scene = from("HF://a/b").with_claim().with_job(complete);
    assert_eq!(scene.told(), told("open", PrefetchSucceeded));
}

#[test]
fn a_claim_of_somebodys_is_looked_at_before_an_engine_is_started() {
    let mut scene = from("pvc://weights/m");
    let missing = scene.look();
    assert_eq!(missing.hindrance, Some(LoadHindrance::BadSource));
    assert_eq!(missing.message, "the claim `weights` does not exist; make it, or name another");
    scene.claim = Some(claim("weights", "1Gi"));
    assert_eq!(scene.told().0, "make writer-cache-check");
}

#[test]
fn a_copy_waits_for_both_claims() {
    let spec = json!({
        "backend": "vllm", "source": "pvc://weights/m", "cache": { "strategy": "SharedPVC" },
    });
    let mut scene = Scene::of(spec).with_claim();
    assert_eq!(scene.look().hindrance, Some(LoadHindrance::BadSource));
    scene.source = Some(claim("weights", "1Gi"));
    assert_eq!(scene.told().0, "make writer-cache-copy");
    let scene = scene.with_job(json!({ "active": 1 }));
    assert_eq!(scene.told(), told("wait", ConditionReason::CacheCopy));
}

#[test]
fn what_needs_no_claim_is_open_at_once() {
    let memory =
        json!({ "backend": "vllm", "source": "HF://a/b", "cache": { "strategy": "Memory" } });
    assert_eq!(Scene::of(memory).told(), told("open", ConditionReason::NoCacheJob));
    let ollama = Scene::of(json!({ "backend": "ollama", "source": "ollama://a" }));
    assert_eq!(ollama.told().0, "claim");
    assert_eq!(ollama.with_claim().told(), told("open", ConditionReason::PvcBound));
}

#[test]
fn k8s_11_a_changed_source_has_the_job_done_anew_in_every_state() {
    for status in [
        json!({}),
        json!({ "active": 1 }),
        json!({ "conditions": [{ "type": "Complete", "status": "True" }] }),
        json!({ "conditions": [{ "type": "Failed", "status": "True" }] }),
    ] {
        let mut scene = from("HF://a/b").with_claim().with_job(status);
        scene.model.spec.source = Some("HF://a/other".to_owned());
        assert_eq!(scene.told().0, "delete writer-cache-prefetch");
        scene.job.as_mut().unwrap().metadata.deletion_timestamp =
            serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert_eq!(scene.told().0, "wait");
    }
}

#[test]
fn k8s_11_another_loader_image_repeats_only_what_failed() {
    let step = |status: Value| {
        let mut scene = from("HF://a/b").with_claim().with_job(status);
        let images = [("FLEXINFER_NODE_IMAGE".to_owned(), "registry.example/node:2".to_owned())];
        scene.settings.images = Images::of(images);
        scene.told().0
    };
    assert_eq!(step(json!({ "active": 1 })), "wait");
    assert_eq!(step(json!({ "conditions": [{ "type": "Complete", "status": "True" }] })), "open");
    let failed = json!({ "conditions": [{ "type": "Failed", "status": "True" }] });
    assert_eq!(step(failed), "delete writer-cache-prefetch");
}

#[test]
fn a_claim_that_was_made_anew_is_filled_anew() {
    let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let mut scene = from("HF://a/b").with_claim().with_job(complete);
    scene.claim.as_mut().unwrap().metadata.uid = Some("c2".to_owned());
    assert_eq!(scene.told().0, "delete writer-cache-prefetch");
}

#[test]
fn k8s_17_a_claim_grows_and_never_shrinks() {
    let with_size = |size: &str, class: Option<&str>| {
        let mut scene = from("HF://a/b").with_claim();
        let cache = json!({ "size": size, "storageClass": class });
        scene.model.spec.cache = Some(serde_json::from_value(cache).unwrap());
        scene
    };
    let step = |scene: &Scene| scene.told().0;
    for size in ["20Gi", "50Gi", "51200Mi"] {
        assert_eq!(step(&with_size(size, None)), "make writer-cache-prefetch", "{size}");
    }
    let mut grows = with_size("80Gi", None);
    let Some(CacheStep::Claim(claim)) = grows.look().step else { panic!("it does not grow") };
    assert_eq!(claim.spec.unwrap().storage_class_name.as_deref(), Some("fast"));
    grows.can_grow = Some(false);
    let told = grows.look();
    assert!(told.note.unwrap().contains("cannot grow to 80Gi"));
    assert!(matches!(told.step, Some(CacheStep::Make(_))), "the rest goes on");
    let mut unbound = with_size("80Gi", None);
    unbound.claim.as_mut().unwrap().status = None;
    let told = unbound.look();
    assert!(told.note.unwrap().contains("grows to 80Gi once it has a volume"));
    assert!(matches!(told.step, Some(CacheStep::Make(_))), "the rest goes on");
    let note = with_size("50Gi", Some("slow")).look().note.unwrap();
    assert!(note.contains("is of class fast, which cannot become slow"), "{note}");
}

#[test]
fn a_lost_or_leaving_claim_is_waited_for() {
    let mut scene = from("HF://a/b").with_claim();
    scene.claim.as_mut().unwrap().status.as_mut().unwrap().phase = Some("Lost".to_owned());
    assert_eq!(scene.look().hindrance, Some(LoadHindrance::BadSource));
    let mut scene = from("HF://a/b").with_claim();
    scene.claim.as_mut().unwrap().metadata.deletion_timestamp =
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(scene.look().hindrance, Some(LoadHindrance::Provisioning));
}

#[test]
fn k8s_19_jobs_have_what_the_engines_pod_has_of_its_surroundings() {
    let spec = json!({
        "backend": "vllm", "source": "HF://a/b", "gpu": { "count": 1 },
        "nodeSelector": { "disk": "fast" },
    });
    let mut scene = Scene::of(spec).with_claim();
    scene.settings.pull_secrets = vec!["ours".to_owned()];
    scene.model.metadata.annotations =
        Some([(keys::SERVING_PRIORITY_CLASS.to_owned(), "high".to_owned())].into());
    let Some(CacheStep::Make(job)) = scene.look().step else { panic!("a Job is wanted") };
    assert!(spec_hash(&*job).is_some());
    let pod = job.spec.unwrap().template.spec.unwrap();
    assert_eq!(pod.image_pull_secrets.unwrap()[0].name, "ours");
    assert_eq!(pod.node_selector.unwrap()["disk"], "fast");
    assert_eq!(pod.priority_class_name.as_deref(), Some("high"));
    assert_eq!(pod.tolerations.unwrap().len(), 2);
    let container = &pod.containers[0];
    assert_eq!(container.image.as_deref(), Some(NODE_IMAGE));
    assert_eq!(container.resources, None);
    assert!(container.security_context.is_some());
}

#[test]
fn k8s_13_a_services_pods_are_not_those_of_jobs() {
    let scene = from("HF://a/b").with_claim();
    let Some(CacheStep::Make(job)) = scene.look().step else { panic!("a Job is wanted") };
    let labels = job.spec.unwrap().template.metadata.unwrap().labels.unwrap();
    assert!(!labels.contains_key(keys::MODEL));
    assert_eq!(labels[keys::CACHE], "writer");
}

#[test]
fn the_last_failed_container_tells_how_a_job_ended() {
    let pod = |finished: &str, status: i32| {
        let pod = json!({ "metadata": {}, "status": { "containerStatuses": [{
            "name": "fetch", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            "state": { "terminated": {
                "exitCode": status, "finishedAt": finished, "message": format!(" ended {status}\n"),
            } },
        }] } });
        serde_json::from_value(pod).unwrap()
    };
    let pods = [
        pod("2026-01-01T00:00:02Z", 77),
        pod("2026-01-01T00:00:01Z", 1),
        pod("2026-01-01T00:00:03Z", 0),
    ];
    assert_eq!(Exit::of(&pods), Some(Exit { status: 77, message: "ended 77".to_owned() }));
    assert_eq!(Exit::of(&pods[2..]), None);
}

#[test]
fn whoever_waits_for_a_claim_without_a_volume_is_told_which() {
    let mut scene = from("HF://org/model").with_claim().with_job(json!({ "active": 1 }));
    assert_eq!(scene.look().note, None);
    let status = json!({ "phase": "Pending" });
    scene.claim.as_mut().unwrap().status = serde_json::from_value(status).unwrap();
    let note = scene.look().note;
    assert_eq!(note.as_deref(), Some("the claim `writer-cache` (class `fast`) has no volume yet"));
}

#[test]
fn how_much_has_come_is_said_while_the_job_runs() {
    let share = crate::activation::Share::new(1 << 30, 5 << 30).unwrap();
    let come = Some(Told { share, moved: crate::moment::Moment::ORIGIN, still: false });
    let mut scene = from("HF://a/b").with_claim().with_job(json!({ "active": 1 }));
    assert_eq!(scene.look().message, "fetching the weights is under way");
    scene.come = come;
    assert_eq!(scene.look().message, "fetching the weights is under way: 1.0 GiB of 5.0 GiB");
    let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let mut scene = from("HF://a/b").with_claim().with_job(complete);
    scene.come = come;
    assert_eq!(scene.look().message, "the weights are there");
}

#[test]
fn the_size_of_the_weights_is_what_fetched_them_says_and_is_known_when_its_pod_is_gone() {
    let complete = json!({ "conditions": [{ "type": "Complete", "status": "True" }] });
    let mut scene = from("HF://a/b").with_claim().with_job(complete);
    assert_eq!(scene.look().size, None);
    scene.pods = vec![ended(1, "{\"sizeBytes\": 1}"), ended(0, "{\"sizeBytes\": 5000}")];
    assert_eq!(scene.look().size, Some(5000));
    (scene.pods, scene.size) = (Vec::new(), Some(5000));
    assert_eq!(scene.look().size, Some(5000));
    scene.claim.as_mut().unwrap().metadata.uid = Some("c2".to_owned());
    assert_eq!(scene.look().size, None, "they are fetched anew");
}
