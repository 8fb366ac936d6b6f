//! The programs that a comparison starts, each on ports from the system and ended when dropped.

mod envoy;
mod gateway;
mod haproxy;
mod nginx;
mod routers;
mod upstream;
mod yardstick;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use http_body_util::BodyExt as _;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::requests::{connect, get};
use crate::work::{ENGINE_MODEL, MODEL, Work};
pub(crate) use gateway::{
    asleep as sleeping_gateway, with_drain as gateway_with_drain,
    with_everything as gateway_with_everything,
};

/// How long a program may take to serve its first request.
const PATIENCE: Duration = Duration::from_mins(2);

/// What is measured, in the order of the tables. `Direct` is the upstream without a proxy: what the load
/// itself takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Name {
    Direct,
    Nginx,
    Haproxy,
    Envoy,
    VllmRouter,
    Smg,
    Pingora,
    Gateway,
    /// The gateway with callers' keys and limits.
    Everything,
    /// Another build of the gateway.
    Beside,
    /// The same with callers' keys and limits.
    BesideEverything,
}

impl Name {
    pub(crate) fn shown(self) -> &'static str {
        match self {
            Name::Direct => "no proxy",
            Name::Nginx => "nginx",
            Name::Haproxy => "HAProxy",
            Name::Envoy => "Envoy",
            Name::VllmRouter => "vllm-router",
            Name::Smg => "SMG",
            Name::Pingora => "bare Pingora",
            Name::Gateway => "FlexInfer",
            Name::Everything => "FlexInfer, all",
            Name::Beside => "beside",
            Name::BesideEverything => "beside, all",
        }
    }

    /// The name of the model that requests have when they arrive at the engine.
    pub(crate) fn model_upstream(self) -> &'static str {
        if self.is_gateway() { ENGINE_MODEL } else { MODEL }
    }

    fn is_gateway(self) -> bool {
        matches!(self, Self::Gateway | Self::Everything | Self::Beside | Self::BesideEverything)
    }
}

/// A program under load.
pub(crate) struct Target {
    pub name: Name,
    /// Where whole answers are asked for.
    pub address: String,
    /// Where streams are asked for: nginx needs another server for them.
    pub stream_address: String,
    /// Where it tells how it is, if it is the gateway.
    pub admin: Option<String>,
    child: Child,
}

impl Target {
    fn new(name: Name, address: String, child: Child) -> Self {
        Self { name, stream_address: address.clone(), address, admin: None, child }
    }

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

    /// What the gateway counts.
    pub(crate) async fn metrics(&self) -> Result<String> {
        let admin = self.admin.as_deref().context("only the gateway has an admin port")?;
        get(admin, "/metrics").await
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).context("it cannot be signalled")
    }

    /// Waits until it has ended, however that was.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                bail!("{} does not end", self.name.shown());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // SIGTERM, for nginx and the gateway have children of their own to end.
        let asked = matches!(self.child.try_wait(), Ok(None)).then(|| self.signal(Signal::TERM));
        drop(asked);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// What a program is started with.
pub(crate) struct Setting<'a> {
    /// Where each may have a folder.
    pub folder: &'a Path,
    /// The address of the engine behind it.
    pub engine: &'a str,
    pub threads: usize,
}

impl Setting<'_> {
    fn folder_of(&self, program: &str) -> Result<PathBuf> {
        let folder = self.folder.join(program);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }
}

/// Where the programs of others are. One that is not given is not measured.
#[derive(Args)]
pub(crate) struct Others {
    /// The nginx to compare with
    #[arg(long)]
    nginx: Option<PathBuf>,
    /// The HAProxy to compare with
    #[arg(long)]
    haproxy: Option<PathBuf>,
    /// The Envoy to compare with
    #[arg(long)]
    envoy: Option<PathBuf>,
    /// The router of vLLM to compare with
    #[arg(long)]
    vllm_router: Option<PathBuf>,
    /// The SMG to compare with
    #[arg(long)]
    smg: Option<PathBuf>,
}

/// Starts a program before the engine.
type Start = fn(&Path, &Setting<'_>) -> Result<Target>;

impl Others {
    fn given(&self) -> impl Iterator<Item = (&Path, Start)> {
        let all: [(&Option<PathBuf>, Start); 5] = [
            (&self.nginx, nginx::start),
            (&self.haproxy, haproxy::start),
            (&self.envoy, envoy::start),
            (&self.vllm_router, routers::vllm),
            (&self.smg, routers::smg),
        ];
        all.into_iter().filter_map(|(program, start)| Some((program.as_deref()?, start)))
    }
}

/// Starts the upstream of the folder `ours`, which takes `delay` for each answer.
pub(crate) fn engine(ours: &Path, delay: Duration) -> Result<Target> {
    upstream::start(&ours.join("upstream"), delay)
}

/// Starts everything that is to stand before an engine.
pub(crate) fn proxies(
    others: &Others,
    ours: &Path,
    everything: bool,
    setting: &Setting<'_>,
) -> Result<Vec<Target>> {
    let started = others.given().map(|(program, start)| start(program, setting));
    let mut targets = started.collect::<Result<Vec<_>>>()?;
    targets.push(yardstick::start(&ours.join("yardstick"), setting)?);
    let gateway = ours.join("flexinfer-gateway");
    targets.push(gateway::start(&gateway, setting)?);
    if everything {
        targets.push(gateway::with_everything(&gateway, setting)?);
    }
    Ok(targets)
}

/// Starts another build of the gateway beside them.
pub(crate) fn beside(
    program: &Path,
    everything: bool,
    setting: &Setting<'_>,
) -> Result<Vec<Target>> {
    let folder = setting.folder_of("beside")?;
    let setting = Setting { folder: &folder, ..*setting };
    let mut targets = vec![gateway::start(program, &setting)?];
    if everything {
        targets.push(gateway::with_everything(program, &setting)?);
    }
    for (target, name) in targets.iter_mut().zip([Name::Beside, Name::BesideEverything]) {
        target.name = name;
    }
    Ok(targets)
}

async fn ask(address: &str) -> Result<String> {
    let answer = connect(address).await?.send_request(Work::echo().request(address)?).await?;
    if !answer.status().is_success() {
        bail!("it answered {}", answer.status());
    }
    let chat: Value = serde_json::from_slice(&answer.into_body().collect().await?.to_bytes())?;
    let model = chat.get("model").and_then(Value::as_str).context("its answer names no model")?;
    Ok(model.to_owned())
}

fn spawn(command: &mut Command) -> Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.spawn().with_context(|| format!("cannot start {program}"))
}

/// An address that was free a moment ago; the system hands out another to the next who asks.
fn free_address() -> Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0").context("no free port")?.local_addr()?.to_string())
}
