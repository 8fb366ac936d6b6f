//! Weights that are made smaller once they were fetched, step by step.

use super::*;

/// A model whose weights are fetched and shall be quantized.
fn awq() -> Scene {
    let mut scene = Scene::of(json!({
        "backend": "vllm", "source": "HF://a/b", "gpu": { "count": 1 },
        "quantize": { "format": "AWQ" },
    }));
    let image = |name: &str| (name.to_owned(), format!("registry.example/{name}:1"));
    let images = ["FLEXINFER_NODE_IMAGE", "FLEXINFER_QUANTIZER_AWQ_IMAGE"].map(image);
    scene.settings.images = Images::of(images);
    scene.with_claim().with_job(json!({ "conditions": [{ "type": "Complete", "status": "True" }] }))
}

impl Scene {
    /// With the quantizing Job that it wants, whose status is `status`.
    fn with_quantizer(mut self, status: Value) -> Self {
        let Some(CacheStep::Make(mut job)) = self.look().step else { panic!("a Job is wanted") };
        job.status = Some(serde_json::from_value(status).unwrap());
        self.quantizer = Some(*job);
        self
    }

    fn with_pod(mut self, node: Option<&str>, state: Value) -> Self {
        let mut pod = json!({
            "metadata": { "name": "q" }, "spec": { "nodeName": node, "containers": [] },
            "status": { "containerStatuses": [{
                "name": "quantizer", "image": "", "imageID": "", "ready": false, "restartCount": 0,
            }] },
        });
        pod["status"]["containerStatuses"][0]["state"] = state;
        self.quantizer_pods = vec![serde_json::from_value(pod).unwrap()];
        self
    }

    fn respec(mut self, quantize: Option<Value>) -> Self {
        self.model.spec.quantize = quantize.map(|wanted| serde_json::from_value(wanted).unwrap());
        self
    }
}

fn complete() -> Value {
    json!({ "conditions": [{ "type": "Complete", "status": "True" }] })
}

#[test]
fn weights_are_quantized_after_they_were_fetched_and_before_an_engine_sees_them() {
    use ConditionReason::{PrefetchSucceeded, QuantizationRunning};
    let scene = awq();
    assert_eq!(scene.told(), told("make writer-quantize", QuantizationRunning));
    let scene = scene.with_quantizer(json!({}));
    assert_eq!(scene.told(), told("wait", QuantizationRunning));
    let scene = awq().with_quantizer(json!({ "active": 1 }));
    assert_eq!(scene.told(), told("wait", QuantizationRunning));
    assert_eq!(scene.look().substage(), Some(LoadingSubstage::Quantizing));
    let scene = awq().with_quantizer(complete());
    assert_eq!(scene.told(), told("open", PrefetchSucceeded));
}

#[test]
fn the_status_tells_how_far_it_is_and_what_came_of_it() {
    let running = || awq().with_quantizer(json!({ "active": 1 }));
    let detail = |scene: Scene| scene.look().quantization.unwrap().progress_detail;
    assert_eq!(detail(running().with_pod(None, json!({}))).unwrap(), "its pod waits for a node");
    let waiting = json!({ "waiting": { "reason": "ContainerCreating" } });
    let begins = detail(running().with_pod(Some("n1"), waiting)).unwrap();
    assert_eq!(begins, "its pod on n1 begins: ContainerCreating");
    let runs = json!({ "running": { "startedAt": "2026-01-01T00:00:00Z" } });
    let works = detail(running().with_pod(Some("n1"), runs)).unwrap();
    let since = "its pod works on n1 since 2026-01-01T00:00:00Z; the Job may take 360 minutes";
    assert_eq!(works, since);
    let words = "loading\n{\"type\":\"AWQ\",\"originalSizeBytes\":16000,\"compressedSizeBytes\":5000,\
                 \"quantizationTimeSeconds\":61.6,\"outputDir\":\"x\"}\n";
    let ended = json!({ "terminated": { "exitCode": 0, "message": words } });
    let made = awq().with_quantizer(complete()).with_pod(Some("n1"), ended).look();
    let status = made.quantization.unwrap();
    assert_eq!(status.compression_ratio.as_deref(), Some("3.20"));
    assert_eq!((status.original_size_bytes, status.progress), (Some(16_000), Some(100)));
    assert_eq!(status.quantization_time.as_deref(), Some("62s"));
}

