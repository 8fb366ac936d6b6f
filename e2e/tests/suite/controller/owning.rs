//! Who writes what: nothing without need, nothing that is a user's, and everything that is its own.

use std::time::Duration;

use flexinfer_crds::model::Phase;
use flexinfer_crds::{Model, ModelStatus};
use flexinfer_e2e::Write;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource as _};
use serde_json::json;

use super::{Desk, simulated};
use crate::crds::model;
use crate::gateway::start;
use crate::rights::Account;
use crate::shared::eventually;

/// Writes by this test's controllers.
fn controllers_writes(desk: &Desk) -> Vec<Write> {
    let controller = Account::Controller.user(desk.world());
    let ours = |write: &Write| write.user == controller;
    desk.world().cluster.writes().unwrap().into_iter().filter(ours).collect()
}

#[tokio::test]
async fn k8s_22_an_idle_cluster_sees_no_write() {
    let desk = Desk::new().await;
    desk.apply("asleep", &simulated(&json!({}))).await;
    desk.apply("pinned", &simulated(&json!({ "serverless": { "minReplicas": 1 } }))).await;
    desk.until_phase("asleep", Phase::Idle).await;
    desk.until_phase("pinned", Phase::Ready).await;
    let ready = eventually("the writes of the start in the log", async || {
        let writes = controllers_writes(&desk).len();
        tokio::time::sleep(Duration::from_secs(1)).await;
        (controllers_writes(&desk).len() == writes).then_some(writes)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let later = controllers_writes(&desk);
    assert_eq!(later.len(), ready, "{:?}", later.get(ready..));
}

#[tokio::test]
async fn k8s_22_a_new_controller_writes_nothing_where_nothing_is_to_do() {
    let mut desk = Desk::new().await;
    desk.apply("asleep", &simulated(&json!({}))).await;
    desk.apply("pinned", &simulated(&json!({ "serverless": { "minReplicas": 1 } }))).await;
    desk.until_phase("asleep", Phase::Idle).await;
    desk.until_phase("pinned", Phase::Ready).await;
    desk.kill_controller().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = controllers_writes(&desk).len();
    desk.start_controller(&[]);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let after = controllers_writes(&desk);
    assert_eq!(after.len(), before, "{:?}", after.get(before..));
}

#[tokio::test]
async fn k8s_02_the_spec_belongs_to_who_wrote_it() {
    let desk = Desk::new().await;
    let spec =
        json!({ "backend": "simulator", "nodeSelector": { "test": desk.world().namespace } });
    let manager = PatchParams::apply("argocd-controller");
    let apply = async || {
        let patch = Patch::Apply(model("m", &spec));
        desk.models.api().patch("m", &manager, &patch).await.unwrap()
    };
    let first = apply().await;
    let status = desk.until_phase("m", Phase::Idle).await;
    assert!(!status.conditions.is_empty());
    let again = apply().await;
    assert_eq!(again.metadata.generation, Some(1));
    assert_eq!(again.data["spec"], first.data["spec"]);
}

#[tokio::test]
async fn k8s_10_what_somebody_else_changed_is_put_right_and_then_left_alone() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({ "serverless": { "minReplicas": 1 } }))).await;
    desk.until_phase("m", Phase::Ready).await;
    let change = json!({ "spec": { "replicas": 3, "template": { "spec": {
        "containers": [{ "name": "model", "image": "somebody/elses:1" }],
    } } } });
    let parameters = PatchParams::default();
    desk.deployments().patch("m", &parameters, &Patch::Strategic(change)).await.unwrap();
    let image = |deployment: &Deployment| {
        deployment.spec.template.spec.as_ref().unwrap().containers[0].image.clone().unwrap()
    };
    let restored = eventually("its own image and replicas again", async || {
        let there = desk.deployments().get("m").await.unwrap();
        (there.spec.replicas == Some(1) && !image(&there).contains("elses")).then_some(there)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let later = desk.deployments().get("m").await.unwrap();
    assert_eq!(later.metadata.generation, restored.metadata.generation);
}

#[tokio::test]
async fn a_deployment_or_service_that_was_deleted_is_made_again() {
    let desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
    let old = desk.deployments().get("m").await.unwrap().metadata.uid;
    desk.deployments().delete("m", &DeleteParams::background()).await.unwrap();
    eventually("another Deployment", async || {
        let new = desk.deployments().get_opt("m").await.unwrap()?.metadata.uid;
        (new != old).then_some(())
    })
    .await;
}

#[tokio::test]
async fn k8s_23_a_model_that_fits_no_type_stops_none_of_the_others() {
    let desk = Desk::without_controller().await;
    // As an older schema let it be stored: this API server checks no longer for a moment.
    let relax = json!([{ "op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } }]);
    let definition = "models.inference.flexinfer.ai";
    let patch = relax.to_string();
    let arguments = ["patch", "crd", definition, "--type=json", "--patch", &patch];
    desk.models.succeed(&arguments, "").await;
    let broken = json!({ "backend": 7, "gpu": { "vendor": "matrox" } });
    eventually("the broken Model is stored", async || {
        let stored = desk.models.api();
        let object = serde_json::from_value(model("broken", &broken)).unwrap();
        stored.create(&PostParams::default(), &object).await.ok()
    })
    .await;
    let folder = crate::crds::checkout().join("crds/yaml").display().to_string();
    desk.models
        .succeed(&["apply", "--server-side", "--force-conflicts", "--filename", &folder], "")
        .await;
    desk.apply("good", &simulated(&json!({}))).await;
    let mut desk = desk;
    desk.start_controller(&[]);
    desk.until_phase("good", Phase::Idle).await;
    assert!(desk.log().contains("cannot be understood"), "{}", desk.log());
    let gateway = start(&desk.models, "one", desk.world().cluster.kubeconfig(), &[]).await;
    gateway.knows("good").await;
    let faulty = gateway.page("/debug/models").await["faulty"].to_string();
    assert!(faulty.contains("broken"), "it is told nowhere: {faulty}");
}

#[tokio::test]
async fn an_object_that_is_somebody_elses_is_never_taken_over() {
    let desk = Desk::new().await;
    let services: Api<Service> =
        Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    // The gateway's own, say.
    let theirs = json!({
        "metadata": { "name": "proxy" },
        "spec": { "selector": { "app": "proxy" }, "ports": [{ "port": 80 }] },
    });
    let theirs = serde_json::from_value(theirs).unwrap();
    let theirs = services.create(&PostParams::default(), &theirs).await.unwrap();
    let pinned = json!({ "serverless": { "minReplicas": 1 } });
    desk.apply("proxy", &simulated(&pinned)).await;
    let taken = |status: &ModelStatus| {
        status
            .conditions
            .iter()
            .any(|found| found.type_ == "Applied" && found.reason == "NameTaken")
    };
    let status = desk.until("refused", "proxy", taken).await;
    assert_eq!(status.phase, Some(Phase::Failed));
    assert!(status.message.unwrap().contains("another name"), "no hint");
    assert!(desk.events("proxy").await.contains(&"NameTaken".to_owned()));
    assert_eq!(services.get("proxy").await.unwrap(), theirs);

    desk.api().delete("proxy", &DeleteParams::default()).await.unwrap();
    eventually("the Model is gone", async || {
        desk.api().get_opt("proxy").await.unwrap().is_none().then_some(())
    })
    .await;
    eventually("its Deployment is gone", async || {
        desk.deployments().get_opt("proxy").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(services.get("proxy").await.unwrap(), theirs);

    desk.apply("proxy", &simulated(&pinned)).await;
    desk.until("refused again", "proxy", taken).await;
    services.delete("proxy", &DeleteParams::default()).await.unwrap();
    desk.until_phase("proxy", Phase::Ready).await;
}

/// The Deployment as an older controller might have made it by a plain create, with more than is wanted today.
fn as_made_before(model: &Model, now: &Deployment) -> Deployment {
    let mut old = now.clone();
    let owner = model.controller_owner_ref(&()).unwrap();
    old.metadata = ObjectMeta {
        name: now.metadata.name.clone(),
        labels: now.metadata.labels.clone(),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    old.status = None;
    let pod = old.spec.template.spec.as_mut().unwrap();
    let variable = json!({ "name": "OLD", "value": "yes" });
    let variable = serde_json::from_value(variable).unwrap();
    pod.containers[0].env.get_or_insert_default().push(variable);
    let toleration = json!({ "key": "old", "operator": "Exists" });
    pod.tolerations.get_or_insert_default().push(serde_json::from_value(toleration).unwrap());
    old
}

#[tokio::test]
async fn k8s_10_what_an_older_controller_wrote_by_updates_is_removed_and_nothing_is_written_twice()
{
    let mut desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({}))).await;
    desk.until_phase("m", Phase::Idle).await;
    let now = desk.deployments().get("m").await.unwrap();
    desk.kill_controller().await;
    desk.deployments().delete("m", &DeleteParams::background()).await.unwrap();
    let model = desk.api().get("m").await.unwrap();
    let before = PostParams {
        field_manager: Some("flexinfer-controller".to_owned()),
        ..PostParams::default()
    };
    let old = as_made_before(&model, &now);
    eventually("the older Deployment", async || {
        desk.deployments().create(&before, &old).await.ok()
    })
    .await;
    desk.start_controller(&[]);
    let text = |deployment: &Deployment| serde_json::to_string(&deployment.spec).unwrap();
    let clean = eventually("nothing is left of what it had more", async || {
        let there = desk.deployments().get("m").await.unwrap();
        let old = ["OLD", "\"old\""].iter().any(|word| text(&there).contains(word));
        (!old && there.metadata.annotations.is_some()).then_some(there)
    })
    .await;
    assert_eq!(clean.spec.replicas, Some(0));
    // Looked at again and again, it is not written again.
    for minutes in 1..=5 {
        let look =
            json!({ "spec": { "serverless": { "coldStartTimeout": format!("{minutes}m") } } });
        let patch = Patch::Merge(look);
        let edited = desk.api().patch("m", &PatchParams::default(), &patch).await.unwrap();
        let looked = |status: &ModelStatus| {
            let mut conditions = status.conditions.iter();
            conditions.all(|found| found.observed_generation >= edited.metadata.generation)
        };
        desk.until("looked at", "m", looked).await;
    }
    let later = desk.deployments().get("m").await.unwrap();
    assert_eq!(later.metadata.generation, clean.metadata.generation);
    let ours = |deployment: &Deployment| -> Vec<_> {
        let entries = deployment.metadata.managed_fields.clone().unwrap();
        let ours = |manager: &Option<String>| manager.as_deref() == Some("flexinfer-controller");
        entries.into_iter().filter(|entry| ours(&entry.manager)).collect()
    };
    assert_eq!(ours(&later), ours(&clean));
    assert_eq!(ours(&later).len(), 1, "two accounts of one program");
}

#[tokio::test]
async fn k8s_10_what_was_changed_while_nobody_watched_is_put_right_and_who_did_it_is_told() {
    let mut desk = Desk::new().await;
    desk.apply("m", &simulated(&json!({ "serviceLabels": ["chat"] }))).await;
    desk.until_phase("m", Phase::Idle).await;
    desk.kill_controller().await;
    let services: Api<Service> =
        Api::namespaced(desk.world().client.clone(), &desk.world().namespace);
    let somebody =
        PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
    let selector = json!({ "spec": { "selector": { "flexinfer.ai/model": "another" } } });
    services.patch("m", &somebody, &Patch::Merge(selector)).await.unwrap();
    let deadline = json!({ "spec": { "progressDeadlineSeconds": 7 } });
    desk.deployments().patch("m", &somebody, &Patch::Merge(deadline)).await.unwrap();
    desk.start_controller(&[]);
    eventually("the Service's selector again", async || {
        let selector = services.get("m").await.unwrap().spec?.selector?;
        (selector.get("flexinfer.ai/model").map(String::as_str) == Some("m")).then_some(())
    })
    .await;
    eventually("the Deployment's deadline again", async || {
        let deadline = desk.deployments().get("m").await.unwrap().spec.progress_deadline_seconds;
        (deadline != Some(7)).then_some(())
    })
    .await;
    let status = desk
        .until("told of the conflict", "m", |status| {
            status.conditions.iter().any(|found| found.reason == "FieldConflict")
        })
        .await;
    let told = status.conditions.iter().find(|found| found.reason == "FieldConflict").unwrap();
    assert!(told.message.contains("somebody wrote .spec"), "{}", told.message);
    assert_eq!(status.phase, Some(Phase::Idle));

    // The same while it watches.
    let ports = json!({ "metadata": { "annotations": { "flexinfer.ai/service-labels": null } } });
    services.patch("m", &somebody, &Patch::Merge(ports)).await.unwrap();
    eventually("the Service's labels again", async || {
        let annotations = services.get("m").await.unwrap().metadata.annotations?;
        annotations.get("flexinfer.ai/service-labels").map(|_| ())
    })
    .await;
}
