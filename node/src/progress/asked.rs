//! Tells whoever asks how far a long work is, such as the controller of the cluster that it is a part of: one short
//! answer at a time, in no time, whatever comes in.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use flexinfer_core::activation::Share;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::listening;

/// How long one who asks may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The longest question.
const LONGEST: usize = 4096;

/// Whom to tell how far it is.
#[derive(Clone, Debug, Default, Args)]
#[group(skip)]
pub(crate) struct Asked {
    /// Port at which `GET /progress` tells how far it is, as {"doneBytes": 1, "totalBytes": 2} [default: none]
    #[arg(long, env = "FLEXINFER_PROGRESS_PORT", value_name = "PORT")]
    progress_port: Option<u16>,
}

/// How far a work is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts(Arc<Both>);

#[derive(Debug, Default)]
struct Both {
    done: AtomicU64,
    total: AtomicU64,
}

impl Counts {
    /// `done` of `total` are there.
    pub(crate) fn set(&self, done: u64, total: u64) {
        self.0.total.store(total, Ordering::Relaxed);
        self.0.done.store(done, Ordering::Relaxed);
    }

    /// Nothing, until something is known.
    fn share(&self) -> Option<Share> {
        let total = self.0.total.load(Ordering::Relaxed);
        // The two may be of different moments.
        Share::new(self.0.done.load(Ordering::Relaxed).min(total), total)
    }
}

/// Answers until it is dropped.
pub(crate) struct Answering(Option<JoinHandle<()>>);

impl Drop for Answering {
    fn drop(&mut self) {
        if let Some(answering) = &self.0 {
            answering.abort();
        }
    }
}

impl Asked {
    /// Tells `counts`. Where that cannot be, the work goes on all the same.
    pub(crate) async fn tell(&self, counts: &Counts) -> Answering {
        let Some(port) = self.progress_port else { return Answering(None) };
        match listening::everywhere(port).await {
            Ok(listener) => Answering(Some(tokio::spawn(answer(listener, counts.clone())))),
            Err(error) => {
                tracing::warn!(port, %error, "nobody can ask how far it is");
                Answering(None)
            }
        }
    }
}

async fn answer(listener: TcpListener, counts: Counts) {
    loop {
        match listener.accept().await {
            // Who asks slowly, or goes, is not answered.
            Ok((stream, _)) => drop(timeout(PATIENCE, answer_one(stream, counts.share())).await),
            // There are too many open files, say: others may be closed soon.
            Err(_) => tokio::time::sleep(PATIENCE).await,
        }
    }
}

async fn answer_one(mut stream: TcpStream, share: Option<Share>) -> std::io::Result<()> {
    let mut question = Vec::new();
    while !question.windows(4).any(|end| end == b"\r\n\r\n") {
        if question.len() > LONGEST || stream.read_buf(&mut question).await? == 0 {
            return Ok(());
        }
    }
    let (status, body) = match share {
        Some(share) => ("200 OK", Vec::from(share)),
        None => ("503 Service Unavailable", Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), &body].concat()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(address: std::net::SocketAddr, question: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(question.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn whoever_asks_is_told_how_far_it_is() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let counts = Counts::default();
        let answering = tokio::spawn(answer(listener, counts.clone()));
        let question = "GET /progress HTTP/1.1\r\nhost: pod\r\n\r\n";
        let answer = ask(address, question).await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "nothing is known yet: {answer}");
        // Somebody who never asks anything keeps nobody waiting for long.
        let _silent = TcpStream::connect(address).await.unwrap();
        counts.set(7, 10);
        let answer = ask(address, question).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        assert_eq!(Share::parse(body.as_bytes()), Share::new(7, 10));
        assert_eq!(ask(address, &"x".repeat(LONGEST + 1)).await, "");
        answering.abort();
    }
}
