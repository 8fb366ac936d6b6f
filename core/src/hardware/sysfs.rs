//! What the kernel shows below `/sys`, as a listing of paths and contents that was read beforehand.

use std::collections::BTreeMap;

use super::amd::{self, Pools};
use super::intel;
use super::reading::whole;
use super::{Gpu, Memory, Survey};
use crate::backends::Vendor;

/// The files that decisions look at, as patterns below the root; `*` is one name of a folder or file.
pub const PATTERNS: [&str; 14] = [
    "class/drm/card*/device/vendor",
    "class/drm/card*/device/uevent",
    "class/drm/card*/device/unique_id",
    "class/drm/card*/device/gpu_busy_percent",
    "class/drm/card*/device/mem_info_vram_total",
    "class/drm/card*/device/mem_info_vram_used",
    "class/drm/card*/device/mem_info_gtt_total",
    "class/drm/card*/device/mem_info_gtt_used",
    "class/drm/card*/device/hwmon/hwmon*/temp1_input",
    "class/kfd/kfd/topology/nodes/*/properties",
    "module/ttm/parameters/pages_limit",
    "firmware/devicetree/base/compatible",
    "bus/pci/devices/*/vendor",
    "bus/pci/devices/*/class",
];

/// PCI's number of AMD.
const PCI_AMD: &str = "0x1002";
/// PCI's number of NVIDIA.
const PCI_NVIDIA: &str = "0x10de";
/// The page size that the kernel counts `pages_limit` in.
const PAGE: u64 = 4096;

/// Contents of files by their path below the root, such as `class/drm/card0/device/vendor`.
#[derive(Clone, Debug, Default)]
pub struct Tree(BTreeMap<String, String>);

impl FromIterator<(String, String)> for Tree {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

/// A graphics card of a [`Tree`].
#[derive(Clone, Copy, Debug)]
pub struct Card<'a> {
    tree: &'a Tree,
    name: &'a str,
}

impl Tree {
    fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(|content| content.trim())
    }

    /// The files below `folder/`, as the rest of their path and their content.
    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        let from_here = self.0.range(folder.to_owned()..);
        from_here
            .map_while(move |(path, content)| Some((path.strip_prefix(folder)?, content.trim())))
    }

    /// The graphics cards.
    pub fn cards(&self) -> impl Iterator<Item = Card<'_>> {
        let vendors =
            self.below("class/drm/").filter_map(|(path, _)| path.strip_suffix("/device/vendor"));
        vendors.map(|name| Card { tree: self, name })
    }

    /// What the device tree says the machine is compatible with, names ended by NUL; only small machines
    /// have one.
    pub fn compatible(&self) -> Option<&str> {
        self.text("firmware/devicetree/base/compatible")
    }

    /// Whether the PCI bus was listed and has no GPU that could serve models. `None` where it was not
    /// listed. No driver is needed for this answer.
    pub fn has_no_gpu_on_the_bus(&self) -> Option<bool> {
        let nvidia = self.has_on_the_bus(Vendor::Nvidia)?;
        let amd = self.has_on_the_bus(Vendor::Amd)?;
        let intel = self.has_on_the_bus(Vendor::Intel)?;
        Some(!nvidia && !amd && !intel)
    }

    /// Whether the PCI bus has a GPU of `vendor`; `None` where it was not listed.
    pub fn has_on_the_bus(&self, vendor: Vendor) -> Option<bool> {
        let number = match vendor {
            Vendor::Nvidia => PCI_NVIDIA,
            Vendor::Amd => PCI_AMD,
            Vendor::Intel => intel::PCI_VENDOR,
            Vendor::Cpu => return None,
        };
        let devices = self.below("bus/pci/devices/");
        let mut classes = devices
            .filter_map(|(path, class)| Some((path.strip_suffix("/class")?, class)))
            .peekable();
        classes.peek()?;
        Some(classes.any(|(address, class)| {
            // Class 03 is a display controller, 12 an accelerator, as AMD's Instinct cards call themselves.
            let is_gpu = class.starts_with("0x03") || class.starts_with("0x12");
            let serves = vendor != Vendor::Intel || !intel::is_inside_the_processor(address);
            is_gpu
                && serves
                && self.text(&format!("bus/pci/devices/{address}/vendor")) == Some(number)
        }))
    }
}

