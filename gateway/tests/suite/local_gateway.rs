//! The whole program in local mode, as a person starts it: its folder, its end, and what it leaves.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::local_world::{PROGRAM, eventually, processes_with};

struct Gateway {
    program: Child,
    address: String,
    folder: TempDir,
}

impl Gateway {
    /// A gateway for a folder with these files, once it serves.
    fn start(files: &[(&str, &str)]) -> Self {
        Self::start_with(files, &[])
    }

    /// The same, with these variables set.
    fn start_with(files: &[(&str, &str)], variables: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("models")).unwrap();
        for (name, text) in files {
            fs::write(folder.path().join("models").join(name), text).unwrap();
        }
        let mut command = command(&folder);
        command.envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut program = command.spawn().unwrap();
        let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().split_once(" at http://")?.1.to_owned()))
            .expect("it tells its address");
        // Read on, so that it can go on telling.
        std::thread::spawn(move || lines.for_each(drop));
        Self { program, address, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("models").join(name)
    }

    /// The names in /v1/models.
    fn models(&self) -> Vec<String> {
        let answer: serde_json::Value = serde_json::from_str(&self.get("/v1/models")).unwrap();
        let models = answer["data"].as_array().unwrap().iter();
        models.map(|model| model["id"].as_str().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn lists(&self, wanted: &[&str]) {
        let listed = eventually(|| (self.models() == wanted).then_some(()));
        assert!(listed.is_some(), "listed are {:?}", self.models());
    }

    /// Begins a streamed chat with `model` and reads it as far as its first token.
    fn stream(&self, model: &str) -> BufReader<TcpStream> {
        let messages = r#"[{"role": "user", "content": "Hello!"}]"#;
        let body = format!(r#"{{"model": "{model}", "stream": true, "messages": {messages}}}"#);
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\
                    content-type: application/json\r\ncontent-length: ";
        write!(stream, "{head}{length}\r\n\r\n{body}").unwrap();
        let mut stream = BufReader::new(stream);
        let mut said = String::new();
        while !said.contains("\"content\":") {
            assert!(stream.read_line(&mut said).unwrap() > 0, "it ended early: {said}");
        }
        stream
    }

    /// The body of a GET.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn command(folder: &TempDir) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("local").arg(folder.path().join("models"));
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(folder.path().join("data"));
    command
}

fn simulated(name: &str, more: &str) -> String {
    format!(
        "apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model\nmetadata:\n  name: {name}\n\
         spec:\n  backend: simulator\n{more}"
    )
}

#[test]
fn no_engine_outlives_a_gateway_that_was_killed() {
    let name = format!("orphan-{}", std::process::id());
    let model = simulated(&name, "  serverless:\n    minReplicas: 1\n");
    let mut gateway = Gateway::start(&[("a.yaml", &model)]);
    let started = eventually(|| (processes_with(&name).len() == 2).then_some(()));
    assert!(started.is_some(), "an engine and its supervisor run");
    gateway.program.kill().unwrap();
    let ended = eventually(|| processes_with(&name).is_empty().then_some(()));
    assert!(ended.is_some(), "left are {:?}", processes_with(&name));
}

#[test]
fn a_second_gateway_on_the_same_folder_refuses_to_start() {
    let gateway = Gateway::start(&[]);
    let second = command(&gateway.folder).output().unwrap();
    assert!(!second.status.success());
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("in use by another gateway"), "{said}");
}

#[test]
fn files_take_effect_without_a_restart_and_a_broken_edit_keeps_the_old_version() {
    let gateway = Gateway::start(&[("a.yaml", &simulated("llama", ""))]);
    gateway.lists(&["llama"]);
    fs::write(gateway.path("b.yaml"), simulated("qwen", "")).unwrap();
    gateway.lists(&["llama", "qwen"]);
    fs::write(gateway.path("a.yaml"), "spec: [").unwrap();
    fs::write(gateway.path("c.yaml"), simulated("phi", "")).unwrap();
    gateway.lists(&["llama", "phi", "qwen"]);
    fs::remove_file(gateway.path("b.yaml")).unwrap();
    gateway.lists(&["llama", "phi"]);
}

/// Its answers take a second or two.
fn slow(name: &str, more: &str) -> String {
    simulated(name, &format!("{more}  config:\n    timePerToken: 50ms\n    answerTokens: 30\n"))
}

#[test]
fn a_stream_is_not_broken_when_its_file_is_edited_or_removed() {
    let gateway = Gateway::start(&[("a.yaml", &slow("llama", "")), ("b.yaml", &slow("qwen", ""))]);
    let mut edited = gateway.stream("llama");
    let mut removed = gateway.stream("qwen");
    fs::write(gateway.path("a.yaml"), slow("llama", "  litellm:\n    aliases: [meta]\n")).unwrap();
    fs::remove_file(gateway.path("b.yaml")).unwrap();
    gateway.lists(&["llama"]);
    for stream in [&mut edited, &mut removed] {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(rest.contains("[DONE]"), "it ended with {:?}", rest.lines().last());
    }
}

#[test]
fn a_gateway_that_gets_sigterm_lets_requests_finish_and_then_ends_its_engines() {
    let name = format!("ends-{}", std::process::id());
    let mut gateway = Gateway::start(&[("a.yaml", &slow(&name, ""))]);
    let mut stream = gateway.stream(&name);
    let program = i32::try_from(gateway.program.id()).unwrap();
    let program = rustix::process::Pid::from_raw(program).unwrap();
    rustix::process::kill_process(program, rustix::process::Signal::TERM).unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("[DONE]"), "it ended with {:?}", rest.lines().last());
    assert!(gateway.program.wait().unwrap().success());
    assert_eq!(processes_with(&name), [0; 0]);
}

/// The waiting request outlasts the kills and is answered by the engine that lives.
#[test]
fn queue_05_a_request_waits_through_three_engines_that_are_killed_while_loading() {
    let name = format!("killed-{}", std::process::id());
    let script = format!(
        "[ ! -e hang ] && exec {PROGRAM} simulate --host {{host}} --port {{port}} --model {name}; \
         exec sleep 1000.{}",
        std::process::id()
    );
    let model = serde_json::json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": name },
        "spec": { "backend": "command", "config": { "command": ["sh", "-c", script] } },
    });
    let retries = [
        ("PROXY_BACKOFF_ENABLED", "true"),
        ("PROXY_BACKOFF_INITIAL_WAIT", "50ms"),
        ("PROXY_BACKOFF_MAX_RETRIES", "10"),
    ];
    let gateway = Gateway::start_with(&[("a.yaml", &model.to_string()), ("hang", "")], &retries);
    let hanging = format!("sleep\u{0}1000.{}", std::process::id());
    std::thread::scope(|scope| {
        let request = scope.spawn(|| gateway.stream(&name));
        for round in 1..=3 {
            let engine = eventually(|| processes_with(&hanging).first().copied());
            let engine = engine.unwrap_or_else(|| panic!("no engine in round {round}"));
            if round == 3 {
                fs::remove_file(gateway.path("hang")).unwrap();
            }
            let engine = rustix::process::Pid::from_raw(engine).unwrap();
            rustix::process::kill_process(engine, rustix::process::Signal::KILL).unwrap();
            let ended = eventually(|| {
                (!processes_with(&hanging).contains(&engine.as_raw_nonzero().get())).then_some(())
            });
            assert!(ended.is_some());
        }
        request.join().expect("the request is answered by the fourth engine");
    });
}
