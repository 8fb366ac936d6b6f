//! Faults that were reported of pods, and what must hold for each of them.

use flexinfer_crds::keys;

use super::nodes::{two_engines, usable};
use super::*;

fn text(config: Value) -> Sample {
    let mut spec = json!({
        "backend": "llamacpp", "source": "pvc://weights/w.gguf", "gpu": { "count": 1 },
    });
    spec["config"] = config;
    Sample::new(spec).on_nvidia()
}

#[test]
fn k8s_16_what_fills_a_claim_does_not_wait_for_an_engine_that_waits_for_it() {
    for source in ["HF://a/b", "pvc://a/b"] {
        let sample = two_engines(source);
        let job = sample.blueprint().unwrap().filling_job("c1").unwrap().unwrap();
        let affinity = job.spec.unwrap().template.spec.unwrap().affinity;
        assert!(affinity.is_none_or(|affinity| affinity.pod_affinity.is_none()), "{source}");
    }
}

#[test]
fn k8s_16_on_the_processor_too_a_change_starts_the_next_engine_first_where_any_node_has_the_claim()
{
    let spec = json!({ "backend": "llamacpp", "source": "pvc://weights/w.gguf" });
    let mut sample = Sample::new(spec);
    let strategy = |sample: &Sample| sample.deployment().spec.strategy.unwrap().type_;
    sample.claim = Some(usable("ReadWriteOnce", None));
    assert_eq!(strategy(&sample).as_deref(), Some("Recreate"));
    sample.claim = Some(usable("ReadWriteMany", None));
    assert_eq!(strategy(&sample).as_deref(), Some("RollingUpdate"));
}

#[test]
fn k8s_16_a_change_never_needs_two_gpus_or_two_nodes_at_once() {
    let strategy = |sample: &Sample| {
        let strategy = sample.deployment().spec.strategy.unwrap();
        let surge = strategy.rolling_update.and_then(|update| update.max_surge);
        (strategy.type_.unwrap(), surge.map(value))
    };
    let sample = text(json!({}));
    assert_eq!(strategy(&sample), ("Recreate".to_owned(), None));
    let simulator = Sample::new(json!({ "backend": "simulator" }));
    assert_eq!(strategy(&simulator), ("RollingUpdate".to_owned(), Some(json!(1))));
    let several = json!({
        "backend": "simulator", "gpu": { "count": 1 }, "serverless": { "maxReplicas": 2 },
    });
    let several = Sample::new(several).on_nvidia();
    assert_eq!(strategy(&several), ("RollingUpdate".to_owned(), Some(json!(0))));
}

#[test]
fn a_pod_sleeps_for_its_drain_limit_before_its_end_and_has_time_to_end_afterwards() {
    let told = |spec: Value| {
        let pod = Sample::new(spec).pod();
        let hook = pod.containers[0].lifecycle.clone().and_then(|lifecycle| lifecycle.pre_stop);
        let sleep = hook.and_then(|hook| hook.sleep).map(|sleep| sleep.seconds);
        (sleep, pod.termination_grace_period_seconds)
    };
    assert_eq!(told(json!({ "backend": "simulator" })), (Some(60), Some(90)));
    let at_once = json!({ "backend": "simulator", "gpu": { "drainTimeout": "0s" } });
    assert_eq!(told(at_once), (None, Some(30)), "a sleep of no time is refused by older clusters");
}

#[test]
fn k8s_19_pull_secrets_come_from_the_settings_and_the_model() {
    let mut sample = text(json!({})).annotated(keys::PULL_SECRETS, "mine, ours,");
    sample.settings.pull_secrets = vec!["ours".to_owned()];
    let secrets = sample.pod().image_pull_secrets.unwrap();
    let names: Vec<_> = secrets.into_iter().map(|secret| secret.name).collect();
    assert_eq!(names, ["ours", "mine"]);
    let wrong = text(json!({})).annotated(keys::PULL_SECRETS, "Not A Name");
    assert!(wrong.refusal().contains("flexinfer.ai/image-pull-secrets"), "{}", wrong.refusal());
}

#[test]
fn the_selector_is_the_same_whatever_else_changes() {
    let selector = |sample: &Sample| sample.deployment().spec.selector;
    let alone = text(json!({}));
    let mut shared = text(json!({ "contextSize": 1 }));
    shared.model.spec.gpu.as_mut().unwrap().shared = Some("desk".to_owned());
    let shared = Sample::of(shared.model).on_nvidia();
    assert_eq!(selector(&alone), selector(&shared));
}

