//! Flags and variables as operators write them.

use clap::{CommandFactory, Parser};

use flexinfer_core::hosts::Hosts;

use super::*;
use crate::queues::Budgets;

fn read(flags: &[&str], variables: &[(&str, &str)]) -> Result<Settings, Complaints> {
    local(flags, variables).map(|local| local.serve)
}

fn local(flags: &[&str], variables: &[(&str, &str)]) -> Result<LocalSettings, Complaints> {
    let line = ["flexinfer-gateway", "local", "models"].iter().chain(flags);
    let Command::Local(local) = CommandLine::try_parse_from(line).unwrap().command else {
        panic!("another command");
    };
    let environment = |name: &str| {
        let home = [("HOME", "/home/me")];
        let mut all = variables.iter().chain(&home);
        all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    LocalSettings::new(&local, environment)
}

#[test]
fn the_defaults() {
    let settings = read(&["--threads", "2"], &[]).unwrap();
    insta::assert_snapshot!(settings.page());
}

#[test]
fn a_flag_wins_over_its_variable_and_a_variable_over_the_default() {
    let variables =
        [("PROXY_QUEUE_TIMEOUT", "90s"), ("PROXY_MAX_QUEUE_SIZE", "7"), ("FLEXINFER_MAX_BODY", "")];
    let settings = read(&["--queue-timeout", "2m", "--port", "0"], &variables).unwrap();
    assert_eq!(settings.queue.queue_timeout, Duration::from_mins(2));
    assert_eq!(settings.queue.max_queue, 7);
    assert_eq!(settings.limits.max_body, 256 << 20, "an empty variable is one that is not set");
    assert_eq!(settings.listen.to_string(), "127.0.0.1:0");
}

#[test]
fn a_gateway_that_pages_could_be_led_to_is_asked_by_its_own_names() {
    let hosts = |flags: &[&str], variables: &[(&str, &str)]| {
        read(flags, variables).unwrap().rules.hosts.map(|hosts| hosts.to_string())
    };
    assert_eq!(hosts(&[], &[]).as_deref(), Some(""));
    assert_eq!(hosts(&["--listen", "[::1]:80"], &[]).as_deref(), Some(""));
    assert_eq!(hosts(&["--listen", "0.0.0.0:80"], &[]), None);
    assert_eq!(hosts(&["--tls-cert", "a.pem", "--tls-key", "b.pem"], &[]), None);
    let keyed = [("PROXY_AUTH_ENABLED", "true"), ("PROXY_AUTH_TOKEN", "secret")];
    assert_eq!(hosts(&[], &keyed), None, "a page has no key");
    let told = [("FLEXINFER_ALLOWED_HOSTS", "llm.example.com")];
    for flags in [&[][..], &["--listen", "0.0.0.0:80"]] {
        assert_eq!(hosts(flags, &told).as_deref(), Some("llm.example.com"));
    }
    let wrong = read(&["--allowed-hosts", "http://x"], &[]).unwrap_err().to_string();
    assert!(wrong.contains("--allowed-hosts") && wrong.contains("no name of a host"), "{wrong}");
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let flags = [
        "--listen",
        "8080",
        "--max-body",
        "lots",
        "--queue-timeout",
        "60",
        "--cold-start-timeout",
        "0",
        "--vram-budget",
        "gpu0",
        "--vram-budget",
        "a=1Ki",
        "--pvc",
        "data=relative",
        "--log-format",
        "xml",
        "--threads",
        "0",
        "--log-level",
        "loud",
        "--upstream-attempts",
        "9",
        "--tls-key",
        "server.key",
        "--backoff-initial-wait",
        "1m",
    ];
    let variables = [("PROXY_MAX_QUEUE_SIZE", "0"), ("PROXY_BACKOFF_ENABLED", "perhaps")];
    let complaints = read(&flags, &variables).unwrap_err();
    insta::assert_snapshot!(complaints);
}

#[test]
fn budgets_and_claims_come_from_flags_or_a_list() {
    let settings = local(
        &["--vram-budget", "a=24Gi", "--vram-budget", "lab/b=512Mi"],
        &[
            ("FLEXINFER_PVC", "data=/srv/data"),
            ("FLEXINFER_INSECURE_REGISTRIES", "reg.test:5000, other.test"),
        ],
    );
    let settings = settings.unwrap();
    let budgets = [("a".to_owned(), 24 * 1024), ("lab/b".to_owned(), 512)].into();
    assert_eq!(settings.vram_budgets, Budgets(budgets));
    assert_eq!(settings.claims, [("data".to_owned(), "/srv/data".into())].into());
    let insecure = settings.fetching.terms.insecure_registries;
    assert_eq!(insecure, ["reg.test:5000", "other.test"]);
}

#[test]
fn secrets_are_not_shown() {
    let settings = read(&[], &[("HF_TOKEN", "hf_secret")]).unwrap();
    assert!(!settings.page().contains("hf_secret"));
    assert!(settings.page().contains("HF_TOKEN = set (not shown)"));
}

#[test]
fn the_help_of_local() {
    let mut command = CommandLine::command();
    let local = command.find_subcommand_mut("local").unwrap();
    insta::assert_snapshot!(local.render_long_help());
}

#[test]
fn the_command_line_holds_together() {
    CommandLine::command().debug_assert();
}

fn cluster(flags: &[&str], variables: &[(&str, &str)]) -> Result<ClusterSettings, Complaints> {
    let line = ["flexinfer-gateway", "kubernetes"].iter().chain(flags);
    let Command::Kubernetes(arguments) = CommandLine::try_parse_from(line).unwrap().command else {
        panic!("another command");
    };
    let environment = |name: &str| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    ClusterSettings::new(&arguments, "machine", environment)
}

#[test]
fn on_a_cluster_the_gateway_listens_to_all_and_tells_its_log_to_machines() {
    let settings = cluster(&[], &[]).unwrap();
    assert_eq!(settings.serve.listen.to_string(), "0.0.0.0:8080");
    assert_eq!(settings.serve.admin_listen.to_string(), "0.0.0.0:9090");
    assert_eq!(settings.serve.log_format, log::Format::Json);
    assert_eq!(settings.serve.patience.drain_delay, Duration::from_secs(5));
    assert_eq!(settings.scope, Scope::Namespaces(vec!["default".into()]));
    assert_eq!(settings.name, "machine");
}

#[test]
fn the_pod_says_which_namespace_and_name_unless_somebody_else_does() {
    let pod = [("POD_NAMESPACE", "models"), ("POD_NAME", "gateway-x2b")];
    let settings = cluster(&[], &pod).unwrap();
    assert_eq!(settings.scope, Scope::Namespaces(vec!["models".into()]));
    assert_eq!(settings.name, "gateway-x2b");
    let settings = cluster(&["--namespace", "b", "--namespace", "a"], &pod).unwrap();
    assert_eq!(settings.scope, Scope::Namespaces(vec!["a".into(), "b".into()]));
    let listed = [("FLEXINFER_NAMESPACE", "a, b"), ("POD_NAMESPACE", "models")];
    let settings = cluster(&["--gateway-name", "edge"], &listed).unwrap();
    assert_eq!(settings.scope, Scope::Namespaces(vec!["a".into(), "b".into()]));
    assert_eq!(settings.name, "edge");
    assert_eq!(cluster(&["--all-namespaces"], &pod).unwrap().scope, Scope::All);
}

#[test]
fn a_gateway_on_a_cluster_is_asked_by_the_names_of_its_service_too() {
    let pod = [("POD_NAMESPACE", "ai"), ("FLEXINFER_SERVICE_NAME", "proxy")];
    let hosts = |flags: &[&str]| cluster(flags, &pod).unwrap().serve.rules.hosts;
    assert_eq!(hosts(&[]), None, "whom nobody restricts answers to any name");
    let told = ["--allowed-hosts", "llm.example.com"];
    let allows = |hosts: Option<Hosts>, name: &str| hosts.unwrap().allows(name);
    for name in ["llm.example.com", "proxy.ai", "proxy.ai.svc:80", "proxy.ai.svc.cluster.local"] {
        assert!(allows(hosts(&told), name), "{name}");
    }
    assert!(!allows(hosts(&told), "proxy.ai.example.com"));
    let domain = [&told[..], &["--cluster-domain", "corp.test"]].concat();
    assert!(allows(hosts(&domain), "proxy.ai.svc.corp.test"));
    let shown = cluster(&told, &pod).unwrap().serve.page();
    assert!(shown.contains("allowed-hosts = llm.example.com,proxy,proxy.ai,"), "{shown}");
    let wrong = cluster(&["--cluster-domain", "a b"], &pod).unwrap_err().to_string();
    assert!(wrong.contains("--cluster-domain"), "{wrong}");
}

#[test]
fn keys_of_engines_are_for_models_of_the_gateways_own_namespace() {
    let pod = [("POD_NAMESPACE", "models")];
    let of = |flags: &[&str], variables: &[(&str, &str)]| {
        cluster(flags, variables).unwrap().serve.rules.engine_secrets_of
    };
    let namespace = |name: &str| SecretsOf::Namespace(name.to_owned());
    assert_eq!(of(&[], &pod), namespace("models"));
    assert_eq!(of(&["--all-namespaces"], &pod), namespace("models"));
    assert_eq!(of(&["--namespace", "a", "--namespace", "b"], &pod), namespace("models"));
    assert_eq!(of(&["--namespace", "a"], &pod), namespace("a"), "nobody else's are there");
    assert_eq!(of(&["--all-namespaces"], &[]), SecretsOf::Nobody);
    assert_eq!(read(&[], &[]).unwrap().rules.engine_secrets_of, SecretsOf::All);
}

#[test]
fn a_scope_that_means_nothing_is_told() {
    let both = cluster(&["--all-namespaces", "--namespace", "a"], &[]).unwrap_err();
    assert!(both.to_string().contains("contradict"), "{both}");
    let unnamed = cluster(&["--namespace", "No Namespace"], &[]).unwrap_err();
    assert!(unnamed.to_string().contains("No Namespace"), "{unnamed}");
}
