//! Connections that become something else than HTTP.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use flexinfer_testkit::client::Client;
use flexinfer_testkit::eventually;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::world::{BOUND, World, model};

const HANDSHAKE: &str = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// An engine that agrees to every upgrade, then sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                let accepted = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
                socket.write_all(accepted.as_bytes()).await.unwrap();
                let (mut reading, mut writing) = socket.split();
                let _ = tokio::io::copy(&mut reading, &mut writing).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn a_websocket_passes_in_both_directions_and_holds_its_slot() {
    let world = World::new(echo().await, vec![model("m", None)]);
    for path in ["/v1/realtime?model=m", "/model/m/anything?a=b"] {
        let mut client = Client::connect(world.address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: g\r\n{HANDSHAKE}\r\n");
        client.send(head.as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 101, "{path}");
        let mut sent = Vec::new();
        for message in ["one", "another", "\u{1}\u{2}"] {
            client.send(message.as_bytes()).await.unwrap();
            sent.extend_from_slice(message.as_bytes());
            while client.unread().len() < sent.len() {
                let ended = client.rest(BOUND / 200).await;
                assert_eq!(ended, None, "{path}: it ended");
            }
            assert_eq!(client.unread(), sent, "{path}");
        }
        assert_eq!(world.desk.held(), 1);
        drop(client);
        assert!(eventually(BOUND, || world.at_rest()).await, "{path}: the slot comes back");
    }
}

/// Pingora takes the end of a handshake's empty body for the end of the upgraded connection where the engine answers
/// before it has noted that end.
#[tokio::test(flavor = "multi_thread")]
async fn no_handshake_is_answered_too_fast() {
    let world = World::new(prompt_echo().await, vec![model("m", None)]);
    for round in 0..100 {
        let mut client = Client::connect(world.address).await.unwrap();
        let head = format!("GET /v1/realtime?model=m HTTP/1.1\r\nHost: g\r\n{HANDSHAKE}\r\n");
        client.send(head.as_bytes()).await.unwrap();
        assert_eq!(client.head().await.unwrap().status(), 101);
        client.send(b"still there?").await.unwrap();
        while client.unread().is_empty() {
            let ended = client.rest(Duration::from_millis(2)).await;
            assert_eq!(ended, None, "it ended in round {round}");
        }
    }
}

/// The same as [`echo`], in as few steps as can be.
async fn prompt_echo() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut head = [0; 4096];
                let _ = socket.read(&mut head).await;
                let accepted = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
                let _ = socket.write_all(accepted.as_bytes()).await;
                let (mut reading, mut writing) = socket.split();
                let _ = tokio::io::copy(&mut reading, &mut writing).await;
            });
        }
    });
    address
}
