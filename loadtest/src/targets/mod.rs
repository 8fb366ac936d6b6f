//! The programs that a comparison starts, each on ports from the system and ended when dropped.

mod gateway;
mod nginx;
mod upstream;
mod yardstick;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::requests::connect;
use crate::work::{ECHO, Work};
pub(crate) use gateway::asleep as sleeping_gateway;

/// How long a program may take to serve its first request.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is measured, in the order of the tables. `Direct` is the upstream without a proxy: what the load
/// itself takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Direct,
    Nginx,
    Pingora,
    Gateway,
}

impl Name {
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Name::Direct => "no proxy",
            Name::Nginx => "nginx",
            Name::Pingora => "bare Pingora",
            Name::Gateway => "FlexInfer",
        }
    }
}

/// A program under load.
pub(crate) struct Target {
    pub name: Name,
    /// Where whole answers are asked for.
    pub address: String,
    /// Where streams are asked for: nginx needs another server for them.
    pub stream_address: String,
    child: Child,
}

impl Target {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The model name that a request sent here has when it arrives at the upstream, once requests get there.
    pub(crate) async fn model_upstream(&mut self) -> Result<String> {
        self.until(ask).await
    }

    /// Waits until it takes connections.
    pub(crate) async fn serves(&mut self) -> Result<()> {
        self.until(async |address| connect(address).await.map(drop)).await
    }

    async fn until<Told>(&mut self, ask: impl AsyncFn(&str) -> Result<Told>) -> Result<Told> {
        let begun = Instant::now();
        loop {
            let told = ask(&self.address).await;
            if let Some(status) = self.child.try_wait()? {
                bail!("{} ended with {status}", self.name.shown());
            }
            match told {
                Ok(told) => return Ok(told),
                Err(error) if begun.elapsed() > PATIENCE => {
                    return Err(error)
                        .with_context(|| format!("{} does not serve", self.name.shown()));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SIGTERM, for nginx and the gateway have children of their own to end.
        let pid = self.pid().to_string();
        drop(Command::new("kill").args(["-TERM", &pid]).status());
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Where the programs are, and how many threads each gets.
pub(crate) struct Programs {
    pub nginx: PathBuf,
    /// The folder of our own binaries.
    pub ours: PathBuf,
    pub threads: usize,
}

impl Programs {
    /// Starts the upstream and everything before it, with files under `folder`.
    pub(crate) fn start(&self, folder: &Path) -> Result<Vec<Target>> {
        let direct = upstream::start(&self.ours.join("upstream"))?;
        let engine = direct.address.clone();
        let nginx = nginx::start(&self.nginx, folder, &engine, self.threads)?;
        let pingora = yardstick::start(&self.ours.join("yardstick"), &engine, self.threads)?;
        let gateway = self.ours.join("flexinfer-gateway");
        let gateway = gateway::start(&gateway, folder, &engine, self.threads)?;
        Ok(vec![direct, nginx, pingora, gateway])
    }
}

async fn ask(address: &str) -> Result<String> {
    let mut request = Work::chat().request(address)?;
    request.headers_mut().insert(ECHO, http::HeaderValue::from_static("1"));
    let answer = connect(address).await?.send_request(request).await?;
    if !answer.status().is_success() {
        bail!("it answered {}", answer.status());
    }
    let model = answer.headers().get(ECHO).context("the upstream did not echo the model")?;
    Ok(model.to_str()?.to_owned())
}

fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// An address that was free a moment ago; the system hands out another to the next who asks.
fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?.to_string())
}
