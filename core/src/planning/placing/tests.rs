//! Tables of clusters, and where a model goes on them.

use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};

use super::*;

fn node(labels: Value, allocatable: Value) -> Offer {
    let mut node = json!({ "metadata": {}, "status": {} });
    node["metadata"]["labels"] = labels;
    node["status"]["allocatable"] = allocatable;
    let node: Node = serde_json::from_value(node).unwrap();
    Offer::of(&node)
}

fn nvidia(architecture: &str, memory: &str, count: u64) -> Offer {
    let labels = json!({
        keys::GPU_VENDOR: "NVIDIA", keys::GPU_ARCHITECTURE: architecture, keys::GPU_VRAM: memory,
        keys::GPU_COUNT: count.to_string(),
    });
    node(labels, json!({ "nvidia.com/gpu": count.to_string() }))
}

fn amd(architecture: &str) -> Offer {
    let labels = json!({ keys::GPU_VENDOR: "AMD", keys::GPU_ARCHITECTURE: architecture });
    node(labels, json!({ "amd.com/gpu": "1" }))
}

fn model(backend: &str, gpu: Value) -> Model {
    let mut model = json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": "writer" },
        "spec": { "backend": backend, "source": "HF://a/b" },
    });
    model["spec"]["gpu"] = gpu;
    serde_json::from_value(model).unwrap()
}

fn place_on(nodes: &[Offer], model: &Model) -> Result<Placed, Refusal> {
    place_after(nodes, model, Settled::default(), &Images::default())
}

fn place_after(
    nodes: &[Offer],
    model: &Model,
    settled: Settled<'_>,
    images: &Images,
) -> Result<Placed, Refusal> {
    let cluster = Cluster { nodes, runtime_classes: &BTreeSet::new(), storage_classes: None };
    place(model, Backend::of(model).unwrap(), cluster, settled, images)
}

fn refused(nodes: &[Offer], model: &Model) -> String {
    let refusal = place_on(nodes, model).unwrap_err();
    format!("{} {}: {refusal}", refusal.condition(), refusal.reason)
}

fn auto() -> Value {
    json!({ "count": 1 })
}

#[test]
fn the_vendor_is_what_the_nodes_have() {
    let placed = place_on(&[nvidia("sm_89", "24Gi", 2)], &model("vllm", auto())).unwrap();
    let placement = placed.placement;
    assert_eq!(placement.vendor, Vendor::Nvidia);
    assert_eq!(placement.architecture.as_deref(), Some("sm_89"));
    assert_eq!(placement.memory_mib, Some(24 * 1024));
    assert_eq!(placement.resource.as_deref(), Some("nvidia.com/gpu"));
    assert_eq!((placement.rules, placed.doubts), (vec![], vec![]));
}

#[test]
fn without_labels_the_device_plug_ins_tell() {
    let nodes = [node(json!({}), json!({ "amd.com/gpu": "1", "cpu": "8" }))];
    let placement = place_on(&nodes, &model("vllm", auto())).unwrap().placement;
    assert_eq!((placement.vendor, placement.architecture), (Vendor::Amd, None));
}

#[test]
fn gpu_14_labels_that_cannot_be_read_are_not_guessed_at() {
    let labels =
        json!({ keys::GPU_VENDOR: "{\"v\":", keys::GPU_VRAM: "much", keys::GPU_COUNT: "-1" });
    let garbled = node(labels, json!({ "nvidia.com/gpu": "banana" }));
    assert_eq!(garbled.vendors(), BTreeSet::new());
    assert!(refused(&[garbled], &model("vllm", auto())).starts_with("Schedulable NoMatchingNodes"));
}

