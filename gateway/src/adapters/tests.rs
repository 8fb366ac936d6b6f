//! What engines are asked about adapters, and in which order.

use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::fleet::Served;
use flexinfer_core::ids::{BookingId, ModelId};
use flexinfer_crds::Model;
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer};
use serde_json::json;
use tokio::sync::Notify;

use super::*;
use crate::queues::Booking;
use crate::secrets::Secrets;

const BOUND: Duration = Duration::from_secs(60);
const LOAD: &str = "/v1/load_lora_adapter";
const UNLOAD: &str = "/v1/unload_lora_adapter";

fn served() -> Arc<Served> {
    let model = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2", "kind": "Model",
        "metadata": { "namespace": "default", "name": "base" },
        "spec": { "backend": "vllm", "source": "HF://org/model" },
    });
    let model: Model = serde_json::from_value(model).expect("a Model");
    let effective = Effective::of(&model, 1, &Defaults::default()).expect("it means something");
    Arc::new(Served::new(effective, "vllm", "HF://org/model", 0))
}

fn adapter(uri: &str) -> Adapter {
    Adapter {
        id: ModelId::new("default", "sql"),
        base: ModelId::new("default", "base"),
        name: "sql".into(),
        created: 0,
        on_demand: Some(AdapterSource { r#type: AdapterSourceType::LocalPath, uri: uri.into() }),
    }
}

/// What the engine was asked, by path and place.
fn asked(engine: &Origin) -> Vec<(String, Option<String>)> {
    let told = |body: &[u8]| serde_json::from_slice::<Value>(body).unwrap_or_default();
    let place = |body: &[u8]| told(body)["lora_path"].as_str().map(str::to_owned);
    let requests = engine.requests();
    requests.iter().map(|seen| (seen.head.target().to_owned(), place(&seen.body))).collect()
}

#[test]
fn paths_count_from_the_models_folder_and_repositories_are_left_to_the_engine() {
    let placed =
        |r#type, uri: &str| place(&AdapterSource { r#type, uri: uri.into() }, Path::new("/models"));
    let (local, hub) = (AdapterSourceType::LocalPath, AdapterSourceType::HuggingFace);
    assert_eq!(placed(local, "adapters/sql"), "/models/adapters/sql");
    assert_eq!(placed(local, "file:///elsewhere/sql"), "/elsewhere/sql");
    assert_eq!(placed(hub, "HF://org/sql"), "org/sql");
    assert_eq!(placed(hub, "org/sql"), "org/sql");
}

#[tokio::test]
async fn what_is_told_of_one_adapter_is_one_conversation_in_its_order() {
    let let_go = Arc::new(Notify::new());
    let waits = Arc::clone(&let_go);
    let engine = Origin::start(move |seen| {
        let answered = Action::Write(answer(200, &[], b"{}"));
        let waits = (seen.head.target() == UNLOAD).then(|| Action::Wait(Arc::clone(&waits)));
        waits.into_iter().chain([answered]).collect()
    });
    let engine = engine.await.unwrap();
    let adapters = OnDemand::new("/models", Arc::<Secrets>::default());
    let (served, name, other) = (served(), Arc::from("sql"), Arc::from("other"));
    let unload = Backend::Vllm.unload_adapter("sql").expect("vLLM takes adapters out");
    let load = Backend::Vllm.load_adapter("sql", "/models/new").expect("vLLM takes adapters");
    let first = adapters.tell(&served, engine.address, &name, unload).expect("a backend");
    let second = adapters.tell(&served, engine.address, &name, load.clone()).expect("a backend");
    assert!(eventually(BOUND, || engine.requests().len() == 1).await);
    // What is asked about another is asked meanwhile, and shows that the engine would take the second, too.
    adapters.tell(&served, engine.address, &other, load).expect("a backend").await.unwrap();
    assert_eq!(engine.requests().len(), 2, "it was loaded while it was taken out");
    let_go.notify_one();
    first.await.unwrap();
    second.await.unwrap();
    let paths: Vec<_> = asked(&engine).into_iter().map(|(path, _)| path).collect();
    assert_eq!(paths, [UNLOAD, LOAD, LOAD]);
}

#[tokio::test]
async fn an_adapter_from_another_place_takes_that_of_the_one_before() {
    let engine = Origin::answering("{}").await.unwrap();
    let adapters = OnDemand::new("/models", Arc::<Secrets>::default());
    let booking = Booking::new(BookingId(1), served(), engine.address, |_| {});
    for uri in ["old", "old", "new", "new"] {
        let load = adapters.load(&booking, &adapter(uri)).expect("it is loaded on demand");
        load.outcome.await.expect("it is loaded");
    }
    let place = |name: &str| Some(format!("/models/{name}"));
    let expected = [(LOAD, place("old")), (UNLOAD, None), (LOAD, place("new"))]
        .map(|(path, place)| (path.to_owned(), place));
    assert_eq!(asked(&engine), expected);
}

#[tokio::test]
async fn what_was_taken_out_or_lost_is_loaded_anew_and_a_stale_word_of_loss_changes_nothing() {
    let engine = Origin::answering("{}").await.unwrap();
    let adapters = OnDemand::new("/models", Arc::<Secrets>::default());
    let booking = Booking::new(BookingId(1), served(), engine.address, |_| {});
    let loaded = || async {
        let load = adapters.load(&booking, &adapter("sql")).expect("it is loaded on demand");
        load.outcome.await.expect("it is loaded");
        load.id
    };
    let loads = || asked(&engine).iter().filter(|(path, _)| path == LOAD).count();
    let first = loaded().await;
    adapters.forget(first);
    let second = loaded().await;
    assert_eq!(loads(), 2);
    adapters.forget(first);
    assert_eq!((loaded().await, loads()), (second, 2), "the word was about the load before");
    adapters.forget_engine(([127, 0, 0, 1], 1).into());
    assert_eq!((loaded().await, loads()), (second, 2), "the word was about another engine");
    adapters.forget_engine(engine.address);
    loaded().await;
    assert_eq!(loads(), 3);
    let unload = Backend::Vllm.unload_adapter("sql").expect("vLLM takes adapters out");
    adapters.tell(&served(), engine.address, &"sql".into(), unload).expect("a backend");
    loaded().await;
    let paths: Vec<_> = asked(&engine).into_iter().map(|(path, _)| path).skip(3).collect();
    assert_eq!(paths, [UNLOAD, LOAD], "it is believed to have what it was told to forget");
}
