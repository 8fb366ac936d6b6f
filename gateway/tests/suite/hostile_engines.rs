//! Engines that answer with what nobody should: it ends here, or reaches the client as one meaning only.

use flexinfer_testkit::at_head::AtHead;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Action, Origin, answer};
use tokio::io::AsyncWriteExt as _;

use crate::world::{BOUND, World, model};

const CHAT: &str = "/v1/chat/completions";
const ASK: &[u8] = br#"{"model":"m"}"#;

/// An engine that writes `interim` for as long as anybody reads it.
async fn announcing(interim: String) -> AtHead {
    AtHead::start(move |_, mut socket| {
        let interim = interim.clone();
        async move {
            loop {
                socket.write_all(interim.as_bytes()).await?;
            }
        }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn an_answer_that_is_announced_for_ever_is_given_up_with_the_reason() {
    let long = format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(8_000));
    for (interim, bound, reason) in [
        ("HTTP/1.1 102 Processing\r\n\r\n".to_owned(), 1000, "more than 1000"),
        (long, 32, "longer than 256 KiB"),
    ] {
        let engine = announcing(interim).await;
        let world = World::new(engine.address, vec![model("m", None)]);
        for head in [request("POST", CHAT, &[], ASK), request("GET", "/model/m/x", &[], b"")] {
            let mut client = Client::connect(world.address).await.unwrap();
            client.send(&head).await.unwrap();
            let mut passed = 0;
            let status = loop {
                let head = client.head().await.unwrap();
                if head.status() >= 200 {
                    break head.status();
                }
                passed += 1;
            };
            assert_eq!(status, 502);
            assert!(passed <= bound, "{passed} of them were passed on");
            let rest = client.rest(BOUND).await.expect("the connection is closed");
            let rest = String::from_utf8(rest).unwrap();
            assert!(rest.contains("engine_answer") && rest.contains(reason), "{rest}");
            assert!(eventually(BOUND, || world.at_rest()).await, "the slot is held");
        }
        assert_eq!(world.desk.rebooked(), 0);
    }
}

#[tokio::test]
async fn a_few_interim_answers_are_passed_on_before_the_answer() {
    let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n".repeat(3);
    let engine = Origin::start(move |_| {
        vec![Action::Write([hints.as_slice(), &answer(200, &[], b"{}")].concat())]
    });
    let engine = engine.await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    let mut client = Client::connect(world.address).await.unwrap();
    for _ in 0..2 {
        client.post(CHAT, ASK).await.unwrap();
        for _ in 0..3 {
            let head = client.head().await.unwrap();
            assert_eq!((head.status(), head.header("link")), (103, Some("</a.css>")));
        }
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "{}"));
    }
}

/// Extensions of chunks that some readers would take for the end of the size's line.
const ODD_EXTENSIONS: [&str; 4] = [";\n", ";a=\nb", ";\u{0}", ";a=\"\n2\n\""];

#[tokio::test]
async fn http_02_a_bare_line_feed_or_nul_in_an_extension_ends_no_line_and_reaches_no_engine() {
    let engine = Origin::answering("{}").await.unwrap();
    let world = World::new(engine.address, vec![model("m", None)]);
    for extension in ODD_EXTENSIONS {
        let head = format!("POST {CHAT} HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n");
        // Whoever takes the line feed for the end of the line would find a request within the second chunk.
        let hidden = "GET /model/m/admin HTTP/1.1\r\nHost: x\r\n\r\n";
        let text = format!(r#"{{"model":"m","prompt":{}}}"#, serde_json::json!(hidden));
        let chunks = format!("{:x}{extension}\r\n{text}\r\n0{extension}\r\n\r\n", text.len());
        let mut client = Client::connect(world.address).await.unwrap();
        client.send([head, chunks].concat().as_bytes()).await.unwrap();
        let answer = client.answer().await.unwrap();
        let passed = engine.requests();
        let shown = extension.escape_debug().to_string();
        match answer.status() {
            200 => {
                let seen = passed.last().unwrap();
                assert_eq!(seen.body, text.as_bytes(), "{shown}");
                assert_eq!(seen.head.header("content-length"), Some(&*text.len().to_string()));
                assert_eq!(seen.head.header("transfer-encoding"), None, "{shown}");
            }
            status => assert_eq!(status, 400, "{shown}"),
        }
        drop(client);
    }
    assert!(eventually(BOUND, || world.at_rest()).await);
    assert!(engine.requests().iter().all(|seen| seen.head.target() == CHAT), "one was found");
    assert_eq!(engine.faults(), []);
}

#[tokio::test]
async fn http_02_an_engines_extensions_of_chunks_end_here_whatever_is_in_them() {
    for extension in ODD_EXTENSIONS {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
        let body = format!("2{extension}\r\n{{}}\r\n0{extension}\r\n\r\n");
        let answered = [head, &body].concat().into_bytes();
        let engine = Origin::start(move |_| vec![Action::Write(answered.clone())]).await.unwrap();
        let world = World::new(engine.address, vec![model("m", None)]);
        let mut client = Client::connect(world.address).await.unwrap();
        client.post(CHAT, ASK).await.unwrap();
        // The testkit's reader is strict: an extension of this kind would fail it.
        let answer = client.answer().await.unwrap();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "{}"));
        assert!(eventually(BOUND, || world.at_rest()).await);
    }
}
