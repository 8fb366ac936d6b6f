//! The controller is asked by the real API server before Models are stored: installed by the chart, with certificates
//! that it makes and renews itself.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use flexinfer_crds::Model;
use flexinfer_crds::model::Phase;
use flexinfer_e2e::{Images, Kubelet, Node, Printed, images};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::crds::{Models, checkout, model};
use crate::shared::eventually;

/// What a person is told whose Model names a backend that nobody knows; only the webhook tells so before it is stored.
const REFUSED: &str = "is invalid: spec.backend: unknown backend `simulatr`";

/// A namespace with the chart's controller in it, and nothing else of the chart.
struct Door {
    models: Models,
    kubelet: Kubelet,
}

impl Door {
    async fn new(settings: &[&str]) -> Self {
        let door = Self::before_any_chart().await;
        door.helm("install", settings).await;
        door
    }

    async fn before_any_chart() -> Self {
        let models = Models::new().await;
        let world = &models.world;
        let node = Node::new(&world.namespace).label("test", &world.namespace);
        let images = Images::of_this_workspace();
        let kubelet = Kubelet::start(&world.cluster, vec![node], images).await.unwrap();
        Self { models, kubelet }
    }

    /// Installs or upgrades, and waits until the controllers can be asked.
    async fn helm(&self, verb: &str, settings: &[&str]) {
        let printed = self.try_helm(verb, &checkout().join("chart"), "", settings).await;
        assert!(printed.success, "{}\n{}", printed.stderr, self.log());
    }

    /// The same with a chart in which ours has its values `below` something.
    async fn try_helm(&self, verb: &str, chart: &Path, below: &str, settings: &[&str]) -> Printed {
        let namespace = &self.models.world.namespace;
        let usual = [
            "crds.install=false".to_owned(),
            "proxy.enabled=false".to_owned(),
            "agent.enabled=false".to_owned(),
            format!("controller.image={}", images::CONTROLLER),
            format!("node.image={}", images::NODE),
            format!("proxy.image={}", images::SIMULATOR),
            format!("controller.nodeSelector.test={namespace}"),
        ];
        let chart = chart.display().to_string();
        let mut line =
            [verb, "flexinfer", &chart, "--namespace", namespace].map(str::to_owned).to_vec();
        line.extend(["--wait", "--timeout=3m"].map(str::to_owned));
        let settings = usual.iter().map(String::as_str).chain(settings.iter().copied());
        line.extend(settings.map(|setting| format!("--set={below}{setting}")));
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        self.models.world.cluster.helm().run(&line).await.unwrap()
    }

    async fn try_to_apply(&self, model: &Value) -> Printed {
        self.models.kubectl(&["apply", "--filename", "-"], &model.to_string()).await
    }

    /// What the API server says to a Model whose backend is misspelt; nothing is stored.
    async fn asked(&self) -> Printed {
        let create = ["create", "--dry-run=server", "--filename", "-"];
        self.models.kubectl(&create, &misspelt("asked").to_string()).await
    }

    async fn secret(&self) -> Secret {
        let world = &self.models.world;
        let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
        secrets.get("flexinfer-webhooks").await.unwrap()
    }

    async fn certificate(&self) -> Vec<u8> {
        self.secret().await.data.unwrap().remove("tls.crt").unwrap().0
    }

    async fn scale(&self, replicas: u32) {
        let replicas = format!("--replicas={replicas}");
        let scale = ["scale", "deployment/flexinfer-controller", &replicas];
        self.models.succeed(&scale, "").await;
        let wait = ["rollout", "status", "deployment/flexinfer-controller", "--timeout=60s"];
        self.models.succeed(&wait, "").await;
        let selector = "--selector=app.kubernetes.io/component=controller";
        eventually("as many controllers", async || {
            let pods = self.models.succeed(&["get", "pods", selector, "--output=name"], "").await;
            (format!("--replicas={}", pods.stdout.lines().count()) == replicas).then_some(())
        })
        .await;
    }

