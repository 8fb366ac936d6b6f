//! The custom resource definitions on a real API server, before the real kubectl.

mod columns;
mod examples;
mod fields;
mod rules;

use std::path::{Path, PathBuf};

use flexinfer_crds::Model;
use flexinfer_e2e::Printed;
use kube::api::{ApiResource, DynamicObject};
use kube::{Api, CustomResourceExt};
use serde_json::{Value, json};

use crate::shared::World;

/// A namespace of a cluster on which the definitions are installed.
pub(crate) struct Models {
    pub(crate) world: World,
}

impl Models {
    pub(crate) async fn new() -> Self {
        Self::of(World::new().await).await
    }

    pub(crate) async fn of(world: World) -> Self {
        let models = Self { world };
        let folder = checkout().join("crds/yaml").display().to_string();
        // Several tests may install at once; server-side apply lets them agree.
        models.succeed(&["apply", "--server-side", "--filename", &folder], "").await;
        let definition = format!("crd/{}", Model::crd_name());
        models.succeed(&["wait", "--for=condition=Established", &definition], "").await;
        models
    }

    /// As untyped objects, so that what the server stores is seen and not what our types make of it.
    pub(crate) fn api(&self) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<Model>(&());
        Api::namespaced_with(self.world.client.clone(), &self.world.namespace, &kind)
    }

    /// kubectl in the test's namespace.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &str) -> Printed {
        let mut all = vec!["--namespace", self.world.namespace.as_str()];
        all.extend(arguments);
        self.world.cluster.kubectl().run_with_input(&all, input).await.unwrap()
    }

    /// The same where being refused fails the test.
    pub(crate) async fn succeed(&self, arguments: &[&str], input: &str) -> Printed {
        let printed = self.kubectl(arguments, input).await;
        assert!(printed.success, "kubectl {}: {}", arguments.join(" "), printed.stderr);
        printed
    }

    pub(crate) async fn apply(&self, model: &Value) {
        self.succeed(&["apply", "--filename", "-"], &model.to_string()).await;
    }

    /// A Model's spec as the server stores it.
    pub(crate) async fn stored_spec(&self, name: &str) -> Value {
        self.api().get(name).await.unwrap().data["spec"].clone()
    }
}

/// A Model of which only the spec matters.
pub(crate) fn model(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": name },
        "spec": spec,
    })
}

pub(crate) fn checkout() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap().to_path_buf()
}
