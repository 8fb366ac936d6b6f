//! A cloud's metadata server for all nodes at once: it tells them apart by who asks.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use flexinfer_e2e::MACHINE;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// EC2, as far as an agent asks it.
pub(super) struct Cloud {
    pub(super) address: SocketAddr,
    taken: Arc<Mutex<BTreeSet<IpAddr>>>,
    _server: JoinSet<()>,
}

impl Cloud {
    pub(super) async fn start() -> Self {
        // There is no bridge to the pods yet; what is bound here will be behind it too.
        let listener = TcpListener::bind(("0.0.0.0", 0)).await.unwrap();
        let address = SocketAddr::new(MACHINE.into(), listener.local_addr().unwrap().port());
        let taken = Arc::new(Mutex::new(BTreeSet::new()));
        let shared = Arc::clone(&taken);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, peer)) = listener.accept().await {
                let taken = Arc::clone(&shared);
                connections.spawn(async move { drop(answer(stream, peer.ip(), &taken).await) });
            }
        });
        Self { address, taken, _server: server }
    }

    /// Tells the machine whose agent is at `agent` that it will be taken away.
    pub(super) fn takes(&self, agent: IpAddr) {
        self.taken.lock().unwrap().insert(agent);
    }

    /// Tells it that nothing will come of that.
    pub(super) fn spares(&self, agent: IpAddr) {
        self.taken.lock().unwrap().remove(&agent);
    }
}

async fn answer(
    mut stream: TcpStream,
    from: IpAddr,
    taken: &Mutex<BTreeSet<IpAddr>>,
) -> std::io::Result<()> {
    let mut asked = Vec::new();
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        let mut part = [0; 1024];
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            length => asked.extend(&part[..length]),
        }
    }
    let asked = String::from_utf8_lossy(&asked).into_owned();
    let path = asked.split(' ').nth(1).unwrap_or_default();
    let goes = taken.lock().unwrap().contains(&from);
    let (status, body) = match path {
        "/latest/api/token" => ("200 OK", "AQAEALH5Vn3QmMbkT2WHJKJ8mX0s0001=="),
        "/latest/meta-data/instance-id" => ("200 OK", "i-0123456789abcdef0"),
        "/latest/meta-data/spot/instance-action" if goes => {
            ("200 OK", r#"{"action": "terminate", "time": "2031-01-02T03:04:05Z"}"#)
        }
        _ => ("404 Not Found", "not found"),
    };
    let head =
        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n", body.len());
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await
}
