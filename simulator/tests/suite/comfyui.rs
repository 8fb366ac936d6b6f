//! ComfyUI as its clients use it: a socket, a graph in the queue, its history and its pictures.

use std::time::Duration;

use flexinfer_simulator::{Settings, Timings};
use flexinfer_testkit::websocket::{Socket, Told};
use serde_json::{Value, json};

use crate::client::{World, reach};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

fn graph(output: &str, steps: u64) -> Value {
    let size = json!({"width": 64, "height": 32, "batch_size": 1});
    let sampler = json!({"seed": 5, "steps": steps, "model": ["4", 0], "positive": ["6", 0],
                         "latent_image": ["5", 0]});
    json!({
        "3": {"class_type": "KSampler", "inputs": sampler},
        "4": {"class_type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "m"}},
        "5": {"class_type": "EmptyLatentImage", "inputs": size},
        "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a red boat", "clip": ["4", 1]}},
        "8": {"class_type": "VAEDecode", "inputs": {"samples": ["3", 0], "vae": ["4", 2]}},
        "9": {"class_type": output, "inputs": {"images": ["8", 0]}},
    })
}

async fn socket(world: &World, client: &str) -> Socket {
    let path = format!("/ws?clientId={client}");
    let mut socket = Socket::open(world.engine.addr, &path, &[]).await.unwrap();
    assert_eq!(socket.hear_until("status").await[0]["data"]["sid"], client);
    socket
}

async fn queue(world: &World, root: &str, graph: &Value, client: &str) -> String {
    let ask = json!({"prompt": graph, "client_id": client});
    let (status, queued) = world.json(&format!("{root}/prompt"), &ask).await;
    assert_eq!(status, 200, "{queued}");
    queued["prompt_id"].as_str().unwrap().to_owned()
}

async fn get(world: &World, path: &str) -> Value {
    world.get(path).await.json().await.unwrap()
}

fn of_type<'e>(events: &'e [Value], kind: &'e str) -> impl Iterator<Item = &'e Value> {
    events.iter().filter(move |event| event["type"] == kind).map(|event| &event["data"])
}

#[tokio::test]
async fn a_client_hears_how_far_its_graph_is_and_fetches_the_picture() {
    let world = World::new(Settings::named("m")).await;
    for root in ["", "/api"] {
        let (mut own, mut other) = (socket(&world, "c1").await, socket(&world, "c2").await);
        let id = queue(&world, root, &graph("SaveImage", 3), "c1").await;
        let heard = own.hear_until("execution_success").await;
        let nodes: Vec<_> =
            of_type(&heard, "executing").map(|told| told["node"].as_str().unwrap()).collect();
        assert_eq!((nodes.len(), &nodes[3..]), (6, &["3", "8", "9"][..]), "{nodes:?}");
        let steps = of_type(&heard, "progress").map(|told| told["value"].as_u64().unwrap());
        assert_eq!(steps.collect::<Vec<_>>(), [1, 2, 3]);
        let last = own.hear_until("executing").await;
        assert_eq!(last.last().unwrap()["data"], json!({"node": null, "prompt_id": id}));
        let left = get(&world, &format!("{root}/prompt")).await;
        assert_eq!(left["exec_info"]["queue_remaining"], 0);

        let told = get(&world, &format!("{root}/history/{id}")).await;
        assert_eq!(told[&id]["status"]["status_str"], "success");
        let file = told[&id]["outputs"]["9"]["images"][0]["filename"].as_str().unwrap();
        let picture = world.get(&format!("{root}/view?filename={file}&type=output")).await;
        assert_eq!(picture.headers()["content-type"], "image/png");
        assert!(picture.bytes().await.unwrap().starts_with(PNG));

        // The other client has heard how much is left, and nothing of what is not its own.
        queue(&world, root, &graph("SaveImage", 0), "c2").await;
        let told = other.hear_until("execution_start").await;
        assert!(told.len() > 1 && of_type(&told, "status").count() == told.len() - 1, "{told:?}");
        other.hear_until("execution_success").await;
    }
    assert_eq!(get(&world, "/history/nothing").await, json!({}));
    assert_eq!(world.get("/view?filename=nothing").await.status(), 404);
}

