//! From Model objects to the fleet that is served. One that means nothing keeps its last meaning, or is
//! left out where it never had one, and is complained about once.

use std::collections::HashMap;

use flexinfer_core::backends::{Backend, Gpu, Launch, ModelPlace, Placement, Platform, Probe};
use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::fleet::{Adapter, Conflict, Fleet, Served};
use flexinfer_core::ids::ModelId;
use flexinfer_crds::{Model, ModelStatus};
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::ObjectMeta;
use serde_json::Value;
use tracing::warn;

use super::watching::Key;

/// The Models that were understood.
#[derive(Default)]
pub(super) struct Models {
    known: HashMap<Key, Known>,
    /// What was said of an object that has a fault.
    complaints: HashMap<Key, String>,
    conflicts: Vec<String>,
    defaults: Defaults,
}

struct Known {
    model: Model,
    served: Served,
    engine: Engine,
}

/// How a model's engines are reached.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Engine {
    /// As endpoints that are listed; asked by this.
    Listed(Probe),
    /// At an address that the Model says: asked and resolved by this.
    External(Box<Launch>),
}

/// What an object came to.
pub(super) struct Learnt {
    /// Which model it is; `None` where it never meant anything.
    pub(super) id: Option<ModelId>,
    /// Whether the fleet is another one now.
    pub(super) changed: bool,
    /// What the controller and the gateways say of it.
    pub(super) status: ModelStatus,
}

impl Models {
    /// The object is now this.
    pub(super) fn learn(&mut self, key: &Key, mut object: DynamicObject) -> Learnt {
        let status = object.data.get_mut("status").map(Value::take).unwrap_or_default();
        // A status that was written by somebody newer may hold what we do not know; the model is served
        // all the same.
        let (status, unfit) = match status {
            Value::Null => (ModelStatus::default(), None),
            status => match serde_json::from_value(status) {
                Ok(status) => (status, None),
                Err(error) => {
                    (ModelStatus::default(), Some(format!("its status does not fit: {error}")))
                }
            },
        };
        let (changed, fault) = match self.understand(key, object) {
            Ok(changed) => (changed, unfit),
            Err(fault) => (false, Some(fault)),
        };
        self.complain(key, fault);
        let id = self.known.get(key).map(|known| known.served.effective.id.clone());
        Learnt { id, changed, status }
    }

    /// Whether the object means something new.
    fn understand(&mut self, key: &Key, object: DynamicObject) -> Result<bool, String> {
        let model = understand(object).map_err(|error| format!("it does not fit: {error}"))?;
        if self.known.get(key).is_some_and(|known| same(&known.model, &model)) {
            return Ok(false);
        }
        self.known.insert(key.clone(), Known::new(model, &self.defaults)?);
        Ok(true)
    }

    /// The object is gone. Which model that was.
    pub(super) fn forget(&mut self, key: &Key) -> Option<ModelId> {
        self.complaints.remove(key);
        self.known.remove(key).map(|known| known.served.effective.id)
    }

    /// Everything that is served now, with these LoRA adapters.
    pub(super) fn fleet(&mut self, adapters: Vec<Adapter>) -> Fleet {
        let served = self.known.values().map(|known| known.served.clone()).collect();
        let (fleet, conflicts) = Fleet::with_adapters(served, adapters);
        let conflicts: Vec<String> = conflicts.iter().map(Conflict::to_string).collect();
        for conflict in conflicts.iter().filter(|conflict| !self.conflicts.contains(conflict)) {
            warn!("{conflict}");
        }
        self.conflicts = conflicts;
        fleet
    }

    /// How the model's engines are reached.
    pub(super) fn engine(&self, id: &ModelId) -> Option<&Engine> {
        let key = Key { namespace: id.namespace.to_string(), name: id.name.to_string() };
        self.known.get(&key).map(|known| &known.engine)
    }

    /// What serves the model.
    pub(super) fn backend(&self, id: &ModelId) -> Option<Backend> {
        let key = Key { namespace: id.namespace.to_string(), name: id.name.to_string() };
        Backend::of(&self.known.get(&key)?.model).ok()
    }

    /// Objects that mean nothing, with what is wrong.
    pub(super) fn complaints(&self) -> impl Iterator<Item = (&Key, &String)> {
        self.complaints.iter()
    }

    /// Tells of a fault once, and forgets it once it is mended.
    fn complain(&mut self, key: &Key, fault: Option<String>) {
        let Some(fault) = fault else {
            self.complaints.remove(key);
            return;
        };
        if self.complaints.get(key) != Some(&fault) {
            let Key { namespace, name } = key;
            let kept = self.known.contains_key(key);
            warn!(%namespace, model = name, kept, "{fault}");
            self.complaints.insert(key.clone(), fault);
        }
    }
}

/// The object as a Model, without what changes with every write.
fn understand(object: DynamicObject) -> Result<Model, serde_json::Error> {
    let ObjectMeta { name, namespace, annotations, generation, creation_timestamp, .. } =
        object.metadata;
    let metadata = ObjectMeta {
        name,
        namespace,
        annotations,
        generation,
        creation_timestamp,
        ..ObjectMeta::default()
    };
    let spec = object.data.get("spec").cloned().unwrap_or_default();
    let mut model = Model::new("", serde_json::from_value(spec)?);
    model.metadata = metadata;
    Ok(model)
}

