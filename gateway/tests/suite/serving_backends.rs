//! Engines of other kinds: any command, one that already runs, and weights behind a claim.

use std::fs;
use std::process::Command;

use flexinfer_testkit::Program;
use serde_json::json;

use crate::local_world::PROGRAM;
use crate::serving_models::{model, scripted};
use crate::serving_world::{BOUND, Home, Serving, address_in, assert_ok, assert_refused};

#[tokio::test]
async fn any_command_serves_on_the_port_it_is_given() {
    let more = "  serverless:\n    idleTimeout: 300ms\n";
    let gateway = Serving::start(&[("any.yaml", &scripted("any", "serves", "word", more))]).await;
    let answer = gateway.chat("any").await;
    assert_ok(&answer);
    let arguments = &answer.json()["arguments"];
    assert_eq!((&arguments[1], &arguments[2]), (&json!("serves"), &json!("word")));
    assert!(arguments[0].as_str().unwrap().parse::<u16>().is_ok());
    gateway.until_phase("any", "Idle").await;
    assert_eq!(gateway.engines().len(), 0);
}

#[tokio::test]
async fn queue_09_a_request_while_the_engine_takes_its_time_to_end_waits_for_a_new_one() {
    let more = "  serverless:\n    idleTimeout: 200ms\n";
    let gateway = Serving::start(&[("any.yaml", &scripted("any", "slow-end", "", more))]).await;
    let first = gateway.chat("any").await;
    assert_ok(&first);
    gateway.until_phase("any", "Stopping").await;
    let second = gateway.chat("any").await;
    assert_ok(&second);
    assert_ne!(first.json()["arguments"][0], second.json()["arguments"][0], "another port");
    assert_eq!(gateway.engine_starts("any"), 2);
}

#[tokio::test]
async fn an_engine_that_already_runs_is_used_and_left_alone() {
    let mut command = Command::new(PROGRAM);
    command.args(["simulate", "--port", "0", "--model", "theirs"]);
    let mut engine = Program::start(&mut command).unwrap();
    let address = address_in(&engine.line("listening on", BOUND).await.unwrap());
    let config = json!({ "url": format!("http://{address}"), "servedModelName": "theirs" });
    let more = "  serverless:\n    idleTimeout: 200ms\n";
    let mut gateway =
        Serving::start(&[("ours.yaml", &model("ours", "external", &config, more))]).await;
    assert_ok(&gateway.chat("ours").await);
    gateway.until_phase("ours", "Idle").await;
    assert_ok(&gateway.chat("ours").await);
    assert_eq!(gateway.family().len(), 0, "nothing was started");

    gateway.program.terminate();
    gateway.program.exited(BOUND).await.unwrap();
    assert!(engine.exit_status().is_none(), "it still runs");
}

/// An engine that answers nobody who has not its key, not even a probe.
const GUARDED: &str = r"
import http.server
class Engine(http.server.BaseHTTPRequestHandler):
    def answer(self):
        known = self.headers.get('authorization') == 'Bearer sk-engine'
        text = b'{}'
        self.send_response(200 if known else 401); self.send_header('content-length', str(len(text)))
        self.send_header('content-type', 'application/json'); self.end_headers(); self.wfile.write(text)
    def do_GET(self): self.answer()
    def do_POST(self): self.rfile.read(int(self.headers['content-length'])); self.answer()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Engine)
print('listening on http://127.0.0.1:%d' % server.server_address[1], flush=True)
server.serve_forever()
";

#[tokio::test]
async fn an_engine_that_wants_a_key_is_probed_with_it() {
    let mut command = Command::new("python3");
    let mut engine = Program::start(command.args(["-c", GUARDED])).unwrap();
    let address = address_in(&engine.line("listening on", BOUND).await.unwrap());
    let external = |name: &str, secret: &str| {
        let url = format!("http://{address}");
        let config = json!({ "url": url, "apiKeySecret": secret });
        model(name, "external", &config, "")
    };
    let home = Home::new(&[
        ("a.yaml", &external("ours", "vendor")),
        ("b.yaml", &external("wrong", "none")),
    ]);
    let keys = home.models().with_file_name("keys");
    fs::create_dir(&keys).unwrap();
    fs::write(keys.join("vendor"), "sk-engine\n").unwrap();
    let command = home.command(&["--engine-secrets", keys.to_str().unwrap()]);
    let gateway = Serving::run(home, command).await;
    assert_ok(&gateway.chat("ours").await);
    assert_refused(&gateway.chat("wrong").await, 503, "activation_failed", &["401"]);
}

#[tokio::test]
async fn an_engine_that_should_run_and_does_not_is_told_with_its_address() {
    let config = json!({ "url": "http://127.0.0.1:1" });
    let gateway = Serving::start(&[("ours.yaml", &model("ours", "external", &config, ""))]).await;
    let words = ["no engine answers at 127.0.0.1:1", "spec.config.url"];
    assert_refused(&gateway.chat("ours").await, 503, "activation_failed", &words);
}

#[tokio::test]
async fn weights_in_a_claim_are_found_where_a_flag_says_or_in_the_data_folder() {
    let reads = |name: &str, source: &str| {
        scripted(name, "reads", "{model}", &format!("  source: {source}\n"))
    };
    let home = Home::new(&[
        ("a.yaml", &reads("mapped", "pvc://weights/small/model.bin")),
        ("b.yaml", &reads("unmapped", "pvc://others/model.bin")),
        ("c.yaml", &reads("missing", "pvc://others/none.bin")),
    ]);
    let disk = home.models().with_file_name("disk");
    let others = home.data().join("pvc/others");
    for (folder, text) in [(disk.join("small"), "of the flag"), (others.clone(), "of the data")] {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("model.bin"), text).unwrap();
    }
    let command = home.command(&["--pvc", &format!("weights={}", disk.display())]);
    let gateway = Serving::run(home, command).await;
    assert_eq!(gateway.chat("mapped").await.json()["read"], "of the flag");
    assert_eq!(gateway.chat("unmapped").await.json()["read"], "of the data");
    let place = others.join("none.bin");
    let words = ["BadSource", place.to_str().unwrap()];
    assert_refused(&gateway.chat("missing").await, 503, "activation_failed", &words);
}
