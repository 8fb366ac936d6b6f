//! Whose GPUs this machine has. Only the maker is looked for here: which of them an engine takes, and
//! whether it can, is the engine's own affair.

use std::path::Path;

use flexinfer_core::backends::{Gpu, Vendor};
use flexinfer_crds::ModelSpec;
use flexinfer_crds::model::Vendor as Asked;

/// The GPUs that a Model asks for, on a machine whose devices are below `devices`.
pub(super) fn asked_by(spec: &ModelSpec, devices: &Path) -> Gpu {
    let Some(asked) = &spec.gpu else { return Gpu::none() };
    let vendor = match asked.vendor {
        Some(Asked::Cpu) => return Gpu::none(),
        Some(Asked::Amd) => Vendor::Amd,
        Some(Asked::Nvidia) => Vendor::Nvidia,
        Some(Asked::Auto) | None => found(devices),
    };
    let count = asked.count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1);
    Gpu { vendor, architecture: None, count }
}

/// The maker by its driver's device. NVIDIA where there is none: engines that can do without a GPU,
/// as llama.cpp and the simulator do, then still find out by themselves.
fn found(devices: &Path) -> Vendor {
    let there = |name: &str| devices.join(name).exists();
    if there("kfd") && !there("nvidiactl") { Vendor::Amd } else { Vendor::Nvidia }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use flexinfer_crds::model::Gpu as Block;

    use super::*;

    fn asked(vendor: Option<Asked>, devices: &[&str]) -> Gpu {
        let folder = tempfile::tempdir().unwrap();
        for device in devices {
            fs::write(folder.path().join(device), "").unwrap();
        }
        let gpu = Some(Block { vendor, ..Block::default() });
        asked_by(&ModelSpec { gpu, ..ModelSpec::default() }, folder.path())
    }

    #[test]
    fn the_maker_is_what_the_model_says_else_what_is_there() {
        assert_eq!(asked_by(&ModelSpec::default(), Path::new("/dev")), Gpu::none());
        assert_eq!(asked(Some(Asked::Cpu), &["kfd"]), Gpu::none());
        assert_eq!(asked(Some(Asked::Nvidia), &["kfd"]).vendor, Vendor::Nvidia);
        assert_eq!(asked(None, &["kfd"]).vendor, Vendor::Amd);
        assert_eq!(asked(Some(Asked::Auto), &["kfd", "nvidiactl"]).vendor, Vendor::Nvidia);
        assert_eq!(asked(None, &[]).count, 1);
    }
}
