//! The origin against the raw client: what was sent is what is recorded.

use std::time::Duration;

use super::*;
use crate::client::{AnswerError, Client, chunked_request, request};
use crate::eventually;

const BOUND: Duration = Duration::from_secs(20);

#[tokio::test]
async fn requests_of_either_framing_are_recorded_whole() {
    let origin = Origin::answering("{}").await.unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    client.post("/a", b"by length").await.unwrap();
    assert_eq!(client.answer().await.unwrap().status(), 200);
    let chunked = chunked_request("POST", "/b", &[], b"by chunks", &[2, 3]);
    client.send_cut(&chunked, &[10, 60, 100, chunked.len() - 2]).await.unwrap();
    assert_eq!(client.answer().await.unwrap().text(), "{}");
    let requests = origin.requests();
    assert_eq!((requests[0].connection, requests[0].index), (0, 0));
    assert_eq!((requests[1].connection, requests[1].index), (0, 1));
    assert_eq!(requests[1].body, b"by chunks");
    assert_eq!(requests[1].chunks[0], b"by");
    assert!(requests.iter().all(|request| request.complete));
    assert_eq!(origin.faults(), []);
}

#[tokio::test]
async fn pipelined_requests_are_told_apart() {
    let origin = Origin::answering("ok").await.unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    let both = [request("POST", "/1", &[], b"one"), request("POST", "/2", &[], b"two")].concat();
    client.send(&both).await.unwrap();
    for _ in 0..2 {
        assert_eq!(client.answer().await.unwrap().text(), "ok");
    }
    assert_eq!(origin.requests()[1].body, b"two");
}

#[tokio::test]
async fn a_second_terminator_is_a_fault() {
    let origin = Origin::answering("ok").await.unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    let mut bytes = chunked_request("POST", "/", &[], b"x", &[]);
    bytes.extend_from_slice(b"0\r\n\r\n");
    client.send(&bytes).await.unwrap();
    assert!(eventually(BOUND, || !origin.faults().is_empty()).await);
    assert_eq!(origin.faults()[0].after_requests, 1);
    assert!(origin.requests()[0].complete);
}

#[tokio::test]
async fn a_request_that_breaks_off_is_incomplete() {
    let origin = Origin::answering("ok").await.unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    let bytes = request("POST", "/", &[], b"whole body");
    client.send(&bytes[..bytes.len() - 3]).await.unwrap();
    drop(client);
    assert!(eventually(BOUND, || origin.requests().len() == 1).await);
    assert!(!origin.requests()[0].complete);
    assert!(eventually(BOUND, || origin.open_connections() == 0).await);
}

#[tokio::test]
async fn a_script_waits_for_its_signal() {
    let signal = Arc::new(Notify::new());
    let waits = Arc::clone(&signal);
    let origin = Origin::start(move |_| {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n".to_vec();
        let rest = Action::WriteSplit(b"1\r\nb\r\n0\r\n\r\n".to_vec(), 1);
        vec![Action::Write(head), Action::Wait(Arc::clone(&waits)), rest]
    })
    .await
    .unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    client.post("/", b"{}").await.unwrap();
    assert_eq!(client.head().await.unwrap().status(), 200);
    assert_eq!(client.chunk().await.unwrap(), Some(b"a".to_vec()));
    signal.notify_one();
    assert_eq!(client.chunk().await.unwrap(), Some(b"b".to_vec()));
    assert_eq!(client.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn a_reset_is_not_a_plain_end() {
    let origin = Origin::start(|request| match request.head.target() {
        "/reset" => vec![Action::Reset],
        _ => vec![Action::Close],
    })
    .await
    .unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    client.post("/reset", b"{}").await.unwrap();
    assert!(matches!(client.answer().await, Err(AnswerError::Failed(_))));
    let mut client = Client::connect(origin.address).await.unwrap();
    client.post("/close", b"{}").await.unwrap();
    assert!(matches!(client.answer().await, Err(AnswerError::Ended)));
}

#[tokio::test]
async fn a_client_that_leaves_a_hanging_origin_is_noticed() {
    let origin = Origin::start(|_| vec![Action::Hang]).await.unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    client.post("/", b"{}").await.unwrap();
    assert!(eventually(BOUND, || origin.requests().len() == 1).await);
    assert_eq!(origin.left_early(), 0);
    client.reset().unwrap();
    assert!(eventually(BOUND, || origin.left_early() == 1).await);
}

#[tokio::test]
async fn bytes_after_the_end_are_a_fault_also_when_the_script_closes() {
    let origin = Origin::start(|_| vec![Action::Close]).await.unwrap();
    let mut client = Client::connect(origin.address).await.unwrap();
    let mut bytes = request("POST", "/", &[], b"four");
    bytes.extend_from_slice(b"\r\n");
    client.send(&bytes).await.unwrap();
    assert!(eventually(BOUND, || !origin.faults().is_empty()).await);
    assert_eq!((origin.begun(), origin.requests().len()), (1, 1));
}
