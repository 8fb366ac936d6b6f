//! What `nvidia-smi` prints. The outputs are composed after the tool's manual ("--query-gpu", "-L", "-q -x")
//! and after the reports that each case names.

use super::*;
use crate::hardware::{Finding, Gpu, Memory, Partition, Partitioning, Survey};

const MIB: u64 = 1 << 20;

fn read_all(csv: &str) -> Result<Survey, ProbeFailure> {
    read(csv, Memory { total: Some(128 << 30), used: Some(1 << 30) })
}

fn partitions(gpu: &Gpu) -> &[Partition] {
    match &gpu.partitioning {
        Partitioning::Partitioned(parts) => parts,
        Partitioning::Whole => panic!("{gpu:?} is whole"),
    }
}

#[test]
fn a_row_is_a_gpu() {
    let survey =
        read_all("GPU-1a, 24564, 1024, 37, 61, [N/A], [N/A], 8.9, NVIDIA GeForce RTX 4090\n")
            .unwrap();
    let gpu = &survey.gpus[0];
    assert_eq!(gpu.id, "GPU-1a");
    assert_eq!(gpu.name.as_deref(), Some("NVIDIA GeForce RTX 4090"));
    assert_eq!(gpu.architecture.as_deref(), Some("sm_89"));
    assert_eq!(gpu.memory, Memory { total: Some(24564 * MIB), used: Some(1024 * MIB) });
    assert_eq!((gpu.utilization, gpu.temperature), (Some(37.0), Some(61.0)));
    assert_eq!(gpu.offered().len(), 1);
}

#[test]
fn older_drivers_leave_the_architecture_unknown() {
    let survey = read_all("GPU-1a, 8192, 0, 0, 40, [N/A], [N/A], Tesla M60").unwrap();
    assert_eq!(survey.gpus[0].architecture, None);
    assert_eq!(survey.gpus[0].name.as_deref(), Some("Tesla M60"));
    assert_eq!(architecture("5.2").as_deref(), Some("sm_52"));
    assert_eq!(architecture("[N/A]"), None);
}

#[test]
fn a_gpu_in_the_machines_memory_has_that() {
    let gb10 = "GPU-1a, [N/A], [N/A], 3, 44, [N/A], [N/A], 12.1, NVIDIA GB10";
    let gpu = &read_all(gb10).unwrap().gpus[0];
    assert!(gpu.unified);
    assert_eq!(gpu.memory.total, Some(128 << 30));
    assert_eq!(gpu.architecture.as_deref(), Some("sm_121"));
}

/// An A100 with MIG on, as in IDSIA/sacred#864 (fields in brackets) and NVIDIA's MIG guide (the listing).
const A100: &str = "GPU-aa, 40960, [Insufficient Permissions], [N/A], 33, Enabled, Enabled, 8.0, NVIDIA A100-SXM4-40GB";
const A100_LISTING: &str = "\
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-aa)
  MIG 3g.20gb     Device  0: (UUID: MIG-01)
  MIG 3g.20gb     Device  1: (UUID: MIG-02)
  MIG 1g.5gb      Device  2: (UUID: MIG-03)
";

fn sizes(gpu: &str, totals: &[u64]) -> InstanceSizes {
    let device = |(index, total): (usize, &u64)| {
        format!(
            "<mig_device><index>{index}</index><gpu_instance_id>{index}</gpu_instance_id>\
             <fb_memory_usage><total>{total} MiB</total><used>13 MiB</used></fb_memory_usage></mig_device>"
        )
    };
    let devices: String = totals.iter().enumerate().map(device).collect();
    InstanceSizes::read(&format!(
        "<?xml version=\"1.0\" ?>\n<nvidia_smi_log>\n<attached_gpus>1</attached_gpus>\n<gpu id=\"0:0\">\
         <gpu_name>x</gpu_name><mig_devices>{devices}</mig_devices><uuid>{gpu}</uuid>\
         <fb_memory_usage><total>1 MiB</total></fb_memory_usage></gpu></nvidia_smi_log>"
    ))
}

