//! LoRA adapters of the cluster's models: under which names they are served, and that each engine has them.
//! Every gateway sees to that by itself; an engine that has one already says so.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use flexinfer_core::backends::{Backend, Call};
use flexinfer_core::fleet::{Adapter, Served};
use flexinfer_core::ids::ModelId;
use flexinfer_crds::LoRAAdapter;
use flexinfer_crds::lora_adapter::AdapterSourceType;
use kube::ResourceExt;
use kube::api::DynamicObject;
use tokio::task::JoinHandle;
use tracing::warn;

use super::watching::Key;
use crate::adapters::{self, OnDemand};

/// Where a path that is not absolute counts from: where engines' pods have their models.
pub(super) const MODELS: &str = "/models";

/// The adapters that were understood.
#[derive(Default)]
pub(super) struct Adapters {
    known: HashMap<Key, Arc<LoRAAdapter>>,
}

/// What engines are asked to have them load their adapters, or to forget one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// Each about the adapter that engines know by this name.
    calls: Vec<(Arc<str>, Call)>,
}

/// A change that engines which are up have to be told of.
pub(super) struct Moved {
    /// The model that has the adapter.
    pub(super) base: ModelId,
    /// The adapter; which is gone, if `gone`.
    pub(super) adapter: Arc<LoRAAdapter>,
    pub(super) gone: bool,
}

impl Adapters {
    /// The object is now this. What changed by that; nothing of one that does not fit, which keeps its last
    /// meaning.
    pub(super) fn learn(&mut self, key: &Key, object: DynamicObject) -> Vec<Moved> {
        let adapter = match understand(object) {
            Ok(adapter) => Arc::new(adapter),
            Err(error) => {
                let Key { namespace, name } = key;
                warn!(%namespace, adapter = name, "it does not fit: {error}");
                return Vec::new();
            }
        };
        let before = self.known.insert(key.clone(), Arc::clone(&adapter));
        if before.as_ref().is_some_and(|before| before.spec == adapter.spec) {
            return Vec::new();
        }
        let gone = before.map(|adapter| Moved { base: base(key, &adapter), adapter, gone: true });
        let new = Moved { base: base(key, &adapter), adapter, gone: false };
        gone.into_iter().chain([new]).collect()
    }

    /// The object is gone.
    pub(super) fn forget(&mut self, key: &Key) -> Option<Moved> {
        let adapter = self.known.remove(key)?;
        Some(Moved { base: base(key, &adapter), adapter, gone: true })
    }

    /// All of them, as the fleet lists them.
    pub(super) fn listed(&self) -> Vec<Adapter> {
        let listed = |(key, adapter): (&Key, &Arc<LoRAAdapter>)| Adapter {
            id: ModelId::new(&key.namespace, &key.name),
            base: base(key, adapter),
            name: adapter.spec.adapter_name.as_str().into(),
            created: adapter
                .creation_timestamp()
                .map_or(0, |time| u64::try_from(time.0.as_second()).unwrap_or_default()),
            on_demand: Adapter::on_demand(adapter),
        };
        self.known.iter().map(listed).collect()
    }

    /// What an engine of `model` is asked so that it has all of its adapters.
    pub(super) fn asked(&self, model: &ModelId, backend: Backend) -> Asked {
        let of_model = self.known.iter().filter(|(key, adapter)| base(key, adapter) == *model);
        let mut adapters: Vec<_> = of_model.map(|(_, adapter)| Arc::clone(adapter)).collect();
        adapters.sort_by(|a, b| a.spec.adapter_name.cmp(&b.spec.adapter_name));
        Asked::to_load(backend, &adapters)
    }
}

impl Moved {
    /// What engines that are up are asked.
    pub(super) fn asked(&self, backend: Backend) -> Asked {
        if self.gone {
            let name = &self.adapter.spec.adapter_name;
            let call = backend.unload_adapter(name);
            return Asked {
                calls: call.into_iter().map(|call| (name.as_str().into(), call)).collect(),
            };
        }
        Asked::to_load(backend, std::slice::from_ref(&self.adapter))
    }
}

impl Asked {
    /// Those of OCI registries have to be fetched before an engine can read them.
    fn to_load(backend: Backend, adapters: &[Arc<LoRAAdapter>]) -> Self {
        let call = |adapter: &Arc<LoRAAdapter>| {
            if adapter.spec.source.r#type == AdapterSourceType::Oci {
                return None;
            }
            let call = adapters::call(backend, adapter, Path::new(MODELS))?;
            Some((adapter.spec.adapter_name.as_str().into(), call))
        };
        Self { calls: adapters.iter().filter_map(call).collect() }
    }

    /// Has the engine of `served` at `address` asked, each as the iterator comes to it, and after all that was to be
    /// asked of it about the same adapter before.
    pub(super) fn ask(
        self,
        adapters: &OnDemand,
        served: &Arc<Served>,
        address: SocketAddr,
    ) -> impl Iterator<Item = JoinHandle<()>> {
        self.calls
            .into_iter()
            .filter_map(move |(name, call)| adapters.tell(served, address, &name, call))
    }
}