#[test]
fn two_vendors_are_ambiguous_unless_something_settles_it() {
    let nodes = [nvidia("sm_89", "24Gi", 1), amd("gfx1100")];
    insta::assert_snapshot!(refused(&nodes, &model("vllm", auto())), @"Schedulable AmbiguousGPUVendor: there are nodes with GPUs of nvidia and amd; say which in gpu.vendor, or in nodeSelector");
    let vendor = |model: &Model, settled| {
        place_after(&nodes, model, settled, &Images::default()).unwrap().placement.vendor
    };
    let said = model("vllm", json!({ "vendor": "amd" }));
    assert_eq!(vendor(&said, Settled::default()), Vendor::Amd);
    let mut selected = model("vllm", auto());
    selected.spec.node_selector.insert(keys::NODE_GPU_VENDOR.into(), "nvidia".into());
    let nodes_with_hint = {
        let mut node = nvidia("sm_89", "24Gi", 1);
        node.labels.insert(keys::NODE_GPU_VENDOR.into(), "nvidia".into());
        [node, amd("gfx1100")]
    };
    let placed = place_on(&nodes_with_hint, &selected).unwrap();
    assert_eq!(placed.placement.vendor, Vendor::Nvidia);
    let before = Settled { vendor: Some(Vendor::Amd), architecture: None };
    assert_eq!(vendor(&model("vllm", auto()), before), Vendor::Amd);
}

#[test]
fn a_vendor_that_the_backend_cannot_use_does_not_make_it_ambiguous() {
    let intel = node(json!({}), json!({ "gpu.intel.com/xe": "1" }));
    let nodes = [nvidia("sm_89", "24Gi", 1), intel.clone()];
    let placed = place_on(&nodes, &model("vllm", auto())).unwrap();
    assert_eq!(placed.placement.vendor, Vendor::Nvidia);
    insta::assert_snapshot!(refused(std::slice::from_ref(&intel), &model("vllm", auto())), @"ConfigValid BackendUnsupported: vllm runs on nvidia, amd, and the model would get intel");
    let placed = place_on(&[intel], &model("llamacpp", auto())).unwrap();
    assert_eq!(placed.placement.resource.as_deref(), Some("gpu.intel.com/xe"));
}

#[test]
fn a_named_vendor_may_wait_for_a_node_and_auto_may_not() {
    let placed = place_on(&[], &model("vllm", json!({ "vendor": "nvidia", "count": 2 }))).unwrap();
    assert_eq!(placed.placement, Placement::gpus(Vendor::Nvidia, 2));
    assert!(matches!(placed.doubts.as_slice(), [Doubt::NoMatchingNodes(_)]));
    insta::assert_snapshot!(refused(&[], &model("vllm", auto())), @"Schedulable NoMatchingNodes: no node that the model may use has a GPU, as far as its labels and its allocatable resources tell; say gpu.vendor if one is to come");
}

#[test]
fn without_a_gpu_block_or_on_the_processor_any_node_will_do() {
    let mut none = model("llamacpp", auto());
    none.spec.gpu = None;
    for model in [none, model("llamacpp", json!({ "vendor": "cpu" }))] {
        assert_eq!(place_on(&[], &model).unwrap().placement, Placement::processor());
    }
}

#[test]
fn architectures_that_the_engine_does_not_run_on_are_kept_off() {
    let nodes = [nvidia("sm_52", "12Gi", 1), nvidia("sm_89", "24Gi", 1)];
    let placement = place_on(&nodes, &model("vllm", auto())).unwrap().placement;
    let key = keys::GPU_ARCHITECTURE.to_owned();
    assert_eq!(placement.rules, [NodeRule::NotIn { key, values: vec!["sm_52".to_owned()] }]);
    assert_eq!(placement.architecture.as_deref(), Some("sm_89"));
    insta::assert_snapshot!(refused(&nodes[..1], &model("vllm", auto())), @"ConfigValid BackendUnsupported: vllm does not run on sm_52, and the model may use no other nodes");
    let mut half = model("mlc-llm", auto());
    half.spec.source = Some("HF://mlc-ai/Qwen3-0.6B-q4f16_1-MLC".to_owned());
    insta::assert_snapshot!(refused(&nodes[..1], &half), @"ConfigValid BackendUnsupported: GPUs of sm_52 do not compute in half precision, which spec.source is in");
}