#[test]
fn gpu_02_instances_are_devices_and_their_parent_is_not() {
    let mut survey = read_all(A100).unwrap();
    attach(&mut survey, Instances::read(A100_LISTING), &sizes("GPU-aa", &[19968, 19968, 4864]));
    let gpu = &survey.gpus[0];
    assert_eq!(gpu.utilization, None);
    let ids: Vec<_> = partitions(gpu).iter().map(|part| part.id.as_str()).collect();
    assert_eq!(ids, ["MIG-01", "MIG-02", "MIG-03"]);
    let totals: Vec<_> = gpu.offered().iter().map(|memory| memory.total.unwrap() / MIB).collect();
    assert_eq!(totals, [19968, 19968, 4864]);
    assert_eq!(survey.findings, []);
}

#[test]
fn gpu_02_mig_without_instances_offers_nothing_and_says_so() {
    let mut survey = read_all(A100).unwrap();
    attach(&mut survey, Instances::default(), &InstanceSizes::default());
    assert_eq!(survey.gpus[0].offered(), []);
    assert_eq!(survey.findings, [Finding::WithoutPartitions { gpu: "GPU-aa".to_owned() }]);
}

#[test]
fn gpu_02_a_pending_mode_is_said() {
    let pending = A100.replace("Enabled, Enabled", "Disabled, Enabled");
    let survey = read_all(&pending).unwrap();
    assert_eq!(survey.findings, [Finding::PartitioningPending { gpu: "GPU-aa".to_owned() }]);
    assert_eq!(survey.gpus[0].offered().len(), 1);
}

#[test]
fn gpu_03_profiles_are_the_drivers_and_whole_gpus_stay_complete() {
    let csv = "GPU-a, 143771, 0, [N/A], 30, Enabled, Enabled, 9.0, NVIDIA H200\n\
               GPU-b, 143771, 9, 5, 30, Disabled, Disabled, 9.0, NVIDIA H200\n\
               GPU-c, 143771, 0, [N/A], 30, Enabled, Enabled, 9.0, NVIDIA H200\n\
               GPU-d, 143771, 9, 5, 30, Disabled, Disabled, 9.0, NVIDIA H200\n";
    let listing = "GPU 0: NVIDIA H200 (UUID: GPU-a)\n  MIG 1g.18gb Device 0: (UUID: MIG-1)\n  \
                   MIG 1g.35gb Device 1: (UUID: MIG-2)\n  MIG 1g.18gb+me Device 2: (UUID: MIG-3)\n\
                   GPU 1: NVIDIA H200 (UUID: GPU-b)\n\
                   GPU 2: NVIDIA H200 (UUID: GPU-c)\n  MIG 7g.141gb Device 0: (UUID: MIG-4)\n\
                   GPU 3: NVIDIA H200 (UUID: GPU-d)\n";
    let mut survey = read_all(csv).unwrap();
    attach(&mut survey, Instances::read(listing), &sizes("GPU-a", &[16384, 33280, 16384]));
    let profiles: Vec<_> =
        partitions(&survey.gpus[0]).iter().filter_map(|part| part.profile.as_deref()).collect();
    assert_eq!(profiles, ["1g.18gb", "1g.35gb", "1g.18gb+me"]);
    assert_eq!(partitions(&survey.gpus[2])[0].profile.as_deref(), Some("7g.141gb"));
    for whole in [&survey.gpus[1], &survey.gpus[3]] {
        assert_eq!(whole.offered(), [Memory { total: Some(143_771 * MIB), used: Some(9 * MIB) }]);
    }
}

#[test]
fn gpu_08_a_failing_driver_is_a_failure_and_not_an_empty_node() {
    for said in [
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54",
        "Failed to initialize NVML: Unknown Error",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        "No devices were found",
        "",
        "Segmentation fault",
        "GPU-a, 1, 2",
    ] {
        assert!(read_all(said).is_err(), "{said}");
    }
}

#[test]
fn gpu_09_a_lost_gpu_is_found_beside_the_others() {
    let csv = "GPU-a, 81559, 0, 0, 30, Disabled, Disabled, 9.0, NVIDIA H100\n\
               Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n";
    let survey = read_all(csv).unwrap();
    assert_eq!(survey.gpus.len(), 1);
    assert_eq!(survey.findings, [Finding::Lost { gpu: "0000:3B:00.0".to_owned() }]);
}
