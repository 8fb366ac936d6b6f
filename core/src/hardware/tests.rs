//! What probes prove, one after another, and the sources that have no folder of their own.

use flexinfer_crds::keys;
use jiff::Timestamp;

use super::knowledge::{Health, Judgement, Knowledge, Look, PATIENCE};
use super::marks::{Node, patch};
use super::sysfs::Tree;
use super::*;
use crate::backends::{Backend, Vendor};

/// A node, its agent and the machine's bus.
struct World {
    node: Node,
    agent: Knowledge,
    bus_is_empty: Option<bool>,
    newest_ready: Option<Timestamp>,
    now: Timestamp,
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

impl World {
    fn new() -> Self {
        let node = Node { boot: Some("boot-1".to_owned()), ..Node::default() };
        let agent = Knowledge::default();
        Self { node, agent, bus_is_empty: Some(false), newest_ready: None, now: at(1000) }
    }

    /// One probe, whose patch is applied. Returns what was judged and whether there was a patch.
    fn probe(&mut self, found: &Result<Survey, ProbeFailure>) -> (Judgement, bool) {
        let look = Look {
            found,
            node: &self.node,
            bus_is_empty: self.bus_is_empty,
            avx512: false,
            kv_cache_usage: None,
            newest_ready: self.newest_ready,
            now: self.now,
        };
        let judgement = self.agent.judge(&look);
        let patched = patch(&self.node, &judgement.marks).is_some();
        let wanted = &judgement.marks;
        for (known, wanted) in [
            (&mut self.node.labels, &wanted.labels),
            (&mut self.node.annotations, &wanted.annotations),
        ] {
            for (key, value) in wanted {
                match value {
                    Some(value) => known.insert(key.clone(), value.clone()),
                    None => known.remove(key),
                };
            }
        }
        (judgement, patched)
    }

    fn sees(&mut self, survey: Survey) -> (Judgement, bool) {
        self.probe(&Ok(survey))
    }

    fn fails(&mut self) -> (Judgement, bool) {
        self.probe(&Err(ProbeFailure::failed("NVML", "Unknown Error")))
    }

    fn count(&self) -> Option<&str> {
        self.node.labels.get(keys::GPU_COUNT).map(String::as_str)
    }

