//! What is made of a spec, and of one that means nothing.

use super::*;

#[test]
fn a_new_model_gets_everything_but_replicas() {
    let mut new = simulated("m");
    new.model.metadata.finalizers = None;
    let wanted = planned(&new);
    assert_eq!(wanted.finalizer, Finalizer::Add);
    assert_eq!(deployment(&wanted).spec.replicas, Some(0));
    assert_eq!(wanted.service.unwrap().metadata.name.as_deref(), Some("m"));
    assert_eq!(wanted.status.phase, Some(Phase::Idle));
    assert_eq!(wanted.status.endpoint.as_deref(), Some("http://m.default.svc:8000"));
}

#[test]
fn a_pinned_model_gets_its_replicas() {
    let mut pinned = simulated("m");
    pinned.effective.as_mut().unwrap().min_replicas = 2;
    pinned.effective.as_mut().unwrap().max_replicas = 2;
    assert_eq!(deployment(&planned(&pinned)).spec.replicas, Some(2));
}

#[test]
fn k8s_22_the_same_sight_gives_the_same_plan_and_then_nothing_new() {
    let mut model = simulated("m");
    let first = planned(&model);
    assert_eq!(first, planned(&model));
    model.model.status = Some(first.status.clone());
    model.deployment = Some(deployment(&first).clone());
    let again = planned_at(&model, 600);
    assert_eq!(again.status, first.status);
    assert_eq!(again.engine, first.engine);
    assert_eq!(again.announcements, []);
}

#[test]
fn a_spec_that_means_nothing_makes_nothing_and_says_why() {
    let typo = member("m", ModelSpec { backend: "vlm".into(), ..ModelSpec::default() });
    let wanted = planned(&typo);
    assert_eq!((wanted.engine, wanted.service), (WantedEngine::Nothing, None));
    assert_eq!(wanted.status.phase, Some(Phase::Failed));
    assert_eq!(wanted.announcements[0].reason, "BackendUnsupported");
}

#[test]
fn an_edit_that_means_nothing_leaves_what_runs() {
    let mut edited = simulated("m");
    let running = planned(&edited);
    edited.deployment = Some(deployment(&running).clone());
    edited.complaints = vec![Complaint::error("spec.config.maxConcurrency", "0 is none")];
    let wanted = planned(&edited);
    assert_eq!(wanted.engine, WantedEngine::Scaled(0));
    assert!(wanted.status.message.unwrap().contains("maxConcurrency"));
}

#[test]
fn an_engine_that_somebody_else_runs_is_only_told_of() {
    let spec = json!({ "backend": "external", "config": { "url": "http://gpu-box:8000" } });
    let wanted = planned(&member("m", serde_json::from_value(spec).unwrap()));
    assert_eq!((wanted.engine, wanted.service), (WantedEngine::Nothing, None));
    assert_eq!(wanted.status.phase, Some(Phase::Ready));
    assert_eq!(wanted.status.endpoint.as_deref(), Some("http://gpu-box:8000"));
}

#[test]
fn an_engine_is_started_with_room_for_its_adapters() {
    let mut model = serving(json!({
        "backend": "vllm", "source": "file:///weights", "image": "vllm:1", "gpu": { "vendor": "nvidia" },
    }));
    assert!(!arguments(&planned(&model)).contains("lora"));
    model.adapters = Adapters { count: 1, rank: Some(64) };
    let told = arguments(&planned(&model));
    assert!(told.contains("--enable-lora --max-loras 4 --max-lora-rank 64"), "{told}");
}

#[test]
fn the_device_is_what_the_gpus_of_the_engines_node_are_sold_as() {
    let mut model = kept_in_memory();
    model.nodes[1].labels.insert(keys::GPU_PRODUCT.to_owned(), "NVIDIA-L40S".to_owned());
    let device = |wanted: Wanted| wanted.status.gpu.and_then(|gpu| gpu.device);
    assert_eq!(device(planned(&model)), None, "it is nowhere yet");
    model.pods = vec![serving_on("b")];
    assert_eq!(device(planned(&model)).as_deref(), Some("NVIDIA-L40S"));
    model.pods = vec![serving_on("a")];
    assert_eq!(device(planned(&model)), None, "nobody has looked there");
}
