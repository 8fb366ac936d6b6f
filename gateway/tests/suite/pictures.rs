//! Two clients of ComfyUI at one address, whose pictures have one name on two engines: each is shown its own or none,
//! also when an engine is gone.

use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::eventually_async;
use flexinfer_testkit::origin::{Action, Origin, answer};
use flexinfer_testkit::simulator::Running;
use flexinfer_testkit::websocket::Socket;
use serde_json::json;

use crate::sessions::{
    ask, gateway, gateway_of, gateway_to_one, graph, replica, replicas, spread_over,
};
use crate::world::{BOUND, World};
use flexinfer_core::routing::Strategy;

const VIEW: &str = "/view?filename=ComfyUI_00001_.png&type=output";
const JSON: &str = "application/json";

/// A client with one picture, and which engine painted it.
struct Painted {
    client: String,
    job: String,
    cookie: String,
    engine: usize,
    picture: Vec<u8>,
}

impl Painted {
    /// What its engine itself answers.
    async fn direct(&self, engines: &[Running], path: &str) -> Vec<u8> {
        let mut direct = Client::connect(engines[self.engine].addr).await.unwrap();
        direct.send(&request("GET", path, &[], b"")).await.unwrap();
        direct.answer_to("GET").await.unwrap().body
    }
}

async fn get(world: &World, path: &str) -> Answer {
    ask(world, "GET", path, b"", JSON).await
}