    fn restart_agent(&mut self) {
        self.agent = Knowledge::default();
    }
}

fn gpus(count: usize) -> Survey {
    let gpus = (0..count).map(|index| Gpu::new(Vendor::Nvidia, format!("GPU-{index}")));
    Survey { gpus: gpus.collect(), findings: Vec::new() }
}

#[test]
fn gpu_08_failing_probes_keep_the_labels_and_at_last_ask_for_a_restart() {
    let mut world = World::new();
    for _ in 0..3 {
        assert_eq!(world.sees(gpus(4)).0.health, Health::Good);
    }
    for nth in 1..=PATIENCE {
        let (judgement, _) = world.fails();
        assert!(matches!(judgement.health, Health::Unknown(_)), "{judgement:?}");
        assert_eq!(judgement.give_up, nth == PATIENCE);
        assert_eq!(world.count(), Some("4"));
    }
    let health = &world.node.annotations[keys::GPU_HEALTH];
    assert!(health.starts_with("unknown: NVML failed: Unknown Error"), "{health}");
}

#[test]
fn gpu_08_one_good_probe_forgives_the_failures_before_it() {
    let mut world = World::new();
    for _ in 0..PATIENCE * 3 {
        assert!(!world.fails().0.give_up);
        assert_eq!(world.sees(gpus(1)).0.health, Health::Good);
    }
}

#[test]
fn gpu_09_a_missing_gpu_is_a_degraded_node_and_not_a_smaller_one() {
    let mut world = World::new();
    world.sees(gpus(8));
    world.restart_agent();
    let (judgement, _) = world.sees(gpus(7));
    assert_eq!(judgement.health, Health::Degraded("7 of 8 GPUs answer".to_owned()));
    assert_eq!(world.count(), Some("8"));
    assert_eq!(world.sees(gpus(8)).0.health, Health::Good);
}

#[test]
fn gpu_09_a_gpu_that_is_lost_from_the_start_is_said() {
    let mut world = World::new();
    let mut survey = gpus(7);
    survey.findings.push(Finding::Lost { gpu: "0000:3B:00.0".to_owned() });
    let (judgement, _) = world.sees(survey);
    let Health::Degraded(why) = judgement.health else { panic!("{judgement:?}") };
    assert!(why.starts_with("7 of 8 GPUs answer: GPU 0000:3B:00.0 does not answer"), "{why}");
}

#[test]
fn gpus_taken_out_are_gone_after_the_next_boot() {
    let mut world = World::new();
    world.sees(gpus(8));
    world.node.boot = Some("boot-2".to_owned());
    assert_eq!(world.sees(gpus(7)).0.health, Health::Good);
    assert_eq!(world.count(), Some("7"));
    world.node.boot = Some("boot-3".to_owned());
    world.bus_is_empty = Some(true);
    world.sees(gpus(0));
    assert_eq!(world.count(), None);
    let left: Vec<_> = world.node.labels.keys().collect();
    assert_eq!(left, [keys::CPU_AVX512]);
    assert!(world.node.annotations.is_empty(), "{:?}", world.node.annotations);
}

#[test]
fn gpu_11_restarts_write_nothing_and_a_driver_that_is_not_loaded_takes_nothing_away() {
    let mut world = World::new();
    world.sees(gpus(2));
    let before = world.node.labels.clone();
    for _ in 0..20 {
        world.restart_agent();
        assert!(!world.sees(gpus(2)).1);
    }
    for boot in ["boot-1", "boot-2"] {
        world.node.boot = Some(boot.to_owned());
        world.restart_agent();
        assert!(matches!(world.sees(gpus(0)).0.health, Health::Unknown(_)));
        assert_eq!(world.node.labels, before);
    }
}

#[test]
fn a_node_that_never_had_a_gpu_is_labelled_with_its_processor_alone() {
    let mut world = World::new();
    world.bus_is_empty = None;
    assert_eq!(world.sees(gpus(0)).0.health, Health::Good);
    assert_eq!(world.node.labels.keys().collect::<Vec<_>>(), [keys::CPU_AVX512]);
}

#[test]
fn a_worse_source_does_not_take_away_what_a_better_one_told() {
    let mut world = World::new();
    let mut survey = gpus(1);
    survey.gpus[0].architecture = Some("sm_89".to_owned());
    world.sees(survey);
    world.sees(gpus(1));
    assert_eq!(world.node.labels[keys::GPU_ARCHITECTURE], "sm_89");
    let changed = Survey { gpus: vec![Gpu::new(Vendor::Amd, "0xaa")], findings: Vec::new() };
    world.node.boot = Some("boot-2".to_owned());
    world.sees(changed);
    assert_eq!(world.node.labels.get(keys::GPU_ARCHITECTURE), None);
}

#[test]
fn allocatable_tells_makers_and_counts() {
    let listed = [
        ("cpu", "8"),
        ("nvidia.com/gpu", "2"),
        ("nvidia.com/mig-1g.5gb", "3"),
        ("amd.com/gpu", "many"),
    ];
    let allocatable =
        listed.iter().map(|(name, count)| ((*name).to_owned(), (*count).to_owned())).collect();
    let survey = allocatable::read(&allocatable);
    assert_eq!(survey.gpus.len(), 5);
    assert!(survey.gpus.iter().all(|gpu| gpu.vendor == Vendor::Nvidia));
}

#[test]
fn only_discrete_gpus_of_intel_count() {
    let card = |name: &str, address: &str| {
        let folder = format!("class/drm/{name}/device");
        [
            (format!("{folder}/vendor"), "0x8086".to_owned()),
            (format!("{folder}/uevent"), format!("PCI_SLOT_NAME={address}")),
        ]
    };
    let tree: Tree =
        card("card0", "0000:00:02.0").into_iter().chain(card("card1", "0000:03:00.0")).collect();
    let survey = intel::read(&tree);
    assert_eq!(survey.gpus.len(), 1);
    assert_eq!(survey.gpus[0].id, "0000:03:00.0");
}

#[test]
fn the_bus_tells_whether_there_is_a_gpu_without_any_driver() {
    let device = |class: &str, vendor: &str| {
        let file = |name: &str| format!("bus/pci/devices/0000:03:00.0/{name}");
        [(file("class"), class.to_owned()), (file("vendor"), vendor.to_owned())]
            .into_iter()
            .collect::<Tree>()
    };
    assert_eq!(Tree::default().has_no_gpu_on_the_bus(), None);
    assert_eq!(device("0x020000", "0x10de").has_no_gpu_on_the_bus(), Some(true));
    assert_eq!(device("0x030200", "0x10de").has_no_gpu_on_the_bus(), Some(false));
    assert_eq!(device("0x120000", "0x1002").has_no_gpu_on_the_bus(), Some(false));
    assert_eq!(device("0x030000", "0x8086").has_no_gpu_on_the_bus(), Some(false));
}

#[test]
fn a_gpu_out_of_reach_asks_for_attention_until_it_is_gone() {
    let mut world = World::new();
    let out_of_reach = Finding::OutOfReach { vendor: Vendor::Nvidia };
    let (judgement, _) = world.sees(Survey { gpus: Vec::new(), findings: vec![out_of_reach] });
    let Health::Attention(why) = judgement.health else { panic!("{judgement:?}") };
    assert!(why.contains("agent.runtimeClassName"), "{why}");
    assert!(world.node.annotations[keys::GPU_HEALTH].starts_with("attention: "));
    assert_eq!(world.sees(gpus(0)).0.health, Health::Good);
    assert_eq!(world.node.annotations.get(keys::GPU_HEALTH), None);
}

#[test]
fn the_fullest_kv_cache_of_a_page_counts() {
    let names = Backend::Vllm.metrics().unwrap();
    let page = "# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.\n\
                vllm:kv_cache_usage_perc{model_name=\"a } b\"} 0.25\n\
                vllm:kv_cache_usage_perc{model_name=\"c\"} 0.5 1700000000\n\
                vllm:kv_cache_usage_perc_max 0.9\n";
    assert_eq!(engines::kv_cache_usage(page, names), Some(0.5));
    assert_eq!(engines::kv_cache_usage("vllm:gpu_cache_usage_perc 1.7", names), Some(1.0));
    assert_eq!(engines::kv_cache_usage("vllm:kv_cache_usage_perc NaN", names), None);
}
