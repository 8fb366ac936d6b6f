//! Other nodes that hold the weights already. A part that comes from one is checked by the digest that came
//! with it; whatever goes wrong, the part is read from the volume instead.

use std::fs::File;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flexinfer_core::loading::peers::tag;
use reqwest::{StatusCode, header};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Handle;

use super::arguments::Arguments;
use super::look::Entry;

/// A node that is slower to answer than a volume to read is of no use.
const CONNECT: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(10);

pub(super) struct Peers {
    runtime: Handle,
    client: reqwest::Client,
    /// `<namespace>/<model>`, and the folder below that which is copied.
    name: String,
    nodes: Vec<Peer>,
    next: AtomicUsize,
    given: AtomicU64,
}

struct Peer {
    address: SocketAddr,
    /// It has not what we need, or cannot be relied on.
    useless: AtomicBool,
}

/// Why a part did not come from a peer.
#[derive(Debug, thiserror::Error)]
enum Missed {
    #[error("it is busy")]
    Busy,
    #[error("it has no such file")]
    Lacks,
    #[error("it answered {0}")]
    Strange(StatusCode),
    #[error("the part ended early or late")]
    WrongLength,
    #[error("the part is not what its digest says")]
    WrongDigest,
    #[error("it cannot be reached, or broke off")]
    Unreachable(#[from] reqwest::Error),
    #[error("the copy cannot be written")]
    Write(#[from] std::io::Error),
    #[error("the load was stopped")]
    Stopped,
}

impl Peers {
    /// The nodes that `--peers` names, each name with all of its addresses; `None` if there are none.
    pub(super) async fn find(arguments: &Arguments) -> Option<Self> {
        let name = arguments.peers_name.clone()?;
        let mut addresses = Vec::new();
        for peer in &arguments.peers {
            match tokio::net::lookup_host(peer.as_str()).await {
                Ok(found) => addresses.extend(found),
                Err(error) => tracing::info!(peer, %error, "no other node is known by this name"),
            }
        }
        addresses.sort();
        addresses.dedup();
        // Whoever has chosen a provider before has chosen the same one.
        let _already_chosen = rustls::crypto::ring::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy();
        let client = client.connect_timeout(CONNECT).read_timeout(SILENCE).build().ok()?;
        let peer = |address| Peer { address, useless: AtomicBool::new(false) };
        let nodes: Vec<Peer> = addresses.into_iter().map(peer).collect();
        (!nodes.is_empty()).then(|| Self {
            runtime: Handle::current(),
            client,
            name,
            nodes,
            next: AtomicUsize::new(0),
            given: AtomicU64::new(0),
        })
    }

    /// Bytes that came from peers so far.
    pub(super) fn given(&self) -> u64 {
        self.given.load(Ordering::Relaxed)
    }

    /// Whether `range` of the file came from some peer into `copy`, whole and right. What a peer has written
    /// when it fails is written over by whoever comes next.
    pub(super) fn give(
        &self,
        entry: &Entry,
        range: &Range<u64>,
        copy: &File,
        stopped: &AtomicBool,
    ) -> bool {
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        for turn in 0..self.nodes.len() {
            let Some(peer) = self.nodes.get((first + turn) % self.nodes.len()) else { break };
            if peer.useless.load(Ordering::Relaxed) {
                continue;
            }
            let got = self.runtime.block_on(self.get(peer, entry, range, copy, stopped));
            let Err(missed) = got else {
                self.given.fetch_add(range.end - range.start, Ordering::Relaxed);
                return true;
            };
            let useless = match &missed {
                Missed::Stopped | Missed::Write(_) => return false,
                Missed::Busy => false,
                Missed::Lacks => true,
                _ => {
                    let path = &entry.found.path;
                    tracing::warn!(peer = %peer.address, %path, error = %missed, "another node is left out");
                    true
                }
            };
            peer.useless.fetch_or(useless, Ordering::Relaxed);
        }
        false
    }

    async fn get(
        &self,
        peer: &Peer,
        entry: &Entry,
        range: &Range<u64>,
        copy: &File,
        stopped: &AtomicBool,
    ) -> Result<(), Missed> {
        let names = self.name.split('/').chain(entry.found.path.names());
        let path = names.map(encoded).collect::<Vec<_>>().join("/");
        let url = format!("http://{}/weights/{path}", peer.address);
        let request = self.client.get(url);
        let request =
            request.header(header::RANGE, format!("bytes={}-{}", range.start, range.end - 1));
        let tag = tag(entry.found.length, entry.found.modified);
        let mut answer = request.header(header::IF_MATCH, tag).send().await?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::SERVICE_UNAVAILABLE => return Err(Missed::Busy),
            StatusCode::NOT_FOUND | StatusCode::PRECONDITION_FAILED => return Err(Missed::Lacks),
            other => return Err(Missed::Strange(other)),
        }
        let wanted = answer.headers().get("content-digest").cloned();
        let mut digest = Sha256::new();
        let mut at = range.start;
        while let Some(chunk) = answer.chunk().await? {
            if stopped.load(Ordering::Relaxed) {
                return Err(Missed::Stopped);
            }
            let end = at + chunk.len() as u64;
            if end > range.end {
                return Err(Missed::WrongLength);
            }
            copy.write_all_at(&chunk, at)?;
            digest.update(&chunk);
            at = end;
        }
        if at != range.end {
            return Err(Missed::WrongLength);
        }
        let found = format!("sha-256=:{}:", BASE64_STANDARD.encode(digest.finalize()));
        if wanted.is_some_and(|wanted| wanted == *found) {
            Ok(())
        } else {
            Err(Missed::WrongDigest)
        }
    }
}

/// A name as it stands in a URL.
fn encoded(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        use std::fmt::Write as _;
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _infallible = write!(text, "%{byte:02X}");
        }
        text
    })
}
