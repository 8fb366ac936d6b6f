//! Sessions through the gateway with real simulated engines behind it: ComfyUI's clients keep to the
//! engine that has what they left there, whichever gateway they come through.

use std::collections::BTreeMap;

use flexinfer_core::effective::Effective;
use flexinfer_core::fleet::Served;
use flexinfer_core::routing::Strategy;
use flexinfer_testkit::client::request;
use flexinfer_testkit::client::{Answer, Client};
use flexinfer_testkit::simulator::{Running, Settings, Simulator};
use flexinfer_testkit::websocket::Socket;
use serde_json::{Value, json};

use crate::world::{World, model};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

pub(crate) async fn replicas(count: usize) -> Vec<Running> {
    let mut engines = Vec::new();
    for number in 0..count {
        engines.push(replica(number).await);
    }
    engines
}

/// The engine of this number: its jobs have names that no other engine's have.
pub(crate) async fn replica(number: usize) -> Running {
    // What the lower bits differ by the count of its jobs may make up for.
    let settings = Settings { seed: (number as u64) << 32, ..Settings::named("painter") };
    let engine = Simulator::start(settings).await.unwrap();
    engine.ready().await.unwrap();
    engine
}

/// A gateway before these engines, of which there are never more. What it saw of clients is its own.
pub(crate) fn gateway(engines: &[Running]) -> World {
    let world = gateway_to_one(&engines[0], engines.len());
    spread_over(&world, engines);
    world
}

/// A gateway before one engine without a name, as in local mode, of a model that may have `most` on a cluster.
pub(crate) fn gateway_to_one(engine: &Running, most: usize) -> World {
    gateway_of(engine, |effective| effective.max_replicas = u32::try_from(most).unwrap())
}

/// A gateway before one engine without a name, of a model of which this is said.
pub(crate) fn gateway_of(engine: &Running, say: impl FnOnce(&mut Effective)) -> World {
    let mut effective = model("painter", None).effective;
    say(&mut effective);
    World::new(engine.addr, vec![Served::new(effective, "comfyui", "", 0)])
}

/// The model has these engines from now on.
pub(crate) fn spread_over(world: &World, engines: &[Running]) {
    let addresses: Vec<_> = engines.iter().map(|engine| engine.addr).collect();
    world.desk.spread(Strategy::RoundRobin, &addresses);
}

pub(crate) async fn ask(
    world: &World,
    method: &str,
    path: &str,
    body: &[u8],
    kind: &str,
) -> Answer {
    let mut client = Client::connect(world.address).await.unwrap();
    let path = format!("/model/painter{path}");
    let request = request(method, &path, &[("Content-Type", kind)], body);
    client.send(&request).await.unwrap();
    client.answer_to(method).await.unwrap()
}

async fn get(world: &World, path: &str) -> Answer {
    ask(world, "GET", path, b"", "application/json").await
}

pub(crate) fn graph(seed: u64) -> Value {
    let size = json!({"width": 64, "height": 64});
    json!({
        "1": {"class_type": "EmptyLatentImage", "inputs": size},
        "2": {"class_type": "KSampler", "inputs": {"seed": seed, "steps": 2, "latent_image": ["1", 0]}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["2", 0]}},
    })
}

/// A whole session of one client: the socket over one gateway, what it asks over another.
async fn session(sockets: &World, asking: &World, client: &str) {
    let path = format!("/model/painter/ws?clientId={client}");
    let mut socket = Socket::open(sockets.address, &path, &[]).await.expect("it opens");
    assert_eq!(socket.hear_until("status").await[0]["data"]["sid"], client);
    let job = json!({"prompt": graph(1), "client_id": client}).to_string();
    let queued = ask(asking, "POST", "/prompt", job.as_bytes(), "application/json").await;
    assert_eq!(queued.status(), 200, "{}", queued.text());
    let id = queued.json()["prompt_id"].as_str().unwrap().to_owned();
    let heard = socket.hear_until("execution_success").await;
    assert_eq!(heard.iter().filter(|event| event["type"] == "progress").count(), 2, "{heard:?}");
    socket.hear_until("status").await;
    let told = get(asking, &format!("/history/{id}")).await.json();
    let file = told[&id]["outputs"]["3"]["images"][0]["filename"].as_str().unwrap().to_owned();
    let picture = get(asking, &format!("/view?filename={file}&type=output")).await;
    assert_eq!(picture.status(), 200);
    assert!(picture.body.starts_with(PNG));
    socket.close().await;
}

/// Sessions of ever new clients until every engine has had one. Where a client belongs depends on the engines'
/// ports, which differ from run to run: a few clients may all belong to one.
async fn spread(engines: &[Running], sockets: &World, asking: &World) {
    for number in 0..64 {
        session(sockets, asking, &format!("client-{number}")).await;
        if number >= 5 && engines.iter().all(|engine| !engine.requests().is_empty()) {
            return;
        }
    }
    panic!("64 clients, and none was sent to one of the engines");
}

#[tokio::test]
async fn http_22_a_comfyui_session_stays_with_the_replica_that_has_it() {
    let engines = replicas(2).await;
    let world = gateway(&engines);
    spread(&engines, &world, &world).await;
    assert!(engines.iter().all(|engine| {
        let mut clients: BTreeMap<String, usize> = BTreeMap::new();
        for request in engine.requests().iter().filter(|request| request.path.starts_with("/ws")) {
            *clients.entry(request.path.clone()).or_default() += 1;
        }
        clients.values().all(|sockets| *sockets == 1)
    }));
}

#[tokio::test]
async fn http_22_a_client_whose_socket_came_through_another_gateway_meets_the_same_replica() {
    let engines = replicas(2).await;
    let (one, other) = (gateway(&engines), gateway(&engines));
    spread(&engines, &one, &other).await;
}

#[tokio::test]
async fn an_upload_is_where_the_graph_that_names_it_runs() {
    let engines = replicas(2).await;
    let world = gateway(&engines);
    let painted = engines_picture(&world).await;
    let mut form = b"--cut\r\nContent-Disposition: form-data; name=\"image\"; filename=\"boat.png\"\r\nContent-Type: image/png\r\n\r\n".to_vec();
    form.extend_from_slice(&painted);
    form.extend_from_slice(b"\r\n--cut--\r\n");
    // An upload has no client id: what tells clients apart is where they come from.
    let kept =
        ask(&world, "POST", "/upload/image", &form, "multipart/form-data; boundary=cut").await;
    assert_eq!(kept.json()["name"], "boat.png", "{}", kept.text());
    let over = json!({"prompt": {
        "1": {"class_type": "LoadImage", "inputs": {"image": "boat.png"}},
        "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}},
    }});
    let body = over.to_string();
    let queued = ask(&world, "POST", "/prompt", body.as_bytes(), "application/json").await;
    assert_eq!(queued.status(), 200, "{}", queued.text());
}

async fn engines_picture(world: &World) -> Vec<u8> {
    let body = json!({"prompt": graph(1)}).to_string();
    let queued = ask(world, "POST", "/prompt", body.as_bytes(), "application/json").await.json();
    let id = queued["prompt_id"].as_str().unwrap().to_owned();
    let done = flexinfer_testkit::eventually_async(crate::world::BOUND, || async {
        get(world, &format!("/history/{id}")).await.json()[&id].is_object()
    });
    assert!(done.await, "it is painted");
    let told = get(world, &format!("/history/{id}")).await.json();
    let file = told[&id]["outputs"]["3"]["images"][0]["filename"].as_str().unwrap().to_owned();
    get(world, &format!("/view?filename={file}&type=output")).await.body
}
