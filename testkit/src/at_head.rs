//! An engine on a raw socket that reads the head of a request and then does one thing with the socket, whatever
//! else is still to come. One that takes requests whole is an [`Origin`](crate::origin::Origin).

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::framing::Head;

/// The answer that turns a connection into a WebSocket.
pub const SWITCHING: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

/// The longest head that is read.
const LONGEST: usize = 64 * 1024;

/// The running engine; dropping it closes all its connections.
#[derive(Debug)]
pub struct AtHead {
    /// Where it listens.
    pub address: SocketAddr,
    _accepting: JoinSet<()>,
}

impl AtHead {
    /// Starts an engine that does `then` with each connection once it has the head of its first request. Not a
    /// byte behind the head was read.
    pub async fn start<Done>(
        then: impl Fn(Head, TcpStream) -> Done + Send + Sync + 'static,
    ) -> io::Result<Self>
    where
        Done: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let then = Arc::new(then);
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut socket, _)) = listener.accept().await {
                let then = Arc::clone(&then);
                connections.spawn(async move {
                    if let Ok(head) = head(&mut socket).await {
                        // How it ends is seen at the other side.
                        let _ = then(head, socket).await;
                    }
                });
            }
        });
        Ok(Self { address, _accepting: accepting })
    }

    /// An engine that agrees to every upgrade, then sends back what it gets.
    pub async fn echo() -> io::Result<Self> {
        Self::start(|_, mut socket| async move {
            tokio::io::AsyncWriteExt::write_all(&mut socket, SWITCHING).await?;
            let (mut reading, mut writing) = socket.split();
            tokio::io::copy(&mut reading, &mut writing).await.map(drop)
        })
        .await
    }
}

/// The head, which mostly comes at once and is then taken at once: some races need a prompt engine.
async fn head(socket: &mut TcpStream) -> io::Result<Head> {
    let mut seen = vec![0; LONGEST];
    loop {
        let came = socket.peek(&mut seen).await?;
        let came_so_far = seen.get(..came).unwrap_or_default();
        let end = came_so_far.windows(4).position(|four| four == b"\r\n\r\n");
        match end {
            Some(end) => {
                let mut bytes = vec![0; end + 4];
                socket.read_exact(&mut bytes).await?;
                let head = Head::take(&mut bytes).map_err(io::Error::other)?;
                return head.ok_or_else(|| io::ErrorKind::InvalidData.into());
            }
            None if came == 0 || came == LONGEST => return Err(io::ErrorKind::InvalidData.into()),
            // There is no way to wait for more than has come.
            None => tokio::task::yield_now().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::client::Client;

    #[tokio::test]
    async fn it_has_the_head_and_leaves_the_rest() {
        let engine = AtHead::start(|head, mut socket| async move {
            let mut rest = [0; 3];
            socket.read_exact(&mut rest).await?;
            let told = [head.target().as_bytes(), b" ", &rest].concat();
            tokio::io::AsyncWriteExt::write_all(&mut socket, &told).await
        })
        .await
        .unwrap();
        let mut client = Client::connect(engine.address).await.unwrap();
        let request = b"GET /path HTTP/1.1\r\nHost: x\r\n\r\nabc";
        client.send_cut(request, &[3, 20, 31]).await.unwrap();
        let told = client.rest(Duration::from_secs(20)).await.expect("it closes");
        assert_eq!(told, b"/path abc");
    }
}
