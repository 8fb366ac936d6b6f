//! Texts of Models for the serving tests, and the engine of some of them.

use serde_json::{Value, json};

/// An engine of a few lines that answers every POST with what it was started with, and can behave badly.
pub(crate) const ENGINE: &str = r"
import http.server, json, os, signal, subprocess, sys, time
port, mode, more = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
if mode == 'taken-once' and not os.path.exists('mark'):
    open('mark', 'w').close(); print('OSError: Address already in use', flush=True); sys.exit(1)
if mode == 'hangs' and os.path.exists('hang'):
    print('hanging', flush=True); time.sleep(1000)
if mode == 'slow-end':
    def end(*_): time.sleep(1); os._exit(0)
    signal.signal(signal.SIGTERM, end)
if mode == 'family':
    subprocess.Popen(['sleep', '1000'], start_new_session=True)
    subprocess.Popen(['sh', '-c', 'sleep 1000 & sleep 1000'])
read = open(more[0]).read() if mode == 'reads' else ''
class Engine(http.server.BaseHTTPRequestHandler):
    def answer(self):
        text = json.dumps({'arguments': sys.argv[1:], 'read': read}).encode()
        self.send_response(200); self.send_header('content-length', str(len(text)))
        self.send_header('content-type', 'application/json'); self.end_headers(); self.wfile.write(text)
    def do_GET(self): self.answer()
    def do_POST(self): self.rfile.read(int(self.headers['content-length'])); self.answer()
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(('127.0.0.1', port), Engine).serve_forever()
";

/// A Model of a simulated engine that answers at once; `more` are further lines of its spec.
pub(crate) fn simulated(name: &str, config: &Value, more: &str) -> String {
    let mut all = json!({ "timeToFirstToken": "0s", "timePerToken": "0s", "answerTokens": 4 });
    for (key, value) in config.as_object().unwrap() {
        all[key] = value.clone();
    }
    model(name, "simulator", &all, more)
}

/// A Model whose engine is the Python one of these tests, in `mode`.
pub(crate) fn scripted(name: &str, mode: &str, argument: &str, more: &str) -> String {
    let command = ["python3", "engine.py", "{port}", mode, argument];
    model(name, "command", &json!({ "command": command }), more)
}

pub(crate) fn model(name: &str, backend: &str, config: &Value, more: &str) -> String {
    // JSON is YAML.
    format!(
        "apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model\nmetadata:\n  name: {name}\n\
         spec:\n  backend: {backend}\n  config: {config}\n{more}"
    )
}
