//! A WebSocket client: messages as JSON or bytes, every wait bounded.

use std::net::SocketAddr;
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

/// Far above what anything takes, also on a machine that is busy with other things.
const BOUND: Duration = Duration::from_secs(60);

/// What an open socket says.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// A text that is JSON.
    Json(Value),
    /// Bytes.
    Bytes(Vec<u8>),
    /// The socket is closed, in order or not.
    Closed,
}

/// An open socket.
#[derive(Debug)]
pub struct Socket {
    stream: WebSocketStream<TcpStream>,
    /// The subprotocol that was agreed on.
    pub protocol: Option<String>,
}

impl Socket {
    /// Opens a socket at `path`. The status of the answer where it is not opened.
    pub async fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&'static str, &str)],
    ) -> Result<Self, u16> {
        let refused = |error: tungstenite::Error| match error {
            tungstenite::Error::Http(answer) => answer.status().as_u16(),
            _ => 0,
        };
        let mut request = format!("ws://{address}{path}").into_client_request().map_err(refused)?;
        for (name, value) in headers {
            let value = value.parse().map_err(|_| 0_u16)?;
            request.headers_mut().insert(*name, value);
        }
        let stream = TcpStream::connect(address).await.map_err(|_| 0_u16)?;
        let opening = tokio::time::timeout(BOUND, client_async(request, stream));
        let (stream, answer) = opening.await.map_err(|_| 0_u16)?.map_err(refused)?;
        let protocol = answer.headers().get("sec-websocket-protocol");
        let protocol = protocol.and_then(|name| name.to_str().ok()).map(str::to_owned);
        Ok(Self { stream, protocol })
    }

    /// Says something; whether it is heard shows in what comes back.
    pub async fn say(&mut self, event: &Value) {
        let _ = self.stream.send(Message::text(event.to_string())).await;
    }

    /// What comes next.
    pub async fn hear(&mut self) -> Told {
        loop {
            let Ok(next) = tokio::time::timeout(BOUND, self.stream.next()).await else {
                return Told::Closed;
            };
            return match next {
                Some(Ok(Message::Text(text))) => {
                    Told::Json(serde_json::from_str(&text).unwrap_or_default())
                }
                Some(Ok(Message::Binary(bytes))) => Told::Bytes(bytes.to_vec()),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Close(_)) | Err(_)) | None => Told::Closed,
            };
        }
    }

    /// What is said up to the first event of this type, that one last.
    pub async fn hear_until(&mut self, kind: &str) -> Vec<Value> {
        let mut heard = Vec::new();
        while let Told::Json(event) = self.hear().await {
            let last = event.get("type").is_some_and(|found| found == kind);
            heard.push(event);
            if last {
                break;
            }
        }
        heard
    }

    /// Closes it in order.
    pub async fn close(mut self) {
        let _ = self.stream.close(None).await;
    }
}
