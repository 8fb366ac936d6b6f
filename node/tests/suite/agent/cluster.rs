//! What the agent does to its node over time, against a fake API server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::api_server::{ApiServer, Server};
use super::world::{Node, printing};

const CSV: &str = "GPU-a, 24564, 564, 50, 33, [N/A], [N/A], 8.9, NVIDIA GeForce RTX 4090";

pub(super) fn agent(node: &Node, cluster: &ApiServer) -> Command {
    let mut command = node.agent();
    command.env("KUBECONFIG", cluster.kubeconfig()).args([
        "--metrics-port",
        "0",
        "--spot-cloud",
        "none",
    ]);
    command
}

fn look(node: &Node, cluster: &ApiServer) {
    let output = agent(node, cluster).arg("--once").output().unwrap();
    assert!(output.status.success(), "{}", super::world::text(&output.stderr));
}

/// A running agent, which ends with the test.
pub(super) struct Running(pub(super) Child);

impl Running {
    pub(super) fn start(command: &mut Command) -> Self {
        Self(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap())
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let id = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, signal).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn label<'a>(node: &'a Value, name: &str) -> &'a Value {
    &node["metadata"]["labels"][format!("flexinfer.ai/{name}")]
}

fn annotation<'a>(node: &'a Value, name: &str) -> &'a Value {
    &node["metadata"]["annotations"][format!("flexinfer.ai/{name}")]
}

#[test]
fn gpu_11_twenty_restarts_write_once() {
    let cluster = ApiServer::new();
    let node = Node::new().tool("nvidia-smi", &printing(CSV));
    for _ in 0..20 {
        look(&node, &cluster);
    }
    assert_eq!(cluster.patches().len(), 1, "{:#?}", cluster.patches());
    assert_eq!(label(&cluster.node(), "gpu.count"), "1");
    assert_eq!(annotation(&cluster.node(), "gpu-proven"), "1@boot-1");
}

#[test]
fn gpu_11_a_driver_that_is_not_loaded_takes_no_label_away() {
    let labels =
        json!({"flexinfer.ai/gpu.count": "8", "flexinfer.ai/gpu.vendor": "NVIDIA", "theirs": "1"});
    for node in [
        Node::new(),
        Node::new().on_the_bus("0x10de").tool("nvidia-smi", "echo 'No devices were found'; exit 6"),
    ] {
        let node = node.on_the_bus("0x10de");
        let cluster = ApiServer::new().with(&json!({"metadata": {"labels": labels}}));
        look(&node, &cluster);
        for (name, value) in labels.as_object().unwrap() {
            assert_eq!(&cluster.node()["metadata"]["labels"][name], value, "{name}");
        }
        let health = annotation(&cluster.node(), "gpu-health").clone();
        assert!(health.as_str().unwrap().starts_with("unknown: "), "{health}");
    }
}

#[test]
fn gpu_11_intels_labels_stay_while_its_driver_is_not_loaded_after_a_boot() {
    let labels = json!({"flexinfer.ai/gpu.count": "1", "flexinfer.ai/gpu.vendor": "Intel"});
    let proven = json!({"flexinfer.ai/gpu-proven": "1@boot-0"});
    let cluster = ApiServer::new()
        .with(&json!({"metadata": {"labels": labels.clone(), "annotations": proven.clone()}}));
    look(&Node::new().on_the_bus("0x8086"), &cluster);
    for (name, value) in labels.as_object().unwrap() {
        assert_eq!(&cluster.node()["metadata"]["labels"][name], value, "{name}");
    }
    let health = annotation(&cluster.node(), "gpu-health").clone();
    assert!(health.as_str().unwrap().starts_with("unknown: "), "{health}");
    // The one in the processor, which was never labelled, is no reason to keep anything.
    let inside = Node::new()
        .sysfs("bus/pci/devices/0000:00:02.0/vendor", "0x8086")
        .sysfs("bus/pci/devices/0000:00:02.0/class", "0x030000");
    look(&inside, &cluster);
    assert_eq!(label(&cluster.node(), "gpu.count"), &Value::Null);
}

#[test]
fn gpu_11_a_stop_writes_nothing() {
    let cluster = ApiServer::new();
    let node = Node::new().tool("nvidia-smi", &printing(CSV));
    let mut running = Running::start(agent(&node, &cluster).args(["--interval", "100ms"]));
    cluster.wait_until("labelled", |node| label(node, "gpu.count") == "1");
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.0.wait().unwrap().code(), Some(143));
    assert_eq!(cluster.patches().len(), 1, "{:#?}", cluster.patches());
}