#[test]
fn experimental_support_and_tight_memory_are_told() {
    let nodes = [amd("gfx906")];
    let placed = place_on(&nodes, &model("comfyui", auto())).unwrap();
    let told: Vec<_> = placed.doubts.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["comfyui on gfx906 is experimental"]);
    let tight = model("vllm", json!({ "vramEstimateMB": 20_000 }));
    let placed = place_on(&[nvidia("sm_89", "24Gi", 1)], &tight).unwrap();
    let names: Vec<_> = placed.doubts.iter().map(<&str>::from).collect();
    assert_eq!(names, ["VRAMPressure"]);
}

#[test]
fn gpus_that_are_too_small_are_kept_off() {
    let nodes = [nvidia("sm_89", "8Gi", 1), nvidia("sm_89", "24Gi", 1)];
    let large = model("vllm", json!({ "vramEstimateMB": 12_000 }));
    let placement = place_on(&nodes, &large).unwrap().placement;
    let key = keys::GPU_VRAM.to_owned();
    assert_eq!(placement.rules, [NodeRule::NotIn { key, values: vec!["8Gi".to_owned()] }]);
    let huge = model("vllm", json!({ "vramEstimateMB": 24_000 }));
    insta::assert_snapshot!(refused(&nodes, &huge), @"Schedulable VRAMInsufficient: the model takes 24000 MiB on each GPU (gpu.vramEstimateMB), and the largest that it may use has 24576 MiB, of which 95 % can be filled");
}

#[test]
fn nodes_that_need_another_image_are_left_to_one_part_and_it_stays() {
    let name = "DEFAULT_VLLM_IMAGE_GFX906".to_owned();
    let images = Images::of([(name, "ours/vllm:gfx906".to_owned())]);
    let nodes = [amd("gfx906"), amd("gfx1100"), amd("gfx1100")];
    let architecture = |settled| {
        let placed = place_after(&nodes, &model("vllm", auto()), settled, &images).unwrap();
        placed.placement.architecture.unwrap()
    };
    assert_eq!(architecture(Settled::default()), "gfx1100");
    let before = Settled { vendor: None, architecture: Some("gfx906") };
    assert_eq!(architecture(before), "gfx906");
}

#[test]
fn more_gpus_than_any_node_has_are_told() {
    let placed =
        place_on(&[nvidia("sm_89", "24Gi", 2)], &model("vllm", json!({ "count": 4 }))).unwrap();
    let told: Vec<_> = placed.doubts.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["no node has 4 nvidia GPUs; the most on one is 2"]);
}

#[test]
fn parts_of_gpus_are_asked_for_where_there_is_nothing_else() {
    let parts = node(json!({}), json!({ "nvidia.com/mig-3g.20gb": "2", "nvidia.com/gpu": "0" }));
    let resource =
        |nodes: &[Offer], model: &Model| place_on(nodes, model).unwrap().placement.resource;
    let wanted = model("vllm", auto());
    assert_eq!(
        resource(std::slice::from_ref(&parts), &wanted).as_deref(),
        Some("nvidia.com/mig-3g.20gb")
    );
    let whole = nvidia("sm_90", "80Gi", 1);
    assert_eq!(resource(&[parts.clone(), whole], &wanted).as_deref(), Some("nvidia.com/gpu"));
    let mut own = model("vllm", auto());
    let limits = json!({ "limits": { "nvidia.com/mig-3g.20gb": "1" } });
    own.spec.resources = Some(serde_json::from_value(limits).unwrap());
    assert_eq!(resource(&[parts], &own), None);
}

#[test]
fn the_runtime_class_is_asked_for_only_where_there_is_one() {
    let nodes = [nvidia("sm_89", "24Gi", 1)];
    let model = model("vllm", auto());
    for (classes, wanted) in [(vec![], None), (vec!["nvidia", "gvisor"], Some("nvidia"))] {
        let classes = classes.into_iter().map(str::to_owned).collect();
        let cluster = Cluster { nodes: &nodes, runtime_classes: &classes, storage_classes: None };
        let placed = place(&model, Backend::Vllm, cluster, Settled::default(), &Images::default());
        assert_eq!(placed.unwrap().placement.runtime_class.as_deref(), wanted);
    }
}
