//! Weights that come from another node: an agent that hands on what it holds, and peers that cannot be relied
//! on.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::world::{World, bytes, program};

const LENGTH: usize = 3 << 20;

/// The agent of a node that holds llama's weights, ended when dropped.
struct Holder {
    child: Child,
    port: u16,
}

impl Holder {
    /// Loads the world's source into a folder of another node, whose agent hands it on.
    fn start(world: &World, rate: &str) -> Self {
        let memory = world.folder().join("first");
        let mut load = program();
        load.arg("flash").arg("--src").arg(&world.source);
        load.arg("--dst").arg(memory.join("models/llama")).stderr(Stdio::null());
        assert!(load.status().unwrap().success());
        let mut agent = program();
        agent
            .args("agent --dry-run --metrics-port 0 --spot-cloud none --weights-port 0".split(' '));
        agent.args(["--weights-rate", rate, "--weights-dir"]).arg(memory);
        agent.env("FLEXINFER_SYSFS", world.folder().join("no-sysfs"));
        agent.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = agent.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let port = lines.find_map(|line| {
            line.rsplit_once("weights=")?.1.rsplit(':').next()?.trim().parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port: port.unwrap() }
    }

    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The head and the body of an answer.
    fn ask(&self, method: &str, path: &str, headers: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}\r\n")
            .unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(answer[..end].to_vec()).unwrap().to_lowercase();
        (head, answer[end + 4..].to_vec())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn world() -> World {
    let world = World::new();
    world.put("model.bin", &bytes(LENGTH, 1));
    world.put("sub/a + b.json", b"{}");
    world
}

/// Loads with these peers, and gives what it says. The copy must be right, whoever it came from.
fn load(world: &World, peers: &str) -> String {
    let said = world.copied(&["--peers", peers, "--peers-name", "models/llama"]);
    for name in world.names() {
        assert!(world.read(&name) == fs::read(world.source.join(&name)).unwrap(), "{name}: {said}");
    }
    assert_eq!(world.half_written(), 0);
    said
}

/// How many bytes a load got from other nodes, by what it says.
fn from_peers(said: &str) -> usize {
    let after = said.split_once("from_peers=").unwrap().1;
    after.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn a_second_node_gets_everything_from_the_first() {
    let world = world();
    let holder = Holder::start(&world, "0");
    let said = load(&world, &holder.address());
    assert_eq!(from_peers(&said), LENGTH + 2, "{said}");
    assert_eq!(world.names(), ["model.bin", "sub/a + b.json"]);
}

#[test]
fn parts_have_digests_and_nothing_but_whole_weights_is_given() {
    let world = world();
    let holder = Holder::start(&world, "0");
    let file = "/weights/models/llama/model.bin";
    let (head, _) = holder.ask("HEAD", file, "");
    assert!(head.contains(&format!("content-length: {LENGTH}")), "{head}");
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let part = format!("range: bytes=10-19\r\nif-match: {tag}\r\n");
    let (head, body) = holder.ask("GET", file, &part);
    assert!(head.starts_with("http/1.1 206"), "{head}");
    assert_eq!(body, bytes(LENGTH, 1)[10..20]);
    assert!(head.contains("content-digest: sha-256=:"), "{head}");
    assert!(head.contains(&format!("content-range: bytes 10-19/{LENGTH}")), "{head}");
    for (path, headers, status) in [
        (file, "range: bytes=0-9\r\nif-match: \"1-2-3\"\r\n", "412"),
        (file, "range: bytes=0-99999999\r\n", "416"),
        (file, "", "416"),
        ("/weights/models/llama/.flash/files.json", "range: bytes=0-1\r\n", "404"),
        ("/weights/models/llama/../../../source/model.bin", "range: bytes=0-1\r\n", "404"),
        (
            "/weights/models/llama/%2e%2e/%2e%2e/%2e%2e/source/model.bin",
            "range: bytes=0-1\r\n",
            "404",
        ),
        ("/weights/models/other/model.bin", "range: bytes=0-1\r\n", "404"),
        ("/weights/models/llama/sub", "range: bytes=0-1\r\n", "404"),
    ] {
        let (head, _) = holder.ask("GET", path, headers);
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{path} {headers}: {head}");
    }
    std::os::unix::fs::symlink(
        world.source.join("model.bin"),
        world.folder().join("first/models/llama/out.bin"),
    )
    .unwrap();
    let (head, _) = holder.ask("GET", "/weights/models/llama/out.bin", "range: bytes=0-1\r\n");
    assert!(head.starts_with("http/1.1 404"), "links lead nowhere: {head}");
    let pipe = world.folder().join("first/models/llama/pipe.bin");
    let (kind, rights) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, pipe, kind, rights, 0).unwrap();
    let (head, _) = holder.ask("GET", "/weights/models/llama/pipe.bin", "range: bytes=0-1\r\n");
    assert!(head.starts_with("http/1.1 404"), "nobody writes to it: {head}");
}

#[test]
fn another_revision_of_the_weights_is_not_taken() {
    let world = world();
    let holder = Holder::start(&world, "0");
    world.put("model.bin", &bytes(LENGTH, 2));
    let said = load(&world, &holder.address());
    assert!(from_peers(&said) <= 2, "{said}");
}

#[test]
fn a_peer_that_dies_in_the_middle_of_a_file_is_made_up_for_by_the_volume() {
    let world = World::new();
    // Two pieces, which take the holder about four seconds each.
    world.put("model.bin", &bytes((128 << 20) - 5, 1));
    let mut holder = Holder::start(&world, "16Mi");
    let address = holder.address();
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| load(&world, &address));
        let begun = Instant::now();
        while world.half_written() == 0 {
            assert!(begun.elapsed() < Duration::from_secs(60), "no load began");
            std::thread::sleep(Duration::from_millis(5));
        }
        holder.child.kill().unwrap();
        let said = loading.join().unwrap();
        assert!(from_peers(&said) < 128 << 20, "{said}");
    });
}

