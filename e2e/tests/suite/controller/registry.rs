//! A real registry in the network of the tests' pods, and one before it that wants a login or sends another
//! manifest than it was asked for.

use std::env;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use flexinfer_e2e::MACHINE;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::{Action, Origin, Recorded, answer};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use crate::shared::eventually;

/// `me:secret`, as it is sent.
const LOGIN: &str = "Basic bWU6c2VjcmV0";

/// The digest of `{}`, which is all that the artifact has.
const BLOB: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

/// The registry holds `org/name:v1`. At the front `org/closed` is the same for who is logged in, and `org/wrong`
/// is the same whatever digest it is asked for.
pub(super) struct Registry {
    /// `host:port` of the registry and of the front.
    pub(super) host: String,
    pub(super) front: String,
    /// The artifact's digest.
    pub(super) digest: String,
    _front: Origin,
    _program: Child,
}

impl Registry {
    /// Needs the bridge that a kubelet has made. `logs` is a folder for what it prints.
    pub(super) async fn start(logs: &Path) -> Self {
        let log = logs.join("registry.log");
        // `cargo xtask e2e` names the one that these tests are meant for.
        let program = env::var_os("FLEXINFER_CRANE").unwrap_or_else(|| "crane".into());
        let registry = Command::new(program)
            .args(["registry", "serve", "--address", &format!("{MACHINE}:0")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let port = eventually("the registry tells its port", async || {
            let text = std::fs::read_to_string(&log).unwrap();
            text.lines().find_map(|line| line.rsplit_once("port ")?.1.trim().parse::<u16>().ok())
        });
        let address = SocketAddr::from((MACHINE, port.await));
        let digest = push(address).await;
        let front = Origin::start_at(MACHINE, move |request| vec![at_the_front(request, address)]);
        let front = front.await.unwrap();
        Self {
            host: address.to_string(),
            front: front.url().trim_start_matches("http://").to_owned(),
            digest,
            _front: front,
            _program: registry,
        }
    }

    /// The Secret with the login for the front.
    pub(super) fn login(&self, name: &str) -> Value {
        let logins =
            json!({ "auths": { &self.front: { "auth": LOGIN.trim_start_matches("Basic ") } } });
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name },
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": { ".dockerconfigjson": logins.to_string() },
        })
    }
}

/// Puts the artifact there, as `oras push` would. Gives its digest.
async fn push(registry: SocketAddr) -> String {
    let blob = format!("/v2/org/name/blobs/uploads/?digest={BLOB}");
    sent(registry, &request("POST", &blob, &[], b"{}")).await;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "application/vnd.oci.empty.v1+json", "digest": BLOB, "size": 2 },
        "layers": [{
            "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": BLOB, "size": 2,
            "annotations": { "org.opencontainers.image.title": "config.json" },
        }],
    });
    let manifest = manifest.to_string();
    let put = request("PUT", "/v2/org/name/manifests/v1", &[], manifest.as_bytes());
    sent(registry, &put).await
}

/// The digest that the registry answers with.
async fn sent(registry: SocketAddr, request: &[u8]) -> String {
    let mut client = Client::connect(registry).await.unwrap();
    client.send(request).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status(), 201, "{}", answer.text());
    answer.head.header("docker-content-digest").unwrap().to_owned()
}

fn at_the_front(request: &Recorded, registry: SocketAddr) -> Action {
    let target = request.head.target();
    let moved = |path: &str| {
        let location = format!("http://{registry}{path}");
        Action::Write(answer(307, &[("Location", &location)], b""))
    };
    if target.contains("/org/wrong/manifests/") {
        return moved("/v2/org/name/manifests/v1");
    }
    if request.head.header("authorization") != Some(LOGIN) {
        let challenge = [("WWW-Authenticate", "Basic realm=\"test\"")];
        return Action::Write(answer(401, &challenge, b""));
    }
    moved(&target.replace("/org/closed/", "/org/name/"))
}
