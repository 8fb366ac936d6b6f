//! From start to end: loading and its faults, slots, clients that leave, idle connections, stopping.

use std::time::Duration;

use flexinfer_simulator::{
    DiesAt, DoorWhileLoading, Ending, Outcome, Settings, Simulator, StartError,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{World, reach};

const CHAT: &str = "/v1/chat/completions";
const FOREVER: Duration = Duration::from_secs(10_000);

fn hello() -> Value {
    json!({"messages": [{"role": "user", "content": "hello"}]})
}

fn hanging() -> Settings {
    let mut settings = Settings::named("m");
    settings.loading_faults.hangs = true;
    settings
}

#[tokio::test]
async fn a_loading_engine_says_so_and_refuses() {
    let world = World::loading(hanging()).await;
    let health = world.get("/health").await;
    assert_eq!(health.status(), 503);
    assert_eq!(health.json::<Value>().await.unwrap()["status"], "loading");
    assert_eq!(world.post(CHAT, &hello()).await.status(), 503);
    assert!(!world.engine.is_ready());
}

#[tokio::test]
async fn an_engine_that_lies_is_healthy_and_refuses() {
    let mut settings = hanging();
    settings.loading_faults.lies_about_readiness = true;
    let world = World::loading(settings).await;
    assert_eq!(world.get("/health").await.status(), 200);
    assert_eq!(world.post(CHAT, &hello()).await.status(), 503);
}

#[tokio::test]
async fn a_closed_door_refuses_connections_until_loaded() {
    let mut settings = Settings::named("m");
    settings.loading_faults.door = DoorWhileLoading::Closed;
    let mut hangs = settings.clone();
    hangs.loading_faults.hangs = true;
    let closed = World::loading(hangs).await;
    let refused = TcpStream::connect(closed.engine.addr).await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let opened = World::new(settings).await;
    assert_eq!(opened.get("/health").await.status(), 200);
}

#[tokio::test]
async fn a_silent_door_takes_requests_and_answers_none() {
    let mut settings = hanging();
    settings.loading_faults.door = DoorWhileLoading::Silent;
    let world = World::loading(settings).await;
    let mut stream = TcpStream::connect(world.engine.addr).await.unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    reach("it has the request", || world.engine.requests().iter().any(|r| r.body_complete)).await;
    assert_eq!(world.engine.requests()[0].status, None);
}

#[tokio::test]
async fn a_port_that_never_opens_stays_closed_when_loaded() {
    let mut settings = Settings::named("m");
    settings.loading_faults.port_never_opens = true;
    let world = World::new(settings).await;
    assert!(TcpStream::connect(world.engine.addr).await.is_err());
}

#[tokio::test]
async fn an_engine_that_dies_while_loading_says_why_and_closes_its_port() {
    let mut settings = Settings::named("m");
    settings.timings.load = Duration::from_millis(20);
    settings.loading_faults.dies_at = Some(DiesAt::Fraction(0.5));
    let engine = Simulator::start(settings).await.unwrap();
    let Ending::Died(reason) = engine.ended().await else { panic!("it was not stopped") };
    assert!(reason.contains("out of memory"), "{reason}");
    assert_eq!(engine.ready().await, Err(Ending::Died(reason)));
    let address = engine.addr;
    engine.stop().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_taken_port_is_an_error_that_names_it() {
    let first = Simulator::start(Settings::named("m")).await.unwrap();
    first.ready().await.unwrap();
    let settings = Settings { port: first.addr.port(), ..Settings::named("m") };
    // Two sockets may be bound to one port as long as only one of them listens.
    let second = Simulator::start(settings).await;
    match second {
        Err(error @ StartError::Bind { .. }) => {
            assert!(error.to_string().contains(&first.addr.to_string()), "{error}");
        }
        Err(error) => panic!("another error: {error}"),
        Ok(second) => {
            let Ending::Died(reason) = second.ended().await else { panic!("it must not serve") };
            assert!(reason.contains(&first.addr.to_string()), "{reason}");
        }
    }
}

#[tokio::test]
async fn requests_beyond_the_slots_wait_and_are_counted() {
    let mut settings = Settings { slots: 1, ..Settings::named("m") };
    settings.timings.first_token = FOREVER;
    let world = World::new(settings).await;
    let first = tokio::spawn(world.ask(CHAT, &hello()).send());
    reach("one runs", || world.engine.running() == 1).await;
    let second = tokio::spawn(world.ask(CHAT, &hello()).send());
    reach("one waits", || world.engine.waiting() == 1).await;
    let page = world.get("/metrics").await.text().await.unwrap();
    assert!(page.contains("vllm:num_requests_waiting{model_name=\"m\"} 1"), "{page}");
    first.abort();
    reach("the waiting one runs", || world.engine.waiting() == 0).await;
    assert_eq!(world.engine.running(), 1);
    second.abort();
    reach("nothing runs", || world.engine.running() == 0).await;
    reach("both broke off", || {
        let broken = |r: &&flexinfer_simulator::RecordedRequest| r.outcome == Outcome::BrokenOff;
        world.engine.requests().iter().filter(broken).count() == 2
    })
    .await;
}

/// An engine in the midst of an answer that never ends.
async fn streaming() -> (World, reqwest::Response) {
    let mut settings = Settings::named("m");
    settings.timings.token = FOREVER;
    let world = World::new(settings).await;
    let mut body = hello();
    body["stream"] = json!(true);
    let mut response = world.post(CHAT, &body).await;
    assert!(response.chunk().await.unwrap().is_some());
    (world, response)
}

#[tokio::test]
async fn a_client_that_leaves_a_stream_ends_its_generation() {
    let (world, response) = streaming().await;
    assert_eq!(world.engine.running(), 1);
    drop(response);
    reach("its slot is free", || world.engine.running() == 0).await;
    let page = world.get("/metrics").await.text().await.unwrap();
    assert!(page.contains("{finished_reason=\"abort\",model_name=\"m\"} 1"), "{page}");
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_busy_one_is_not() {
    let keep_alive = Some(Duration::from_millis(40));
    let mut settings = Settings { keep_alive, ..Settings::named("m") };
    settings.timings.first_token = Duration::from_millis(200);
    let world = World::new(settings).await;
    let mut stream = TcpStream::connect(world.engine.addr).await.unwrap();
    let body = hello().to_string();
    let request =
        format!("POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    assert!(all.starts_with("HTTP/1.1 200") && all.ends_with('}'), "{all}");
}

#[tokio::test]
async fn requests_are_recorded_with_their_bodies() {
    let world = World::new(Settings::named("m")).await;
    let big = json!({"messages": [{"role": "user", "content": "x".repeat(3_000_000)}]});
    assert_eq!(world.ask(CHAT, &big).header("x-trace", "7").send().await.unwrap().status(), 200);
    reach("it is over", || world.engine.requests()[0].outcome == Outcome::Finished).await;
    let recorded = &world.engine.requests()[0];
    assert_eq!(recorded.body, big.to_string().as_bytes());
    assert_eq!((recorded.path.as_str(), recorded.status), (CHAT, Some(200)));
    assert_eq!(recorded.headers["x-trace"], "7");
    let shown: Value = world.get("/simulate/requests").await.json().await.unwrap();
    assert_eq!(shown[0]["body_sha256"], recorded.body_sha256());
    let quiet = World::new(Settings { request_log: false, ..Settings::named("m") }).await;
    assert_eq!(quiet.get("/simulate/requests").await.status(), 404);
}

#[tokio::test]
async fn stopping_ends_streams_and_closes_the_port() {
    let (world, mut response) = streaming().await;
    let address = world.engine.addr;
    world.engine.stop().await;
    assert!(response.chunk().await.is_err());
    assert!(TcpStream::connect(address).await.is_err());
}
