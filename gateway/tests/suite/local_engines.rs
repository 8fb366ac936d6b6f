//! Engines as processes: how they come up, fail, and end.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use flexinfer_core::activation::{Reason, Report, Substage};
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::local_hub::Hub;
use crate::local_world::{World, assert_failure, eventually, model, processes_with};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_engine_is_ready_when_its_own_probe_answers_and_gone_when_stopped() {
    let world = World::new();
    let instance = world.start("serves");
    let address = world.ready(instance);
    assert!(TcpStream::connect(address).is_ok());
    world.says(&[&format!("starting on {}", address.port())]);
    world.engines.stop(instance, 10 * SECOND);
    world.gone(instance);
    assert!(TcpStream::connect(address).is_err());
    let log = fs::read_to_string(world.path("data/logs/qwen.log")).unwrap();
    assert!(log.contains("starting on"), "{log}");
}

#[test]
fn an_engine_that_ignores_sigterm_is_killed_after_the_grace() {
    let world = World::new();
    let instance = world.start("stubborn");
    let address = world.ready(instance);
    world.engines.stop(instance, Duration::from_millis(200));
    world.gone(instance);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_grandchild_that_left_the_group_ends_with_its_engine() {
    let world = World::new();
    let instance = world.start("daemon");
    world.ready(instance);
    let word = world.path("mark").display().to_string();
    let engines = processes_with(&word);
    let sleeper = eventually(|| {
        let sleepers = processes_with("sleep\u{0}1000");
        sleepers.into_iter().find(|pid| engines.contains(&parent_of(*pid)))
    });
    let sleeper = sleeper.expect("the engine started its daemon");
    world.engines.stop(instance, 10 * SECOND);
    world.gone(instance);
    assert!(rustix::process::test_kill_process(Pid::from_raw(sleeper).unwrap()).is_err());
}

#[test]
fn an_engine_that_dies_while_loading_is_explained_by_its_last_words() {
    let world = World::new();
    let failure = world.failed(world.start("dies"));
    assert_failure(&failure, Reason::DiedWhileLoading, &["exit code 3", "they are green"]);
}

#[test]
fn an_engine_that_hangs_while_loading_fails_at_its_limit() {
    let world = World::new();
    let command = json!(["sh", "-c", "echo loading 40 %; exec sleep 1000"]);
    let config = json!({ "command": command, "startupTimeout": "2s" });
    let instance = world.start_model(&model(&json!({ "backend": "command", "config": config })));
    let failure = world.failed(instance);
    assert_failure(&failure, Reason::LoadTimeout, &["2s", "startupTimeout", "loading 40 %"]);
    let told = world.reports_of(instance).into_iter().any(|report| {
        matches!(report, Report::Progress { progress, .. } if progress.done == Some((40, 100)))
    });
    assert!(told, "the progress it printed was reported");
}

#[test]
fn an_engine_that_answers_garbage_fails_before_its_limit() {
    let world = World::new();
    let failure = world.failed(world.start("garbage"));
    assert_failure(&failure, Reason::UnhealthyAnswer, &["404", "/health"]);
    let failure = world.failed(world.start("no-http"));
    assert_failure(&failure, Reason::UnhealthyAnswer, &["no HTTP"]);
}

#[test]
fn an_engine_that_crashes_while_serving_is_reported_failed() {
    let world = World::new();
    let instance = world.start("crashes");
    let address = world.ready(instance);
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /crash HTTP/1.0\r\n\r\n").unwrap();
    let failure = world.failed(instance);
    assert_failure(&failure, Reason::Crashed, &["exit code 7"]);
}

#[test]
fn an_engine_whose_port_was_taken_is_started_with_another() {
    let world = World::new();
    let address = world.ready(world.start("taken-once"));
    assert!(world.path("mark").exists());
    assert!(TcpStream::connect(address).is_ok());
}

/// A loader that is killed from outside must never leave its model loading for ever.
#[test]
fn queue_05_an_engine_killed_three_times_while_loading_fails_each_time_at_once() {
    let world = World::new();
    for _ in 0..3 {
        let instance = world.start("hangs");
        let engine = eventually(|| {
            let lines = world.log_lines();
            lines.iter().any(|line| line.starts_with("loading")).then_some(())?;
            let word = world.path("mark").display().to_string();
            // The supervisor has the same words in its command line.
            processes_with(&word).into_iter().find(|pid| parent_is_supervisor(*pid))
        });
        let engine = Pid::from_raw(engine.expect("the engine is loading")).unwrap();
        rustix::process::kill_process(engine, Signal::KILL).unwrap();
        let failure = world.failed(instance);
        assert!(failure.reason.transient(), "it may be tried again: {failure}");
        assert_failure(&failure, failure.reason, &["signal 9"]);
    }
    world.ready(world.start("serves"));
}

#[test]
fn an_engine_whose_supervisor_is_killed_ends_and_is_reported() {
    let world = World::new();
    let instance = world.start("serves");
    let address = world.ready(instance);
    let word = world.path("mark").display().to_string();
    let supervisor = processes_with(&word).into_iter().find(|pid| !parent_is_supervisor(*pid));
    let supervisor = Pid::from_raw(supervisor.expect("the supervisor runs")).unwrap();
    rustix::process::kill_process(supervisor, Signal::KILL).unwrap();
    assert_eq!(world.failed(instance).reason, Reason::Crashed);
    let closed = eventually(|| TcpStream::connect(address).is_err().then_some(()));
    assert!(closed.is_some(), "the engine outlived its supervisor");
}

#[test]
fn a_program_that_is_missing_is_named_with_the_way_to_get_it() {
    let world = World::new();
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "command", "config": { "command": ["no-such-engine", "--fast"] }
    }))));
    assert_failure(&failure, Reason::ProgramNotFound, &["no-such-engine", "spec.config.command"]);
}

