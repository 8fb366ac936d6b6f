//! How much may be sent: over real sockets, with the answers that clients see.

use std::sync::Arc;

use flexinfer_core::fleet::Served;
use flexinfer_core::limits::{Policy, Rate};
use flexinfer_gateway::accounts::Accounts;
use flexinfer_gateway::keys::Keys;
use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer, chunked_answer};
use tokio::sync::Notify;

use crate::callers::{ask, callers};
use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
pub(crate) const ASK: &[u8] = br#"{"model":"m"}"#;
const KEY: [(&str, &str); 1] = [("Authorization", "Bearer alice")];
const SHA256: &str = "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
const BOB: &str = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9";
const EVENTS: &[(&str, &str)] = &[("Content-Type", "text/event-stream")];

/// One caller with these limits.
pub(crate) fn limited(limits: &str) -> Rules {
    let file = format!("callers: [{{name: a, sha256: {SHA256}, limits: {{{limits}}}}}]");
    Rules {
        keys: Some(Keys::fixed(callers(&file))),
        accounts: Some(Accounts::new(Policy::default())),
        default_max_tokens: 256,
        ..Rules::default()
    }
}

fn policy(policy: Policy) -> Rules {
    Rules { accounts: Some(Accounts::new(policy)), ..Rules::default() }
}

pub(crate) async fn chat(world: &World, body: &[u8]) -> Answer {
    ask(world, "POST", CHAT, &KEY, body).await
}

pub(crate) fn metric(world: &World, line: &str) -> bool {
    String::from_utf8(world.metrics.page().unwrap()).unwrap().lines().any(|found| found == line)
}

/// An engine that answers when it is told to.
async fn patient() -> (Origin, Arc<Notify>) {
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let script =
        move |_: &_| vec![Action::Wait(Arc::clone(&wait)), Action::Write(answer(200, &[], b"{}"))];
    (Origin::start(script).await.unwrap(), go)
}

#[tokio::test]
async fn rate_02_never_more_at_once_than_may_be() {
    let (engine, go) = patient().await;
    let rules = limited("concurrentRequests: 5");
    let world = Arc::new(World::ruled(engine.address, vec![model("m", None)], rules));
    let asking: Vec<_> = (0..100)
        .map(|_| {
            let world = Arc::clone(&world);
            tokio::spawn(async move { chat(&world, ASK).await })
        })
        .collect();
    let refused = || asking.iter().filter(|asking| asking.is_finished()).count();
    assert!(eventually(BOUND, || refused() == 95).await, "{} refused", refused());
    assert!(eventually(BOUND, || engine.requests().len() == 5).await);
    for _ in 0..5 {
        go.notify_one();
    }
    let mut statuses = Vec::new();
    for asking in asking {
        statuses.push(asking.await.unwrap().status());
    }
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 5);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 95);
    go.notify_one();
    assert_eq!(chat(&world, ASK).await.status(), 200, "a place is free again");
}

#[tokio::test]
async fn the_callers_of_a_tenant_share_its_limits() {
    let engine = Origin::answering("{}").await.unwrap();
    let file = format!(
        "tenants: [{{name: team, limits: {{requestsPerMinute: 1, burst: 2}}}}]\n\
         callers:\n- {{name: a, sha256: {SHA256}, tenant: team}}\n\
         - {{name: b, sha256: {BOB}, tenant: team, limits: {{concurrentRequests: 9}}}}\n"
    );
    let rules = Rules {
        keys: Some(Keys::fixed(callers(&file))),
        accounts: Some(Accounts::new(Policy::default())),
        ..Rules::default()
    };
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let bob = [("Authorization", "Bearer bob")];
    let first = chat(&world, ASK).await;
    assert_eq!(first.status(), 200);
    assert_eq!(first.head.header("x-ratelimit-remaining-requests"), Some("1"));
    assert_eq!(ask(&world, "POST", CHAT, &bob, ASK).await.status(), 200);
    for key in [KEY, bob] {
        let refused = ask(&world, "POST", CHAT, &key, ASK).await;
        assert_eq!(refused.status(), 429, "{key:?}");
        assert!(refused.text().contains("all API keys of this tenant"), "{}", refused.text());
        assert!(refused.head.header("retry-after").is_some());
    }
    let line = r#"flexinfer_proxy_rate_limited_total{model="m",scope="per_tenant"} 2"#;
    assert!(eventually(BOUND, || metric(&world, line)).await);
}

