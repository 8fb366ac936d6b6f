//! A gateway as a person runs it: the real program on a folder of Model files of its own, with engines as
//! processes. What the serving tests share; they ask only what a client, a terminal or `/proc` shows.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use flexinfer_testkit::client::{Answer, Client, request};
use flexinfer_testkit::{Program, TempDir, eventually_async, tempdir};
use serde_json::{Value, json};

use crate::local_world::PROGRAM;
use crate::serving_models::ENGINE;
use crate::serving_processes::children;

/// Far above what anything takes, also on a machine that is busy with other things.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// More tokens than any test reads: such a stream ends when its client leaves.
pub(crate) const WITHOUT_END: usize = 10_000;

/// A folder of Models and a data folder beside it.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let home = Self(tempdir().unwrap());
        fs::create_dir(home.models()).unwrap();
        fs::write(home.models().join("engine.py"), ENGINE).unwrap();
        for (name, text) in files {
            home.write(name, text);
        }
        home
    }

    pub(crate) fn models(&self) -> PathBuf {
        self.0.path().join("models")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.models().join(name), text).unwrap();
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.models().join(name)).unwrap();
    }

    /// The gateway for this folder, on ports from the system.
    pub(crate) fn command(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.arguments(&mut command, flags);
        command
    }

    /// The same from a shell, after `before`.
    pub(crate) fn command_after(&self, before: &str, flags: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{before}; exec \"$0\" \"$@\"")).arg(PROGRAM);
        self.arguments(&mut command, flags);
        command
    }

    fn arguments(&self, command: &mut Command, flags: &[&str]) {
        command.arg("local").arg(self.models());
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(self.data()).args(flags);
        command.env_remove("HF_TOKEN");
    }
}

/// A gateway that serves, and how it is asked.
pub(crate) struct Serving {
    pub(crate) home: Home,
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
}

impl Serving {
    pub(crate) async fn start(files: &[(&str, &str)]) -> Self {
        Self::start_with(&[], files).await
    }

    pub(crate) async fn start_with(flags: &[&str], files: &[(&str, &str)]) -> Self {
        let home = Home::new(files);
        let command = home.command(flags);
        Self::run(home, command).await
    }

    /// Runs `command` and reads from the banner where it serves.
    pub(crate) async fn run(home: Home, mut command: Command) -> Self {
        let mut program = Program::start(&mut command).unwrap();
        let served = program.line("FlexInfer serves", BOUND).await.unwrap();
        let state = program.line("Metrics and state", BOUND).await.unwrap();
        Self { home, program, address: address_in(&served), admin: address_in(&state) }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        get(self.address, path).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        let mut client = Client::connect(self.address).await.unwrap();
        client.post(path, body.to_string().as_bytes()).await.unwrap();
        bounded(client.answer()).await.unwrap()
    }

    /// Asks `model` for a chat and waits for the whole answer.
    pub(crate) async fn chat(&self, model: &str) -> Answer {
        chat(self.address, model).await
    }

    /// Asks `model` again and again until the answer is what is `wanted`.
    pub(crate) async fn chat_until(
        &self,
        model: &str,
        what: &str,
        wanted: impl Fn(&Answer) -> bool,
    ) -> Answer {
        let began = Instant::now();
        loop {
            let answer = self.chat(model).await;
            if wanted(&answer) {
                return answer;
            }
            assert!(began.elapsed() < BOUND, "{model} is not {what}: {}", answer.text());
        }
    }

    /// Asks `model` for a chat; the answer is for later.
    pub(crate) async fn ask(&self, model: &str) -> Client {
        let mut client = Client::connect(self.address).await.unwrap();
        client.post(CHAT, &body(model)).await.unwrap();
        client
    }

    /// A stream of `tokens` tokens whose first has come.
    pub(crate) async fn stream(&self, model: &str, tokens: usize) -> Stream {
        let mut client = Client::connect(self.address).await.unwrap();
        let messages = json!([{ "role": "user", "content": "Hello!" }]);
        let body = json!({ "model": model, "stream": true, "messages": messages,
            "max_tokens": tokens, "ignore_eos": true });
        client.post(CHAT, body.to_string().as_bytes()).await.unwrap();
        let head = bounded(client.head()).await.unwrap();
        assert_eq!(head.status(), 200, "{head:?}: {}", String::from_utf8_lossy(client.unread()));
        let mut stream = Stream { client, text: String::new(), ended: false };
        while !stream.text.contains("content") {
            assert!(stream.step().await, "it ended early: {}", stream.text);
        }
        stream
    }

    /// What `/debug/models` says of `model`; null when it is not there.
    pub(crate) async fn state(&self, model: &str) -> Value {
        let page = get(self.admin, "/debug/models").await.json();
        let groups = page["groups"].as_array().cloned().unwrap_or_default();
        let mut members = groups.iter().flat_map(|group| group["models"].as_array().unwrap());
        members.find(|member| member["model"] == model).cloned().unwrap_or_default()
    }