#[test]
fn a_program_that_may_not_be_run_says_so() {
    let world = World::new();
    let path = world.path("engine.sh");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "command", "config": { "command": [path] }
    }))));
    assert_failure(&failure, Reason::ProgramNotStarted, &["chmod +x"]);
}

#[test]
fn a_model_file_that_is_missing_is_named() {
    let world = World::new();
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "llamacpp", "source": "file://./missing.gguf"
    }))));
    assert_failure(&failure, Reason::BadSource, &["missing.gguf", "No such file"]);
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "llamacpp", "source": "pvc://weights/missing.gguf"
    }))));
    assert_failure(&failure, Reason::BadSource, &["data/pvc/weights/missing.gguf", "claim"]);
}

#[test]
fn a_model_file_that_is_cut_short_is_told_before_the_engine_starts() {
    let world = World::new();
    fs::write(world.path("cut.gguf"), "GG").unwrap();
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "llamacpp", "source": "file://./cut.gguf"
    }))));
    assert_failure(&failure, Reason::BadSource, &["cut.gguf", "damaged"]);
}

#[test]
fn a_model_on_a_hub_is_downloaded_once_and_handed_to_its_engine() {
    let hub = Hub::start();
    let world = World::with_hub(&hub.endpoint);
    let spec = json!({
        "backend": "command",
        "source": "HF://org/name:weights.txt",
        "config": { "command": ["python3", "engine.py", "{port}", "reads", "{model}"] },
    });
    let first = world.start_model(&model(&spec));
    let address = world.ready(first);
    world.says(&[&format!("starting on {}", address.port()), "read the weights"]);
    let told = world.reports_of(first).into_iter().any(|report| match report {
        Report::Progress { progress, .. } => progress.substage == Substage::Downloading,
        _ => false,
    });
    assert!(told, "the progress of the download was reported");
    world.engines.stop(first, 10 * SECOND);
    world.gone(first);
    drop(hub);
    world.ready(world.start_model(&model(&spec)));
}

#[test]
fn a_model_in_a_registry_is_downloaded_once_and_handed_to_its_engine() {
    let hub = Hub::start();
    let world = World::new();
    let spec = json!({
        "backend": "command",
        "source": format!("{}/org/name:v1", hub.endpoint.replace("http://", "oci://")),
        "config": {
            "command": ["python3", "engine.py", "{port}", "reads", "{model}"],
            "modelFile": "weights.txt",
        },
    });
    let first = world.start_model(&model(&spec));
    let address = world.ready(first);
    world.says(&[&format!("starting on {}", address.port()), "read the weights"]);
    world.engines.stop(first, 10 * SECOND);
    world.gone(first);
    drop(hub);
    world.ready(world.start_model(&model(&spec)));
}

#[test]
fn a_model_that_the_hub_does_not_have_is_a_bad_source() {
    let hub = Hub::start();
    let world = World::with_hub(&hub.endpoint);
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "vllm", "source": "HF://org/missing", "config": { "command": ["sh"] }
    }))));
    assert_failure(&failure, Reason::BadSource, &["org/missing"]);
}

#[test]
fn a_program_that_is_missing_is_told_before_its_weights_are_downloaded() {
    let hub = Hub::start();
    let world = World::with_hub(&hub.endpoint);
    let failure = world.failed(world.start_model(&model(&json!({
        "backend": "vllm", "source": "HF://org/missing", "config": { "command": ["no-such-engine"] }
    }))));
    assert_failure(&failure, Reason::ProgramNotFound, &["no-such-engine"]);
}