#[test]
fn what_a_model_says_is_not_expanded_by_the_cluster() {
    let engine = text(json!({ "args": ["$(POD_IP)", "$$"], "env": { "A": "$(B)" } })).engine();
    assert!(engine.args.unwrap().ends_with(&["$$(POD_IP)".to_owned(), "$$$$".to_owned()]));
    let env = engine.env.unwrap();
    assert_eq!(env.last().unwrap().value.as_deref(), Some("$$(B)"));
}

#[test]
fn a_variable_of_the_users_replaces_ours() {
    let engine = text(json!({ "env": { "POD_IP": "1.2.3.4" } })).engine();
    let env = engine.env.unwrap();
    let named: Vec<_> = env.iter().filter(|variable| variable.name == "POD_IP").collect();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].value.as_deref(), Some("1.2.3.4"));
}

#[test]
fn the_start_up_limit_is_what_the_probe_allows() {
    let probe = text(json!({ "startupTimeout": "90s" })).engine().startup_probe.unwrap();
    assert_eq!((probe.period_seconds, probe.failure_threshold), (Some(2), Some(45)));
    let probe = text(json!({ "startupTimeout": "1ms" })).engine().startup_probe.unwrap();
    assert_eq!(probe.failure_threshold, Some(1));
}

#[test]
fn a_changed_setting_is_seen_in_the_hash_and_an_equal_one_is_not() {
    let hash = |sample: &Sample| spec_hash(&sample.deployment()).unwrap().to_owned();
    let sample = text(json!({ "contextSize": 1024 }));
    assert_eq!(hash(&sample), hash(&text(json!({ "contextSize": 1024 }))));
    assert_ne!(hash(&sample), hash(&text(json!({ "contextSize": 2048 }))));
}

#[test]
fn a_member_of_a_group_serves_its_labels_only_while_it_is_active() {
    let sample = Sample::new(json!({ "backend": "simulator", "serviceLabels": ["a", "b"] }));
    let labels = |serving| {
        let service = service(&sample.model, &sample.effective, Backend::Simulator, serving);
        service.metadata.annotations.unwrap().get(keys::ACTIVE_SERVICES).cloned()
    };
    assert_eq!(labels(Serving::Alone), None);
    assert_eq!(labels(Serving::Active).as_deref(), Some("a,b"));
    assert_eq!(labels(Serving::Inactive).as_deref(), Some(""));
}

#[test]
fn a_parked_model_is_offered_to_nobody() {
    let sample = Sample::new(json!({ "backend": "simulator", "litellm": { "enabled": false } }));
    let annotations = sample.deployment().metadata.annotations.unwrap();
    assert!(!annotations.keys().any(|key| key.starts_with("litellm.")), "{annotations:?}");
}

#[test]
fn what_fetches_from_a_registry_has_the_logins_that_images_are_pulled_with() {
    let spec = json!({
        "backend": "vllm", "source": "oci://reg.test/a/b:v1", "gpu": { "count": 1 },
        "cache": { "strategy": "None" },
    });
    let mut sample = Sample::new(spec.clone()).on_nvidia().annotated(keys::PULL_SECRETS, "mine");
    sample.settings.pull_secrets = vec!["ours".to_owned()];
    sample.settings.insecure_registries = vec!["reg.test".to_owned(), "other.test:80".to_owned()];
    let pod = sample.pod();
    let volume = pod.volumes.unwrap().into_iter().find(|volume| volume.name == "registry-logins");
    let sources = volume.unwrap().projected.unwrap().sources.unwrap();
    let secrets = sources.into_iter().map(|source| source.secret.unwrap()).collect::<Vec<_>>();
    let seen = secrets.iter().map(|secret| (secret.name.as_str(), secret.optional));
    assert_eq!(seen.collect::<Vec<_>>(), [("ours", Some(true)), ("mine", Some(true))]);
    let item = &secrets[0].items.as_ref().unwrap()[0];
    assert_eq!((item.key.as_str(), item.path.as_str()), (".dockerconfigjson", "ours.json"));
    let fetch = &pod.init_containers.unwrap()[0];
    let told = |name: &str| {
        let variable = fetch.env.as_ref().unwrap().iter().find(|known| known.name == name);
        variable.and_then(|variable| variable.value.clone())
    };
    let files = "/registry-logins/ours.json,/registry-logins/mine.json";
    assert_eq!(told("FETCH_REGISTRY_LOGINS").as_deref(), Some(files));
    assert_eq!(told("FLEXINFER_INSECURE_REGISTRIES").as_deref(), Some("reg.test,other.test:80"));
    assert_eq!(told("HF_TOKEN"), None, "the hub's token is not for registries");
    let mounts = fetch.volume_mounts.as_ref().unwrap();
    assert!(mounts.iter().any(|mount| mount.mount_path == "/registry-logins"));
    let engine = &pod.containers[0].volume_mounts.as_ref().unwrap();
    assert!(engine.iter().all(|mount| mount.name != "registry-logins"), "engines have no logins");

    let plain = Sample::new(spec).on_nvidia().pod();
    assert!(plain.volumes.unwrap().iter().all(|volume| volume.name != "registry-logins"));
}

