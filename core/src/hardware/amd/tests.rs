//! What AMD's tools print. The outputs are composed after their documentation for the releases named, and
//! after the reports that each case names.

use super::*;
use crate::backends::Vendor;
use crate::hardware::sysfs::{self, Tree};
use crate::hardware::{Memory, Survey};

/// `rocm-smi` of ROCm 5.7: names of series in lower case, all values texts, no `GFX Version`.
const ROCM_5_7: &str = r#"{"card0": {"Unique ID": "0xaa", "Temperature (Sensor edge) (C)": "41.0",
    "GPU use (%)": "12", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "27783168",
    "Card series": "Radeon RX 7900 XTX", "Card model": "0x0e0d"}}"#;
/// ROCm 6.0: the series is capitalised, and a member `system` stands beside the cards.
const ROCM_6_0: &str = r#"{"card0": {"Unique ID": "0xaa", "Temperature (Sensor edge) (C)": "41.0",
    "GPU use (%)": "12", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "27783168",
    "Card Series": "Radeon RX 7900 XTX", "GFX Version": "gfx1100"}, "system": {"Driver version": "6.3.6"}}"#;
/// ROCm 6.4: `Device Name`, texts that say N/A, numbers that are numbers.
const ROCM_6_4: &str = r#"{"card0": {"Device Name": "Radeon RX 7900 XTX", "Unique ID": "0xaa", "GPU use (%)": 12,
    "Temperature (Sensor edge) (C)": "N/A", "Temperature (Sensor junction) (C)": "41.0", "Card Series": "N/A",
    "VRAM Total Memory (B)": 25753026560, "VRAM Total Used Memory (B)": 27783168, "GFX Version": "gfx1100"}}"#;

fn assert_is_the_card(survey: &Survey) {
    let [gpu] = survey.gpus.as_slice() else { panic!("{survey:?}") };
    assert_eq!((gpu.vendor, gpu.id.as_str()), (Vendor::Amd, "0xaa"));
    assert_eq!(gpu.name.as_deref(), Some("Radeon RX 7900 XTX"));
    assert_eq!(gpu.memory, Memory { total: Some(25_753_026_560), used: Some(27_783_168) });
    assert_eq!((gpu.utilization, gpu.temperature), (Some(12.0), Some(41.0)));
}

#[test]
fn every_release_of_rocm_smi_is_read_alike() {
    for output in [ROCM_5_7, ROCM_6_0, ROCM_6_4] {
        assert_is_the_card(&read_rocm_smi(output).unwrap());
    }
}

#[test]
fn rocminfo_names_what_rocm_smi_does_not() {
    let mut survey = read_rocm_smi(ROCM_5_7).unwrap();
    let output = "*******\nAgent 1\n*******\n  Name:                    AMD Ryzen 9 7950X\n  \
                  Device Type:             CPU\n*******\nAgent 2\n  Name:                    gfx1100\n  \
                  Marketing Name:          Radeon RX 7900 XTX\n  Device Type:             GPU\n  ISA Info:\n    \
                  ISA 1\n      Name:                    amdgcn-amd-amdhsa--gfx1100\n";
    let found = architectures(output);
    assert_eq!(found, ["gfx1100"]);
    name_architectures(&mut survey.gpus, &found);
    assert_eq!(survey.gpus[0].architecture.as_deref(), Some("gfx1100"));
}

#[test]
fn gpu_06_noise_around_the_json_is_passed_over() {
    let warning = "WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n";
    assert_is_the_card(&read_rocm_smi(&format!("{warning}{ROCM_6_4}")).unwrap());
    assert_is_the_card(
        &read_rocm_smi(&format!("[0000:03:00.0] asleep\n{ROCM_6_4}\nWARNING: done")).unwrap(),
    );
}

#[test]
fn gpu_06_what_holds_no_json_is_a_failure_that_says_so() {
    let long = "x".repeat(20 << 20);
    for output in ["", "WARNING: No JSON data to report\n", "{}", "{\"card0\":", &long, "[1, 2]"] {
        let failure = read_rocm_smi(output).unwrap_err().to_string();
        assert!(failure.len() < 300, "{failure}");
        assert!(read_amd_smi(output, "").is_err());
    }
}

