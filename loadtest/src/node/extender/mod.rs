//! The extender beside one that only gives back the names it was sent: what it costs to decide.

mod cluster;
pub(crate) mod echo;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use serde_json::{Value, json};

use crate::requests::connect;
use cluster::Cluster;

/// Questions of one round.
const QUESTIONS: u32 = 20;

/// How long a program may take until it can be asked.
const PATIENCE: Duration = Duration::from_secs(60);

/// Medians of the time for a filter and a score together.
pub(super) struct Asked {
    pub(super) ours_milliseconds: f64,
    pub(super) echo_milliseconds: f64,
}

impl Asked {
    pub(super) fn print(&self, nodes: usize) {
        println!("\nfilter and score of {nodes} nodes by their names, medians");
        println!("extender      {:>9.3} ms", self.ours_milliseconds);
        println!("echo          {:>9.3} ms", self.echo_milliseconds);
    }

    /// How many times as long ours takes.
    pub(super) fn times_as_long(&self) -> f64 {
        self.ours_milliseconds / self.echo_milliseconds
    }
}

/// Asks both in turns.
pub(super) async fn compare(binaries: &Path, nodes: usize, rounds: u32) -> Result<Asked> {
    let cluster = Cluster::start(nodes).await?;
    let mut ours = Command::new(binaries.join("flexinfer-controller"));
    ours.args(["scheduler", "--host", "127.0.0.1", "--port", "0"]);
    ours.env("KUBECONFIG", cluster.kubeconfig());
    let mut ours = Program::start(&mut ours)?;
    let mut echo = Command::new(std::env::current_exe()?);
    let mut echo = Program::start(echo.arg("extender-echo"))?;
    let question = question(nodes);
    let (mut at_ours, mut at_echo) = (ours.ready().await?, echo.ready().await?);
    let (mut of_ours, mut of_echo) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        for (sender, times) in [(&mut at_ours, &mut of_ours), (&mut at_echo, &mut of_echo)] {
            for _ in 0..QUESTIONS {
                let took = ask(sender, &question, nodes).await?;
                // The first round warms up.
                if round > 0 {
                    times.push(took.as_secs_f64() * 1000.0);
                }
            }
        }
    }
    Ok(Asked { ours_milliseconds: median(of_ours), echo_milliseconds: median(of_echo) })
}

/// One filter and one score; every node must have passed.
async fn ask(
    sender: &mut SendRequest<Full<Bytes>>,
    question: &Bytes,
    nodes: usize,
) -> Result<Duration> {
    let begun = Instant::now();
    let filtered = post(sender, "/filter", question).await?;
    let scored = post(sender, "/prioritize", question).await?;
    let took = begun.elapsed();
    let filtered: Value = serde_json::from_slice(&filtered)?;
    let passed = filtered.get("NodeNames").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(passed == nodes, "{passed} of {nodes} nodes passed");
    let scored: Vec<Value> = serde_json::from_slice(&scored)?;
    ensure!(scored.len() == nodes, "{} of {nodes} nodes have a score", scored.len());
    Ok(took)
}

async fn post(sender: &mut SendRequest<Full<Bytes>>, path: &str, body: &Bytes) -> Result<Bytes> {
    send(sender, Method::POST, path, body.clone()).await.and_then(|(status, body)| {
        ensure!(status == StatusCode::OK, "{path} was answered with {status}");
        Ok(body)
    })
}

async fn send(
    sender: &mut SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    body: Bytes,
) -> Result<(StatusCode, Bytes)> {
    sender.ready().await.context("the connection was closed between questions")?;
    let request = Request::builder().method(method).uri(path).header("host", "extender");
    let request = request.header("content-type", "application/json").body(Full::new(body))?;
    let answer = sender.send_request(request).await?;
    Ok((answer.status(), answer.into_body().collect().await?.to_bytes()))
}

/// A pod of usual length, and all nodes by name, as kube-scheduler sends them.
fn question(nodes: usize) -> Bytes {
    let variable = |number: usize| json!({ "name": format!("VARIABLE_{number}"), "value": "a value of usual length" });
    let pod = json!({
        "metadata": {
            "name": "llama-7d9c5b6f4-x2x4k", "namespace": "models", "uid": "0c8f0f1e-1111-2222-3333-444455556666",
            "labels": { "flexinfer.ai/model": "llama", "flexinfer.ai/backend": "vllm" },
            "annotations": { "flexinfer.ai/gpu.vram-estimate-mb": "8000" },
        },
        "spec": {
            "schedulerName": "flexinfer",
            "containers": [{
                "name": "engine", "image": "vllm/vllm-openai:v0.11.0",
                "env": (0..40).map(variable).collect::<Vec<_>>(),
                "resources": { "limits": { "nvidia.com/gpu": "1", "cpu": "8", "memory": "32Gi" } },
            }],
        },
        "status": { "phase": "Pending" },
    });
    let names: Vec<String> = (0..nodes).map(cluster::name).collect();
    let question = json!({ "Pod": pod, "Nodes": null, "NodeNames": names });
    Bytes::from(question.to_string())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A program that tells its address, ended when dropped.
struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = child.stderr.take().context("its output is not here")?;
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("address=")?.1.trim().to_owned()));
        // A pipe that nobody reads stops its writer once it is full.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.with_context(|| format!("{command:?} told no address"))?;
        Ok(Self { child, address })
    }

    /// A connection to it, once it says that it is well.
    async fn ready(&mut self) -> Result<SendRequest<Full<Bytes>>> {
        let begun = Instant::now();
        let mut sender = connect(&self.address).await?;
        loop {
            let (status, text) = send(&mut sender, Method::GET, "/healthz", Bytes::new()).await?;
            if status == StatusCode::OK {
                return Ok(sender);
            }
            let text = String::from_utf8_lossy(&text);
            ensure!(begun.elapsed() < PATIENCE, "{} is not ready: {text}", self.address);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
