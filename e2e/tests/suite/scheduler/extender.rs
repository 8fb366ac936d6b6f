//! Our extender as a program, and extenders that answer what a test says.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use super::Stage;
use crate::rights::Account;
use crate::shared::eventually;

/// The running program, ended when dropped.
pub(super) struct Extender {
    child: Child,
    pub(super) port: u16,
}

impl Extender {
    /// Starts it for the stage's cluster, and waits until it has seen everything.
    pub(super) async fn start(stage: &Stage, environment: &[(&str, &str)]) -> Self {
        let mut command = Command::new(program());
        command.args(["scheduler", "--host", "127.0.0.1", "--port", "0"]);
        command.env("KUBECONFIG", stage.world.kubeconfig_of(Account::Scheduler).await);
        command.env("POD_NAMESPACE", &stage.world.namespace);
        command.envs(environment.iter().copied()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let port = lines
            .find_map(|line| line.unwrap().rsplit_once("address=127.0.0.1:")?.1.trim().parse().ok())
            .unwrap();
        // Its log has to be read, or it would stand still once the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let extender = Self { child, port };
        eventually("the extender has seen everything", async || {
            extender.get("/healthz").await.contains("200 OK").then_some(())
        })
        .await;
        extender
    }

    /// The whole answer, head and body.
    pub(super) async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: extender\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

impl Drop for Extender {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Cargo puts it beside the folder of the test's own program; `cargo xtask e2e scheduler` builds it.
fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().unwrap().parent().unwrap().join("flexinfer-controller");
    assert!(
        program.exists(),
        "{} is missing: cargo build -p flexinfer-controller",
        program.display()
    );
    program
}

/// An extender that gives the same answer to everything.
pub(super) struct Scripted {
    pub(super) port: u16,
    _task: AbortOnDropHandle<()>,
}

impl Scripted {
    /// Answers with `status` and `body` after `pause`.
    pub(super) async fn answering(status: u16, body: &'static str, pause: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, status, body, pause));
            }
        });
        Self { port, _task: AbortOnDropHandle::new(task) }
    }
}

/// One answer to a connection; what was asked is read as far as it has come, and ignored.
async fn answer(mut stream: TcpStream, status: u16, body: &str, pause: Duration) {
    let mut asked = vec![0; 1 << 16];
    let _some = stream.read(&mut asked).await;
    tokio::time::sleep(pause).await;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Test\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let _sent = stream.write_all(format!("{head}{body}").as_bytes()).await;
    let _ended = stream.shutdown().await;
    // Until the other side has read it: a connection that is torn down takes its answer with it.
    while stream.read(&mut asked).await.is_ok_and(|read| read > 0) {}
}
