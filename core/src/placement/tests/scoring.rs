//! Scores, by the original's formula.

use super::super::benchmarks::{DeviceClass, Subject};
use super::super::score::{Candidate, Terms, Weights, Worth, rank};
use super::*;

fn ranked(pod: &Pod, nodes: &[Node], results: Results<'_>, tenant: Option<&Tenant>) -> Vec<Worth> {
    let candidates: Vec<_> =
        nodes.iter().map(|node| Some(Candidate { node, reservations: &[] })).collect();
    rank(pod, &candidates, results, &Weights::default(), tenant)
}

fn terms(node: Node) -> Terms {
    ranked(&pod(1, "0"), &[node], Results::default(), None)[0].terms.unwrap()
}

fn numbers(worths: &[Worth]) -> Vec<i64> {
    worths.iter().map(|worth| worth.number).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Results for llama on vllm: so many tokens per second on each architecture.
fn speeds(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    let entry = |(architecture, rate): &(&str, &str)| {
        let device_class = node(&[(keys::GPU_ARCHITECTURE, architecture)]).class;
        let subject = Subject {
            namespace: "models".into(),
            backend: "vllm".into(),
            model: "llama".into(),
            device_class,
        };
        (subject.key(), (*rate).to_owned())
    };
    of.iter().map(entry).collect()
}

#[test]
fn each_term_is_the_originals() {
    let terms = terms(node(&[
        (keys::GPU_UTILIZATION, "50.00"),
        (keys::COST, "2.5"),
        (keys::KV_CACHE_USAGE, "0.9500"),
        (keys::GPU_FREE_MEMORY, "12288"),
    ]));
    assert!(near(terms.util, -10.0), "{terms:?}");
    assert!(near(terms.cost, -0.25), "{terms:?}");
    assert!(near(terms.cache, -0.285), "{terms:?}");
    assert!(near(terms.vram_free, 2.5), "a quarter of two GPUs of 24 GiB: {terms:?}");
    assert!(near(terms.pressure, -2.0), "{terms:?}");
    assert!(near(terms.sum(), -10.035), "{terms:?}");
}

#[test]
fn a_cache_is_under_pressure_only_above_85_percent() {
    assert!(near(terms(node(&[(keys::KV_CACHE_USAGE, "0.85")])).pressure, 0.0));
    assert!(terms(node(&[(keys::KV_CACHE_USAGE, "0.86")])).pressure < 0.0);
}

#[test]
fn free_memory_counts_on_the_gpus_that_the_pod_would_get() {
    let half_full = node(&[(keys::GPU_FREE_MEMORY_EACH, "24576,0")]);
    assert!(near(terms(half_full.clone()).vram_free, 10.0), "one of its GPUs is all free");
    let two = ranked(&pod(2, "0"), &[half_full], Results::default(), None);
    assert!(near(two[0].terms.unwrap().vram_free, 5.0));
}

#[test]
fn speed_is_that_of_the_class_then_that_of_the_deployment_then_nothing() {
    let all = speeds(&[("sm_89", "50")]);
    let deployment = owned(&[("tokensPerSecond", "20")]);
    let nodes = [node(&[]), node(&[(keys::GPU_ARCHITECTURE, "sm_90")])];
    let tps = |results| {
        let worths = ranked(&pod(1, "0"), &nodes, results, None);
        worths.iter().map(|worth| worth.terms.unwrap().tps / 0.7).collect::<Vec<_>>()
    };
    let both = tps(Results { all: Some(&all), of_deployment: Some(&deployment) });
    assert!(near(both[0], 50.0) && near(both[1], 20.0), "{both:?}");
    let one = tps(Results { all: Some(&all), of_deployment: None });
    assert!(near(one[0], 50.0) && near(one[1], 0.0), "{one:?}");
    let none = tps(Results::default());
    assert!(near(none[0] + none[1], 0.0), "{none:?}");
}

#[test]
fn the_speed_of_a_model_of_that_name_in_another_namespace_is_not_this_ones() {
    let device_class = node(&[]).class;
    let theirs = Subject {
        namespace: "others".into(),
        backend: "vllm".into(),
        model: "llama".into(),
        device_class,
    };
    let noted = (format!("meta_{}", theirs.key()), json!({ "namespace": "others" }).to_string());
    let all = [(theirs.key(), "50".to_owned()), noted].into();
    let results = Results { all: Some(&all), of_deployment: None };
    let tps = |namespace: &str| {
        let pod = Pod { namespace: namespace.to_owned(), ..pod(1, "0") };
        ranked(&pod, &[node(&[])], results, None)[0].terms.unwrap().tps / 0.7
    };
    assert!(
        near(tps("others"), 50.0) && near(tps("models"), 0.0),
        "{} {}",
        tps("others"),
        tps("models")
    );
}

#[test]
fn the_faster_node_wins_and_numbers_keep_the_order() {
    let all = speeds(&[("sm_89", "50"), ("sm_90", "90"), ("sm_80", "40")]);
    let nodes = ["sm_89", "sm_90", "sm_80"].map(|name| node(&[(keys::GPU_ARCHITECTURE, name)]));
    let worths =
        ranked(&pod(1, "0"), &nodes, Results { all: Some(&all), of_deployment: None }, None);
    assert_eq!(numbers(&worths), [2, 10, 0]);
}

#[test]
fn a_promised_node_is_worth_less() {
    let free = node(&[]);
    let taken = [Reservation { gpus: 1, memory: Some(20_000), ready_since: None }];
    let candidates = [
        Some(Candidate { node: &free, reservations: &taken }),
        Some(Candidate { node: &free, reservations: &[] }),
        None,
    ];
    let worths = rank(&pod(1, "0"), &candidates, Results::default(), &Weights::default(), None);
    assert_eq!(numbers(&worths), [0, 10, 0]);
    assert_eq!(worths[2].terms, None);
}

#[test]
fn gpu_14_a_node_that_cannot_be_read_comes_last() {
    for key in [keys::GPU_UTILIZATION, keys::KV_CACHE_USAGE, keys::COST, keys::GPU_FREE_MEMORY] {
        let busy = node(&[(keys::GPU_UTILIZATION, "100")]);
        let worths = ranked(&pod(1, "0"), &[node(&[(key, "{")]), busy], Results::default(), None);
        assert_eq!(numbers(&worths), [0, 10], "{key}");
    }
}

#[test]
fn a_tenant_above_its_budget_gives_way_on_the_nodes_that_everybody_wants() {
    let all = speeds(&[("sm_89", "50"), ("sm_90", "52")]);
    let results = Results { all: Some(&all), of_deployment: None };
    let nodes = ["sm_89", "sm_90"].map(|name| node(&[(keys::GPU_ARCHITECTURE, name)]));
    let share = FairShare { weight: 5.0, budget: 2.0 };
    let winner = |used| {
        let tenant = share.tenant(used, 1);
        numbers(&ranked(&pod(1, "0"), &nodes, results, Some(&tenant)))
    };
    assert_eq!(winner(0), [0, 10], "half of the budget: the fast node");
    assert_eq!(winner(1), [0, 10], "all of it");
    assert_eq!(winner(3), [10, 0], "twice of it: the other one");
}

#[test]
fn where_nobody_has_measured_the_larger_gpus_are_sought_after() {
    let nodes = [node(&[(keys::GPU_VRAM, "80Gi"), (keys::GPU_FREE_MEMORY, "163840")]), node(&[])];
    let tenant = FairShare { weight: 5.0, budget: 1.0 }.tenant(4, 1);
    assert_eq!(numbers(&ranked(&pod(1, "0"), &nodes, Results::default(), Some(&tenant))), [0, 10]);
    assert!(near(tenant.ratio, 5.0) && near(tenant.adjustment, -20.0), "{tenant:?}");
    assert!(near(FairShare { weight: 5.0, budget: 0.0 }.tenant(4, 1).adjustment, 0.0));
}

#[test]
fn the_tenant_is_a_label_of_the_pod_else_its_namespace() {
    let labelled = object(1, "0", &json!({ "metadata": { "labels": { "team": "red" } } }));
    assert_eq!(Pod::read(&labelled, Some("team")).tenant, "red");
    assert_eq!(Pod::read(&labelled, Some("other")).tenant, "models");
    assert_eq!(Pod::read(&labelled, None).tenant, "models");
}

#[test]
fn to_a_pod_without_gpus_all_nodes_are_equal() {
    let nodes = [node(&[]), node(&[(keys::GPU_UTILIZATION, "90")])];
    let worths = ranked(&pod(0, "0"), &nodes, Results::default(), None);
    assert_eq!(numbers(&worths), [0, 0]);
    assert_eq!(DeviceClass::default().architecture(), "");
}