/// As a browser asks that was given a cookie.
async fn get_with(world: &World, cookie: &str, path: &str) -> Answer {
    let mut client = Client::connect(world.address).await.unwrap();
    let path = format!("/model/painter{path}");
    let headers = [("Cookie", format!("theme=dark; {cookie}"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    client.send(&request("GET", &path, &headers, b"")).await.unwrap();
    client.answer_to("GET").await.unwrap()
}

/// Lets `client` paint one picture, which is looked at on the engine itself.
async fn paint(world: &World, engines: &[Running], client: &str, seed: u64) -> Painted {
    let body = json!({"prompt": graph(seed), "client_id": client}).to_string();
    let queued = ask(world, "POST", "/prompt", body.as_bytes(), JSON).await;
    assert_eq!(queued.status(), 200, "{}", queued.text());
    let given = queued.head.header("set-cookie").expect("a cookie");
    assert!(given.ends_with("; Path=/model/painter; HttpOnly; SameSite=Lax"), "{given}");
    let cookie = given.split(';').next().unwrap().to_owned();
    let job = queued.json()["prompt_id"].as_str().unwrap().to_owned();
    let history = format!("/history/{job}");
    let done = || async { get(world, &history).await.json()[&job].is_object() };
    assert!(eventually_async(BOUND, done).await, "it is painted");
    for (engine, running) in engines.iter().enumerate() {
        let mut direct = Client::connect(running.addr).await.unwrap();
        direct.send(&request("GET", &history, &[], b"")).await.unwrap();
        if direct.answer_to("GET").await.unwrap().json()[&job].is_object() {
            direct.send(&request("GET", VIEW, &[], b"")).await.unwrap();
            let picture = direct.answer_to("GET").await.unwrap().body;
            return Painted { client: client.to_owned(), job, cookie, engine, picture };
        }
    }
    panic!("nobody painted it")
}

/// Two clients who meet different engines, each the first there.
async fn two(world: &World, engines: &[Running]) -> [Painted; 2] {
    let first = paint(world, engines, "c0", 0).await;
    for number in 1..64 {
        let next = paint(world, engines, &format!("c{number}"), number).await;
        if next.engine != first.engine {
            assert!(first.picture != next.picture);
            return [first, next];
        }
    }
    panic!("64 clients met one engine")
}

fn code(answer: &Answer) -> (u16, Option<&str>) {
    (answer.status(), answer.head.header("x-flexinfer-error-code"))
}

#[tokio::test]
async fn http_22_two_clients_at_one_address_are_never_shown_each_others_pictures() {
    let engines = replicas(3).await;
    let world = gateway(&engines);
    let clients = two(&world, &engines).await;
    // Both were told of a picture of this name, and nothing says who asks.
    for Painted { job, .. } in &clients {
        get(&world, &format!("/history/{job}")).await;
    }
    assert_eq!(code(&get(&world, VIEW).await), (409, Some("picture_uncertain")));
    let other = gateway(&engines);
    assert_eq!(code(&get(&other, VIEW).await), (404, Some("picture_unknown")));
    for Painted { client, job, cookie, picture, .. } in &clients {
        let said = format!("{VIEW}&clientId={client}");
        assert!(get(&world, &said).await.body == *picture, "{client} says who it is");
        assert_eq!(code(&get(&other, &said).await), (404, Some("picture_unknown")));
        for world in [&world, &other] {
            let shown = get_with(world, cookie, VIEW).await;
            assert!(shown.status() == 200 && shown.body == *picture, "{client} has a cookie");
            assert_eq!(shown.head.header("set-cookie"), None);
            let history = get(world, &format!("/history/{job}")).await.json();
            assert!(history[job].is_object(), "jobs have names of their own");
        }
    }
}

#[tokio::test]
async fn http_22_what_a_replaced_engine_had_is_gone_and_nobody_elses_is_shown() {
    let mut engines = replicas(3).await;
    let (world, other) = (gateway(&engines), gateway(&engines));
    let [lost, kept] = two(&world, &engines).await;
    engines[lost.engine] = replica(3).await;
    for world in [&world, &other] {
        spread_over(world, &engines);
    }
    // The new engine has a picture of that name as well, somebody else's.
    for number in 64.. {
        assert!(number < 128, "64 clients, and none met the new engine");
        let painted = paint(&world, &engines, &format!("c{number}"), number).await;
        if painted.engine == lost.engine {
            break;
        }
    }
    let history = format!("/history/{}", lost.job);
    for world in [&world, &other] {
        for path in [VIEW, &history] {
            let answer = get_with(world, &lost.cookie, path).await;
            assert_eq!(code(&answer), (410, Some("maker_gone")), "{path}: {}", answer.text());
        }
        assert!(get_with(world, &kept.cookie, VIEW).await.body == kept.picture);
    }
    let said = format!("{VIEW}&clientId={}", lost.client);
    assert_eq!(code(&get(&world, &said).await), (410, Some("maker_gone")));
    assert_eq!(code(&get(&world, &history).await), (410, Some("maker_gone")));
    assert_eq!(get(&other, &history).await.json(), json!({}), "nobody knows of it");
    // A new session begins, on one engine for all that is asked with the old cookie.
    let begun = get_with(&world, &lost.cookie, "/queue").await;
    let given = begun.head.header("set-cookie").expect("another cookie");
    assert_ne!(given.split(';').next(), Some(&*lost.cookie));
    let again = get_with(&other, &lost.cookie, "/queue").await;
    assert_eq!(again.head.header("set-cookie"), Some(given));
}

/// A client that is at another engine than before is not shown there what somebody else was told of.
#[tokio::test]
async fn http_22_a_client_that_came_to_another_engine_is_shown_there_what_it_was_told_of_there() {
    let engines = replicas(3).await;
    let (world, other) = (gateway(&engines), gateway(&engines));
    let [moved, kept] = two(&world, &engines).await;
    get_with(&world, &moved.cookie, &format!("/history/{}", moved.job)).await;
    assert!(get_with(&world, &moved.cookie, VIEW).await.body == moved.picture);
    for world in [&world, &other] {
        spread_over(world, &engines[kept.engine..=kept.engine]);
    }
    let begun = get_with(&world, &moved.cookie, "/queue").await;
    let given = begun.head.header("set-cookie").expect("another cookie").to_owned();
    let cookie = given.split(';').next().unwrap();
    assert_eq!(code(&get_with(&world, cookie, VIEW).await), (410, Some("maker_gone")));
    assert_eq!(code(&get_with(&other, cookie, VIEW).await), (404, Some("picture_unknown")));
    // Its jobs are its own by their names, and so is what comes of them.
    let job = json!({"prompt": graph(7), "client_id": moved.client}).to_string();
    let queued = ask(&world, "POST", "/prompt", job.as_bytes(), JSON).await.json();
    let id = queued["prompt_id"].as_str().unwrap();
    let history = format!("/history/{id}");
    for world in [&world, &other] {
        let told = || async { get_with(world, cookie, &history).await.json()[id].clone() };
        assert!(eventually_async(BOUND, async || told().await.is_object()).await, "painted");
        let image = told().await["outputs"]["3"]["images"][0]["filename"].clone();
        let view = format!("/view?filename={}&type=output", image.as_str().unwrap());
        let shown = get_with(world, cookie, &view).await;
        assert!(shown.body == kept.direct(&engines, &view).await, "{}", shown.status());
        assert_eq!(shown.head.header("set-cookie"), None, "it has its cookie");
    }
    let said = format!("{VIEW}&clientId={}", moved.client);
    assert_eq!(code(&get(&world, &said).await), (410, Some("maker_gone")));
    assert_eq!(code(&get_with(&world, cookie, VIEW).await), (410, Some("maker_gone")));
    assert!(get_with(&other, &kept.cookie, VIEW).await.body == kept.picture);
}

#[tokio::test]
async fn a_model_that_sleeps_is_not_woken_for_what_went_with_its_engines() {
    let engines = replicas(3).await;
    let world = gateway(&engines);
    let [lost, _] = two(&world, &engines).await;
    spread_over(&world, &[]);
    let booked = world.desk.booked();
    let history = format!("/history/{}", lost.job);
    for path in [VIEW, &history] {
        let answer = get_with(&world, &lost.cookie, path).await;
        assert_eq!(code(&answer), (410, Some("maker_gone")), "{path}");
    }
    for path in [history, format!("{VIEW}&clientId={}", lost.client)] {
        assert_eq!(code(&get(&world, &path).await), (410, Some("maker_gone")), "{path}");
    }
    assert_eq!(world.desk.booked(), booked);
}

#[tokio::test]
async fn an_engine_that_does_not_answer_for_a_moment_is_waited_for() {
    let engines = replicas(3).await;
    let world = gateway(&engines);
    let [first, second] = two(&world, &engines).await;
    let holder = engines[first.engine].addr;
    for path in [VIEW.to_owned(), format!("/history/{}", first.job)] {
        world.desk.set_open(holder, false);
        let asked = async {
            let answer = get_with(&world, &first.cookie, &path).await;
            assert_eq!(answer.status(), 200, "{path}: {}", answer.text());
            assert!(answer.body == first.direct(&engines, &path).await, "{path}");
        };
        let back = async {
            assert!(eventually_async(BOUND, async || world.desk.waiting() == 1).await);
            assert!(get_with(&world, &second.cookie, VIEW).await.body == second.picture);
            world.desk.set_open(holder, true);
        };
        tokio::join!(asked, back);
    }
    // One that does not come back is gone.
    world.desk.set_open(holder, false);
    let asked = get_with(&world, &first.cookie, VIEW);
    let goes = async {
        assert!(eventually_async(BOUND, async || world.desk.waiting() == 1).await);
        spread_over(&world, &engines[second.engine..=second.engine]);
    };
    let (answer, ()) = tokio::join!(asked, goes);
    assert_eq!(code(&answer), (410, Some("maker_gone")));
}

#[tokio::test]
async fn the_only_engine_of_a_model_is_asked_for_every_picture() {
    let mut engines = replicas(1).await;
    let world = gateway(&engines);
    let painted = paint(&world, &engines, "c1", 1).await;
    // In local mode engines have no names, whatever the file says of a cluster.
    let local = gateway_to_one(&engines[0], 2);
    assert!(get(&local, VIEW).await.body == painted.picture);
    // What it made may be on a claim, where the next one finds it.
    engines[0] = replica(1).await;
    spread_over(&world, &engines);
    for _ in 0..2 {
        for answer in [get_with(&world, &painted.cookie, VIEW).await, get(&world, VIEW).await] {
            assert_eq!(code(&answer), (404, None), "the engine says so: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn http_22_of_engines_that_somebody_else_scales_none_is_the_only_one() {
    let engines = replicas(1).await;
    let world = gateway_of(&engines[0], |effective| effective.scaled_elsewhere = true);
    spread_over(&world, &engines);
    assert_eq!(code(&get(&world, VIEW).await), (404, Some("picture_unknown")));
}

#[tokio::test]
async fn http_22_a_picture_that_a_client_heard_of_over_its_socket_is_shown_to_it() {
    let engines = replicas(3).await;
    let world = gateway(&engines);
    let path = "/model/painter/ws?clientId=c1";
    let offered = [("sec-websocket-extensions", "permessage-deflate")];
    let mut socket = Socket::open(world.address, path, &offered).await.expect("it opens");
    let body = json!({"prompt": graph(7), "client_id": "c1"}).to_string();
    ask(&world, "POST", "/prompt", body.as_bytes(), JSON).await;
    let heard = socket.hear_until("executed").await;
    let image = &heard.last().unwrap()["data"]["output"]["images"][0];
    let path = format!("/view?filename={}&type=output", image["filename"].as_str().unwrap());
    // What the gateway passes on it looks at as well, first.
    let shown = get(&world, &path).await;
    assert_eq!(shown.status(), 200, "{}", shown.text());
    assert_eq!(
        code(&get(&world, "/view?filename=other.png").await),
        (404, Some("picture_unknown"))
    );
}

#[tokio::test]
async fn http_22_clients_at_one_address_that_come_one_after_the_other_are_shown_their_own() {
    let engines = replicas(3).await;
    let world = gateway(&engines);
    let mut last = None;
    for number in 0..64 {
        let painted = paint(&world, &engines, &format!("c{number}"), number).await;
        let told = get(&world, &format!("/history/{}", painted.job)).await.json();
        let image = &told[&painted.job]["outputs"]["3"]["images"][0]["filename"];
        let view = format!("/view?filename={}&type=output", image.as_str().unwrap());
        let own = painted.direct(&engines, &view).await;
        assert!(get(&world, &view).await.body == own, "c{number}");
        if last.is_some_and(|last| last != painted.engine) {
            return;
        }
        last = Some(painted.engine);
    }
    panic!("64 clients met one engine");
}

#[tokio::test]
async fn http_22_a_browser_has_its_cookie_with_the_page() {
    let page = |_: &_| {
        let html = [("Content-Type", "text/html; charset=utf-8")];
        vec![Action::Write(answer(200, &html, b"<title>ComfyUI</title>"))]
    };
    let one = Origin::start(page).await.unwrap();
    let other = Origin::start(page).await.unwrap();
    let engines = replicas(1).await;
    let world = gateway(&engines);
    world.desk.spread(Strategy::RoundRobin, &[one.address, other.address]);
    let mut cookies = Vec::new();
    for _ in 0..2 {
        let given = get(&world, "/").await.head.header("set-cookie").unwrap().to_owned();
        let cookie = given.split(';').next().unwrap().to_owned();
        let counted = || [&one, &other].map(|engine| engine.requests().len());
        let before = counted();
        for path in ["/", "/scripts/app.js", "/api/userdata/x.json", "/queue"] {
            let answer = get_with(&world, &cookie, path).await;
            assert_eq!((answer.status(), answer.head.header("set-cookie")), (200, None), "{path}");
        }
        let after = counted();
        assert!(before[0] == after[0] || before[1] == after[1], "{before:?}, {after:?}");
        cookies.push(cookie);
    }
    let engine = |cookie: &str| cookie.split('.').next().map(str::to_owned);
    assert_ne!(engine(&cookies[0]), engine(&cookies[1]), "browsers take turns");
}