fn base(key: &Key, adapter: &LoRAAdapter) -> ModelId {
    ModelId::new(&key.namespace, &adapter.spec.model_ref)
}

fn understand(object: DynamicObject) -> Result<LoRAAdapter, serde_json::Error> {
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    let mut adapter = LoRAAdapter::new("", serde_json::from_value(spec)?);
    adapter.metadata.creation_timestamp = object.metadata.creation_timestamp;
    Ok(adapter)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn key(name: &str) -> Key {
        Key { namespace: "default".into(), name: name.into() }
    }

    fn object(spec: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2", "kind": "LoRAAdapter",
            "metadata": { "namespace": "default", "name": "sql" }, "spec": spec,
        });
        serde_json::from_value(object).expect("an object")
    }

    fn of(model: &str, name: &str, kind: &str) -> DynamicObject {
        object(&json!({
            "modelRef": model, "adapterName": name, "source": { "type": kind, "uri": "adapters/sql" },
        }))
    }

    fn paths(asked: &Asked) -> Vec<&str> {
        asked.calls.iter().map(|(_, call)| call.path.as_str()).collect()
    }

    #[test]
    fn a_models_engines_load_its_adapters_from_where_their_pods_have_them() {
        let mut adapters = Adapters::default();
        assert_eq!(adapters.learn(&key("sql"), of("base", "sql", "LocalPath")).len(), 1);
        assert!(adapters.learn(&key("sql"), of("base", "sql", "LocalPath")).is_empty());
        let asked = adapters.asked(&ModelId::new("default", "base"), Backend::Vllm);
        assert_eq!(paths(&asked), ["/v1/load_lora_adapter"]);
        let body = asked.calls.first().and_then(|(_, call)| call.body.clone()).expect("a body");
        assert_eq!(body["lora_path"], "/models/adapters/sql");
        let other = adapters.asked(&ModelId::new("default", "other"), Backend::Vllm);
        assert!(paths(&other).is_empty());
    }

    #[test]
    fn an_adapter_that_changes_is_taken_out_before_it_is_loaded_anew() {
        let mut adapters = Adapters::default();
        adapters.learn(&key("sql"), of("base", "sql", "LocalPath"));
        let moved = adapters.learn(&key("sql"), of("base", "sql", "HuggingFace"));
        let asked: Vec<_> = moved.iter().map(|moved| moved.asked(Backend::Vllm)).collect();
        let paths: Vec<_> = asked.iter().flat_map(paths).collect();
        assert_eq!(paths, ["/v1/unload_lora_adapter", "/v1/load_lora_adapter"]);
        let gone = adapters.forget(&key("sql")).expect("it was there");
        assert!(gone.gone && adapters.listed().is_empty());
    }

    #[test]
    fn one_that_does_not_fit_or_has_to_be_fetched_is_asked_of_no_engine() {
        let mut adapters = Adapters::default();
        assert!(adapters.learn(&key("sql"), object(&json!({ "modelRef": 7 }))).is_empty());
        let moved = adapters.learn(&key("sql"), of("base", "sql", "OCI"));
        assert!(moved.iter().all(|moved| paths(&moved.asked(Backend::Vllm)).is_empty()));
    }

    #[test]
    fn one_that_is_loaded_at_its_first_request_is_listed_and_asked_of_no_engine_before() {
        let mut adapters = Adapters::default();
        let late = object(&json!({
            "modelRef": "base", "adapterName": "late", "preload": false,
            "source": { "type": "LocalPath", "uri": "adapters/late" },
        }));
        let moved = adapters.learn(&key("late"), late);
        assert!(moved.iter().all(|moved| paths(&moved.asked(Backend::Vllm)).is_empty()));
        let asked = adapters.asked(&ModelId::new("default", "base"), Backend::Vllm);
        assert!(paths(&asked).is_empty());
        let listed = adapters.listed();
        let source = listed.first().and_then(|adapter| adapter.on_demand.as_ref());
        assert_eq!(source.map(|source| source.uri.as_str()), Some("adapters/late"));
        let gone = adapters.forget(&key("late")).expect("it was there");
        assert_eq!(paths(&gone.asked(Backend::Vllm)), ["/v1/unload_lora_adapter"]);
    }
}
