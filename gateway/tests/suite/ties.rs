//! What one engine of several alone has: requests about it meet that one.

use std::collections::HashSet;
use std::net::SocketAddr;

use flexinfer_core::fleet::Served;
use flexinfer_core::limits::Policy;
use flexinfer_core::routing::Strategy;
use flexinfer_gateway::accounts::Accounts;
use flexinfer_gateway::keys::Keys;
use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::client::{Answer, Client, chunked_request, request};
use flexinfer_testkit::origin::{Action, Origin, answer, chunked_answer};

use crate::callers::{self, callers, with_keys};
use crate::websockets::UPGRADE;
use crate::world::{World, model};

fn of_backend(backend: &str) -> Served {
    Served::new(model("m", None).effective, backend, "", 0)
}

/// An engine that has only what it made itself, and says who it is.
async fn engine(name: &'static str) -> Origin {
    Origin::start(move |seen| {
        let target = seen.head.target();
        let id = format!("resp_{name}");
        let named = [("X-Engine", name)];
        let json = match (seen.head.method(), target) {
            ("POST", "/v1/responses") => format!(r#"{{"id":"{id}","object":"response"}}"#),
            ("POST", "/prompt") => format!(r#"{{"prompt_id":"p_{name}","number":1}}"#),
            ("GET", path) if path.starts_with("/history/") => {
                format!(r#"{{"p_{name}":{{"outputs":{{"9":{{"images":[{{"filename":"p_{name}.png"}}]}}}}}}}}"#)
            }
            _ if target.starts_with("/v1/responses/") && !target.contains(&id) => {
                return vec![Action::Write(answer(404, &named, b"{}"))];
            }
            _ => "{}".to_owned(),
        };
        vec![Action::Write(answer(200, &named, json.as_bytes()))]
    })
    .await
    .unwrap()
}

async fn engines() -> (Vec<Origin>, Vec<SocketAddr>) {
    let engines = vec![engine("a").await, engine("b").await, engine("c").await];
    let addresses = engines.iter().map(|engine| engine.address).collect();
    (engines, addresses)
}

fn gateway(backend: &str, engines: &[SocketAddr]) -> World {
    let world = World::new(engines[0], vec![of_backend(backend)]);
    world.desk.spread(Strategy::RoundRobin, engines);
    world
}

async fn ask(world: &World, method: &str, path: &str, body: &str) -> Answer {
    let mut client = Client::connect(world.address).await.unwrap();
    let headers = [("X-Model-ID", "m")];
    client.send(&request(method, path, &headers, body.as_bytes())).await.unwrap();
    client.answer_to(method).await.unwrap()
}

/// Asks for a socket, which these engines do not open.
async fn handshake(world: &World, client: &str) -> Answer {
    let path = format!("/model/m/ws?clientId={client}");
    callers::ask(world, "GET", &path, &UPGRADE, b"").await
}

fn by(answer: &Answer) -> String {
    answer.head.header("x-engine").unwrap_or_else(|| panic!("{}", answer.text())).to_owned()
}

#[tokio::test]
async fn a_stored_response_is_asked_of_the_engine_that_stores_it() {
    let (_engines, addresses) = engines().await;
    let world = gateway("vllm", &addresses);
    for _ in 0..3 {
        let made = ask(&world, "POST", "/v1/responses", r#"{"model":"m","input":"Hi"}"#).await;
        let id = made.json()["id"].as_str().unwrap().to_owned();
        for (method, path) in [
            ("GET", format!("/v1/responses/{id}")),
            ("GET", format!("/v1/responses/{id}/input_items")),
            ("POST", format!("/v1/responses/{id}/cancel")),
            ("DELETE", format!("/v1/responses/{id}")),
        ] {
            let answer = ask(&world, method, &path, "").await;
            assert_eq!((answer.status(), by(&answer)), (200, by(&made)), "{method} {path}");
        }
        let more = format!(r#"{{"model":"m","input":"More","previous_response_id":"{id}"}}"#);
        assert_eq!(by(&ask(&world, "POST", "/v1/responses", &more).await), by(&made));
    }
}

/// As the libraries of clients ask: they name no model.
pub(crate) async fn ask_without_model(
    world: &World,
    key: &[(&str, &str)],
    method: &str,
    path: &str,
) -> Answer {
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request(method, path, key, b"")).await.unwrap();
    client.answer_to(method).await.unwrap()
}

const FOLLOW_UPS: [(&str, &str); 4] =
    [("GET", ""), ("GET", "/input_items"), ("POST", "/cancel"), ("DELETE", "")];

#[tokio::test]
async fn a_stored_response_needs_no_name_of_its_model() {
    let (_engines, addresses) = engines().await;
    let named = |name| Served::new(model(name, None).effective, "vllm", "", 0);
    let world = World::new(addresses[0], vec![named("m"), named("n")]);
    world.desk.spread(Strategy::RoundRobin, &addresses);
    for _ in 0..3 {
        let made = ask(&world, "POST", "/v1/responses", r#"{"model":"m","input":"Hi"}"#).await;
        let id = made.json()["id"].as_str().unwrap().to_owned();
        for (method, rest) in FOLLOW_UPS {
            let path = format!("/v1/responses/{id}{rest}");
            let answer = ask_without_model(&world, &[], method, &path).await;
            assert_eq!((answer.status(), by(&answer)), (200, by(&made)), "{method} {path}");
        }
    }
    world.desk.wake("m");
    world.desk.wake("n");
    assert_unknown(&ask_without_model(&world, &[], "GET", "/v1/responses/resp_x").await);
}

fn assert_unknown(answer: &Answer) {
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.json()["error"]["code"], "response_not_found");
    assert!(answer.text().contains("X-Model-ID"), "{}", answer.text());
}

#[tokio::test]
async fn a_response_that_another_gateway_saw_made_is_of_the_only_model_that_stores_any() {
    let (_engines, addresses) = engines().await;
    let models = [("m", "vllm"), ("asleep", "vllm"), ("l", "llamacpp"), ("o", "ollama")];
    let models =
        models.map(|(name, backend)| Served::new(model(name, None).effective, backend, "", 0));
    let world = World::new(addresses[0], models.into());
    world.desk.spread(Strategy::RoundRobin, &addresses);
    for awake in ["m", "l", "o"] {
        world.desk.wake(awake);
    }
    let answer = ask_without_model(&world, &[], "GET", "/v1/responses/resp_c").await;
    assert_eq!((answer.status(), by(&answer).as_str()), (200, "c"));
}

#[tokio::test]
async fn a_response_that_nobody_made_wakes_no_model() {
    let (_engines, addresses) = engines().await;
    let world = gateway("vllm", &addresses);
    for (method, more) in FOLLOW_UPS {
        let path = format!("/v1/responses/resp_x{more}");
        assert_unknown(&ask_without_model(&world, &[], method, &path).await);
    }
    assert_eq!(world.desk.booked(), 0);
    // Whoever names the model wants it to be asked.
    let named = ask(&world, "GET", "/v1/responses/resp_c", "").await;
    assert_eq!((named.status(), by(&named).as_str()), (200, "c"));
}

#[tokio::test]
async fn a_model_that_sleeps_is_not_woken_for_a_response_that_went_with_its_engine() {
    let (engines, addresses) = engines().await;
    let world = gateway("vllm", &addresses);
    let made = ask(&world, "POST", "/v1/responses", r#"{"model":"m","input":"Hi"}"#).await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    world.desk.sleep("m");
    let asked = || engines.iter().map(|engine| engine.requests().len()).sum::<usize>();
    let before = (world.desk.booked(), asked());
    for (method, more) in FOLLOW_UPS {
        let path = format!("/v1/responses/{id}{more}");
        let named = ask(&world, method, &path, "").await;
        for lost in [ask_without_model(&world, &[], method, &path).await, named] {
            assert_eq!(lost.status(), 404, "{method} {path}");
            assert!(lost.text().contains("is not stored any more"), "{}", lost.text());
            assert_eq!(lost.json()["error"]["code"], "response_not_found", "{method} {path}");
        }
    }
    assert_eq!((world.desk.booked(), asked()), before);
    // What goes on from it asks for something new.
    let more = format!(r#"{{"model":"m","input":"More","previous_response_id":"{id}"}}"#);
    assert_eq!(ask(&world, "POST", "/v1/responses", &more).await.status(), 200);
    world.desk.wake("m");
    let path = format!("/v1/responses/{id}");
    assert_eq!(by(&ask_without_model(&world, &[], "GET", &path).await), by(&made));
    // Who runs an engine elsewhere may have it keep responses for longer than it lives.
    let external = gateway("external", &addresses);
    external.desk.sleep("m");
    assert_eq!(by(&ask(&external, "GET", "/v1/responses/resp_c", "").await), "c");
}

#[tokio::test]
async fn an_engine_that_keeps_no_responses_is_not_woken_for_one() {
    let (_engines, addresses) = engines().await;
    for backend in ["llamacpp", "ollama"] {
        let world = gateway(backend, &addresses);
        let made = ask(&world, "POST", "/v1/responses", r#"{"model":"m","input":"Hi"}"#).await;
        assert_eq!(made.status(), 200);
        for (method, more) in FOLLOW_UPS {
            let path = format!("/v1/responses/resp_a{more}");
            let answer = ask(&world, method, &path, "").await;
            assert_eq!(answer.json()["error"]["code"], "api_not_served", "{backend} {path}");
            assert_unknown(&ask_without_model(&world, &[], method, &path).await);
        }
        assert_eq!(world.desk.booked(), 1, "{backend}");
    }
}

#[tokio::test]
async fn a_stored_response_of_a_model_that_a_caller_may_not_use_is_unknown_to_it() {
    let engine = engine("a").await;
    let file = "callers:\n\
        - {name: a, sha256: 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90}\n\
        - {name: b, sha256: 81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9, models: [n]}\n";
    let rules = Rules { keys: Some(Keys::fixed(callers(file))), ..Rules::default() };
    let world = World::ruled(engine.address, vec![of_backend("vllm")], rules);
    let alice = [("Authorization", "Bearer alice"), ("X-Model-ID", "m")];
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&request("POST", "/v1/responses", &alice, b"{}")).await.unwrap();
    let made = client.answer().await.unwrap();
    let path = format!("/v1/responses/{}", made.json()["id"].as_str().unwrap());
    assert_eq!(ask_without_model(&world, &alice[..1], "GET", &path).await.status(), 200);
    let bob = [("Authorization", "Bearer bob")];
    let refused = ask_without_model(&world, &bob, "GET", &path).await;
    assert_eq!(refused.json()["error"]["code"], "response_not_found");
    assert_eq!(engine.requests().len(), 2);
}

/// A gateway whose caller has so many tokens a minute.
pub(crate) fn counting(engine: SocketAddr, tokens: u32) -> World {
    let file = format!(
        "callers: [{{name: a, limits: {{tokensPerMinute: {tokens}}}, \
        sha256: 2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90}}]"
    );
    let rules = Rules {
        keys: Some(Keys::fixed(callers(&file))),
        accounts: Some(Accounts::new(Policy::default())),
        default_max_tokens: 256,
        ..Rules::default()
    };
    World::ruled(engine, vec![of_backend("vllm")], rules)
}

#[tokio::test]
async fn to_look_at_a_stored_response_again_costs_no_tokens() {
    let made =
        r#"{"id":"resp_a","object":"response","usage":{"input_tokens":0,"output_tokens":80}}"#;
    let engine = Origin::answering(made).await.unwrap();
    let world = counting(engine.address, 100);
    let key = [("Authorization", "Bearer alice"), ("X-Model-ID", "m")];
    let mut client = Client::connect(world.address).await.unwrap();
    let body = br#"{"model":"m","input":"Hi","max_output_tokens":80}"#;
    client.send(&request("POST", "/v1/responses", &key, body)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    for (method, more) in FOLLOW_UPS.iter().cycle().take(8) {
        let path = format!("/v1/responses/resp_a{more}");
        let answer = ask_without_model(&world, &key, method, &path).await;
        assert_eq!(answer.status(), 200, "{method} {path}: {}", answer.text());
    }
    client.send(&request("POST", "/v1/responses", &key, body)).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 429, "what was made is charged");
}

#[tokio::test]
async fn a_gateway_that_did_not_see_a_response_made_asks_around_and_remembers() {
    let (engines, addresses) = engines().await;
    let world = gateway("vllm", &addresses);
    let answer = ask(&world, "GET", "/v1/responses/resp_c", "").await;
    assert_eq!((answer.status(), by(&answer).as_str()), (200, "c"));
    let asked = || engines.iter().map(|engine| engine.requests().len()).sum::<usize>();
    let before = asked();
    assert_eq!(by(&ask(&world, "GET", "/v1/responses/resp_c", "").await), "c");
    assert_eq!(asked(), before + 1, "it is known now");
    let nowhere = ask(&world, "GET", "/v1/responses/resp_x", "").await;
    assert_eq!(nowhere.status(), 404, "nobody has it");
}

#[tokio::test]
async fn http_22_a_client_of_comfyui_meets_one_engine_with_all_it_asks() {
    let (_engines, addresses) = engines().await;
    let world = gateway("comfyui", &addresses);
    let mut met = HashSet::new();
    for number in 0..20 {
        let client = format!("c{number}");
        let socket = handshake(&world, &client).await;
        let job = format!(r#"{{"prompt":{{}},"client_id":"{client}"}}"#);
        let prompt = ask(&world, "POST", "/model/m/prompt", &job).await;
        let id = prompt.json()["prompt_id"].as_str().unwrap().to_owned();
        let history = ask(&world, "GET", &format!("/model/m/history/{id}"), "").await;
        let view = ask(&world, "GET", &format!("/model/m/view?filename={id}.png"), "").await;
        let film = format!("/model/m/vhs/viewvideo?filename={id}.png");
        let film = ask(&world, "GET", &film, "").await;
        let all = [&socket, &prompt, &history, &view, &film].map(by);
        assert!(all.iter().all(|engine| *engine == all[0]), "{client}: {all:?}");
        met.insert(all[0].clone());
    }
    assert_eq!(met.len(), 3, "clients are spread");
    for path in ["/view", "/viewvideo", "/vhs/viewvideo"] {
        let path = format!("/model/m{path}?filename=untold.mp4");
        let unknown = ask(&world, "GET", &path, "").await;
        assert_eq!(
            unknown.head.header("x-flexinfer-error-code"),
            Some("picture_unknown"),
            "{path}"
        );
    }
    // An id that takes much room is nobody's, and leaves nothing behind.
    let long = "x".repeat(1 << 20);
    let job = format!(r#"{{"delete":[],"client_id":"{long}"}}"#);
    assert_eq!(ask(&world, "POST", "/model/m/queue", &job).await.status(), 200);
    let wish = world.desk.wishes().pop().expect("it was booked");
    assert!(wish.key.is_some_and(|key| key.text().len() < 256), "by its address");
    // Another gateway comes to the same engines without having seen anything.
    let other = gateway("comfyui", &addresses);
    for number in 0..20 {
        let client = format!("c{number}");
        let (one, same) = (handshake(&world, &client).await, handshake(&other, &client).await);
        assert_eq!(by(&one), by(&same));
    }
}

#[tokio::test]
async fn http_22_a_cookie_leads_back_where_callers_have_keys_as_well() {
    let (engines, addresses) = engines().await;
    let world = World::ruled(engines[0].address, vec![of_backend("comfyui")], with_keys());
    world.desk.spread(Strategy::RoundRobin, &addresses);
    let (mut met, key) = (Vec::new(), ("Authorization", "Bearer alice"));
    for number in 0..20 {
        let job = format!(r#"{{"prompt":{{}},"client_id":"c{number}"}}"#);
        let taken = callers::ask(&world, "POST", "/model/m/prompt", &[key], job.as_bytes()).await;
        let cookie = taken.head.header("set-cookie").and_then(|given| given.split(';').next());
        met.push((by(&taken), cookie.expect("a cookie").to_owned()));
    }
    // Only now: at once, each would come back by its address as well.
    for (number, (engine, cookie)) in met.iter().enumerate() {
        let headers = [key, ("Cookie", cookie)];
        let queue = callers::ask(&world, "GET", "/model/m/queue", &headers, b"").await;
        assert_eq!(by(&queue), *engine, "c{number}");
    }
    assert_eq!(met.iter().map(|(engine, _)| engine).collect::<HashSet<_>>().len(), 3, "spread");
    assert!(engines.iter().flat_map(Origin::requests).all(|seen| seen.head.count("cookie") == 0));
}

/// Engines whose answers do not say how long they are, each of which has one job; the last one alone takes new ones.
async fn engines_of_unsaid_length() -> (Vec<Origin>, Vec<SocketAddr>) {
    let mut engines = Vec::new();
    for name in ["a", "b", "c"] {
        let engine = Origin::start(move |seen| {
            let named = [("X-Engine", name)];
            let job = format!("p_{name}");
            let json = match seen.head.target() {
                "/prompt" if name == "c" => format!(r#"{{"prompt_id":"{job}","number":1}}"#),
                "/prompt" => {
                    return vec![Action::Write(answer(503, &[("Retry-After", "1")], b"{}"))];
                }
                path if path.ends_with(&job) => format!(r#"{{"{job}":{{"outputs":{{}}}}}}"#),
                _ => "{}".to_owned(),
            };
            vec![Action::Write(chunked_answer(200, &named, json.as_bytes(), &[1]))]
        });
        engines.push(engine.await.unwrap());
    }
    let addresses = engines.iter().map(|engine| engine.address).collect();
    (engines, addresses)
}

#[tokio::test]
async fn an_engine_that_says_nothing_of_a_job_at_any_length_is_not_taken_for_its_own() {
    let (engines, addresses) = engines_of_unsaid_length().await;
    let world = gateway("comfyui", &addresses);
    for name in ["a", "b", "c"] {
        let path = format!("/model/m/history/p_{name}");
        let mut met = Vec::new();
        while met.last().is_none_or(|last| last != name) {
            assert!(met.len() < engines.len(), "{name} is not met: {met:?}");
            met.push(by(&ask(&world, "GET", &path, "").await));
        }
        for _ in 0..engines.len() {
            assert_eq!(by(&ask(&world, "GET", &path, "").await), name, "it is known now");
        }
    }
}

#[tokio::test]
async fn a_job_that_says_nothing_is_where_it_was_taken_after_others_were_busy() {
    let (_engines, addresses) = engines_of_unsaid_length().await;
    let world = gateway("comfyui", &addresses);
    let job = chunked_request("POST", "/model/m/prompt", &[], b"{}", &[1, 1]);
    let mut client = Client::connect(world.address).await.unwrap();
    client.send(&job).await.unwrap();
    let taken = client.answer().await.unwrap();
    assert_eq!((by(&taken).as_str(), taken.json()["prompt_id"].as_str()), ("c", Some("p_c")));
    assert_eq!(by(&ask(&world, "GET", "/model/m/history/p_c", "").await), "c");
}
