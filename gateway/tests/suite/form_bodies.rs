//! Long forms as tests of several kinds send them, what no engine may take for one, and an engine that does not want one.

use flexinfer_testkit::at_head::AtHead;
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::{Origin, answer};
use tokio::io::AsyncWriteExt as _;

use crate::world::BOUND;

pub(crate) const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";
pub(crate) const TYPE: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=cut");
pub(crate) const MODEL: &str = "Content-Disposition: form-data; name=\"model\"";
pub(crate) const FILE: &str = "Content-Disposition: form-data; name=\"file\"; filename=\"a.wav\"";
pub(crate) const END: &str = "--cut--\r\n";
pub(crate) const MIB: usize = 1 << 20;

pub(crate) fn part(headers: &str, content: &str) -> String {
    format!("--cut\r\n{headers}\r\n\r\n{content}\r\n")
}

/// A form with the model's part first, then a file of `size` bytes, then `more`.
pub(crate) fn form(name: &str, size: usize, more: &str) -> Vec<u8> {
    // Look-alikes of a boundary are all over it.
    let file = "0123\r\n--cu\r\n-cut".repeat(size / 16);
    [&part(MODEL, name), &part(FILE, &file), more, END].concat().into_bytes()
}

/// Whatever the engine got of them was broken off.
pub(crate) async fn assert_none_taken_for_whole(engine: &Origin) {
    assert!(eventually(BOUND, || engine.open_connections() == 0).await);
    assert!(engine.requests().iter().all(|seen| !seen.complete), "an engine took it for whole");
}

/// An engine that takes nothing of a body until it has said that it does not want it.
pub(crate) async fn refusing_early() -> AtHead {
    AtHead::start(|_, mut socket| async move {
        socket.write_all(&answer(413, &[("Connection", "close")], b"{\"engine\":1}")).await?;
        socket.shutdown().await?;
        tokio::io::copy(&mut socket, &mut tokio::io::sink()).await.map(drop)
    })
    .await
    .unwrap()
}
