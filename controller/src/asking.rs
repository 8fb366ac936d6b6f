//! Asks the pods that bring weights how much has come: gently, few at a time, and never for long. Whoever answers is
//! not trusted; what makes no sense, or does not come, changes nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::activation::Share;
use futures::StreamExt as _;
use futures::stream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::world::{Bringer, World};

/// How often each is asked.
const INTERVAL: Duration = Duration::from_secs(10);

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many are asked at once.
const AT_ONCE: usize = 16;

/// More of an answer than this is not read.
const LONGEST: u64 = 2048;

/// Asks for ever, while there is anybody to ask.
pub(crate) async fn ask_how_far(world: Arc<World>) {
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let asked = stream::iter(world.bringers()).for_each_concurrent(AT_ONCE, async |bringer| {
            let Bringer { model, pod, address } = bringer;
            if let Some(share) = timeout(PATIENCE, ask(address)).await.ok().flatten() {
                world.note_progress(&model, &pod, share);
            }
        });
        asked.await;
    }
}

/// How much has come, if whoever is at `address` says so.
async fn ask(address: SocketAddr) -> Option<Share> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    let question =
        format!("GET /progress HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    stream.take(LONGEST).read_to_end(&mut answer).await.ok()?;
    understood(&answer)
}

/// What an answer says, whose body ends with the connection.
fn understood(answer: &[u8]) -> Option<Share> {
    let well =
        [&b"HTTP/1.1 200 "[..], b"HTTP/1.0 200 "].iter().any(|line| answer.starts_with(line));
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").filter(|_| well)?;
    Share::parse(answer.get(end + 4..)?)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What is heard from somebody who answers this.
    async fn heard(answer: &'static [u8]) -> Option<Share> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut question = [0; 256];
            let _ = stream.read(&mut question).await.unwrap();
            // Whoever is asked may be cut off while it still talks.
            let _ = stream.write_all(answer).await;
        });
        let heard = ask(address).await;
        answering.await.unwrap();
        heard
    }

    #[tokio::test]
    async fn only_an_answer_that_makes_sense_is_heard() {
        let well = b"HTTP/1.1 200 OK\r\nx: y\r\n\r\n{\"doneBytes\":7,\"totalBytes\":10}";
        assert_eq!(heard(well).await, Share::new(7, 10));
        assert_eq!(heard(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").await, None);
        assert_eq!(heard(b"{\"doneBytes\":7,\"totalBytes\":10}").await, None);
        assert_eq!(
            heard(b"HTTP/1.1 200 OK\r\n\r\n{\"doneBytes\":70,\"totalBytes\":10}").await,
            None
        );
        assert_eq!(heard(b"HTTP/1.1 200 OK\r\n\r\n").await, None);
        assert_eq!(heard(b"").await, None);
        let endless: &[u8] = vec![b'x'; 1 << 20].leak();
        assert_eq!(heard(endless).await, None);
    }

    #[tokio::test]
    async fn nobody_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert_eq!(ask(address).await, None);
    }
}
