//! What a node carries.

use flexinfer_crds::keys;
use serde_json::json;

use super::*;
use crate::backends::Vendor;
use crate::hardware::{Gpu, Memory, Partition, Partitioning, representative, spoken_for};

const GIB: u64 = 1 << 30;

fn gpu(vendor: Vendor, architecture: &str, total: u64, used: u64) -> Gpu {
    let mut gpu = Gpu::new(vendor, format!("{architecture}-{total}"));
    gpu.architecture = Some(architecture.to_owned());
    gpu.memory = Memory { total: Some(total), used: Some(used) };
    gpu
}

fn labels_of(gpus: &[Gpu]) -> Texts {
    labels(representative(&spoken_for(gpus)).as_ref(), true, None)
}

fn texts(pairs: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned()))).collect()
}

#[test]
fn labels_are_those_of_the_original() {
    let gpus = [
        gpu(Vendor::Nvidia, "sm_89", 24564 << 20, 0),
        gpu(Vendor::Nvidia, "sm_89", 24564 << 20, 0),
    ];
    assert_eq!(
        labels_of(&gpus).into_iter().collect::<Vec<_>>(),
        texts(&[
            ("flexinfer.ai/cpu.avx512", "true"),
            ("flexinfer.ai/gpu.arch", "sm_89"),
            ("flexinfer.ai/gpu.count", "2"),
            ("flexinfer.ai/gpu.int4", "true"),
            ("flexinfer.ai/gpu.vendor", "NVIDIA"),
            ("flexinfer.ai/gpu.vram", "24Gi"),
        ])
    );
}

#[test]
fn another_prefix_has_a_copy_of_every_label() {
    let own = labels_of(&[gpu(Vendor::Amd, "gfx1100", 24 * GIB, 0)]);
    let all = "gpu.example.com".parse::<LabelPrefix>().unwrap().copied(own.clone());
    assert_eq!(all.len(), own.len() * 2);
    for (key, value) in &own {
        assert_eq!(all.get(key), Some(value), "placement reads {key}");
        let copy = key.replace("flexinfer.ai/", "gpu.example.com/");
        assert_eq!(all.get(&copy), Some(value), "{copy}");
    }
    let ours = "flexinfer.ai/".parse::<LabelPrefix>().unwrap();
    assert_eq!(ours.copied(own.clone()), own);
    for bad in ["", "/", "a//", "-a.b/", "A.b/", "a b/"] {
        assert!(bad.parse::<LabelPrefix>().is_err(), "{bad}");
    }
}

#[test]
fn gpu_03_a_mixed_node_is_spoken_for_by_its_best_whatever_the_order() {
    let mut gpus = vec![
        gpu(Vendor::Amd, "gfx90a", 64 * GIB, 0),
        gpu(Vendor::Amd, "gfx1100", 24 * GIB, 0),
        gpu(Vendor::Nvidia, "sm_52", 8 * GIB, 0),
        gpu(Vendor::Amd, "gfx906", 32 * GIB, 0),
    ];
    let chosen = representative(&spoken_for(&gpus)).unwrap();
    assert_eq!((chosen.vendor, chosen.count, chosen.vram), (Vendor::Amd, 3, Some(64 * GIB)));
    assert_eq!(chosen.architecture.as_deref(), Some("gfx1100"));
    for _ in 0..gpus.len() {
        gpus.rotate_left(1);
        assert_eq!(representative(&spoken_for(&gpus)).as_ref(), Some(&chosen));
    }
}

#[test]
fn graphics_inside_the_processor_are_not_counted_beside_a_card() {
    let mut inside = gpu(Vendor::Amd, "gfx1036", 64 * GIB, 0);
    inside.unified = true;
    for card in
        [gpu(Vendor::Nvidia, "sm_89", 24 * GIB, 0), gpu(Vendor::Amd, "gfx1100", 24 * GIB, 0)]
    {
        let gpus = [inside.clone(), card.clone()];
        assert_eq!(spoken_for(&gpus), [&card]);
    }
    assert_eq!(spoken_for(std::slice::from_ref(&inside)), [&inside]);
}

#[test]
fn newer_architectures_win_by_number_and_not_by_letters() {
    let newest = |names: [&str; 2]| {
        let gpus = names.map(|name| gpu(Vendor::Nvidia, name, GIB, 0));
        representative(&spoken_for(&gpus)).unwrap().architecture.unwrap()
    };
    assert_eq!(newest(["sm_90", "sm_100"]), "sm_100");
    assert_eq!(newest(["gfx1030", "gfx942"]), "gfx1030");
}

#[test]
fn gpu_02_partitions_are_counted_and_their_parent_is_not() {
    let mut split = gpu(Vendor::Nvidia, "sm_80", 40 * GIB, 0);
    let part = |gib: u64| Partition {
        memory: Memory { total: Some(gib * GIB), used: Some(GIB) },
        ..Partition::default()
    };
    split.partitioning = Partitioning::Partitioned(vec![part(20), part(20), part(5)]);
    let chosen = representative(&[&split]).unwrap();
    assert_eq!((chosen.count, chosen.vram), (3, Some(20 * GIB)));
    let written = annotations(&[&split], None);
    assert_eq!(written[keys::GPU_FREE_MEMORY].as_deref(), Some("43008"));
    assert_eq!(written[keys::GPU_FREE_MEMORY_EACH].as_deref(), Some("19456,19456,4096"));
}

