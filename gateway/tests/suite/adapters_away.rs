//! Adapters that are loaded at their first request, where the engine is not there, was away, or takes long.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::queueing::Policy;
use flexinfer_core::routing::Strategy;
use flexinfer_testkit::at_head::AtHead;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::{Action, Origin, Recorded, answer};
use flexinfer_testkit::{eventually, eventually_async};
use parking_lot::Mutex;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::adapters_on_demand::{CHAT, LOAD, ask, fleet};
use crate::retries::nobody;
use crate::world::{BOUND, Terms, World};

/// An engine that knows an adapter once it has loaded it, and no more once it is told to restart.
struct Forgetful {
    origin: Origin,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    loaded: bool,
    /// The next request on a connection from before finds it closed, as those of a process that ended are.
    restarted: bool,
}

impl Forgetful {
    async fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let known = Arc::clone(&state);
        let origin = Origin::start(move |seen| {
            let mut state = known.lock();
            if seen.index > 0 && std::mem::take(&mut state.restarted) {
                return vec![Action::Close];
            }
            state.loaded |= seen.head.target() == LOAD;
            let missing = names_the_adapter(seen) && !state.loaded;
            let (status, body) = if missing { (404, "no such model") } else { (200, "{}") };
            vec![Action::Write(answer(status, &[], body.as_bytes()))]
        });
        Self { origin: origin.await.unwrap(), state }
    }

    fn restart(&self) {
        *self.state.lock() = State { loaded: false, restarted: true };
    }

    /// How often it has loaded the adapter.
    fn loads(&self) -> usize {
        self.origin.requests().iter().filter(|seen| seen.head.target() == LOAD).count()
    }
}

fn names_the_adapter(seen: &Recorded) -> bool {
    seen.head.target() == CHAT && seen.body.windows(5).any(|bytes| bytes == b"\"sql\"")
}

