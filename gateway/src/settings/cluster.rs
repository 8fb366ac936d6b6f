//! Whose models a gateway on a cluster serves, and what it is called.

use std::mem;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use flexinfer_core::hosts::Hosts;
use flexinfer_telemetry::log;

use super::reader::Reader;
use super::{Complaints, Defaults, KubernetesArguments, SecretsOf, Settings};

const DEFAULTS: Defaults = Defaults {
    address: Ipv4Addr::UNSPECIFIED,
    log_format: log::Format::Json,
    drain_delay: Duration::from_secs(5),
};

/// Where models are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// In every namespace.
    All,
    /// In these, sorted; never none.
    Namespaces(Vec<String>),
}

/// The settings of a gateway on a cluster.
#[derive(Clone, Debug)]
pub struct ClusterSettings {
    /// How requests are served.
    pub serve: Settings,
    /// Where models are looked for.
    pub scope: Scope,
    /// By which name this gateway reports what it has, different for each.
    pub name: String,
    /// Where gateways hand over to their successors, if they shall.
    pub upgrade_socket: Option<PathBuf>,
}

impl ClusterSettings {
    /// Settings from the flags of `kubernetes` and `environment`, which answers a variable's name with
    /// its value; `machine` is the machine's name.
    pub fn new(
        arguments: &KubernetesArguments,
        machine: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Complaints> {
        let mut read = Reader::new(&environment);
        let scope = scope(&mut read, arguments);
        let mut serve = Settings::read(&mut read, &arguments.serve, &DEFAULTS);
        let own = read.variable("POD_NAMESPACE");
        let service = service(&mut read, arguments, own.as_deref());
        if let Some((hosts, service)) = serve.rules.hosts.as_mut().zip(service) {
            *hosts = mem::take(hosts).and(service);
            read.show("allowed-hosts", hosts.to_string());
        }
        serve.rules.engine_secrets_of = secrets_of(&scope, own);
        let settings = Self {
            serve,
            scope,
            name: name(&mut read, arguments.cluster.gateway_name.as_deref(), machine),
            upgrade_socket: upgrade_socket(&mut read, arguments.cluster.upgrade_socket.as_deref()),
        };
        let shown = read.finish()?;
        Ok(Self { serve: Settings { shown, ..settings.serve }, ..settings })
    }
}

/// Whoever writes Models beside a gateway's own may not have its keys sent to an engine of theirs.
fn secrets_of(scope: &Scope, own: Option<String>) -> SecretsOf {
    match scope {
        Scope::Namespaces(only) if only.len() == 1 => {
            only.first().map_or(SecretsOf::Nobody, |only| SecretsOf::Namespace(only.clone()))
        }
        Scope::Namespaces(_) | Scope::All => own.map_or(SecretsOf::Nobody, SecretsOf::Namespace),
    }
}

fn scope<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &KubernetesArguments,
) -> Scope {
    let flags = &arguments.cluster.namespace;
    let all = read.choice("all-namespaces", arguments.cluster.all_namespaces.as_deref(), false);
    if all {
        if !flags.is_empty() {
            read.complain("--all-namespaces and --namespace contradict each other; give one");
        }
        return Scope::All;
    }
    let given = read.given("namespace", None).map(|given| given.text);
    let named = match flags.as_slice() {
        [] => given.or_else(|| read.variable("POD_NAMESPACE")).unwrap_or_default(),
        flags => flags.join(","),
    };
    let mut namespaces: Vec<String> = named
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    namespaces.sort();
    namespaces.dedup();
    if namespaces.is_empty() {
        namespaces.push("default".to_owned());
    }
    for name in namespaces.iter().filter(|name| !is_label(name)) {
        read.complain(format!("--namespace: `{name}` is not the name of a namespace"));
    }
    read.show("namespace", namespaces.join(","));
    Scope::Namespaces(namespaces)
}

fn name<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    flag: Option<&str>,
    machine: &str,
) -> String {
    let given = read.given("gateway-name", flag).map(|given| given.text);
    let name = given.or_else(|| read.variable("POD_NAME")).unwrap_or_else(|| machine.to_owned());
    let name = name.trim().to_owned();
    if name.is_empty() || name.len() > LONGEST_NAME {
        read.complain(format!(
            "--gateway-name: `{name}` is empty or longer than {LONGEST_NAME} characters"
        ));
    }
    read.show("gateway-name", name.as_str());
    name
}

/// The names of the gateway's own Service.
fn service<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &KubernetesArguments,
    namespace: Option<&str>,
) -> Option<Hosts> {
    let name = read.text("service-name", arguments.cluster.service_name.as_deref());
    let domain = read.text("cluster-domain", arguments.cluster.cluster_domain.as_deref());
    let domain = domain.as_deref().unwrap_or("cluster.local");
    match Hosts::of_service(&name?, namespace.unwrap_or("default"), domain) {
        Ok(hosts) => Some(hosts),
        Err(error) => {
            read.complain(format!("--service-name, --cluster-domain: {error}"));
            None
        }
    }
}

fn upgrade_socket<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    flag: Option<&str>,
) -> Option<PathBuf> {
    let path = PathBuf::from(read.given("upgrade-socket", flag)?.text);
    read.show("upgrade-socket", path.to_string_lossy());
    Some(path)
}

/// Kubernetes takes no longer name of a field manager than 128, and ours begins with a word.
const LONGEST_NAME: usize = 100;

fn is_label(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = |byte: Option<&u8>| byte.is_some_and(|byte| letter(*byte));
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && ends(bytes.first())
        && ends(bytes.last())
        && bytes.iter().all(|byte| letter(*byte) || *byte == b'-')
}