#[test]
fn the_simulator_loads_tells_its_progress_and_serves() {
    let world = World::new();
    let spec = json!({ "backend": "simulator", "config": { "loadTime": "1s" } });
    let instance = world.start_model(&model(&spec));
    let address = world.ready(instance);
    assert!(TcpStream::connect(address).is_ok());
    let percents: Vec<_> = world
        .reports_of(instance)
        .into_iter()
        .filter_map(|report| match report {
            Report::Progress { progress, .. } => progress.done,
            _ => None,
        })
        .collect();
    assert!(percents.len() > 2, "{percents:?}");
    assert!(percents.is_sorted(), "{percents:?}");
}

#[test]
fn a_simulator_that_dies_or_hangs_while_loading_fails() {
    let world = World::new();
    let dies = json!({ "loadTime": "200ms", "args": ["--die-while-loading", "50%"] });
    let spec = json!({ "backend": "simulator", "config": dies });
    let failure = world.failed(world.start_model(&model(&spec)));
    assert_failure(&failure, Reason::OutOfMemory, &["simulator", "died while loading"]);
    let hangs = json!({
        "loadTime": "200ms", "startupTimeout": "2s", "args": ["--hang-while-loading"]
    });
    let spec = json!({ "backend": "simulator", "config": hangs });
    let failure = world.failed(world.start_model(&model(&spec)));
    assert_failure(&failure, Reason::LoadTimeout, &["2s"]);
}

#[test]
fn an_external_engine_is_ready_while_it_answers_and_never_started() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let spec = json!({ "backend": "external", "config": { "url": format!("http://{address}") }});
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1024]);
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).unwrap();
    });
    let instance = world.start_model(&model(&spec));
    assert_eq!(world.ready(instance), address);
    let failure = world.failed(instance);
    assert_failure(&failure, Reason::Unreachable, &["no engine answers", "spec.config.url"]);
}

#[test]
fn an_external_engine_that_was_away_is_ready_anew() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let spec = json!({ "backend": "external", "config": { "url": format!("http://{address}") }});
    std::thread::spawn(move || {
        for answers in [true, false, true] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            if answers {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            }
        }
    });
    let instance = world.start_model(&model(&spec));
    assert_eq!(world.ready(instance), address);
    let told = |report: &Report| matches!(report, Report::Ready { .. });
    let again = || world.reports_of(instance).iter().filter(|report| told(report)).count() == 2;
    assert!(eventually(|| again().then_some(())).is_some(), "{:#?}", world.reports_of(instance));
}

#[test]
fn a_model_is_pulled_and_loaded_before_ollama_counts_as_ready() {
    let world = World::new();
    let instance = world.start_model(&ollama("another:1b", "nothing"));
    world.ready(instance);
    world.says(&["/api/show gemma:2b", "/api/pull gemma:2b", "/api/generate gemma:2b"]);
    let told = world.reports_of(instance).into_iter().any(|report| {
        matches!(report, Report::Progress { progress, .. } if progress.done == Some((4, 10)))
    });
    assert!(told, "the progress of the pull was reported");
}

#[test]
fn a_model_that_ollama_has_is_not_pulled_again() {
    let world = World::new();
    world.ready(world.start_model(&ollama("gemma:2b", "nothing")));
    world.says(&["/api/show gemma:2b", "/api/generate gemma:2b"]);
}

#[test]
fn a_pull_or_a_load_that_ollama_refuses_is_told_in_its_words() {
    let world = World::new();
    let failure = world.failed(world.start_model(&ollama("another:1b", "pull")));
    assert_failure(&failure, Reason::BadSource, &["file does not exist", "spec.source"]);
    let failure = world.failed(world.start_model(&ollama("gemma:2b", "load")));
    assert_failure(&failure, Reason::OutOfMemory, &["requires more system memory"]);
}

fn ollama(has: &str, wrong: &str) -> flexinfer_crds::Model {
    model(&json!({
        "backend": "ollama",
        "source": "ollama://gemma:2b",
        "config": { "command": ["python3", "ollama.py", has, wrong] },
    }))
}

#[test]
fn stopping_all_ends_engines_in_every_state() {
    let world = World::new();
    let serving = world.start("serves");
    let loading = world.start("hangs");
    world.ready(serving);
    world.stop_all(10 * SECOND);
    world.gone(serving);
    world.gone(loading);
}

fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split_ascii_whitespace().nth(1).and_then(|parent| parent.parse().ok()).unwrap_or(0)
}

fn parent_is_supervisor(pid: i32) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", parent_of(pid))).unwrap_or_default();
    String::from_utf8_lossy(&line).contains("\u{0}supervise\u{0}")
}