#[test]
fn gpu_06_unknown_values_stay_unknown() {
    let survey =
        read_rocm_smi(r#"{"card0": {"GPU use (%)": "N/A", "VRAM Total Memory (B)": "N/A"}}"#)
            .unwrap();
    assert_eq!(survey.gpus[0].memory, Memory::default());
    assert_eq!(survey.gpus[0].utilization, None);
    assert_eq!(survey.gpus[0].id, "card0");
}

#[test]
fn cards_keep_the_order_of_their_numbers() {
    let card = |index| format!(r#""card{index}": {{"Unique ID": "{index}"}}"#);
    let cards: Vec<_> = [10, 2, 0].into_iter().map(card).collect();
    let survey = read_rocm_smi(&format!("{{{}}}", cards.join(","))).unwrap();
    let ids: Vec<_> = survey.gpus.iter().map(|gpu| gpu.id.as_str()).collect();
    assert_eq!(ids, ["0", "2", "10"]);
}

/// `amd-smi static --json` and `metric --json`: an array until ROCm 6.4, then an object with `gpu_data`.
#[test]
fn both_shapes_of_amd_smi_are_read() {
    let facts = r#"[{"gpu": 0, "asic": {"market_name": "AMD Instinct MI210", "asic_serial": "0xAA",
        "target_graphics_version": "gfx90a"}, "bus": {"bdf": "0000:03:00.0"}, "vram": {"size": {"value": 65520, "unit": "MB"}}}]"#;
    let metrics = r#"[{"gpu": 0, "usage": {"gfx_activity": {"value": 7, "unit": "%"}},
        "temperature": {"edge": "N/A", "hotspot": {"value": 35, "unit": "C"}},
        "mem_usage": {"total_vram": {"value": 65520, "unit": "MB"}, "used_vram": {"value": 10, "unit": "MB"}}}]"#;
    let wrapped = |page: &str| format!("{{\"gpu_data\": {page}}}");
    for (facts, metrics) in
        [(facts.to_owned(), metrics.to_owned()), (wrapped(facts), wrapped(metrics))]
    {
        let survey = read_amd_smi(&facts, &metrics).unwrap();
        let gpu = &survey.gpus[0];
        assert_eq!((gpu.id.as_str(), gpu.architecture.as_deref()), ("0xAA", Some("gfx90a")));
        assert_eq!(gpu.memory, Memory { total: Some(65520 << 20), used: Some(10 << 20) });
        assert_eq!((gpu.utilization, gpu.temperature), (Some(7.0), Some(35.0)));
    }
    let without_metrics = read_amd_smi(facts, "").unwrap();
    assert_eq!(without_metrics.gpus[0].memory, Memory { total: Some(65520 << 20), used: None });
}

/// The files of one card, as the kernel's amdgpu guide ("GPU sysfs") describes them.
fn tree(version: u32, vram: u64, gtt: u64, pages_limit: Option<u64>) -> Tree {
    let device = |name: &str| format!("class/drm/card1/device/{name}");
    let topology = format!(
        "cpu_cores_count 0\nsimd_count 40\ngfx_target_version {version}\nlocation_id 50432\ndomain 0\n"
    );
    let files = [
        (device("vendor"), "0x1002\n".to_owned()),
        (device("uevent"), "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c5:00.0\n".to_owned()),
        (device("mem_info_vram_total"), vram.to_string()),
        (device("mem_info_vram_used"), "1048576".to_owned()),
        (device("mem_info_gtt_total"), gtt.to_string()),
        (device("mem_info_gtt_used"), "2097152".to_owned()),
        (device("gpu_busy_percent"), "9\n".to_owned()),
        (device("hwmon/hwmon3/temp1_input"), "52000\n".to_owned()),
        ("class/kfd/kfd/topology/nodes/1/properties".to_owned(), topology),
    ];
    let limit = pages_limit
        .map(|pages| ("module/ttm/parameters/pages_limit".to_owned(), pages.to_string()));
    files.into_iter().chain(limit).collect()
}

const GIB: u64 = 1 << 30;
const STRIX_HALO: u32 = 110_501;

fn total(tree: &Tree, machine: u64) -> Option<u64> {
    sysfs::amd(tree, Memory { total: Some(machine), used: None }).gpus[0].memory.total
}

#[test]
fn gpu_05_an_apu_has_the_larger_of_its_two_pools_and_never_the_sum() {
    let machine = 131_000_000_000;
    assert_eq!(total(&tree(STRIX_HALO, 512 << 20, 133_143_986_176, None), machine), Some(machine));
    assert_eq!(total(&tree(STRIX_HALO, 96 * GIB, 16 * GIB, None), 32 * GIB), Some(96 * GIB));
    let limited = tree(STRIX_HALO, 512 << 20, 120 * GIB, Some((60 * GIB) / 4096));
    assert_eq!(total(&limited, machine), Some(60 * GIB));
}

#[test]
fn gpu_05_a_discrete_card_has_its_own_memory_alone() {
    assert_eq!(total(&tree(110_000, 24 * GIB, 64 * GIB, None), 128 * GIB), Some(24 * GIB));
}

#[test]
fn sysfs_tells_a_card_without_any_tool() {
    let survey = sysfs::amd(&tree(90_010, 64 * GIB, 64 * GIB, None), Memory::default());
    let gpu = &survey.gpus[0];
    assert_eq!((gpu.id.as_str(), gpu.architecture.as_deref()), ("0000:c5:00.0", Some("gfx90a")));
    assert_eq!((gpu.utilization, gpu.temperature), (Some(9.0), Some(52.0)));
    assert_eq!(gpu.memory.used, Some(1 << 20));
}

#[test]
fn gpu_05_what_a_tool_calls_vram_of_an_apu_is_replaced_by_what_it_can_use() {
    let output = r#"{"card0": {"GFX Version": "gfx1151", "VRAM Total Memory (B)": "536870912"}}"#;
    let mut survey = read_rocm_smi(output).unwrap();
    assert_eq!(survey.gpus[0].memory.total, None);
    let machine = Memory { total: Some(131_000_000_000), used: None };
    sysfs::fill_in_apus(&mut survey, &tree(STRIX_HALO, 512 << 20, 60 * GIB, None), machine);
    assert_eq!(survey.gpus[0].memory, Memory { total: Some(60 * GIB), used: Some(2 << 20) });
}