#[test]
fn what_leaves_a_node_keeps_to_its_rate() {
    let world = World::new();
    world.put("model.bin", &bytes(4 << 20, 1));
    let holder = Holder::start(&world, "4Mi");
    let begun = Instant::now();
    let said = load(&world, &holder.address());
    // The first chunk leaves at once; the machine may be slower than the rate, never faster.
    assert!(begun.elapsed() > Duration::from_millis(850), "{:?}", begun.elapsed());
    assert_eq!(from_peers(&said), 4 << 20);
}

/// A peer that answers every request with this.
fn scripted(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), answer.clone());
            std::thread::spawn(move || {
                let _asked = stream.read(&mut [0; 4096]);
                let _sent = stream.write_all(&answer);
            });
        }
    });
    address
}

fn part(headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 206 Partial Content\r\nconnection: close\r\n{headers}\r\n");
    [head.as_bytes(), body].concat()
}

#[test]
fn a_peer_that_lies_or_breaks_off_or_is_busy_harms_nothing() {
    let world = world();
    let length = |length: usize| format!("content-length: {length}\r\n");
    let wrong = format!("{}content-digest: sha-256=:AAAA:\r\n", length(LENGTH));
    let cases = [
        ("wrong digest", part(&wrong, &bytes(LENGTH, 1))),
        ("no digest", part(&length(LENGTH), &bytes(LENGTH, 1))),
        ("other bytes", part(&wrong, &bytes(LENGTH, 9))),
        ("half", part(&length(LENGTH), &bytes(LENGTH / 2, 1))),
        ("too much", part(&length(LENGTH + 1), &bytes(LENGTH + 1, 1))),
        ("busy", b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec()),
        ("no HTTP", b"\0\0\0".to_vec()),
    ];
    for (name, answer) in cases {
        drop(fs::remove_dir_all(&world.destination));
        let said = load(&world, &scripted(answer));
        assert_eq!(from_peers(&said), 0, "{name}: {said}");
    }
    let nobody = PathBuf::from("127.0.0.1:1");
    drop(fs::remove_dir_all(&world.destination));
    let peers = format!("no-such-name.invalid:9876,{}", nobody.display());
    assert_eq!(from_peers(&load(&world, &peers)), 0);
}