#[tokio::test]
async fn rate_03_a_refused_request_spends_nothing() {
    let (engine, go) = patient().await;
    let rules = limited("concurrentRequests: 1, requestsPerMinute: 1, burst: 2");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let mut running = Client::connect(world.address).await.unwrap();
    running.send(&request("POST", CHAT, &KEY, ASK)).await.unwrap();
    assert!(eventually(BOUND, || engine.requests().len() == 1).await);
    assert_eq!(chat(&world, ASK).await.status(), 429);
    assert_eq!(chat(&world, br#"{"model":"unknown"}"#).await.status(), 404);
    assert_eq!(chat(&world, b"{").await.status(), 400);
    go.notify_one();
    assert_eq!(running.answer().await.unwrap().status(), 200);
    go.notify_one();
    assert_eq!(chat(&world, ASK).await.status(), 200);
    assert_eq!(chat(&world, ASK).await.status(), 429);
}

#[tokio::test]
async fn rate_03_a_full_queue_spends_nothing() {
    let engine = Origin::answering("{}").await.unwrap();
    let rules = limited("requestsPerMinute: 1, burst: 1");
    // The desk refuses what it has no engine for, as a full queue.
    let world = World::ruled(engine.address, vec![model("m", None), model("n", None)], rules);
    world.desk.forget_engine("n");
    for _ in 0..3 {
        assert_eq!(chat(&world, br#"{"model":"n"}"#).await.status(), 503);
    }
    assert_eq!(chat(&world, ASK).await.status(), 200);
    assert_eq!(chat(&world, ASK).await.status(), 429);
}

#[tokio::test]
async fn rate_08_a_refusal_says_when_to_come_back() {
    let engine = Origin::answering("{}").await.unwrap();
    let rules = limited("requestsPerMinute: 2, burst: 1");
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let passed = chat(&world, ASK).await;
    assert_eq!(passed.head.header("x-ratelimit-limit-requests"), Some("1"));
    assert_eq!(passed.head.header("x-ratelimit-remaining-requests"), Some("0"));
    let refused = chat(&world, ASK).await;
    assert_eq!(
        (refused.status(), &refused.json()["error"]["type"]),
        (429, &"rate_limit_error".into())
    );
    let seconds: u64 = refused.head.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=30).contains(&seconds), "{seconds}");
    assert_eq!(refused.head.header("x-ratelimit-limit-requests"), Some("1"));
    assert!(refused.head.header("x-ratelimit-reset-requests").unwrap().ends_with('s'));
    assert!(
        eventually(BOUND, || metric(
            &world,
            r#"flexinfer_proxy_rate_limited_total{model="m",scope="per_caller"} 1"#
        ))
        .await
    );
    assert!(
        eventually(BOUND, || metric(
            &world,
            r#"flexinfer_proxy_requests_total{model="m",status="rate_limited"} 1"#
        ))
        .await
    );
}

#[tokio::test]
async fn rate_08_a_limit_of_zero_is_403_and_not_to_be_retried() {
    let engine = Origin::answering("{}").await.unwrap();
    for limits in ["requestsPerSecond: 0", "concurrentRequests: 0", "tokensPerMinute: 0"] {
        let world = World::ruled(engine.address, vec![model("m", None)], limited(limits));
        let refused = chat(&world, ASK).await;
        assert_eq!(refused.status(), 403, "{limits}");
        assert_eq!(refused.head.header("x-should-retry"), Some("false"));
        assert_eq!(refused.head.header("retry-after"), None);
    }
    assert_eq!(engine.begun(), 0);
}

#[tokio::test]
async fn the_gateways_limits_hold_for_each_model_and_for_all() {
    let engine = Origin::answering("{}").await.unwrap();
    let models = || vec![model("m", None), model("n", None), model("o", None)];
    let limits =
        Policy { global: Some(Rate::per_minute(1, 2)), per_model: Some(Rate::per_minute(1, 1)) };
    let world = World::ruled(engine.address, models(), policy(limits));
    let status = async |name: &str| {
        let body = format!(r#"{{"model":"{name}"}}"#);
        ask(&world, "POST", CHAT, &[], body.as_bytes()).await.status()
    };
    assert_eq!(status("m").await, 200);
    assert_eq!(status("m").await, 429);
    assert_eq!(status("n").await, 200);
    assert_eq!(status("o").await, 429);
    assert!(
        eventually(BOUND, || metric(
            &world,
            r#"flexinfer_proxy_rate_limited_total{model="o",scope="global"} 1"#
        ))
        .await
    );
    // A model in the head is refused before the body is invited.
    let mut client = Client::connect(world.address).await.unwrap();
    let head = format!(
        "POST /model/m{CHAT} HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n"
    );
    client.send(head.as_bytes()).await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 429);
}

/// A stream of so many events with a character each, and its usage if it was asked for.
fn stream(body: &[u8], completion: u64) -> Vec<u8> {
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\n";
    let mut text = event.repeat(usize::try_from(completion).unwrap());
    let asked: serde_json::Value = serde_json::from_slice(body).unwrap();
    if asked["stream_options"]["include_usage"] == true {
        let usage = format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":0,\"completion_tokens\":{completion}}}}}\n\n"
        );
        text.push_str(&usage);
    }
    text.push_str("data: [DONE]\n\n");
    chunked_answer(200, EVENTS, text.as_bytes(), &[100])
}

#[tokio::test]
async fn body_19_a_stream_is_charged_whether_its_client_asks_for_usage_or_not() {
    for tells in [true, false] {
        let engine = Origin::start(move |seen| {
            let asked = if tells { seen.body.clone() } else { b"{}".to_vec() };
            vec![Action::WriteSplit(stream(&asked, 80), 37)]
        })
        .await
        .unwrap();
        let rules = limited("tokensPerMinute: 100");
        let world = World::ruled(engine.address, vec![model("m", None)], rules);
        let body = br#"{"model":"m","stream":true,"max_tokens":80}"#;
        let first = chat(&world, body).await;
        assert_eq!(first.status(), 200);
        assert!(first.text().ends_with("data: [DONE]\n\n"));
        assert!(
            !first.text().contains("usage"),
            "what the client did not ask for: {}",
            first.text()
        );
        assert_eq!(first.text().matches("delta").count(), 80);
        for _ in 0..4 {
            let refused = chat(&world, body).await;
            assert_eq!(refused.status(), 429, "tells: {tells}");
            assert_eq!(refused.head.header("x-ratelimit-limit-tokens"), Some("100"));
        }
        // What is left is there for a smaller one.
        let small = br#"{"model":"m","stream":true,"max_tokens":10}"#;
        assert_eq!(chat(&world, small).await.status(), 200, "tells: {tells}");
    }
}

#[tokio::test]
async fn body_19_an_answer_that_is_counted_is_not_asked_for_compressed() {
    let engine = Origin::answering(r#"{"usage":{"prompt_tokens":1,"completion_tokens":2}}"#);
    let engine = engine.await.unwrap();
    let world =
        World::ruled(engine.address, vec![model("m", None)], limited("tokensPerMinute: 9000"));
    let gzip = [KEY[0], ("Accept-Encoding", "gzip, deflate, br")];
    let left = |answer: &Answer| -> u64 {
        answer.head.header("x-ratelimit-remaining-tokens").unwrap().parse().unwrap()
    };
    let body = br#"{"model":"m","max_tokens":5000}"#;
    assert_eq!(ask(&world, "POST", CHAT, &gzip, body).await.status(), 200);
    let seen = engine.requests().last().unwrap().head.header("accept-encoding").map(str::to_owned);
    assert_eq!(seen.as_deref(), Some("identity"));
    assert!(eventually(BOUND, || world.at_rest()).await);
    let second = ask(&world, "POST", CHAT, &gzip, body).await;
    assert!(left(&second) >= 9000 - 3 - 5000, "the first was charged by what it told");
    // What says nothing of it is left alone, and so is what nobody reads.
    ask(&world, "POST", CHAT, &KEY, br#"{"model":"m","max_tokens":1}"#).await;
    assert_eq!(engine.requests().last().unwrap().head.header("accept-encoding"), None);
    ask(&world, "GET", "/model/m/page", &gzip, b"").await;
    let seen = engine.requests().last().unwrap().head.header("accept-encoding").map(str::to_owned);
    assert_eq!(seen.as_deref(), Some("gzip, deflate, br"));
}

#[tokio::test]
async fn a_client_that_asks_for_usage_sees_it() {
    let engine = Origin::start(|seen| vec![Action::Write(stream(&seen.body, 3))]).await.unwrap();
    let world =
        World::ruled(engine.address, vec![model("m", None)], limited("tokensPerMinute: 9000"));
    let body = br#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    assert!(chat(&world, body).await.text().contains("completion_tokens"));
    assert_eq!(engine.requests()[0].body, body);
}

#[tokio::test]
async fn body_17_what_is_no_stream_is_not_asked_for_usage() {
    let engine = Origin::answering("{}").await.unwrap();
    let world =
        World::ruled(engine.address, vec![model("m", None)], limited("tokensPerMinute: 9000"));
    for stream in
        ["", r#","stream":false"#, r#","stream":null"#, r#","stream":"true""#, r#","stream":1"#]
    {
        let body = format!(r#"{{"model":"m"{stream}}}"#);
        assert_eq!(chat(&world, body.as_bytes()).await.status(), 200);
        assert_eq!(engine.requests().last().unwrap().body, body.as_bytes());
    }
}

/// An answer that begins a stream with these bytes, in chunks of `size`, and does not end it.
fn begun(kind: &str, text: &str, size: usize) -> Vec<u8> {
    let whole = chunked_answer(200, &[("Content-Type", kind)], text.as_bytes(), &[size]);
    whole.strip_suffix(b"0\r\n\r\n").unwrap().to_owned()
}

#[tokio::test]
async fn body_19_a_stream_that_is_left_is_charged_for_what_came() {
    const EVENTS: &str = "text/event-stream";
    let anthropics = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":\
        {\"input_tokens\":1,\"output_tokens\":1}}}\n\n";
    let lines = "{\"message\":{\"content\":\"x\"},\"done\":false}\n".repeat(90);
    for (path, kind, start, rest, size, tell) in [
        (CHAT, EVENTS, "", "data: x\n\n".repeat(90), 9, r#""max_tokens":100"#),
        (CHAT, EVENTS, "", "data: x\r\n\r\n".repeat(90), 11, r#""max_tokens":100"#),
        // The end of each event is cut.
        (CHAT, EVENTS, "", "data: x\n\n".repeat(90), 8, r#""max_tokens":100"#),
        ("/v1/messages", EVENTS, anthropics, "data: x\n\n".repeat(89), 40, r#""max_tokens":100"#),
        ("/api/chat", "application/x-ndjson", "", lines, 30, r#""options":{"num_predict":100}"#),
    ] {
        let text = format!("{start}{rest}");
        let answer_begun = begun(kind, &text, size);
        let engine = Origin::start(move |seen| match seen.connection {
            0 => vec![Action::Write(answer_begun.clone()), Action::Hang],
            _ => vec![Action::Write(answer(200, &[], b"{}"))],
        })
        .await
        .unwrap();
        let rules = limited("tokensPerMinute: 100");
        let simulator = Served::new(model("m", None).effective, "simulator", "", 0);
        let world = World::ruled(engine.address, vec![simulator], rules);
        let body = format!(r#"{{"model":"m","stream":true,{tell}}}"#);
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&request("POST", path, &KEY, body.as_bytes())).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 200);
        let mut came = 0;
        while came < text.len() {
            came += client.chunk().await.unwrap().unwrap().len();
        }
        drop(client);
        assert!(eventually(BOUND, || world.at_rest()).await);
        let many = chat(&world, br#"{"model":"m","max_tokens":90}"#).await;
        assert_eq!(many.status(), 429, "{path} {kind} in chunks of {size}: it cost too little");
        let few = chat(&world, br#"{"model":"m","max_tokens":5}"#).await;
        assert_eq!(few.status(), 200, "{path} {kind} in chunks of {size}: it cost too much");
    }
}

#[tokio::test]
async fn a_bound_that_the_api_called_does_not_heed_makes_no_answer_cheaper() {
    let engine = Origin::answering("{}").await.unwrap();
    for (path, bound, cheap) in [
        (CHAT, r#""max_tokens":1"#, true),
        (CHAT, r#""n_predict":1"#, false),
        (CHAT, r#""max_tokens":1,"n_predict":-1"#, false),
        ("/v1/responses", r#""max_tokens":1"#, false),
        ("/api/chat", r#""options":{"num_predict":1}"#, true),
        ("/api/chat", r#""max_tokens":1"#, false),
        ("/api/chat", r#""max_tokens":1,"options":{"num_predict":-1}"#, false),
        ("/model/m/generate", r#""max_tokens":1"#, false),
    ] {
        let simulator = Served::new(model("m", None).effective, "simulator", "", 0);
        let rules = limited("tokensPerMinute: 1000");
        let world = World::ruled(engine.address, vec![simulator], rules);
        let body = format!(r#"{{"model":"m","stream":false,{bound}}}"#);
        let answer = ask(&world, "POST", path, &KEY, body.as_bytes()).await;
        let left = answer.head.header("x-ratelimit-remaining-tokens").map(str::parse::<u32>);
        let left = left.expect("told").expect("a number");
        assert_eq!(left > 1000 - 256, cheap, "{path} {bound}: {left}");
    }
}

#[tokio::test]
async fn what_an_engine_refuses_costs_no_tokens() {
    let engine = Origin::start(|_| vec![Action::Write(answer(400, &[], b"{}"))]).await.unwrap();
    let world =
        World::ruled(engine.address, vec![model("m", None)], limited("tokensPerMinute: 100"));
    for _ in 0..3 {
        assert_eq!(chat(&world, br#"{"model":"m","max_tokens":90}"#).await.status(), 400);
    }
}
