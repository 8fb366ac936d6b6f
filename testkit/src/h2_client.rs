//! An HTTP/2 client by prior knowledge that controls what HTTP/2 lets a client choose: whether a length
//! is given, whether END_STREAM comes with the last DATA frame or apart, and when to reset.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// How the end of the body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// END_STREAM on the last DATA frame that carries bytes.
    WithLastBytes,
    /// END_STREAM on an empty DATA frame of its own.
    Apart,
}

/// How a request is sent.
#[derive(Clone, Debug)]
pub struct Upload<'a> {
    /// Method.
    pub method: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// More headers, names in lower case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body.
    pub body: &'a [u8],
    /// Whether content-length is sent.
    pub with_length: bool,
    /// How the end is told.
    pub end: End,
    /// Bytes of each DATA frame; at most what the peer allows is sent at once.
    pub frame: usize,
}

impl<'a> Upload<'a> {
    /// A POST of JSON with its length, ended with its last bytes.
    pub fn post(path: &'a str, body: &'a [u8]) -> Self {
        Self {
            method: "POST",
            path,
            headers: &[("content-type", "application/json")],
            body,
            with_length: true,
            end: End::WithLastBytes,
            frame: 16_384,
        }
    }
}

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct H2Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, put together.
    pub body: Vec<u8>,
    /// The body as it came in DATA frames.
    pub frames: Vec<Bytes>,
    /// The trailers, if there were any.
    pub trailers: Option<HeaderMap>,
}

/// One connection; dropping it closes it.
#[derive(Debug)]
pub struct H2Client {
    sender: SendRequest<Bytes>,
    driving: JoinHandle<()>,
    authority: String,
}

/// A request whose answer is still to come.
#[derive(Debug)]
pub struct Pending {
    answer: ResponseFuture,
    upload: SendStream<Bytes>,
}

impl H2Client {
    /// Connects with prior knowledge.
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Self::over(stream, &address.to_string()).await
    }

    /// A client over `stream`, which calls the other side `authority`.
    pub async fn over<S>(stream: S, authority: &str) -> anyhow::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sender, connection) = h2::client::handshake(stream).await?;
        // How a connection ends is seen in the answers of its streams.
        let driving = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, driving, authority: authority.to_owned() })
    }

    /// Sends a request and reads its answer to the end.
    pub async fn request(&mut self, upload: &Upload<'_>) -> anyhow::Result<H2Answer> {
        let mut pending = self.begin(upload).await?;
        pending.send(upload.body, upload.frame, Some(upload.end)).await?;
        pending.answer().await
    }

    /// Sends the head of a request; its body is sent by [`Pending::send`].
    pub async fn begin(&mut self, upload: &Upload<'_>) -> anyhow::Result<Pending> {
        let uri = format!("http://{}{}", self.authority, upload.path);
        let mut request = Request::builder().method(upload.method).uri(uri);
        for (name, value) in upload.headers {
            request = request.header(*name, *value);
        }
        if upload.with_length {
            request = request.header("content-length", upload.body.len());
        }
        self.sender = self.sender.clone().ready().await?;
        let (answer, upload) = self.sender.send_request(request.body(())?, false)?;
        Ok(Pending { answer, upload })
    }
}

impl Drop for H2Client {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl Pending {
    /// Sends bytes in DATA frames of at most `frame` bytes, and the end if one is given.
    pub async fn send(
        &mut self,
        bytes: &[u8],
        frame: usize,
        end: Option<End>,
    ) -> anyhow::Result<()> {
        let mut rest = Bytes::copy_from_slice(bytes);
        while !rest.is_empty() {
            let wanted = rest.len().min(frame.max(1));
            let granted = self.capacity(wanted).await?;
            let piece = rest.split_to(granted.min(wanted));
            let last = rest.is_empty() && end == Some(End::WithLastBytes);
            self.upload.send_data(piece, last)?;
        }
        let apart = end == Some(End::Apart) || (bytes.is_empty() && end.is_some());
        if apart {
            self.upload.send_data(Bytes::new(), true)?;
        }
        Ok(())
    }