#[test]
fn a_quantizer_that_tells_how_far_it_is_is_shown_in_percent() {
    let mut scene = awq().with_quantizer(json!({ "active": 1 }));
    let progress = |scene: &Scene| scene.look().quantization.unwrap().progress;
    assert_eq!(progress(&scene), None);
    let told = |done| {
        let share = crate::activation::Share::new(done, 10).unwrap();
        Some(Told { share, moved: crate::moment::Moment::ORIGIN, still: false })
    };
    scene.come = told(4);
    assert_eq!(progress(&scene), Some(40));
    scene.come = told(10);
    assert_eq!(progress(&scene), Some(99), "a hundred is when it is there");
}

#[test]
fn what_came_of_it_is_remembered_when_the_pod_is_gone() {
    let mut scene = awq().with_quantizer(complete());
    scene.quantized = Some(QuantizationStatus {
        compression_ratio: Some("3.20".to_owned()),
        progress: Some(100),
        ..QuantizationStatus::default()
    });
    let known = scene.look().quantization.unwrap();
    assert_eq!(known.compression_ratio.as_deref(), Some("3.20"));
}

#[test]
fn a_quantizer_that_says_nothing_is_believed_all_the_same() {
    let ended = json!({ "terminated": { "exitCode": 0, "message": "done" } });
    let scene = awq().with_quantizer(complete()).with_pod(Some("n1"), ended);
    let status = scene.look().quantization.unwrap();
    assert_eq!((status.compression_ratio, status.progress), (None, Some(100)));
}

#[test]
fn a_quantization_that_failed_is_told_and_tried_again_after_an_hour_or_a_change() {
    let failed = json!({ "conditions": [{
        "type": "Failed", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "message": "Job has reached the specified backoff limit",
    }] });
    // 69 is a status of our own program; a quantizer's means nothing here.
    let ended = json!({ "terminated": { "exitCode": 69, "message": "out of memory" } });
    let scene = awq().with_quantizer(failed).with_pod(Some("n1"), ended).later(59);
    assert_eq!(scene.told(), told("wait", ConditionReason::QuantizationFailed));
    let caching = scene.look();
    assert_eq!(caching.message, "out of memory");
    assert_eq!(caching.hindrance, Some(LoadHindrance::InitContainerFailed));
    assert_eq!(caching.look_again, Some(Duration::from_mins(1)));
    let more = scene.respec(Some(json!({ "format": "AWQ", "maxMemoryGB": 96 })));
    assert_eq!(more.told().0, "delete writer-quantize", "more memory may help");
    let more = more.respec(Some(json!({ "format": "AWQ" }))).later(1);
    assert_eq!(more.told().0, "delete writer-quantize");
}

#[test]
fn a_job_that_makes_what_nobody_wants_any_more_is_deleted() {
    let running = || awq().with_quantizer(json!({ "active": 1 }));
    let other = running().respec(Some(json!({ "format": "AWQ", "bits": 8 })));
    assert_eq!(other.told().0, "delete writer-quantize");
    let none = running().respec(None);
    assert_eq!(none.told().0, "delete writer-quantize");
    let mut elsewhere = running();
    elsewhere.model.spec.source = Some("HF://a/other".to_owned());
    assert_eq!(elsewhere.told().0, "delete writer-quantize", "before the weights are fetched");
    let memory = running().respec(Some(json!({ "format": "AWQ", "maxMemoryGB": 96 })));
    assert_eq!(memory.told().0, "wait", "what runs makes the same");
}

#[test]
fn a_quantizer_without_an_image_is_told_before_anything_is_fetched() {
    let mut scene = awq();
    scene.settings.images =
        Images::of([("FLEXINFER_NODE_IMAGE".to_owned(), NODE_IMAGE.to_owned())]);
    scene.job = None;
    let refusal = scene.try_look().unwrap_err();
    assert_eq!(refusal.reason, ConditionReason::ImageNotConfigured);
    assert!(refusal.message.contains("FLEXINFER_QUANTIZER_AWQ_IMAGE"), "{refusal}");
}