    /// What the status says of a Model that was stored and cannot work.
    async fn told_afterwards(&self, model: &str) -> String {
        let world = &self.models.world;
        let models: Api<Model> = Api::namespaced(world.client.clone(), &world.namespace);
        eventually("the status says it", async || {
            let status = models.get(model).await.unwrap().status?;
            status.message.filter(|_| status.phase == Some(Phase::Failed))
        })
        .await
    }

    /// What the controllers wrote so far, for a test that fails.
    fn log(&self) -> String {
        let entries = fs::read_dir(self.kubelet.logs()).unwrap().flatten();
        entries.map(|entry| fs::read_to_string(entry.path()).unwrap_or_default()).collect()
    }
}

fn misspelt(name: &str) -> Value {
    model(name, &json!({ "backend": "simulatr", "source": "HF://org/model" }))
}

#[tokio::test]
async fn a_model_that_cannot_work_is_refused_with_the_field_and_what_to_write() {
    let door = Door::new(&[]).await;
    let refused = door.try_to_apply(&misspelt("m")).await;
    assert!(!refused.success, "it was taken\n{}", door.log());
    for words in ["is invalid", "spec.backend: unknown backend", "did you mean `simulator`"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }
    let odd = json!({ "backend": "vllm", "source": "HF://a/b", "config": { "maxModelLne": 1 } });
    let warned = door.try_to_apply(&model("odd", &odd)).await;
    assert!(warned.success, "{}", warned.stderr);
    assert!(warned.stderr.contains("Warning: spec.config.maxModelLne"), "{}", warned.stderr);
}

#[tokio::test]
async fn k8s_02_what_is_written_into_a_spec_is_fought_over_by_nobody() {
    let door = Door::new(&[]).await;
    let spec = json!({ "backend": "simulator", "gpu": { "vendor": "nvidia", "shared": "gpu0" } });
    let manager = PatchParams::apply("argocd-controller");
    let models = door.models.api();
    let apply = async || {
        let patch = Patch::Apply(model("m", &spec));
        models.patch("m", &manager, &patch).await.unwrap()
    };
    let first = apply().await;
    let gpu = &first.data["spec"]["gpu"];
    assert_eq!((&gpu["priority"], &gpu["swapCooldown"]), (&json!(100), &json!("5m")), "{gpu}");
    for _ in 0..10 {
        let again = apply().await;
        assert_eq!(again.metadata.generation, Some(1));
        assert_eq!(again.data["spec"], first.data["spec"]);
    }
    let table = door.models.succeed(&["get", "models", "--output=wide"], "").await;
    assert!(table.stdout.contains("100"), "{}", table.stdout);
    // A file that somebody applies by kubectl says no more and no less.
    let mut edited = model("m", &spec);
    edited["spec"]["gpu"]["count"] = json!(2);
    let conflicts = ["apply", "--server-side", "--force-conflicts", "--filename", "-"];
    door.models.succeed(&conflicts, &edited.to_string()).await;
    assert_eq!(models.get("m").await.unwrap().data["spec"]["gpu"]["priority"], json!(100));
}

