//! Passes over a group before an API server that does not take everything.

mod again;
mod departing;
mod jobs;
mod missed;
mod moving;
mod put_back;
mod server;

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::group::Record;
use flexinfer_core::planning::objects::Images;
use flexinfer_crds::{Model, keys};
use flexinfer_testkit::api_server::refusal;
use flexinfer_testkit::eventually_async;
use prometheus::Registry;
use serde_json::{Value, json};

use super::*;
use crate::clock::Clock;
use server::Server;

/// A controller that knows of these Models, and its API server.
struct Scene {
    server: Arc<Server>,
    world: Arc<World>,
    reconciler: Reconciler,
    registry: Registry,
    group: GroupId,
}

impl Scene {
    /// With Models of these names and specs, all of one group.
    fn of(models: &[(&str, Value)]) -> Self {
        let (server, client) = Server::start();
        let world = Arc::new(World::new(Clock::start()));
        for (name, spec) in models {
            let model = model(name, spec);
            server.put(&format!("models/{name}"), serde_json::to_value(&model).unwrap());
            world.saw_model(model);
        }
        let image = |name: &str| (format!("FLEXINFER_{name}_IMAGE"), format!("{name}:1"));
        let images = Images::of(["SIMULATOR", "NODE"].map(image));
        let settings = Settings { images, ..Settings::default() };
        let registry = Registry::new();
        let metrics = (Metrics::new(&registry).unwrap(), Speeds::new(&registry).unwrap());
        let leadership = Leadership::alone();
        let reconciler = Reconciler::new(client, Arc::clone(&world), settings, leadership, metrics);
        let shared = models[0].1.pointer("/gpu/shared").and_then(Value::as_str);
        let group = match shared {
            Some(name) => GroupId::Shared { namespace: "default".into(), name: name.into() },
            None => GroupId::Alone(ModelId::new("default", models[0].0)),
        };
        Self { server, world, reconciler, registry, group }
    }

    /// One pass, in which the lead is not lost; what was not done.
    async fn pass(&self) -> Vec<Error> {
        self.reconciler.look(&self.group).await.unwrap()
    }

    /// Somebody changes a Deployment, and the controller hears of it.
    fn changed(&self, path: &str, change: impl FnOnce(&mut Value)) {
        let mut object = self.server.object(path).unwrap();
        let version = object["metadata"]["resourceVersion"].as_str().unwrap();
        let version = version.parse::<u64>().unwrap() + 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        change(&mut object);
        self.world.saw_deployment(serde_json::from_value(object.clone()).unwrap());
        self.server.put(path, object);
    }

    /// The series whose names begin like this, with their values.
    fn series(&self, name: &str) -> Vec<String> {
        let encoder = prometheus::TextEncoder::new();
        let text = encoder.encode_to_string(&self.registry.gather()).unwrap();
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect()
    }

    /// An engine of the model `m` has served, and been leaving for an hour.
    fn leaves_for_long(&self) {
        let long_ago = "2026-01-01T00:00:00Z";
        let pod = json!({
            "metadata": {
                "name": "m-1", "namespace": "default", "labels": { keys::MODEL: "m" },
                "creationTimestamp": long_ago,
            },
            "status": { "phase": "Running", "conditions": [
                { "type": "Ready", "status": "True", "lastTransitionTime": long_ago },
            ] },
        });
        self.world.saw_pod(serde_json::from_value(pod).unwrap());
        let draining = Some(self.world.clock.now() - Duration::from_hours(1));
        self.world.remember(&self.model(), Record { draining, ..Record::default() });
    }

    /// The first Model, as it is known.
    fn model(&self) -> Arc<Model> {
        Arc::clone(&self.world.sight(&self.group).unwrap().members[0].model)
    }

    fn status_of(&self, name: &str) -> Option<Value> {
        self.server.object(&format!("models/{name}"))?.get("status").cloned()
    }
}

fn model(name: &str, spec: &Value) -> Model {
    let model = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": format!("of-{name}"),
            "generation": 1,
            "resourceVersion": "1",
            "finalizers": [keys::MODEL_FINALIZER],
        },
        "spec": spec,
    });
    serde_json::from_value(model).unwrap()
}