#[tokio::test]
async fn a_picture_comes_over_the_socket_where_the_graph_says_so() {
    let world = World::new(Settings::named("m")).await;
    let mut socket = socket(&world, "c1").await;
    queue(&world, "", &graph("SaveImageWebsocket", 0), "c1").await;
    let picture = loop {
        match socket.hear().await {
            Told::Bytes(picture) => break picture,
            Told::Json(_) => {}
            Told::Closed => panic!("no picture came"),
        }
    };
    assert_eq!(picture[..8], [0, 0, 0, 1, 0, 0, 0, 2]);
    assert!(picture[8..].starts_with(PNG));
}

#[tokio::test]
async fn graphs_wait_their_turn_and_can_be_taken_back() {
    let timings = Timings { image_step: Duration::from_secs(60), ..Timings::default() };
    let world = World::new(Settings { timings, ..Settings::named("m") }).await;
    let mut socket = socket(&world, "c1").await;
    let first = queue(&world, "", &graph("SaveImage", 9), "c1").await;
    let second = queue(&world, "", &graph("SaveImage", 0), "c1").await;
    let third = queue(&world, "", &graph("SaveImage", 0), "c1").await;
    reach("the first runs", || world.engine.running() == 1).await;
    let queued = get(&world, "/queue").await;
    let ids = |which: &str| -> Vec<String> {
        let jobs = queued[which].as_array().unwrap().iter();
        jobs.map(|job| job[1].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (ids("queue_running"), ids("queue_pending")),
        (vec![first], vec![second, third.clone()])
    );
    world.post("/queue", &json!({"delete": [ids("queue_pending")[0]]})).await;
    world.post("/interrupt", &json!({})).await;
    let heard = socket.hear_until("execution_interrupted").await;
    assert_eq!(heard.last().unwrap()["data"]["node_id"], "3");
    let heard = socket.hear_until("execution_success").await;
    assert_eq!(heard.last().unwrap()["data"]["prompt_id"], third);
    reach("nothing runs", || world.engine.running() == 0).await;
    let history = get(&world, "/history").await;
    assert_eq!(history.as_object().unwrap().len(), 2, "what was taken back left nothing");
    world.post("/history", &json!({"clear": true})).await;
    assert_eq!(get(&world, "/history").await, json!({}));
}

#[tokio::test]
async fn an_uploaded_picture_can_be_painted_over_and_one_that_is_not_there_is_told() {
    let world = World::new(Settings::named("m")).await;
    let mut socket = socket(&world, "c1").await;
    queue(&world, "", &graph("SaveImage", 0), "c1").await;
    socket.hear_until("execution_success").await;
    let picture = world.get("/view?filename=ComfyUI_00001_.png").await.bytes().await.unwrap();
    assert!(picture.starts_with(PNG));
    let parts: [(&str, &str, &[u8]); 2] =
        [("image", "boat.png", &picture), ("subfolder", "", b"in")];
    let kept: Value = world.send_form("/upload/image", &parts).await.json().await.unwrap();
    assert_eq!(kept, json!({"name": "boat.png", "subfolder": "in", "type": "input"}));
    let over = |image: &str| {
        json!({
            "1": {"class_type": "LoadImage", "inputs": {"image": image}},
            "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}},
        })
    };
    queue(&world, "", &over("in/boat.png"), "c1").await;
    socket.hear_until("execution_success").await;
    let again = world.get("/view?filename=ComfyUI_00002_.png").await.bytes().await.unwrap();
    assert!(again.starts_with(PNG) && again != picture);
    let (status, refused) = world.json("/prompt", &json!({"prompt": over("in/cat.png")})).await;
    assert_eq!((status, &refused["node_errors"]["1"]["class_type"]), (400, &json!("LoadImage")));
    assert_eq!(world.json("/prompt", &json!({"prompt": 1})).await.0, 400);
    let known = get(&world, "/object_info/SaveImage").await;
    assert_eq!(known["SaveImage"]["output_node"], true);
}

#[tokio::test]
async fn a_socket_ends_with_its_engine() {
    let world = World::new(Settings::named("m")).await;
    let mut socket = socket(&world, "c1").await;
    world.engine.stop().await;
    assert_eq!(socket.hear().await, Told::Closed);
}
