//! What the chart makes of its values, by the real Helm, and what it refuses.

use flexinfer_e2e::{Helm, Printed};
use tempfile::TempDir;

use crate::crds::checkout;
use crate::shared::World;

/// Helm without a cluster.
struct Chart {
    helm: Helm,
    _home: TempDir,
}

impl Chart {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { helm: Helm::alone(home.path()), _home: home }
    }

    async fn run(&self, verb: &[&str], settings: &[&str]) -> Printed {
        let folder = checkout().join("chart");
        let mut arguments = verb.to_vec();
        arguments.push(folder.to_str().unwrap());
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        self.helm.run(&arguments).await.unwrap()
    }

    /// The objects, without the definitions, which are generated and tested elsewhere.
    async fn rendered(&self, settings: &[&str]) -> Printed {
        let settings = [&["crds.install=false"], settings].concat();
        self.run(&["template", "flexinfer", "--namespace", "models"], &settings).await
    }
}

#[tokio::test]
async fn helm_finds_nothing_to_complain_about() {
    let printed = Chart::new().run(&["lint", "--strict"], &[]).await;
    assert!(printed.success, "{}\n{}", printed.stdout, printed.stderr);
}

#[tokio::test]
async fn the_objects_of_the_default_values() {
    let printed = Chart::new().rendered(&[]).await;
    assert!(printed.success, "{}", printed.stderr);
    insta::assert_snapshot!(printed.stdout);
}

#[tokio::test]
async fn the_objects_when_everything_is_asked_for() {
    let digest = "a".repeat(64);
    let printed = Chart::new()
        .rendered(&[
            "allNamespaces=true",
            "imagePullSecrets[0].name=registry",
            "controller.replicas=2",
            "controller.runtime.flashLoader.tmpfsSizeLimit=24Gi",
            "controller.runtime.flashLoader.exclude={*.bin,*.pth}",
            "controller.webhooks.failurePolicy=Fail",
            "controller.webhooks.namespaceSelector.matchLabels.models=yes",
            "controller.backendImages.DEFAULT_VLLM_IMAGE=registry.local/vllm:1",
            "proxy.replicas=3",
            "proxy.service.sessionAffinity=ClientIP",
            "proxy.image.repository=registry.local/gateway",
            &format!("proxy.image.digest=sha256:{digest}"),
            "proxy.auth.enabled=true",
            "proxy.auth.tokenSecretName=token",
            "proxy.auth.keysSecretName=keys",
            "proxy.tls.secretName=gateway-tls",
            "proxy.engineSecrets.secretName=vendors",
            "proxy.engineCa.secretName=engine-ca",
            "proxy.nodeSelector.role=front",
            "proxy.env.FLEXINFER_THREADS=2",
            "agent.enabled=false",
            "scheduler.enabled=true",
            "scheduler.kubeScheduler.image=registry.local/kube-scheduler:v1",
            "benchmarker.namespaces={team-a,team-b}",
            "benchmarker.ca.secretName=gateway-tls",
            "observability.tracing.enabled=true",
            "observability.tracing.otlpEndpoint=http://collector:4318",
        ])
        .await;
    assert!(printed.success, "{}", printed.stderr);
    insta::assert_snapshot!(printed.stdout);
}

#[tokio::test]
async fn a_value_that_is_not_there_is_refused_by_name() {
    for (setting, named) in [
        ("proxy.prot=80", "prot"),
        ("proxy.queueTimeout=soon", "queueTimeout"),
        ("controller.backendImages.VLLM=x", "VLLM"),
        ("proxy.service.port=0", "port"),
        ("proxy.service.sessionAffinity=Cookie", "sessionAffinity"),
        ("scheduler.kubeScheduler.weight=0", "weight"),
        ("benchmarker.namespace=a", "namespace"),
        ("controller.webhooks.failurePolicy=Sometimes", "failurePolicy"),
    ] {
        let printed = Chart::new().rendered(&[setting]).await;
        assert!(!printed.success, "{setting} was taken");
        assert!(printed.stderr.contains(named), "{setting}: {}", printed.stderr);
    }
}

#[tokio::test]
async fn without_webhooks_there_is_nothing_of_them_and_no_right_for_them() {
    let printed = Chart::new().rendered(&["controller.webhooks.enabled=false"]).await;
    assert!(printed.success, "{}", printed.stderr);
    for left in ["WebhookConfiguration", "webhookconfigurations", "secrets", "kind: Secret"] {
        assert!(!printed.stdout.contains(left), "{left}");
    }
    let told = "- name: ENABLE_WEBHOOKS\n              value: \"false\"";
    assert!(printed.stdout.contains(told), "{}", printed.stdout);
}

#[tokio::test]
async fn the_agent_may_have_a_runtime_class_and_the_network_of_its_node() {
    let settings = ["agent.runtimeClassName=nvidia", "agent.hostNetwork=true"];
    let printed = Chart::new().rendered(&settings).await;
    assert!(printed.success, "{}", printed.stderr);
    for wanted in [
        "runtimeClassName: nvidia",
        "hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet",
        "- name: NVIDIA_VISIBLE_DEVICES\n              value: all",
        "- name: NVIDIA_DRIVER_CAPABILITIES\n              value: utility",
    ] {
        assert!(printed.stdout.contains(wanted), "{wanted}\n{}", printed.stdout);
    }
}

#[tokio::test]
async fn keys_that_nobody_has_are_refused() {
    let printed = Chart::new().rendered(&["proxy.auth.enabled=true"]).await;
    assert!(printed.stderr.contains("tokenSecretName or proxy.auth.keysSecretName"), "{printed:?}");
}

#[tokio::test]
async fn the_real_api_server_takes_every_object() {
    let world = World::new().await;
    let settings = ["crds.install=false", "proxy.replicas=2"];
    let render = ["template", "flexinfer", "--namespace", &world.namespace];
    let rendered = Chart::new().run(&render, &settings).await.stdout;
    let apply = ["apply", "--dry-run=server", "--filename", "-"];
    let printed = world.cluster.kubectl().run_with_input(&apply, &rendered).await.unwrap();
    assert!(printed.success, "{}", printed.stderr);
    for object in ["deployment.apps/flexinfer-proxy", "daemonset.apps/flexinfer-agent"] {
        assert!(printed.stdout.contains(object), "{}", printed.stdout);
    }
}
