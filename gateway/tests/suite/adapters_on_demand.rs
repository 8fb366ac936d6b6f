//! Adapters that are loaded at their first request.

use std::sync::Arc;

use flexinfer_core::fleet::{Adapter, Fleet, Served};
use flexinfer_core::ids::ModelId;
use flexinfer_crds::lora_adapter::{AdapterSource, AdapterSourceType};
use flexinfer_testkit::client::{Answer, Client};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::world::{BOUND, World, model};

pub(crate) const CHAT: &str = "/v1/chat/completions";
pub(crate) const LOAD: &str = "/v1/load_lora_adapter";

/// An engine that takes each load when it is told to, and answers it with this.
struct Engine {
    origin: Origin,
    load: Arc<Notify>,
    says: Arc<Mutex<(u16, &'static str)>>,
}

impl Engine {
    async fn start() -> Self {
        let (load, says) = (Arc::<Notify>::default(), Arc::new(Mutex::new((200, "loaded"))));
        let (told, said) = (Arc::clone(&load), Arc::clone(&says));
        let origin = Origin::start(move |seen| {
            if seen.head.target() != LOAD {
                return vec![Action::Write(answer(200, &[], b"{}"))];
            }
            let (status, text) = *said.lock();
            let answered = Action::Write(answer(status, &[], text.as_bytes()));
            vec![Action::Wait(Arc::clone(&told)), answered]
        });
        Self { origin: origin.await.unwrap(), load, says }
    }

    fn count(&self, path: &str) -> usize {
        self.origin.requests().iter().filter(|seen| seen.head.target() == path).count()
    }
}

/// A model with an adapter that it has from its start, and one that it has not.
pub(crate) fn fleet() -> Fleet {
    fleet_of(model("base", None))
}

/// The same for another model called `base`.
pub(crate) fn fleet_of(base: Served) -> Fleet {
    let source = AdapterSource { r#type: AdapterSourceType::LocalPath, uri: "adapters/sql".into() };
    let adapter = |name: &str, on_demand| Adapter {
        id: ModelId::new("default", name),
        base: ModelId::new("default", "base"),
        name: name.into(),
        created: 0,
        on_demand,
    };
    let adapters = vec![adapter("early", None), adapter("sql", Some(source))];
    let (fleet, conflicts) = Fleet::with_adapters(vec![base], adapters);
    assert_eq!(conflicts.len(), 0);
    fleet
}

pub(crate) fn ask(world: &World, name: &str) -> JoinHandle<Answer> {
    let (address, body) = (world.address, format!(r#"{{"model":"{name}"}}"#));
    tokio::spawn(async move {
        let mut client = Client::connect(address).await.unwrap();
        client.post(CHAT, body.as_bytes()).await.unwrap();
        client.answer().await.unwrap()
    })
}

#[tokio::test]
async fn all_that_ask_for_an_adapter_are_held_while_it_is_loaded_once() {
    let engine = Engine::start().await;
    let world = World::of_fleet(engine.origin.address, fleet());
    let asked: Vec<_> = (0..5).map(|_| ask(&world, "sql")).collect();
    assert!(eventually(BOUND, || world.desk.held() == 5 && engine.count(LOAD) == 1).await);
    assert_eq!(ask(&world, "early").await.unwrap().status(), 200, "others need not wait");
    assert_eq!(ask(&world, "base").await.unwrap().status(), 200, "others need not wait");
    assert_eq!(engine.count(CHAT), 2, "one went on before its adapter was there");
    engine.load.notify_one();
    for asked in asked {
        assert_eq!(asked.await.unwrap().status(), 200);
    }
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    assert_eq!((engine.count(LOAD), engine.count(CHAT)), (1, 8));
    let requests = engine.origin.requests();
    let load = requests.iter().find(|seen| seen.head.target() == LOAD).unwrap();
    let told: serde_json::Value = serde_json::from_slice(&load.body).unwrap();
    assert_eq!(
        (&told["lora_name"], &told["lora_path"]),
        (&"sql".into(), &"/models/adapters/sql".into())
    );
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_load_that_fails_is_told_to_all_who_wait_and_tried_anew_by_the_next() {
    let engine = Engine::start().await;
    *engine.says.lock() = (404, "no such folder");
    let world = World::of_fleet(engine.origin.address, fleet());
    let asked: Vec<_> = (0..3).map(|_| ask(&world, "sql")).collect();
    assert!(eventually(BOUND, || world.desk.held() == 3 && engine.count(LOAD) == 1).await);
    engine.load.notify_one();
    for asked in asked {
        let answer = asked.await.unwrap();
        assert_eq!(answer.status(), 502, "{}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], "adapter_not_loaded");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("sql") && message.contains("no such folder"), "{message}");
    }
    assert_eq!((engine.count(LOAD), engine.count(CHAT)), (1, 0));
    *engine.says.lock() = (400, r#"{"message":"The lora adapter 'sql' has already been loaded."}"#);
    engine.load.notify_one();
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200, "what is loaded is loaded");
    assert_eq!(engine.count(LOAD), 2);
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn a_client_that_leaves_while_an_adapter_is_loaded_gives_its_slot_back_and_the_load_goes_on()
{
    let engine = Engine::start().await;
    let world = World::of_fleet(engine.origin.address, fleet());
    let mut client = Client::connect(world.address).await.unwrap();
    client.post(CHAT, br#"{"model":"sql"}"#).await.unwrap();
    assert!(eventually(BOUND, || engine.count(LOAD) == 1).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await);
    engine.load.notify_one();
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    assert_eq!((engine.count(LOAD), engine.count(CHAT)), (1, 1));
}
