//! Tests of the objects: what is made of which Model, that it is valid wherever it came from, and the reported
//! faults that belong here.

mod golden;
mod images;
mod names;
mod nodes;
mod pods;
mod properties;
mod weights;

use flexinfer_crds::{Model, keys};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaim, PodSpec};
use serde_json::{Value, json};

use super::*;
use crate::backends::{Backend, Vendor};
use crate::effective::{Defaults, Effective};
use crate::placement::benchmarks::DeviceClass;
use crate::planning::placing::Placement;

/// A Model, what it means, and where it goes.
struct Sample {
    model: Model,
    effective: Effective,
    placement: Placement,
    settings: Settings,
    /// The claim that holds its weights, where it is seen.
    claim: Option<PersistentVolumeClaim>,
}

impl Sample {
    /// The model `writer` with this spec, stored in namespace `models`.
    fn new(spec: Value) -> Self {
        Self::named("writer", spec)
    }

    fn named(name: &str, spec: Value) -> Self {
        let mut model = json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "Model",
            "metadata": { "name": name, "namespace": "models", "uid": "0b7c" },
        });
        model["spec"] = spec;
        Self::of(serde_json::from_value(model).unwrap())
    }

    fn of(model: Model) -> Self {
        let effective = Effective::of(&model, 1, &Defaults::default()).unwrap();
        let images = Images::of([
            variable("FLEXINFER_NODE_IMAGE", "registry.example/flexinfer/node:1"),
            variable("FLEXINFER_SIMULATOR_IMAGE", "registry.example/flexinfer/gateway:1"),
        ]);
        let settings = Settings { images, ..Settings::default() };
        Self { model, effective, placement: Placement::processor(), settings, claim: None }
    }

    fn on(mut self, vendor: Vendor, architecture: &str, count: u32) -> Self {
        self.placement = Placement::gpus(vendor, count);
        self.placement.architecture = Some(architecture.to_owned());
        self
    }

    fn on_nvidia(self) -> Self {
        self.on(Vendor::Nvidia, "sm_89", 1)
    }

    fn annotated(mut self, key: &str, value: &str) -> Self {
        let annotations = self.model.metadata.annotations.get_or_insert_default();
        annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    fn with_image(mut self, name: &str, image: &str) -> Self {
        let mut variables = vec![variable(name, image)];
        variables.push(variable("FLEXINFER_NODE_IMAGE", "registry.example/flexinfer/node:1"));
        self.settings.images = Images::of(variables);
        self
    }

    fn blueprint(&self) -> Result<Blueprint<'_>, Refusal> {
        let blueprint =
            Blueprint::of(&self.model, &self.effective, &self.placement, &self.settings)?;
        Ok(blueprint.on_claim(self.claim.as_ref()))
    }

    fn deployment(&self) -> Deployment {
        self.try_deployment().unwrap()
    }

    fn try_deployment(&self) -> Result<Deployment, Refusal> {
        Ok(self.blueprint()?.deployment()?.expect("an engine of ours"))
    }

    fn refusal(&self) -> String {
        let refusal = self.try_deployment().unwrap_err();
        format!("{}: {refusal}", refusal.reason)
    }

    fn pod(&self) -> PodSpec {
        self.deployment().spec.template.spec.unwrap()
    }

    fn engine(&self) -> Container {
        self.pod().containers.remove(0)
    }

    /// Everything that is made, as one text.
    fn drawn(&self) -> String {
        let blueprint = self.blueprint().unwrap();
        let mut objects = Vec::new();
        objects.extend(blueprint.claim().map(value));
        objects.extend(blueprint.filling_job("c1").unwrap().map(value));
        objects.extend(blueprint.quantizing_job("c1").unwrap().map(value));
        if blueprint.keeps_in_memory().unwrap() {
            objects.extend(blueprint.memory_cleanup_job("node-1").map(value));
        }
        if blueprint.annotation(keys::BENCHMARK).is_some() {
            objects.extend(blueprint.benchmark_job(&DeviceClass::default()).map(value));
        }
        objects.extend(blueprint.files().unwrap().map(value));
        objects.extend(blueprint.deployment().unwrap().map(value));
        let service = service(&self.model, &self.effective, blueprint.backend, Serving::Alone);
        objects.push(value(service));
        let texts = objects.iter().map(|object| serde_saphyr::to_string(object).unwrap());
        texts.collect::<Vec<_>>().join("---\n")
    }
}

fn variable(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn value(object: impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}