    /// Reads the answer to its end.
    pub async fn answer(self) -> anyhow::Result<H2Answer> {
        let (head, mut body) = self.answer.await?.into_parts();
        let mut frames = Vec::new();
        while let Some(frame) = next_frame(&mut body).await? {
            frames.push(frame);
        }
        let trailers = body.trailers().await?;
        Ok(H2Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body: frames.concat(),
            frames,
            trailers,
        })
    }

    /// Waits for the head of the answer and leaves the body to be read frame by frame.
    pub async fn head(self) -> anyhow::Result<(u16, Streamed)> {
        let (head, body) = self.answer.await?.into_parts();
        Ok((head.status.as_u16(), Streamed { body, upload: self.upload }))
    }

    /// Gives the request up with RST_STREAM.
    pub fn reset(mut self) {
        self.upload.send_reset(Reason::CANCEL);
    }

    async fn capacity(&mut self, wanted: usize) -> anyhow::Result<usize> {
        self.upload.reserve_capacity(wanted);
        loop {
            let granted = self.upload.capacity();
            if granted > 0 {
                return Ok(granted);
            }
            match std::future::poll_fn(|context| self.upload.poll_capacity(context)).await {
                Some(Ok(granted)) if granted > 0 => return Ok(granted),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.into()),
                None => anyhow::bail!("the stream was closed before the body was sent"),
            }
        }
    }
}

/// An answer whose body is read frame by frame.
#[derive(Debug)]
pub struct Streamed {
    body: RecvStream,
    upload: SendStream<Bytes>,
}

impl Streamed {
    /// The next DATA frame; nothing at the end.
    pub async fn frame(&mut self) -> anyhow::Result<Option<Bytes>> {
        next_frame(&mut self.body).await
    }

    /// Gives the answer up with RST_STREAM.
    pub fn reset(mut self) {
        self.upload.send_reset(Reason::CANCEL);
    }
}

async fn next_frame(body: &mut RecvStream) -> anyhow::Result<Option<Bytes>> {
    match body.data().await {
        None => Ok(None),
        Some(frame) => {
            let frame = frame?;
            body.flow_control().release_capacity(frame.len())?;
            Ok(Some(frame))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::eventually;
    use crate::simulator::{Outcome, Settings, Simulator};

    #[tokio::test]
    async fn a_body_arrives_whole_however_it_is_ended() {
        let engine = Simulator::start(Settings::default()).await.unwrap();
        engine.ready().await.unwrap();
        let mut client = H2Client::connect(engine.addr).await.unwrap();
        let body =
            format!(r#"{{"messages":[{{"role":"user","content":"{}"}}]}}"#, "long ".repeat(20_000));
        for with_length in [true, false] {
            for end in [End::WithLastBytes, End::Apart] {
                let path = "/v1/chat/completions";
                let upload = Upload { with_length, end, ..Upload::post(path, body.as_bytes()) };
                let answer = client.request(&upload).await.unwrap();
                assert_eq!(answer.status, 200, "{with_length} {end:?}");
            }
        }
        assert!(engine.requests().iter().all(|request| request.body == body.as_bytes()));
    }

    #[tokio::test]
    async fn a_reset_reaches_the_server() {
        let mut settings = Settings::default();
        settings.answer_faults.never_answers = true;
        let engine = Simulator::start(settings).await.unwrap();
        engine.ready().await.unwrap();
        let mut client = H2Client::connect(engine.addr).await.unwrap();
        let upload = Upload::post("/v1/chat/completions", b"{}");
        let mut pending = client.begin(&upload).await.unwrap();
        pending.send(b"{}", 16, Some(End::Apart)).await.unwrap();
        let bound = Duration::from_secs(20);
        let arrived = || engine.requests().iter().any(|request| request.body_complete);
        assert!(eventually(bound, arrived).await);
        pending.reset();
        let left = || engine.requests()[0].outcome == Outcome::BrokenOff;
        assert!(eventually(bound, left).await);
    }
}