    /// Waits until `/debug/models` says for `model` what `wanted` looks for.
    #[track_caller]
    pub(crate) fn until<'a>(
        &'a self,
        model: &'a str,
        what: &'a str,
        wanted: impl Fn(&Value) -> bool + 'a,
    ) -> impl Future<Output = Value> + 'a {
        let caller = std::panic::Location::caller();
        async move {
            let seen = parking_lot::Mutex::new(Value::Null);
            let reached = eventually_async(BOUND, || async {
                let state = self.state(model).await;
                let reached = wanted(&state);
                *seen.lock() = state;
                reached
            })
            .await;
            let seen = seen.into_inner();
            let lines = self.program.lines().join("\n");
            assert!(reached, "{caller}: {model} is not {what}: {seen:#}\n{lines}");
            seen
        }
    }

    #[track_caller]
    pub(crate) fn until_phase<'a>(
        &'a self,
        model: &'a str,
        phase: &'a str,
    ) -> impl Future<Output = Value> + 'a {
        self.until(model, phase, move |state| state["phase"] == phase)
    }

    /// The sum of a metric over the label sets that name `model`.
    pub(crate) async fn metric(&self, name: &str, model: &str) -> f64 {
        let page = get(self.admin, "/metrics").await.text();
        let (start, label) = (format!("flexinfer_proxy_{name}{{"), format!("model=\"{model}\""));
        let lines = page.lines().filter(|line| line.starts_with(&start) && line.contains(&label));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// Waits until nothing is in flight and nothing waits, by the metrics.
    pub(crate) async fn until_quiet(&self, model: &str) {
        let quiet = eventually_async(BOUND, || async {
            self.metric("active_connections", model).await == 0.0
                && self.metric("queue_depth", model).await == 0.0
        })
        .await;
        assert!(quiet, "{model} still has requests: {:#}", self.state(model).await);
    }

    /// What the engines of `model` were started with and have said.
    pub(crate) fn log(&self, model: &str) -> String {
        let log = self.home.data().join("logs").join(format!("{model}.log"));
        fs::read_to_string(log).unwrap_or_default()
    }

    /// How often an engine was started for `model`.
    pub(crate) fn engine_starts(&self, model: &str) -> usize {
        self.log(model).lines().filter(|line| line.starts_with("--- ")).count()
    }

    /// Every process that descends from this gateway.
    pub(crate) fn family(&self) -> Vec<u32> {
        let mut found = children(self.program.id());
        let mut next = 0;
        while let Some(pid) = found.get(next) {
            found.extend(children(*pid));
            next += 1;
        }
        found
    }

    /// The processes of this gateway's engines: children of its supervisors.
    pub(crate) fn engines(&self) -> Vec<u32> {
        children(self.program.id()).into_iter().flat_map(children).collect()
    }

    /// Waits until a line on the terminal contains `text`.
    pub(crate) async fn told(&mut self, text: &str) -> String {
        self.program.line(text, BOUND).await.unwrap()
    }
}

/// An answer that comes piece by piece.
pub(crate) struct Stream {
    client: Client,
    /// What has come so far.
    pub(crate) text: String,
    ended: bool,
}

impl Stream {
    /// Reads a piece; false at the end, whatever that is.
    pub(crate) async fn step(&mut self) -> bool {
        let piece = bounded(self.client.chunk()).await;
        self.ended = matches!(piece, Ok(None));
        let Ok(Some(piece)) = piece else { return false };
        self.text.push_str(&String::from_utf8_lossy(&piece));
        true
    }

    /// Reads the rest. True when it ended as an answer does: with `[DONE]` and the last chunk.
    pub(crate) async fn finish(&mut self) -> bool {
        while self.step().await {}
        self.ended && self.text.trim_end().ends_with("data: [DONE]")
    }
}

const CHAT: &str = "/v1/chat/completions";

fn body(model: &str) -> Vec<u8> {
    let messages = json!([{ "role": "user", "content": "Hello!" }]);
    json!({ "model": model, "messages": messages }).to_string().into_bytes()
}

pub(crate) async fn chat(address: SocketAddr, model: &str) -> Answer {
    let mut client = Client::connect(address).await.unwrap();
    client.post(CHAT, &body(model)).await.unwrap();
    bounded(client.answer()).await.unwrap()
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Answer {
    let mut client = Client::connect(address).await.unwrap();
    client.send(&request("GET", path, &[("connection", "close")], b"")).await.unwrap();
    bounded(client.answer_to("GET")).await.unwrap()
}

/// What must come, so that a test fails instead of standing still when it does not.
pub(crate) async fn bounded<T>(coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, coming).await.expect("it comes within the bound")
}

/// The code of a refusal.
pub(crate) fn code(answer: &Answer) -> String {
    answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
pub(crate) fn assert_ok(answer: &Answer) {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    assert!(answer.complete);
}

/// An answer that refuses with this status and code, and these words in its message.
#[track_caller]
pub(crate) fn assert_refused(answer: &Answer, status: u16, wanted: &str, words: &[&str]) {
    assert_eq!((answer.status(), code(answer).as_str()), (status, wanted), "{}", answer.text());
    for word in words {
        assert!(answer.text().contains(word), "`{word}` is not in {}", answer.text());
    }
}

pub(crate) fn address_in(line: &str) -> SocketAddr {
    let (_, rest) = line.split_once("http://").unwrap();
    rest.split(['/', ' ']).next().unwrap().parse().unwrap()
}
