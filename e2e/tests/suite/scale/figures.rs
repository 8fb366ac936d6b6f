//! What a run is told as.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use flexinfer_crds::Quantity;
use flexinfer_e2e::Write;
use serde_json::Value;

use super::Size;
use crate::crds::checkout;

/// Resident memory in KiB.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    pub(super) controller: u64,
    pub(super) gateway: u64,
}

impl Memory {
    /// What the chart lets a program have is twice what it took, or more.
    pub(super) fn leaves_room(&self) {
        let text = std::fs::read_to_string(checkout().join("chart/values.yaml")).unwrap();
        let values: Value = serde_saphyr::from_str(&text).unwrap();
        for (program, taken) in [("controller", self.controller), ("proxy", self.gateway)] {
            let limit = values[program]["resources"]["limits"]["memory"].as_str().unwrap();
            let allowed = Quantity::new(limit).bytes().unwrap() / 1024;
            assert!(2 * taken < allowed, "{program} took {taken} KiB of the {limit} it may have");
        }
    }
}

pub(super) struct Figures<'a> {
    pub(super) size: Size,
    pub(super) settled: Duration,
    pub(super) plain: Duration,
    pub(super) memory: Memory,
    pub(super) writes: &'a [Write],
}

impl Figures<'_> {
    /// Time until the Models are as they shall be, by the time for their Deployments alone.
    pub(super) fn ratio(&self) -> f64 {
        self.settled.as_secs_f64() / self.plain.as_secs_f64()
    }

    pub(super) fn writes_per_model(&self) -> f64 {
        self.each(self.writes.len())
    }

    fn each(&self, count: usize) -> f64 {
        let exact = |number: usize| f64::from(u32::try_from(number).unwrap());
        exact(count) / exact(self.size.models)
    }
}

impl fmt::Display for Figures<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Size { models, groups, nodes, quiet } = self.size;
        writeln!(formatter, "{models} Models in {groups} groups on {nodes} nodes")?;
        writeln!(
            formatter,
            "settled after {:.1} s, their Deployments alone after {:.1} s: {:.2} times as long",
            self.settled.as_secs_f64(),
            self.plain.as_secs_f64(),
            self.ratio(),
        )?;
        writeln!(formatter, "{:.2} writes for each Model:", self.writes_per_model())?;
        let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for write in self.writes {
            *kinds.entry((&write.resource, &write.verb)).or_default() += 1;
        }
        for ((resource, verb), count) in kinds {
            writeln!(formatter, "  {verb} {resource}: {:.2}", self.each(count))?;
        }
        writeln!(
            formatter,
            "memory: controller {} MiB, gateway {} MiB",
            self.memory.controller / 1024,
            self.memory.gateway / 1024
        )?;
        write!(formatter, "then no write in {} s", quiet.as_secs())
    }
}