fn same(known: &Model, model: &Model) -> bool {
    known.metadata == model.metadata && known.spec == model.spec
}

impl Known {
    fn new(model: Model, defaults: &Defaults) -> Result<Self, String> {
        let generation = model.metadata.generation.unwrap_or_default();
        let generation = u64::try_from(generation).unwrap_or_default();
        let effective = Effective::of(&model, generation, defaults).map_err(|complaints| {
            let each: Vec<String> = complaints.iter().map(ToString::to_string).collect();
            each.join("; ")
        })?;
        let created = model
            .creation_timestamp()
            .map_or(0, |time| u64::try_from(time.0.as_second()).unwrap_or_default());
        let source = model.spec.source.as_deref().unwrap_or_default();
        let served = Served::new(effective, &model.spec.backend, source, created);
        let engine = Engine::of(&model)?;
        Ok(Self { model, served, engine })
    }
}

impl Engine {
    /// The controller launches the same; of that, only the probe matters here.
    fn of(model: &Model) -> Result<Self, String> {
        let backend = Backend::of(model).map_err(|error| error.to_string())?;
        let source = model.spec.source.as_deref().unwrap_or_default();
        let weights = if source.is_empty() {
            ModelPlace::Nothing
        } else if backend.fetches_model() {
            ModelPlace::Reference(source.to_owned())
        } else {
            ModelPlace::Path("/models".to_owned())
        };
        let placement = Placement {
            platform: Platform::Pod,
            host: String::new(),
            port: backend.port(),
            model: weights,
            gpu: Gpu::none(),
            adapters: 0,
            adapter_rank: None,
            simulator_program: None,
            data_dir: "/data".to_owned(),
            store: None,
        };
        let launch = backend.launch(model, &placement);
        if backend == Backend::External {
            return launch
                .map(|launch| Self::External(Box::new(launch)))
                .map_err(|e| e.to_string());
        }
        // A Model that cannot be launched has no endpoints; any probe will do for none.
        Ok(Self::Listed(launch.map_or_else(|_| Probe::success("/health"), |launch| launch.probe)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, spec: &Value, status: &Value) -> DynamicObject {
        let object = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2", "kind": "Model",
            "metadata": { "namespace": "default", "name": name, "generation": 1 },
            "spec": spec, "status": status,
        });
        serde_json::from_value(object).expect("an object")
    }

    fn key(name: &str) -> Key {
        Key { namespace: "default".into(), name: name.into() }
    }

    fn names(models: &mut Models) -> Vec<String> {
        models.fleet(Vec::new()).listed().map(|served| served.name().to_owned()).collect()
    }

    #[test]
    fn k8s_23_one_object_that_does_not_fit_keeps_no_other_from_being_served() {
        let mut models = Models::default();
        for name in ["a", "b", "c"] {
            models.learn(&key(name), object(name, &json!({ "backend": "simulator" }), &json!({})));
        }
        let unfit = [
            ("enum", json!({ "backend": "simulator", "gpu": { "vendor": "from-the-future" } })),
            ("missing", json!({ "source": "HF://a/b" })),
            ("kind", json!({ "backend": "simulator", "gpu": { "shared": 7 } })),
        ];
        for (name, spec) in unfit {
            let learnt = models.learn(&key(name), object(name, &spec, &json!({})));
            assert!(learnt.id.is_none() && !learnt.changed, "{name}");
        }
        assert_eq!(names(&mut models), ["a", "b", "c"]);
        assert_eq!(models.complaints().count(), 3);
    }

    #[test]
    fn k8s_23_an_edit_that_means_nothing_leaves_the_model_as_it_was() {
        let mut models = Models::default();
        models.learn(&key("a"), object("a", &json!({ "backend": "simulator" }), &json!({})));
        let learnt = models.learn(&key("a"), object("a", &json!({ "backend": 7 }), &json!({})));
        assert!(learnt.id.is_some() && !learnt.changed);
        assert_eq!(names(&mut models), ["a"]);
    }

    #[test]
    fn a_status_from_the_future_does_not_keep_a_model_from_being_served() {
        let mut models = Models::default();
        let status = json!({ "phase": "Hibernating" });
        models.learn(&key("a"), object("a", &json!({ "backend": "simulator" }), &status));
        assert_eq!(names(&mut models), ["a"]);
    }

    #[test]
    fn a_status_alone_changes_no_fleet() {
        let mut models = Models::default();
        let spec = json!({ "backend": "simulator" });
        assert!(models.learn(&key("a"), object("a", &spec, &json!({}))).changed);
        let learnt = models.learn(&key("a"), object("a", &spec, &json!({ "phase": "Ready" })));
        assert!(!learnt.changed);
        assert_eq!(learnt.status.phase, Some(flexinfer_crds::model::Phase::Ready));
    }

    #[test]
    fn every_backend_has_a_probe() {
        for (backend, source) in
            [("vllm", "HF://a/b"), ("llamacpp", "HF://a/b/c.gguf"), ("ollama", "ollama://a")]
        {
            let model = Model::new(
                "a",
                serde_json::from_value(json!({ "backend": backend, "source": source }))
                    .expect("a spec"),
            );
            assert!(
                matches!(Engine::of(&model), Ok(Engine::Listed(Probe::Http { .. }))),
                "{backend}"
            );
        }
    }
}