#[test]
fn a_pod_fetches_onto_a_claim_what_no_job_has() {
    let initial = |source: &str, cache: Value| {
        let mut spec = json!({ "backend": "vllm", "source": source, "gpu": { "count": 1 } });
        spec["cache"] = cache;
        let initial = Sample::new(spec).on_nvidia().pod().init_containers.unwrap_or_default();
        initial.into_iter().map(|container| container.name).collect::<Vec<_>>()
    };
    assert_eq!(initial("HF://a/b", json!({})), ["fetch"]);
    assert_eq!(initial("pvc://a/b", json!({ "strategy": "SharedPVC" })), ["copy"]);
    assert_eq!(initial("pvc://a/b", json!({})), [""; 0]);
}

#[test]
fn a_pod_tells_the_format_of_its_weights_as_the_scheduler_compares_it() {
    let format = |config: Value, quantize: Option<&str>| {
        let mut spec = json!({ "backend": "vllm", "source": "HF://a/b", "gpu": { "count": 1 } });
        spec["config"] = config;
        if let Some(format) = quantize {
            spec["quantize"] = json!({ "format": format });
        }
        let pod = Sample::new(spec).on_nvidia().deployment().spec.template.metadata.unwrap();
        let label = pod.labels.unwrap().remove(keys::FORMAT);
        assert_eq!(label, pod.annotations.unwrap().remove(keys::FORMAT));
        label
    };
    assert_eq!(format(json!({}), None), None);
    assert_eq!(format(json!({ "quantization": "awq_marlin" }), None).as_deref(), Some("AWQ"));
    assert_eq!(format(json!({ "quantization": "fp8" }), None).as_deref(), Some("FP8"));
    assert_eq!(format(json!({}), Some("GPTQ")).as_deref(), Some("GPTQ"));
}

#[test]
fn only_copies_that_stay_on_a_node_are_looked_for_at_other_nodes() {
    let peers = |gpu: Value, loader: Value| {
        let mut spec = json!({
            "backend": "vllm", "source": "HF://org/name", "gpu": gpu,
            "cache": { "strategy": "SharedPVC", "flashLoader": loader },
        });
        spec["cache"]["flashLoader"]["enabled"] = true.into();
        let mut sample = Sample::new(spec).on_nvidia();
        sample.settings.flash.peers = vec!["weights.flexinfer:9876".to_owned()];
        let loader = sample.pod().init_containers.unwrap().pop().unwrap();
        let told = loader.env.unwrap().into_iter();
        let told = told.filter(|variable| variable.name.starts_with("FLASH_PEERS"));
        told.filter_map(|variable| variable.value).collect::<Vec<_>>()
    };
    let shared = json!({ "count": 1, "shared": "desk" });
    let folder = "models/writer/huggingface/org/name/main";
    assert_eq!(peers(json!({ "count": 1 }), json!({})), [""; 0]);
    assert_eq!(peers(shared.clone(), json!({ "p2p": false })), [""; 0]);
    assert_eq!(peers(shared.clone(), json!({})), ["weights.flexinfer:9876", folder]);
    let other = json!({ "p2p": true, "p2pPort": 9900 });
    assert_eq!(peers(shared, other), ["weights.flexinfer:9900", folder]);
}

#[test]
fn k8s_08_a_model_may_name_its_gpu_as_it_is_sold() {
    let sold = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (custom/OEM build 2)";
    let label = crate::hardware::product_label(sold).unwrap();
    for written in [sold, &label] {
        let mut sample = text(json!({}));
        let selector = &mut sample.model.spec.node_selector;
        selector.insert(keys::GPU_PRODUCT.to_owned(), written.to_owned());
        selector.insert("disk".to_owned(), "fast".to_owned());
        let selector = sample.pod().node_selector.unwrap();
        assert_eq!(selector.get(keys::GPU_PRODUCT), Some(&label));
        assert_eq!(selector["disk"], "fast");
    }
}