#[tokio::test]
async fn certificates_are_renewed_and_no_question_is_left_without_an_answer() {
    let door = Door::new(&[
        "controller.replicas=2",
        "controller.webhooks.certificateLife=40s",
        "controller.webhooks.failurePolicy=Fail",
    ])
    .await;
    let (mut seen, begun) = (BTreeSet::new(), Instant::now());
    while seen.len() < 3 {
        assert!(begun.elapsed() < Duration::from_secs(180), "not renewed\n{}", door.log());
        seen.insert(door.certificate().await);
        let refused = door.asked().await;
        assert!(refused.stderr.contains(REFUSED), "{}\n{}", refused.stderr, door.log());
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn while_nobody_answers_models_are_stored_or_refused_as_the_chart_says() {
    let door = Door::new(&[]).await;
    let before = door.certificate().await;
    door.scale(0).await;
    let stored = door.try_to_apply(&misspelt("m")).await;
    assert!(stored.success, "{}", stored.stderr);
    // What was not refused is told afterwards.
    door.scale(1).await;
    let message = door.told_afterwards("m").await;
    assert!(message.contains("simulator"), "{message}");
    // And it holds up no edit of anything else, not even its end.
    let labelled = door.models.kubectl(&["label", "model", "m", "team=a"], "").await;
    assert!(labelled.success && labelled.stderr.contains("Warning: spec.backend"), "{labelled:?}");
    door.models.succeed(&["delete", "model", "m", "--timeout=60s"], "").await;

    door.helm("upgrade", &["controller.webhooks.failurePolicy=Fail"]).await;
    assert_eq!(door.certificate().await, before, "an upgrade made the certificates anew");
    assert!(door.asked().await.stderr.contains(REFUSED));
    door.scale(0).await;
    let refused = door.try_to_apply(&misspelt("m")).await;
    assert!(refused.stderr.contains("failed calling webhook"), "{refused:?}");
}

/// A chart that brings ours, and with it Models of its own.
fn chart_with_models(chart: &Path, models: &[Value]) {
    let ours = checkout().join("chart");
    for folder in ["charts", "templates"] {
        fs::create_dir(chart.join(folder)).unwrap();
    }
    let about = "{apiVersion: v2, name: shop, version: 1.0.0}";
    fs::write(chart.join("Chart.yaml"), about).unwrap();
    std::os::unix::fs::symlink(ours, chart.join("charts/flexinfer")).unwrap();
    let models: Vec<String> = models.iter().map(Value::to_string).collect();
    fs::write(chart.join("templates/models.yaml"), models.join("\n---\n")).unwrap();
}

#[tokio::test]
async fn models_that_come_with_the_controller_are_stored_before_it_answers_unless_that_is_refused()
{
    let door = Door::before_any_chart().await;
    let chart = tempfile::tempdir().unwrap();
    let good = model("good", &json!({ "backend": "simulator" }));
    chart_with_models(chart.path(), &[good, misspelt("m")]);
    // As long as the test needs it, nobody is up who could answer.
    let strict = ["controller.replicas=0", "controller.webhooks.failurePolicy=Fail"];
    let refused = door.try_helm("install", chart.path(), "flexinfer.", &strict).await;
    assert!(!refused.success && refused.stderr.contains("failed calling webhook"), "{refused:?}");
    let namespace = &door.models.world.namespace;
    let uninstall = ["uninstall", "flexinfer", "--namespace", namespace, "--wait"];
    let gone = door.models.world.cluster.helm().run(&uninstall).await.unwrap();
    assert!(gone.success, "{}", gone.stderr);

    let nobody = ["controller.replicas=0"];
    let installed = door.try_helm("install", chart.path(), "flexinfer.", &nobody).await;
    assert!(installed.success, "{}", installed.stderr);
    door.scale(1).await;
    let message = door.told_afterwards("m").await;
    assert!(message.contains("simulator"), "{message}");
    let world = &door.models.world;
    let models: Api<Model> = Api::namespaced(world.client.clone(), &world.namespace);
    eventually("the other one is looked after", async || {
        let status = models.get("good").await.unwrap().status?;
        (status.phase == Some(Phase::Idle)).then_some(())
    })
    .await;
    assert!(door.asked().await.stderr.contains(REFUSED), "from now on it is asked");
}

#[tokio::test]
async fn what_somebody_broke_of_the_certificates_is_put_right() {
    let door = Door::new(&[]).await;
    let before = door.certificate().await;
    let name = "flexinfer-webhooks";
    let configuration = format!("{name}-{}", door.models.world.namespace);
    let distrust =
        json!([{ "op": "remove", "path": "/webhooks/0/clientConfig/caBundle" }]).to_string();
    for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
        let patch = ["patch", kind, &configuration, "--type=json", "--patch", &distrust];
        door.models.succeed(&patch, "").await;
    }
    eventually("it is trusted again", async || {
        door.asked().await.stderr.contains(REFUSED).then_some(())
    })
    .await;
    assert_eq!(door.certificate().await, before);
    let forget =
        ["patch", "secret", name, "--type=merge", "--patch", r#"{"data":{"tls.key":null}}"#];
    door.models.succeed(&forget, "").await;
    eventually("another certificate is trusted", async || {
        let another = door.certificate().await != before;
        (another && door.asked().await.stderr.contains(REFUSED)).then_some(())
    })
    .await;
    assert_eq!(door.secret().await.name_any(), name);
}
