//! What the agent takes of its node: little memory, and next to no processor time.

use std::fs;
use std::time::{Duration, Instant};

use super::api_server::ApiServer;
use super::cluster::{Running, agent, metrics_port, page};
use super::world::Node;

/// What is held against which limit. Unoptimised, the program's own pages are several times as many, and only
/// what it has beside them can be compared.
const MEMORY: (&str, u64) =
    if cfg!(debug_assertions) { ("RssAnon:", 12 << 20) } else { ("VmRSS:", 20 << 20) };

/// 0.2 % of a core between two looks, at the default interval of 30 s.
const EACH_LOOK: Duration = Duration::from_millis(60);

const LOOKS: u32 = 30;

#[test]
fn the_agent_takes_little_memory_and_next_to_no_processor_time() {
    let cluster = ApiServer::new().with_pod("vllm", 1);
    // The library is what nearly all nodes have; where it cannot be built, no GPU is what is looked at.
    let node = Node::new().nvml("good").unwrap_or_else(Node::new);
    // A hundred times as often as by default, what is asked of the cloud and of the node included.
    let often = ["--interval", "300ms", "--spot-interval", "50ms"];
    let mut running = Running::start(agent(&node, &cluster).args(often));
    let port = metrics_port(&mut running);
    let process = running.0.id();
    let looks_before = wait_for_looks(port, 3);
    let before = used(process);
    let looks = wait_for_looks(port, looks_before + LOOKS) - looks_before;
    let each = used(process).saturating_sub(before) / looks;
    assert!(each < EACH_LOOK, "{each:?} of processor time for a look and what belongs to it");
    let (kind, limit) = MEMORY;
    let memory = memory(process, kind);
    assert!(memory < limit, "{kind} {} KiB", memory >> 10);
}

fn wait_for_looks(port: u16, wanted: u32) -> u32 {
    let begun = Instant::now();
    loop {
        let page = page(port);
        let looks = page.lines().filter(|line| line.starts_with("flexinfer_agent_looks_total{"));
        let looks = looks.filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).sum();
        if looks >= wanted {
            return looks;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{looks} of {wanted} looks");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// User and system time, of ended children too.
fn used(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields = stat.rsplit_once(") ").unwrap().1.split(' ').skip(11).take(4);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap()).sum();
    // The kernel counts in hundredths of a second on every architecture.
    Duration::from_millis(10 * ticks)
}

fn memory(process: u32, kind: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10
}
