//! What is known about a node's GPUs from one probe to the next: which probes prove a change, and which only
//! show that something is wrong.
//!
//! 1. A probe that failed changes no label; the node's state is unknown.
//! 2. GPUs that were there at this boot and are missing now are lost: the labels keep counting them.
//! 3. GPUs are gone only when the machine was booted since, and its bus has none either.

use std::fmt;

use flexinfer_crds::keys;
use jiff::Timestamp;

use super::marks::{Marks, Node, annotations, labels, measured_at, no_annotations, no_labels};
use super::{Finding, ProbeFailure, Survey, representative, spoken_for};

/// Failures in a row after which the agent had better be restarted: a container that lost its devices (as
/// after a reload of systemd) gets them back only so.
pub const PATIENCE: u32 = 10;

/// How a node's GPUs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// All of them answer.
    Good,
    /// They answer, and an operator should look at something; nothing is lost.
    Attention(String),
    /// Some do not answer any more.
    Degraded(String),
    /// Nobody can tell: place nothing new here.
    Unknown(String),
}

impl fmt::Display for Health {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good => write!(out, "good"),
            Self::Attention(why) => write!(out, "attention: {why}"),
            Self::Degraded(why) => write!(out, "degraded: {why}"),
            Self::Unknown(why) => write!(out, "unknown: {why}"),
        }
    }
}

/// What a probe means.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// How the GPUs are.
    pub health: Health,
    /// What the node shall carry.
    pub marks: Marks,
    /// The agent should end, for its container to be made anew.
    pub give_up: bool,
}

/// One look at a node.
#[derive(Clone, Debug)]
pub struct Look<'a> {
    /// What the probe found.
    pub found: &'a Result<Survey, ProbeFailure>,
    /// The node as the API server has it.
    pub node: &'a Node,
    /// Whether the bus was listed and has no GPU: see [`super::sysfs::Tree::has_no_gpu_on_the_bus`].
    pub bus_is_empty: Option<bool>,
    /// Whether the processor has AVX-512.
    pub avx512: bool,
    /// The fullest KV cache of the node's engines, 0 to 1.
    pub kv_cache_usage: Option<f64>,
    /// When the last of the node's pods with GPUs became ready.
    pub newest_ready: Option<Timestamp>,
    /// The time of the probe.
    pub now: Timestamp,
}

/// What outlives one probe. What outlives the agent is on the node.
#[derive(Debug, Default)]
pub struct Knowledge {
    failures: u32,
}

impl Knowledge {
    /// What `look` means, after all that was seen before.
    pub fn judge(&mut self, look: &Look<'_>) -> Judgement {
        let survey = match look.found {
            Ok(survey) => survey,
            Err(failure) => {
                self.failures = self.failures.saturating_add(1);
                return self.nothing_learned(Health::Unknown(failure.to_string()));
            }
        };
        self.failures = 0;
        let proven = Proven::of(look.node);
        let physical = survey.gpus.len() + lost(survey).count();
        if physical == 0 {
            return self.nothing_found(look, survey, proven);
        }
        let most = proven.map_or(physical, |proven| proven.gpus.max(physical));
        let all_answer = survey.gpus.len() == most;
        let known_vendor = look.node.labels.get(keys::GPU_VENDOR);
        let spoken_for = spoken_for(&survey.gpus);
        let chosen = representative(&spoken_for);
        let mut marks = Marks::default();
        if all_answer || known_vendor.is_none() {
            let vendor = known_vendor.map(String::as_str);
            marks.labels = labels(chosen.as_ref(), look.avx512, vendor);
        }
        marks.annotations = annotations(&spoken_for, look.kv_cache_usage);
        let measured_at = measured_at(look.node, &marks.annotations, look.newest_ready, look.now);
        marks.annotations.insert(keys::GPU_MEASURED_AT.to_owned(), measured_at);
        let health = health(survey, most);
        marks.annotations.insert(keys::GPU_HEALTH.to_owned(), Some(health.to_string()));
        if let Some(boot) = &look.node.boot {
            marks.annotations.insert(keys::GPU_PROVEN.to_owned(), Some(format!("{most}@{boot}")));
        }
        Judgement { health, marks, give_up: false }
    }

    /// A node without any GPU that answers: it never had one, lost them for good, or is only not ready.
    fn nothing_found(&self, look: &Look<'_>, survey: &Survey, proven: Option<Proven>) -> Judgement {
        let processor = Marks { labels: labels(None, look.avx512, None), ..Marks::default() };
        let Some(count) = look.node.labels.get(keys::GPU_COUNT) else {
            let health = health(survey, 0);
            let told = (health != Health::Good).then(|| health.to_string());
            let mut marks = processor;
            marks.annotations.insert(keys::GPU_HEALTH.to_owned(), told);
            return Judgement { health, marks, give_up: false };
        };
        if proven.is_none() && look.bus_is_empty == Some(true) {
            let mut marks = processor;
            marks.labels.extend(no_labels());
            marks.annotations = no_annotations();
            return Judgement { health: Health::Good, marks, give_up: false };
        }
        let why = format!("none of its {count} GPUs answers; is the driver loaded?");
        self.nothing_learned(Health::Unknown(why))
    }

    fn nothing_learned(&self, health: Health) -> Judgement {
        let mut marks = Marks::default();
        marks.annotations.insert(keys::GPU_HEALTH.to_owned(), Some(health.to_string()));
        Judgement { health, marks, give_up: self.failures >= PATIENCE }
    }
}

/// How many GPUs were seen at the boot that the node is in now.
#[derive(Clone, Copy, Debug)]
struct Proven {
    gpus: usize,
}

impl Proven {
    /// By the node's annotation, if that is of its present boot (or the boot is not known).
    fn of(node: &Node) -> Option<Self> {
        let (gpus, boot) = node.annotations.get(keys::GPU_PROVEN)?.split_once('@')?;
        let same = node.boot.as_deref().is_none_or(|now| now == boot);
        same.then(|| gpus.parse().ok().map(|gpus| Self { gpus })).flatten()
    }
}

fn lost(survey: &Survey) -> impl Iterator<Item = &Finding> {
    survey.findings.iter().filter(|finding| matches!(finding, Finding::Lost { .. }))
}

fn health(survey: &Survey, most: usize) -> Health {
    let said = |findings: Vec<&Finding>| {
        findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let answering = survey.gpus.len();
    if answering < most {
        let lost = said(lost(survey).collect());
        let why = format!("{answering} of {most} GPUs answer");
        return Health::Degraded(if lost.is_empty() { why } else { format!("{why}: {lost}") });
    }
    if survey.findings.is_empty() {
        Health::Good
    } else {
        Health::Attention(said(survey.findings.iter().collect()))
    }
}
