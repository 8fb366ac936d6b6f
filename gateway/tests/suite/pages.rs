//! Pages in browsers: what they may read, and what their browser asks first.

use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::client::Answer;
use flexinfer_testkit::origin::{Action, Origin, answer};

use crate::callers::{ask, with_keys};
use crate::world::{World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;
const PAGE: &str = "https://chat.example";

fn open_to(origins: &str, rules: Rules) -> Rules {
    Rules { origins: origins.parse().unwrap(), ..rules }
}

/// What an answer says of pages: the origin that may read it, how often it says so, and on what it depends.
fn told(answer: &Answer) -> (Option<&str>, usize, Option<&str>) {
    let allow = "access-control-allow-origin";
    (answer.head.header(allow), answer.head.count(allow), answer.head.header("vary"))
}

#[tokio::test]
async fn http_11_a_preflight_needs_no_key_and_reaches_no_engine() {
    let engine = Origin::answering("{}").await.unwrap();
    let rules = open_to("https://chat.example,http://localhost:*", with_keys());
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let preflight = |origin: &'static str| {
        [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "authorization,x-stainless-os"),
        ]
    };
    for origin in [PAGE, "http://localhost:5173"] {
        let answer = ask(&world, "OPTIONS", CHAT, &preflight(origin), b"").await;
        assert_eq!(answer.status(), 204);
        assert_eq!(told(&answer), (Some(origin), 1, Some("Origin")));
        let allowed = answer.head.header("access-control-allow-headers");
        assert_eq!(allowed, Some("authorization,x-stainless-os"));
        assert!(answer.head.header("access-control-allow-methods").unwrap().contains("POST"));
    }
    let answer = ask(&world, "OPTIONS", CHAT, &preflight("https://evil.example"), b"").await;
    assert_eq!((answer.status(), told(&answer)), (204, (None, 0, Some("Origin"))));
    // Without a page behind it, it is a method like any other.
    assert_eq!(ask(&world, "OPTIONS", CHAT, &[("Origin", PAGE)], b"").await.status(), 405);
    assert_eq!(engine.begun(), 0);
}

#[tokio::test]
async fn http_11_every_answer_says_once_who_may_read_it() {
    let engine = Origin::start(|recorded| {
        let own =
            [("Access-Control-Allow-Origin", "*"), ("Access-Control-Allow-Credentials", "true")];
        let stream = [("Content-Type", "text/event-stream"), own[0], own[1]];
        let streams = recorded.body.windows(6).any(|part| part == b"stream");
        let (status, headers, body) = if streams {
            (200, &stream[..], &b"data: [DONE]\n\n"[..])
        } else {
            (500, &own[..], &b"{}"[..])
        };
        vec![Action::Write(answer(status, headers, body))]
    })
    .await
    .unwrap();
    let rules = open_to(PAGE, with_keys());
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let key = ("Authorization", "Bearer alice");
    for (headers, body, status) in [
        (vec![("Origin", PAGE)], ASK, 401),
        (vec![("Origin", PAGE), key], br#"{"model":"nobody"}"#, 404),
        (vec![("Origin", PAGE), key], ASK, 500),
        (vec![("Origin", PAGE), key], br#"{"model":"m","stream":true}"#, 200),
    ] {
        let answer = ask(&world, "POST", CHAT, &headers, body).await;
        assert_eq!(answer.status(), status);
        assert_eq!(told(&answer), (Some(PAGE), 1, Some("Origin")), "{status}");
        assert_eq!(answer.head.count("access-control-allow-credentials"), 0);
        let exposed = answer.head.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("x-request-id") && exposed.contains("retry-after"));
    }
    let elsewhere = [("Origin", "https://evil.example"), key];
    let answer = ask(&world, "POST", CHAT, &elsewhere, ASK).await;
    assert_eq!(told(&answer), (None, 0, Some("Origin")));
    let listed = ask(&world, "GET", "/v1/models", &[("Origin", PAGE), key], b"").await;
    assert_eq!((listed.status(), told(&listed)), (200, (Some(PAGE), 1, Some("Origin"))));
}

#[tokio::test]
async fn every_page_may_be_let_in() {
    let engine = Origin::answering("{}").await.unwrap();
    let rules = open_to("*", Rules::default());
    let world = World::ruled(engine.address, vec![model("m", None)], rules);
    let answer = ask(&world, "POST", CHAT, &[("Origin", "null")], ASK).await;
    assert_eq!((answer.status(), told(&answer).0), (200, Some("*")));
}

#[tokio::test]
async fn http_23_where_an_engine_leads_to_lies_behind_the_gateway() {
    let engine = Origin::start(|seen| {
        let host = seen.head.header("host").unwrap();
        let location = match seen.head.target() {
            "/whole" => format!("http://{host}/web/?a=b"),
            "/path" => "/web/?a=b".to_owned(),
            _ => "https://elsewhere.example/".to_owned(),
        };
        vec![Action::Write(answer(307, &[("Location", location.as_str())], b""))]
    })
    .await
    .unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for (path, expected) in [
        ("/whole", "/model/m/web/?a=b"),
        ("/path", "/model/m/web/?a=b"),
        ("/other", "https://elsewhere.example/"),
    ] {
        let led = ask(&world, "GET", &format!("/model/m{path}"), &[], b"").await;
        assert_eq!((led.status(), led.head.header("location")), (307, Some(expected)), "{path}");
    }
}