#[tokio::test]
async fn a_dead_replica_is_left_for_one_that_loads_the_adapter() {
    let (engine, dead) = (Forgetful::start().await, nobody());
    let world = World::of_fleet(dead, fleet());
    world.desk.set_spare(engine.origin.address);
    for loads in [1, 1] {
        assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
        assert_eq!(engine.loads(), loads);
    }
    assert_eq!(world.desk.rebooked(), 2, "it is not said that the replica could not be reached");
    let avoided = world.desk.wishes().last().unwrap().avoid.clone();
    assert!(avoided.iter().any(|id| *id.0 == *dead.to_string()), "{avoided:?}");
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn an_engine_that_dies_while_it_loads_is_left_too_and_no_engine_at_all_is_502() {
    let engine = Forgetful::start().await;
    let dying = AtHead::start(|_, socket| async move {
        drop(socket);
        Ok(())
    });
    let dying = dying.await.unwrap();
    let world = World::of_fleet(dying.address, fleet());
    world.desk.set_spare(engine.origin.address);
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    assert_eq!((engine.loads(), world.desk.rebooked()), (1, 1));
    world.desk.set_spare(nobody());
    let answer = ask(&world, "sql").await.unwrap();
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.json()["error"]["code"], "bad_gateway", "{}", answer.text());
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn what_one_replica_refuses_to_load_is_not_asked_of_another() {
    let refusing = answer(400, &[], b"no room for it");
    let refusing = Origin::start(move |_| vec![Action::Write(refusing.clone())]).await.unwrap();
    let engine = Forgetful::start().await;
    let world = World::of_fleet(refusing.address, fleet());
    world.desk.set_spare(engine.origin.address);
    let answer = ask(&world, "sql").await.unwrap();
    assert_eq!(answer.json()["error"]["code"], "adapter_not_loaded", "{}", answer.text());
    assert!(answer.text().contains("no room for it"), "{}", answer.text());
    assert_eq!((engine.loads(), world.desk.rebooked()), (0, 0));
}

#[tokio::test]
async fn an_engine_that_has_restarted_at_its_port_loads_the_adapter_again_and_answers() {
    let engine = Forgetful::start().await;
    // One lane, whose kept connection is the one that the restart closes.
    let terms = Terms { lanes: 1, ..Terms::default() };
    let world = World::serve(engine.origin.address, fleet(), terms);
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    for loads in 2..4 {
        engine.restart();
        assert_eq!(ask(&world, "sql").await.unwrap().status(), 200, "the client was told of it");
        assert_eq!(engine.loads(), loads);
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
}

#[tokio::test]
async fn many_that_find_an_adapter_lost_have_it_loaded_once() {
    let engine = Forgetful::start().await;
    let world = World::of_fleet(engine.origin.address, fleet());
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    world.desk.close();
    let asked: Vec<_> = (0..20).map(|_| ask(&world, "sql")).collect();
    assert!(eventually(BOUND, || world.desk.waiting() == 20).await);
    engine.state.lock().loaded = false;
    world.desk.open();
    for asked in asked {
        assert_eq!(asked.await.unwrap().status(), 200);
    }
    assert_eq!(engine.loads(), 2);
}

#[tokio::test]
async fn a_404_that_stays_is_the_engines_own_and_loads_once_more_at_most() {
    let engine = Origin::start(|seen| {
        let status = if seen.head.target() == LOAD { 200 } else { 404 };
        vec![Action::Write(answer(status, &[], b"nowhere"))]
    });
    let engine = engine.await.unwrap();
    let world = World::of_fleet(engine.address, fleet());
    let answer = ask(&world, "sql").await.unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (404, "nowhere"));
    let of =
        |path: &str| engine.requests().iter().filter(|seen| seen.head.target() == path).count();
    assert_eq!((of(LOAD), of(CHAT)), (2, 2));
    // Others of the model are not asked twice.
    assert_eq!(ask(&world, "early").await.unwrap().status(), 404);
    assert_eq!((of(LOAD), of(CHAT)), (2, 3));
}

#[tokio::test]
async fn each_replica_loads_the_adapter_for_itself() {
    let (first, second) = (Forgetful::start().await, Forgetful::start().await);
    let world = World::of_fleet(first.origin.address, fleet());
    world.desk.spread(Strategy::RoundRobin, &[first.origin.address, second.origin.address]);
    for _ in 0..4 {
        assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    }
    assert_eq!((first.loads(), second.loads()), (1, 1));
}

/// Serves whatever it is asked for, its adapters or not, as some engines do.
fn indifferent(listener: TcpListener) -> Origin {
    Origin::start_on(listener, |_| vec![Action::Write(answer(200, &[], b"{}"))]).unwrap()
}

#[tokio::test]
async fn a_replica_that_was_seen_to_be_away_is_not_believed_to_have_the_adapter() {
    let count = |engine: &Origin| {
        engine.requests().iter().filter(|seen| seen.head.target() == LOAD).count()
    };
    // An address of this test's own: nobody else takes the port meanwhile.
    let listener = TcpListener::bind("127.93.71.12:0").await.unwrap();
    let engine = indifferent(listener);
    let (address, other) = (engine.address, Forgetful::start().await);
    let world = World::of_fleet(address, fleet());
    world.desk.set_spare(other.origin.address);
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    assert_eq!((count(&engine), world.desk.rebooked()), (1, 0));
    drop(engine);
    let gone = || async { TcpListener::bind(address).await.is_ok() };
    assert!(eventually_async(BOUND, gone).await, "it is still there");
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    assert_eq!((other.loads(), world.desk.rebooked()), (1, 1));
    let engine = indifferent(TcpListener::bind(address).await.unwrap());
    assert_eq!(ask(&world, "sql").await.unwrap().status(), 200);
    assert_eq!((count(&engine), world.desk.rebooked()), (1, 1));
}

#[tokio::test]
async fn the_wait_for_an_adapter_ends_as_that_for_a_cold_model_does_and_its_load_goes_on() {
    let go_on = Arc::new(Notify::new());
    let loading = Arc::clone(&go_on);
    let engine = Origin::start(move |seen| {
        let answered = Action::Write(answer(200, &[], b"{}"));
        if seen.head.target() != LOAD {
            return vec![answered];
        }
        vec![Action::Wait(Arc::clone(&loading)), answered]
    });
    let engine = engine.await.unwrap();
    let short = Duration::from_millis(300);
    let queue = Policy { queue_timeout: short, cold_start_timeout: short, ..Policy::default() };
    let world = World::serve(engine.address, fleet(), Terms { queue, ..Terms::default() });
    let answer = ask(&world, "sql").await.unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.json()["error"]["code"], "activation_timeout", "{}", answer.text());
    assert!(answer.text().contains("sql"), "{}", answer.text());
    assert!(answer.head.header("retry-after").is_some());
    assert!(eventually(BOUND, || world.at_rest()).await, "the slot is held");
    go_on.notify_one();
    assert!(eventually(BOUND, || engine.requests().len() == 1).await);
    // Its answer may be on its way yet; what is there counts however short the wait may be.
    let served = || async { ask(&world, "sql").await.unwrap().status() == 200 };
    assert!(eventually_async(BOUND, served).await);
    let loads = engine.requests().iter().filter(|seen| seen.head.target() == LOAD).count();
    assert_eq!(loads, 1, "the load that had begun was not joined");
}

#[tokio::test]
async fn a_client_that_has_left_waits_for_no_adapter_however_much_it_has_sent_ahead() {
    let engine = AtHead::start(|_, mut socket| async move {
        // It never comes to an end.
        tokio::io::copy(&mut socket, &mut tokio::io::sink()).await?;
        socket.shutdown().await
    });
    let engine = engine.await.unwrap();
    let world = World::of_fleet(engine.address, fleet());
    let mut client = Client::connect(world.address).await.unwrap();
    let one = request("POST", CHAT, &[], br#"{"model":"sql"}"#);
    client.send(&[one.clone(), one].concat()).await.unwrap();
    assert!(eventually(BOUND, || world.desk.held() == 1).await);
    drop(client);
    assert!(eventually(BOUND, || world.at_rest()).await, "it is waited for");
}
