//! Whatever a valid Model says, its objects read back as they were written and bear valid names and labels.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::names::{is_label_value, is_object_name, is_service_name};
use super::*;

const SOURCES: [&str; 8] = [
    "HF://org/name",
    "HF://Org/Name@v1:sub/m.gguf",
    "pvc://claim/a/m.gguf",
    "pvc://claim",
    "file:///var/lib/flexinfer/models/m.gguf",
    "file:///opt/m.gguf",
    "oci://reg.test:5000/org/name:v1",
    "ollama://llama3.2:1b",
];

const BACKENDS: [&str; 8] =
    ["vllm", "llamacpp", "ollama", "mlc-llm", "diffusers", "comfyui", "vllm-omni", "simulator"];

fn metadata_is_valid(metadata: &ObjectMeta) -> bool {
    let labels = metadata.labels.clone().unwrap_or_default();
    metadata.name.as_deref().is_none_or(is_object_name)
        && labels.values().all(|value| is_label_value(value))
}

prop_compose! {
    fn models()(
        name in "[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?",
        backend in select(BACKENDS.to_vec()),
        source in select(SOURCES.to_vec()),
        strategy in select(vec!["Memory", "SharedPVC", "Local", "None"]),
        shared in "\\PC{0,30}",
        text in "\\PC{0,40}",
        flash in any::<bool>(),
        replicas in 1..3_i32,
        cached in any::<bool>(),
    ) -> Value {
        let mut spec = json!({
            "backend": backend,
            "source": source,
            "image": "registry.example/engine:1",
            "gpu": { "shared": shared },
            "serverless": { "maxReplicas": replicas },
            "serviceLabels": [text],
            "litellm": { "servedModelName": text, "aliases": [text] },
            "config": { "args": [text], "env": { "A": text } },
        });
        if cached {
            spec["cache"] = json!({ "strategy": strategy, "flashLoader": { "enabled": flash } });
        }
        json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": name, "namespace": "n", "uid": "u" },
            "spec": spec,
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn objects_of_any_model_are_valid_and_read_back(model in models()) {
        let sample = Sample::of(serde_json::from_value(model).unwrap()).on_nvidia();
        let Ok(deployment) = sample.try_deployment() else { return Ok(()) };
        let read: Deployment = serde_json::from_value(value(&deployment)).unwrap();
        prop_assert_eq!(&read, &deployment);
        let pod = deployment.spec.template.metadata.clone().unwrap();
        prop_assert!(metadata_is_valid(&deployment.metadata) && metadata_is_valid(&pod));
        let labels = pod.labels.unwrap();
        for (key, value) in deployment.spec.selector.match_labels.clone().unwrap() {
            prop_assert_eq!(labels.get(&key), Some(&value));
        }
        let spec = deployment.spec.template.spec.clone().unwrap();
        let volumes: Vec<_> = spec.volumes.unwrap().into_iter().map(|volume| volume.name).collect();
        let mut names = volumes.clone();
        names.sort();
        names.dedup();
        prop_assert_eq!(names.len(), volumes.len());
        for container in spec.containers.iter().chain(spec.init_containers.iter().flatten()) {
            let mounts: Vec<_> = container.volume_mounts.iter().flatten().collect();
            prop_assert!(mounts.iter().all(|mount| volumes.contains(&mount.name)));
            let mut paths: Vec<_> = mounts.iter().map(|mount| &mount.mount_path).collect();
            paths.sort();
            paths.dedup();
            prop_assert_eq!(paths.len(), mounts.len());
        }
        let backend = Backend::of(&sample.model).unwrap();
        let service = service(&sample.model, &sample.effective, backend, Serving::Active);
        prop_assert!(is_service_name(service.metadata.name.as_deref().unwrap()));
        prop_assert!(metadata_is_valid(&service.metadata));
        prop_assert_eq!(&serde_json::from_value::<Service>(value(&service)).unwrap(), &service);
    }
}