#[test]
fn annotations_are_a_mean_a_sum_and_a_share() {
    let mut gpus = [
        gpu(Vendor::Amd, "gfx1100", 24 * GIB, GIB),
        gpu(Vendor::Amd, "gfx1100", 24 * GIB, 2 * GIB),
    ];
    gpus[0].utilization = Some(12.0);
    gpus[1].utilization = Some(12.68);
    let written = annotations(&spoken_for(&gpus), Some(0.123_44));
    assert_eq!(written[keys::GPU_UTILIZATION].as_deref(), Some("12.34"));
    assert_eq!(written[keys::GPU_FREE_MEMORY].as_deref(), Some("46080"));
    assert_eq!(written[keys::KV_CACHE_USAGE].as_deref(), Some("0.1234"));
    gpus[1].memory.used = None;
    let written = annotations(&spoken_for(&gpus), None);
    assert_eq!(written[keys::GPU_FREE_MEMORY].as_deref(), Some("23552"));
    assert_eq!(written[keys::GPU_FREE_MEMORY_EACH], None);
    assert_eq!(written[keys::KV_CACHE_USAGE], None);
}

#[test]
fn gpu_11_one_patch_has_what_differs_and_an_equal_node_needs_none() {
    let mut node = Node::default();
    node.labels.insert("a".to_owned(), "1".to_owned());
    node.annotations.insert("gone".to_owned(), "x".to_owned());
    let mut wanted = Marks::default();
    wanted.labels.insert("a".to_owned(), Some("1".to_owned()));
    wanted.annotations.insert("absent".to_owned(), None);
    assert_eq!(patch(&node, &wanted), None);
    wanted.labels.insert("b".to_owned(), Some("2".to_owned()));
    wanted.annotations.insert("gone".to_owned(), None);
    let expected = json!({"metadata": {"labels": {"b": "2"}, "annotations": {"gone": null}}});
    assert_eq!(patch(&node, &wanted), Some(expected));
}

#[test]
fn the_taints_of_others_stay_and_the_version_guards_them() {
    let theirs =
        json!({"key": "theirs", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"});
    let mut node = Node {
        taints: vec![theirs.clone()],
        resource_version: Some("7".to_owned()),
        ..Node::default()
    };
    let patched = patch(&node, &Marks { tainted: Some(true), ..Marks::default() }).unwrap();
    let ours =
        json!({"key": "flexinfer.ai/spot-terminating", "value": "true", "effect": "NoSchedule"});
    assert_eq!(
        patched,
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"taints": [theirs, ours]}})
    );
    node.taints.push(ours);
    let patched = patch(&node, &Marks { tainted: Some(false), ..Marks::default() }).unwrap();
    assert_eq!(patched["spec"]["taints"], json!([theirs]));
    assert_eq!(patch(&node, &Marks { tainted: None, ..Marks::default() }), None);
}

#[test]
fn gpu_12_the_time_of_a_measurement_moves_with_the_memory_and_with_pods_that_became_ready() {
    let at = |second: i64| jiff::Timestamp::from_second(second).unwrap();
    let free = |mebibytes: &str| {
        Texts::from([(keys::GPU_FREE_MEMORY.to_owned(), Some(mebibytes.to_owned()))])
    };
    let told = at(100).to_string();
    let annotations = [(keys::GPU_FREE_MEMORY, "500"), (keys::GPU_MEASURED_AT, &told)];
    let annotations = annotations.map(|(key, text)| (key.to_owned(), text.to_owned())).into();
    let node = Node { annotations, ..Node::default() };
    let measured = |free: &Texts, ready: Option<i64>| {
        measured_at(&node, free, ready.map(at), at(200)).map(|time| time.parse().unwrap())
    };
    assert_eq!(measured(&free("500"), None), Some(at(100)), "nothing changed, nothing is written");
    assert_eq!(measured(&free("500"), Some(99)), Some(at(100)));
    assert_eq!(measured(&free("500"), Some(100)), Some(at(200)), "the same second proves nothing");
    assert_eq!(measured(&free("400"), None), Some(at(200)));
    assert_eq!(measured(&Texts::new(), None), None, "no memory, no time");
}

#[test]
fn k8s_08_the_label_of_a_product_fits_and_the_annotation_has_all_of_it() {
    let mut card = gpu(Vendor::Nvidia, "sm_120", 96 * GIB, 0);
    let name = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (custom/OEM build 2) ";
    card.name = Some(name.to_owned());
    let mut older = gpu(Vendor::Nvidia, "sm_52", 8 * GIB, 0);
    older.name = Some("NVIDIA Quadro M5000".to_owned());
    let gpus = [older, card];
    let key = "flexinfer.ai/gpu.product".to_owned();
    let label = labels_of(&gpus).into_iter().find(|(known, _)| *known == key);
    let label = label.unwrap().1.unwrap();
    assert!(label.len() <= 63 && label.starts_with("nvidia-rtx-pro-6000-blackwell"), "{label}");
    let told = annotations(&spoken_for(&gpus), None).remove(&key).unwrap();
    assert_eq!(told.as_deref(), Some(name.trim()));
    let unnamed = gpu(Vendor::Nvidia, "sm_89", 24 * GIB, 0);
    assert_eq!(annotations(&[&unnamed], None).remove(&key), Some(None));
}
