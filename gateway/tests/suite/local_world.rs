//! What the local platform's tests share: a data folder of their own, engines of a few lines of Python,
//! and waiting for a state.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use flexinfer_core::activation::{Failure, Reason, Report};
use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_crds::Model;
use flexinfer_fetching::FetchSettings;
use flexinfer_gateway::local::{Engines, Own, Settings};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The gateway's program, as built for these tests.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_flexinfer-gateway");

/// An engine that answers GET /health by the rules in its options, and a few words more.
const ENGINE: &str = r"
import http.server, os, signal, subprocess, sys, time
port, mode = int(sys.argv[1]), sys.argv[2]
def say(text): print(text, flush=True)
say('starting on ' + str(port))
if mode == 'dies':
    say('cannot read the weights: they are green'); sys.exit(3)
if mode == 'hangs':
    say('loading 40 %')
    while True: time.sleep(60)
if mode == 'taken-once':
    mark = sys.argv[3]
    if not os.path.exists(mark):
        open(mark, 'w').close(); say('OSError: Address already in use'); sys.exit(1)
if mode == 'reads':
    say('read ' + open(sys.argv[3]).read())
if mode == 'stubborn':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == 'daemon':
    subprocess.Popen(['sleep', '1000'], start_new_session=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status = 404 if mode == 'garbage' else 200
        self.send_response(status); self.end_headers(); self.wfile.write(b'{}')
        if mode == 'crashes' and self.path == '/crash': os._exit(7)
    def log_message(self, *args): pass
if mode == 'no-http':
    import socket
    server = socket.create_server(('127.0.0.1', port))
    while True:
        connection, _ = server.accept(); connection.recv(4096); connection.sendall(b'220 mail ready\r\n'); connection.close()
http.server.ThreadingHTTPServer(('127.0.0.1', port), Handler).serve_forever()
";

/// What Ollama does on its way to a loaded model; its options are what it has, and what goes wrong.
const OLLAMA: &str = r"
import http.server, json, os, sys, time
has, wrong = sys.argv[1], sys.argv[2]
host, port = os.environ['OLLAMA_HOST'].split(':')
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, status, *lines):
        self.send_response(status); self.end_headers()
        for line in lines: self.wfile.write((json.dumps(line) + chr(10)).encode())
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'Ollama is running')
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers['content-length'])))
        print(self.path, body['model'], flush=True)
        if self.path == '/api/show': self.answer(200 if has == body['model'] else 404, {})
        elif self.path == '/api/pull':
            if wrong == 'pull': self.answer(200, {'error': 'pull model manifest: file does not exist'})
            else: self.answer(200, {'status': 'pulling', 'total': 10, 'completed': 4}, {'status': 'success'})
        elif wrong == 'load': self.answer(500, {'error': 'model requires more system memory: out of memory'})
        else: self.answer(200, {'done': True})
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
";

/// Engines, what they reported, and the folder they live in.
pub(crate) struct World {
    pub(crate) engines: Engines,
    pub(crate) folder: TempDir,
    reports: Arc<Mutex<Vec<Report>>>,
    runtime: tokio::runtime::Runtime,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_hub("http://127.0.0.1:1")
    }

    /// Engines whose models are downloaded from the hub at `endpoint`.
    pub(crate) fn with_hub(endpoint: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("engine.py"), ENGINE).unwrap();
        fs::write(folder.path().join("ollama.py"), OLLAMA).unwrap();
        let settings = Settings {
            program: PathBuf::from(PROGRAM),
            own: Own::claim(&folder.path().join("data")).unwrap(),
            data: folder.path().join("data"),
            models: folder.path().to_path_buf(),
            claims: std::collections::BTreeMap::default(),
            fetching: FetchSettings::new(endpoint, None).unwrap(),
            secrets: Arc::default(),
        };
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = {
            let reports = Arc::clone(&reports);
            Arc::new(move |report| reports.lock().unwrap().push(report))
        };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.unwrap();
        let engines = Engines::new(settings, sink, runtime.handle().clone());
        Self { engines, folder, reports, runtime }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the Python engine in `mode`, and returns its instance.
    pub(crate) fn start(&self, mode: &str) -> InstanceId {
        let mark = self.path("mark");
        let command = json!(["python3", "engine.py", "{port}", mode, mark]);
        self.start_model(&model(&json!({ "backend": "command", "config": { "command": command }})))
    }

    pub(crate) fn start_model(&self, model: &Model) -> InstanceId {
        let instance = next_instance();
        self.engines.start(instance, Arc::new(model.clone()));
        instance
    }

    pub(crate) fn reports_of(&self, instance: InstanceId) -> Vec<Report> {
        let reports = self.reports.lock().unwrap();
        reports.iter().filter(|report| instance_of(report) == instance).cloned().collect()
    }

    pub(crate) fn ready(&self, instance: InstanceId) -> std::net::SocketAddr {
        self.wait_for(instance, "it is ready", |report| match report {
            Report::Ready { address, .. } => Some(*address),
            _ => None,
        })
    }

    pub(crate) fn failed(&self, instance: InstanceId) -> Failure {
        self.wait_for(instance, "it has failed", |report| match report {
            Report::Failed { failure, .. } => Some(failure.clone()),
            _ => None,
        })
    }

    pub(crate) fn gone(&self, instance: InstanceId) {
        self.wait_for(instance, "it is gone", |report| {
            matches!(report, Report::Gone { .. }).then_some(())
        });
    }

    pub(crate) fn stop_all(&self, grace: Duration) {
        self.runtime.block_on(self.engines.stop_all(grace));
    }

    /// Waits until the engine has said exactly this; what it says is read beside everything else.
    #[track_caller]
    pub(crate) fn says(&self, wanted: &[&str]) {
        let said = eventually(|| (self.log_lines() == wanted).then_some(()));
        assert!(said.is_some(), "it said {:#?}", self.log_lines());
    }

    pub(crate) fn log_lines(&self) -> Vec<String> {
        self.engines.log_lines(&ModelId::new("default", "qwen"))
    }

    fn wait_for<T>(
        &self,
        instance: InstanceId,
        what: &str,
        wanted: impl Fn(&Report) -> Option<T>,
    ) -> T {
        let found = eventually(|| self.reports_of(instance).iter().find_map(&wanted));
        found.unwrap_or_else(|| {
            let reports = self.reports_of(instance);
            panic!("waited until {what}; reported were {reports:#?}\n{:#?}", self.log_lines())
        })
    }
}

/// A failure that is asserted on in one line.
#[track_caller]
pub(crate) fn assert_failure(failure: &Failure, reason: Reason, words: &[&str]) {
    assert_eq!(failure.reason, reason, "{failure}");
    for word in words {
        assert!(failure.message.contains(word), "`{word}` is not in: {failure}");
    }
}

/// A Model called qwen with this spec.
pub(crate) fn model(spec: &Value) -> Model {
    let object = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": "qwen" },
        "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// Looks until there is something or the bound is reached, which is far above what anything takes.
pub(crate) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if let Some(found) = look() {
            return Some(found);
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

/// The processes whose command line has `word` in it.
pub(crate) fn processes_with(word: &str) -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let line = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"));
            String::from_utf8_lossy(&line.unwrap_or_default()).contains(word)
        })
        .collect()
}

fn next_instance() -> InstanceId {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    InstanceId(NEXT.fetch_add(1, Ordering::Relaxed))
}

fn instance_of(report: &Report) -> InstanceId {
    match report {
        Report::Progress { instance, .. }
        | Report::Ready { instance, .. }
        | Report::Failed { instance, .. }
        | Report::Gone { instance } => *instance,
    }
}