impl<'a> Card<'a> {
    fn file(&self, name: &str) -> Option<&'a str> {
        self.tree.text(&format!("class/drm/{}/device/{name}", self.name))
    }

    fn bytes(&self, name: &str) -> Option<u64> {
        self.file(name).and_then(whole)
    }

    /// PCI's number of its maker, such as `0x1002`.
    pub fn vendor(&self) -> Option<&'a str> {
        self.file("vendor")
    }

    /// Its PCI address, such as `0000:03:00.0`.
    pub fn pci_address(&self) -> Option<&'a str> {
        self.file("uevent")?.lines().find_map(|line| line.strip_prefix("PCI_SLOT_NAME="))
    }

    /// Degrees Celsius of its first sensor.
    pub fn temperature(&self) -> Option<f64> {
        let folder = format!("class/drm/{}/device/hwmon/", self.name);
        let millidegrees = self
            .tree
            .0
            .range(folder.clone()..)
            .map_while(|(path, content)| path.starts_with(&folder).then(|| whole(content)));
        let millidegrees =
            millidegrees.flatten().next().and_then(|value| u32::try_from(value).ok())?;
        Some(f64::from(millidegrees) / 1000.0)
    }
}

/// AMD's GPUs. `machine` is the memory of the machine in bytes.
pub fn amd(tree: &Tree, machine: Memory) -> Survey {
    let topology = Topology::read(tree);
    let cards = tree.cards().filter(|card| card.vendor() == Some(PCI_AMD));
    Survey {
        gpus: cards.map(|card| amd_gpu(&card, &topology, machine)).collect(),
        findings: Vec::new(),
    }
}

/// What the AMD GPUs of `survey` that work in the machine's memory can use, by what sysfs says, in the order
/// of the cards.
pub fn fill_in_apus(survey: &mut Survey, tree: &Tree, machine: Memory) {
    let mut seen: Vec<Gpu> =
        amd(tree, machine).gpus.into_iter().filter(|gpu| gpu.unified).collect();
    seen.reverse();
    let unified = |gpu: &&mut Gpu| gpu.vendor == Vendor::Amd && gpu.unified;
    for gpu in survey.gpus.iter_mut().filter(unified) {
        gpu.memory = seen.pop().map(|same| same.memory).unwrap_or_default();
    }
}

fn amd_gpu(card: &Card<'_>, topology: &Topology, machine: Memory) -> Gpu {
    let address = card.pci_address().unwrap_or(card.name);
    let mut gpu = Gpu::new(Vendor::Amd, card.file("unique_id").unwrap_or(address));
    let place = topology.at(address);
    gpu.architecture = place.map(|place| place.architecture.clone());
    let by_name = gpu.architecture.as_deref().is_some_and(amd::has_no_memory_of_its_own);
    gpu.unified = by_name || place.is_some_and(|place| place.has_cores);
    let (vram, gtt) = (card.bytes("mem_info_vram_total"), card.bytes("mem_info_gtt_total"));
    let (vram_used, gtt_used) = (card.bytes("mem_info_vram_used"), card.bytes("mem_info_gtt_used"));
    gpu.memory = Memory { total: vram, used: vram_used };
    if gpu.unified {
        let carved_out = vram.unwrap_or_default();
        let limit = card.tree.text("module/ttm/parameters/pages_limit").and_then(whole);
        let total = amd::usable(Pools {
            carved_out,
            mappable: gtt.unwrap_or_default(),
            mapping_limit: limit
                .filter(|pages| *pages > 0)
                .and_then(|pages| pages.checked_mul(PAGE)),
            machine: machine.total,
        });
        let used = if total > carved_out { gtt_used } else { vram_used };
        gpu.memory = Memory { total: Some(total).filter(|total| *total > 0), used };
    }
    gpu.utilization = card
        .bytes("gpu_busy_percent")
        .and_then(|percent| u32::try_from(percent).ok())
        .map(f64::from);
    gpu.temperature = card.temperature();
    gpu
}

/// The GPUs as the compute driver (kfd) knows them, by PCI address.
struct Topology(BTreeMap<String, Place>);

struct Place {
    architecture: String,
    /// Processor cores at the same place: an APU.
    has_cores: bool,
}

impl Topology {
    fn read(tree: &Tree) -> Self {
        let nodes = tree.below("class/kfd/kfd/topology/nodes/");
        Self(nodes.filter_map(|(_, properties)| place(properties)).collect())
    }

    fn at(&self, address: &str) -> Option<&Place> {
        self.0.get(address)
    }
}

fn place(properties: &str) -> Option<(String, Place)> {
    let values: BTreeMap<&str, u64> = properties
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(name, value)| Some((name, whole(value)?)))
        .collect();
    let value = |name| values.get(name).copied().unwrap_or_default();
    // A version of 0 is a place with cores alone.
    let version = Some(value("gfx_target_version")).filter(|version| *version > 0)?;
    let (major, minor, step) = (version / 10_000, version / 100 % 100, version % 100);
    // PCI's usual packing of bus, device and function.
    let location = value("location_id");
    let address = format!(
        "{:04x}:{:02x}:{:02x}.{}",
        value("domain"),
        location >> 8 & 0xff,
        location >> 3 & 0x1f,
        location & 7
    );
    let architecture = format!("gfx{major}{minor:x}{step:x}");
    Some((address, Place { architecture, has_cores: value("cpu_cores_count") > 0 }))
}