#[test]
fn gpu_08_devices_out_of_reach_end_the_agent_and_keep_the_labels() {
    let cluster = ApiServer::new();
    let node = Node::new().on_the_bus("0x10de");
    let good = node.path("good");
    std::fs::write(&good, "").unwrap();
    let failing = "echo 'Failed to initialize NVML: Unknown Error'; exit 255";
    let script =
        format!("if [ -e {} ]; then {}\nelse {failing}; fi", good.display(), printing(CSV));
    let node = node.tool("nvidia-smi", &script);
    let mut running = Running::start(agent(&node, &cluster).args(["--interval", "20ms"]));
    cluster.wait_until("labelled", |node| label(node, "gpu.count") == "1");
    std::fs::remove_file(good).unwrap();
    assert_eq!(running.0.wait().unwrap().code(), Some(1));
    let left = cluster.node();
    assert_eq!(label(&left, "gpu.count"), "1");
    let health = annotation(&left, "gpu-health").as_str().unwrap();
    assert!(
        health.starts_with("unknown: nvidia-smi failed: Failed to initialize NVML"),
        "{health}"
    );
    let mut log = String::new();
    running.0.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(log.contains("stayed out of reach"), "{log}");
}

#[test]
fn the_kv_caches_of_the_nodes_engines_are_told() {
    let engine = Server::answering(|asked| match asked.path.as_str() {
        "/metrics" => (200, None, "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.25\n".to_owned()),
        _ => (404, None, String::new()),
    });
    let cluster = ApiServer::new().with_pod("vllm", engine.address.port());
    look(&Node::new().tool("nvidia-smi", &printing(CSV)), &cluster);
    assert_eq!(annotation(&cluster.node(), "kv-cache-usage"), "0.2500");
}

#[test]
fn what_pods_may_ask_for_stands_in_until_something_better_is_known() {
    let cluster = ApiServer::new()
        .with(&json!({"status": {"allocatable": {"amd.com/gpu": "2", "cpu": "8"}}}));
    let node = Node::new();
    for _ in 0..2 {
        look(&node, &cluster);
    }
    assert_eq!(label(&cluster.node(), "gpu.vendor"), "AMD");
    assert_eq!(label(&cluster.node(), "gpu.count"), "2");
    assert_eq!(cluster.patches().len(), 1, "{:#?}", cluster.patches());
}

#[test]
fn the_metrics_page_has_the_originals_names() {
    let cluster = ApiServer::new();
    let node = Node::new().tool("nvidia-smi", &printing(CSV));
    let mut running = Running::start(&mut agent(&node, &cluster));
    let port = metrics_port(&mut running);
    cluster.wait_until("labelled", |node| label(node, "gpu.count") == "1");
    let page = page(port);
    for line in [
        "flexinfer_gpu_temperature_celsius{gpu=\"GPU-a\",node=\"node-1\"} 33",
        "flexinfer_gpu_vram_free_bytes{gpu=\"GPU-a\",node=\"node-1\",vendor=\"nvidia\"} 25165824000",
        "flexinfer_agent_stale 0",
        "flexinfer_dev_shm_utilization_percent{node=\"node-1\"}",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

#[test]
fn the_shared_memory_shown_is_the_hosts_and_not_the_containers() {
    let (cluster, node) = (ApiServer::new(), Node::new());
    let host = node.path("host/dev/shm");
    std::fs::create_dir_all(&host).unwrap();
    let mut running = Running::start(&mut agent(&node, &cluster));
    let port = metrics_port(&mut running);
    cluster.wait_until("labelled", |node| label(node, "cpu.avx512").is_string());
    let page = page(port);
    let shown = page.lines().find_map(|line| {
        line.strip_prefix("flexinfer_dev_shm_utilization_percent{node=\"node-1\"} ")
    });
    let room = rustix::fs::statvfs(&host).unwrap();
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
    let used = 100.0 * (room.f_blocks - room.f_bfree) as f64 / room.f_blocks as f64;
    let shown: f64 = shown.unwrap().parse().unwrap();
    assert!((shown - used).abs() < 5.0, "{shown} is shown, {used} is used of the host's");
}

#[test]
fn what_a_pod_leaves_free_is_seen_when_it_ends_and_not_at_the_next_look() {
    let cluster = ApiServer::new();
    let node = Node::new();
    let used = node.path("used");
    std::fs::write(&used, "24000\n").unwrap();
    let script = format!(
        "read -r used < {}; echo \"GPU-a, 24564, $used, 50, 33, [N/A], [N/A], 8.9, NVIDIA GeForce RTX 4090\"",
        used.display()
    );
    let node = node.tool("nvidia-smi", &script);
    let _running = Running::start(agent(&node, &cluster).args(["--interval", "1h"]));
    cluster.wait_until("measured", |node| annotation(node, "gpu-free-memory") == "564");
    std::fs::write(&used, "564\n").unwrap();
    cluster.gone("engine");
    cluster.wait_until("measured anew", |node| annotation(node, "gpu-free-memory") == "24000");
}

/// Where it serves its metrics, which it tells. Its log is read on to the end.
pub(super) fn metrics_port(running: &mut Running) -> u16 {
    let log = BufReader::new(running.0.stderr.take().unwrap());
    let mut lines = log.lines().map_while(Result::ok);
    let address = lines.find_map(|line| Some(line.split_once("address=")?.1.to_owned())).unwrap();
    // A pipe that nobody reads stops its writer once it is full.
    std::thread::spawn(move || lines.for_each(drop));
    address.trim().rsplit(':').next().unwrap().parse().unwrap()
}

pub(super) fn page(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}
