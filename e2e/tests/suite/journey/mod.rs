//! What a person does with FlexInfer on a cluster, from the first command to the last, in one story.

mod person;

use person::Person;

const MODEL: &str = r"
apiVersion: inference.flexinfer.ai/v1alpha2
kind: Model
metadata:
  name: hello
spec:
  backend: simulator
  source: HF://org/name
  cache:
    size: 1Gi
  serverless:
    idleTimeout: 6s
  config:
    loadTime: 1500ms
";

#[tokio::test]
async fn from_helm_install_to_helm_uninstall() {
    let person = Person::with_an_empty_cluster().await;

    person.installs_the_chart().await;
    person.sees_the_agent_label_the_nodes().await;

    let advice = person.is_refused(&MODEL.replace("simulator", "simulatr")).await;
    assert!(advice.contains("did you mean `simulator`"), "{advice}");
    person.applies(MODEL).await;
    person.sees("hello", "Idle").await;
    assert!(person.pods_of("hello").await.is_empty(), "it was not asked for and runs");

    // The first call wakes it, and is held until it is awake.
    let (answer, phases) = tokio::join!(person.asks("hello"), person.watches_until_ready("hello"));
    assert!(!answer.is_empty(), "the model said nothing");
    assert!(phases.iter().any(|phase| phase == "Loading"), "it never loaded: {phases:?}");

    person.sees("hello", "Idle").await;
    person.sees_no_pods_of("hello").await;

    person.asks("hello").await;
    person.sees("hello", "Ready").await;

    person.changes_the_image_of("hello", person::NEXT_IMAGE).await;
    person.sees_no_pods_without(person::NEXT_IMAGE, "hello").await;
    person.asks("hello").await;

    let owned = person.looks_what_belongs_to("hello").await;
    let kinds = ["Deployment", "ReplicaSet", "Service", "Job", "Pod"];
    owned.has(&kinds);
    owned.has(&["PersistentVolumeClaim", "PersistentVolume"]);
    person.deletes("hello").await;
    owned.are_gone().await;

    person.uninstalls_the_chart().await;
}
