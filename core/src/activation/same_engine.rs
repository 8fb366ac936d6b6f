//! Which edits of a Model need its engine to be started afresh, and which only change how it is
//! treated.

use flexinfer_crds::model::{Gpu, ModelSpec};

/// Keys of `config` that the gateway reads and no engine sees.
const NOT_FOR_ENGINES: [&str; 4] =
    ["maxConcurrency", "preloadOnDeploy", "apiKeySecret", "engineProtocol"];

/// Whether an engine started for `before` serves `after` as well. Sharing, sleep, names and
/// limits may change under a running engine; anything that is not known to be harmless may not.
pub fn same_engine(before: &ModelSpec, after: &ModelSpec) -> bool {
    for_engine(before) == for_engine(after)
}

/// The spec without what no engine depends on. Taken apart without `..`, so that a new field has
/// to be thought of here.
fn for_engine(spec: &ModelSpec) -> ModelSpec {
    let ModelSpec {
        backend,
        source,
        image,
        image_digest,
        gpu,
        serverless: _,
        cache,
        mut config,
        resources,
        node_selector,
        tolerations,
        litellm: _,
        service_labels: _,
        kv_cache,
        capabilities: _,
        quantize,
    } = spec.clone();
    config.retain(|key, _| !NOT_FOR_ENGINES.contains(&key.as_str()));
    ModelSpec {
        backend,
        source,
        image,
        image_digest,
        gpu: gpu.map(|gpu| Gpu { vendor: gpu.vendor, count: gpu.count, ..Gpu::default() }),
        cache,
        config,
        resources,
        node_selector,
        tolerations,
        kv_cache,
        quantize,
        ..ModelSpec::default()
    }
}

#[cfg(test)]
mod tests {
    use flexinfer_crds::model::{LiteLlm, Serverless};
    use serde_json::json;

    use super::*;

    fn spec() -> ModelSpec {
        ModelSpec { backend: "vllm".into(), ..ModelSpec::default() }
    }

    fn config(config: serde_json::Value) -> ModelSpec {
        let serde_json::Value::Object(config) = config else { panic!("an object") };
        ModelSpec { config, ..spec() }
    }

    #[test]
    fn names_sleep_and_limits_change_under_a_running_engine() {
        let after = ModelSpec {
            litellm: Some(LiteLlm::default()),
            serverless: Some(Serverless::default()),
            service_labels: vec!["chat".into()],
            ..spec()
        };
        assert!(same_engine(&spec(), &after));
        assert!(same_engine(&spec(), &config(json!({"maxConcurrency": 4}))));
    }

    #[test]
    fn what_the_engine_is_told_needs_a_new_one() {
        assert!(!same_engine(&spec(), &config(json!({"maxModelLen": 4096}))));
        let source = Some("HF://a/b".into());
        assert!(!same_engine(&spec(), &ModelSpec { source, ..spec() }));
    }
}
