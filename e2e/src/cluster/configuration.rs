//! What a cluster's programs are told: their files in the cluster's folder, and their command lines.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::KeyPair;
use serde_json::{Value, json};

use super::certificates::{Authority, Certified};
use super::error::StartError;
use crate::network;

/// The user with every right.
pub(super) const ADMIN: &str = "admin";
const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";
const SCHEDULER: &str = "system:kube-scheduler";

/// The group that may do anything, by Kubernetes' own rules.
const MASTERS: &str = "system:masters";

/// Every write with who and what, none of the bodies, once it is answered.
const AUDIT_POLICY: &str = r#"{
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{ "level": "None", "verbs": ["get", "list", "watch"] }, { "level": "Metadata" }]
}"#;

/// Where a cluster's files lie and where its API server listens.
pub(super) struct Layout {
    folder: PathBuf,
    port: u16,
}

impl Layout {
    pub(super) fn new(folder: &Path, port: u16) -> Self {
        Self { folder: folder.to_path_buf(), port }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    pub(super) fn kubeconfig(&self, user: &str) -> PathBuf {
        self.folder.join(format!("{}.kubeconfig", user.replace(':', "-")))
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn kubeconfig_flag(&self, user: &str) -> String {
        format!("--kubeconfig={}", self.kubeconfig(user).display())
    }

    /// Clients reach etcd by a file in the cluster's folder, so it needs no port and no certificate.
    fn etcd_socket(&self) -> String {
        format!("unix://{}", self.path("etcd.socket"))
    }

    pub(super) fn etcd(&self) -> Vec<String> {
        vec![
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={}", self.etcd_socket()),
            "--advertise-client-urls=http://127.0.0.1:0".to_owned(),
            "--listen-peer-urls=http://127.0.0.1:0".to_owned(),
            // Nothing outlives the test, so nothing is waited for on its way to the disk.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    pub(super) fn api_server(&self) -> Vec<String> {
        // Pods come from other addresses. Where there are none, neither is there a network of our own, and
        // nobody from outside shall come in.
        let (bind, advertise) = if network::is_our_own() {
            (Ipv4Addr::UNSPECIFIED, network::MACHINE)
        } else {
            (Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST)
        };
        vec![
            format!("--etcd-servers={}", self.etcd_socket()),
            format!("--bind-address={bind}"),
            format!("--advertise-address={advertise}"),
            format!("--secure-port={}", self.port),
            // The port is held by the test: see `ReservedPort`.
            "--permit-port-sharing".to_owned(),
            // An endpoint on the loopback would be refused, and no pod asks for it.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--service-cluster-ip-range={}", network::next_service_range()),
            "--allow-privileged".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            format!("--client-ca-file={}", self.path("authority.crt")),
            format!("--tls-cert-file={}", self.path("server.crt")),
            format!("--tls-private-key-file={}", self.path("server.key")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.path("tokens.pub")),
            format!("--service-account-signing-key-file={}", self.path("tokens.key")),
            format!("--audit-policy-file={}", self.path("audit-policy.json")),
            format!("--audit-log-path={}", self.audit_log().display()),
            // One file, however much is noted.
            "--audit-log-maxsize=0".to_owned(),
        ]
    }

    pub(super) fn controller_manager(&self) -> Vec<String> {
        vec![
            self.kubeconfig_flag(CONTROLLER_MANAGER),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
            "--use-service-account-credentials".to_owned(),
            // Tests that share a cluster leave nodes that report no more. They are no reason to think that the
            // network is at fault, and to evict nobody.
            "--node-eviction-rate=10".to_owned(),
            "--secondary-node-eviction-rate=10".to_owned(),
            "--large-cluster-size-threshold=0".to_owned(),
            format!("--root-ca-file={}", self.path("authority.crt")),
            format!("--service-account-private-key-file={}", self.path("tokens.key")),
        ]
    }

    pub(super) fn scheduler(&self) -> Vec<String> {
        vec![
            self.kubeconfig_flag(SCHEDULER),
            "--leader-elect=false".to_owned(),
            "--secure-port=0".to_owned(),
        ]
    }
}

/// Writes every file that the command lines name.
pub(super) fn write(layout: &Layout) -> Result<(), StartError> {
    let authority = Authority::new()?;
    put(layout, "authority.crt", &authority.certificate())?;
    let machine = network::MACHINE.to_string();
    let names = ["127.0.0.1", &machine, "localhost", "kubernetes.default.svc"];
    let Certified { certificate, key } = authority.server(&names)?;
    put(layout, "server.crt", &certificate)?;
    put(layout, "server.key", &key)?;
    let tokens = KeyPair::generate()?;
    put(layout, "tokens.key", &tokens.serialize_pem())?;
    put(layout, "tokens.pub", &tokens.public_key_pem())?;
    put(layout, "audit-policy.json", AUDIT_POLICY)?;
    for (user, group) in [(ADMIN, Some(MASTERS)), (CONTROLLER_MANAGER, None), (SCHEDULER, None)] {
        write_kubeconfig(layout, user, &authority.client(user, group)?)?;
    }
    Ok(())
}

fn write_kubeconfig(layout: &Layout, user: &str, client: &Certified) -> Result<(), StartError> {
    let path = layout.kubeconfig(user);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (certificate, key) = (format!("{name}.crt"), format!("{name}.key"));
    put(layout, &certificate, &client.certificate)?;
    put(layout, &key, &client.key)?;
    let credentials = json!({
        "client-certificate": layout.path(&certificate),
        "client-key": layout.path(&key),
    });
    fs::write(&path, kubeconfig(layout, user, &credentials))
        .map_err(StartError::prepare(format!("write {}", path.display())))
}

/// JSON is YAML too, so a kubeconfig needs no other writer.
pub(super) fn kubeconfig(layout: &Layout, user: &str, credentials: &Value) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{ "name": "test", "context": { "cluster": "test", "user": user } }],
        "clusters": [{
            "name": "test",
            "cluster": {
                "server": format!("https://127.0.0.1:{}", layout.port),
                "certificate-authority": layout.path("authority.crt"),
            },
        }],
        "users": [{ "name": user, "user": credentials }],
    })
    .to_string()
}

fn put(layout: &Layout, name: &str, content: &str) -> Result<(), StartError> {
    let act = format!("write {name} for the cluster");
    fs::write(layout.folder.join(name), content).map_err(StartError::prepare(act))
}
