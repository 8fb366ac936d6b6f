//! Whether a model is to be measured now, what is known of its speed, and what people are told about that. One
//! Job per model and kind of node, where the Model asks for it (annotation `flexinfer.ai/benchmark: auto`) and
//! no result is there, or one of another configuration. A Job that failed stays for its log, and is never repeated
//! by itself while the Model is the same.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use flexinfer_crds::conditions::{ConditionReason, ConditionType};
use flexinfer_crds::keys;
use flexinfer_crds::model::ModelStatus;
use k8s_openapi::api::batch::v1::{Job, JobCondition};

use crate::moment::Moment;
use crate::placement::benchmarks::{self, DeviceClass};
use crate::planning::objects::{BENCHMARK, Blueprint};
use crate::planning::time::moment;

/// How long after its Job a result may be seen: watches tell in any order.
const LATE: Duration = Duration::from_secs(60);

/// What is known when it is decided.
#[derive(Clone, Debug)]
pub struct Seen<'a> {
    /// The kinds of node that serve the model now.
    pub classes: Vec<DeviceClass>,
    /// The ConfigMap of all results.
    pub results: &'a BTreeMap<String, String>,
    /// What was made for the model.
    pub jobs: &'a [&'a Job],
    /// Whether its engines are as the Model has them by now.
    pub settled: bool,
    /// The model's status.
    pub status: Option<&'a ModelStatus>,
    /// Now.
    pub now: Moment,
}

/// What follows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Benchmarking {
    /// The Job to make.
    pub job: Option<Box<Job>>,
    /// The Job that is to go, since it measures what is no more.
    pub outdated: Option<String>,
    /// How it stands, where the Model asks for it: reason and message of the condition `BenchmarkComplete`.
    pub standing: Option<(ConditionReason, String)>,
    /// What was measured on the kind of node that serves the model now, whoever measured it.
    pub measured: Option<Measured>,
    /// When to look again although nothing changed.
    pub look_again: Option<Duration>,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The kind of node.
    pub class: DeviceClass,
    /// Tokens of answers per second.
    pub tokens_per_second: f64,
    /// How long it took to measure, in seconds, where that was noted.
    pub duration_seconds: Option<f64>,
    /// Milliseconds to the end of an answer, on average, where that was noted.
    pub latency_ms: Option<f64>,
    /// What determined it, as a hash; `None` where nobody noted it.
    pub configuration: Option<String>,
    /// Whether it was noted that it is this model's, and not that of one of its name in another namespace.
    pub is_its_own: bool,
}

/// What follows for the model that `blueprint` draws.
pub fn benchmarking(blueprint: &Blueprint<'_>, seen: &Seen<'_>) -> Benchmarking {
    let class = match seen.classes.as_slice() {
        [class] => Some(class),
        _ => None,
    };
    let measured = class.and_then(|class| found(blueprint, seen.results, class));
    let wanted = blueprint.annotation(keys::BENCHMARK) == Some("auto");
    // One of which nobody knows what was measured is believed: it is older than the question.
    let configuration = blueprint.configuration();
    let holds =
        |found: &&Measured| found.configuration.is_none() || found.configuration == configuration;
    let next = match (class, measured.as_ref().filter(holds)) {
        _ if !wanted => Benchmarking::default(),
        (Some(_), Some(measured)) => {
            said(ConditionReason::BenchmarkSucceeded, how_fast(blueprint, measured))
        }
        (Some(_), None) if !seen.settled => said(
            ConditionReason::BenchmarkPending,
            "it is measured as soon as its engines are as the Model has them".to_owned(),
        ),
        (Some(class), None) => match blueprint.benchmark_job(class) {
            Ok(job) => by_job(job, seen, blueprint),
            Err(missing) => said(
                ConditionReason::BenchmarkNotConfigured,
                format!("the model cannot be measured: {missing}"),
            ),
        },
        (None, _) => asleep(seen),
    };
    Benchmarking { measured, ..next }
}

fn found(
    blueprint: &Blueprint<'_>,
    results: &BTreeMap<String, String>,
    class: &DeviceClass,
) -> Option<Measured> {
    let found = benchmarks::found(results, &blueprint.subject(class))?;
    Some(Measured {
        class: class.clone(),
        tokens_per_second: found.tokens_per_second,
        duration_seconds: found.duration_seconds(),
        latency_ms: found.latency_ms(),
        configuration: found.configuration().map(str::to_owned),
        is_its_own: found.namespace().is_some(),
    })
}

/// What was measured, and whether that may have been another namespace's model.
fn how_fast(blueprint: &Blueprint<'_>, measured: &Measured) -> String {
    let Measured { class, tokens_per_second, is_its_own, .. } = measured;
    let doubt = if *is_its_own {
        String::new()
    } else {
        let key = blueprint.subject(class).key();
        format!(
            ", measured by an older version, which notes no namespace; if another one has a Model of this name, \
             delete {key} and meta_{key} from ConfigMap {}",
            results_of(blueprint)
        )
    };
    format!("{tokens_per_second:.1} tokens per second on {class}{doubt}")
}

/// The ConfigMap of all results.
fn results_of(blueprint: &Blueprint<'_>) -> String {
    let settings = &blueprint.settings().benchmarks;
    format!("{}/{}", settings.results_namespace, settings.results)
}

fn said(reason: ConditionReason, message: String) -> Benchmarking {
    Benchmarking { standing: Some((reason, message)), ..Benchmarking::default() }
}

fn by_job(wanted: Job, seen: &Seen<'_>, blueprint: &Blueprint<'_>) -> Benchmarking {
    let name = wanted.metadata.name.clone().unwrap_or_default();
    let known = seen.jobs.iter().find(|job| job.metadata.name.as_ref() == Some(&name));
    let Some(known) = known else {
        let begins = said(ConditionReason::BenchmarkPending, format!("Job {name} is made"));
        return Benchmarking { job: Some(Box::new(wanted)), ..begins };
    };
    let again = "delete it to measure again";
    if known.metadata.deletion_timestamp.is_some() {
        return said(ConditionReason::BenchmarkPending, format!("Job {name} is being deleted"));
    }
    if is_outdated(known, &wanted) {
        let message = format!("Job {name} measured what the model was before; it is made anew");
        let begins = said(ConditionReason::BenchmarkPending, message);
        return Benchmarking { outdated: Some(name), ..begins };
    }
    if let Some(failed) = condition(known, "Failed") {
        let why = failed.message.as_deref().unwrap_or("it gave up");
        let message = format!("Job {name} failed: {why}; see kubectl logs job/{name}; {again}");
        return said(ConditionReason::BenchmarkFailed, message);
    }
    let Some(complete) = condition(known, "Complete") else {
        return said(ConditionReason::BenchmarkRunning, format!("Job {name} measures it"));
    };
    let since = complete.last_transition_time.as_ref().map_or(seen.now, moment);
    let left = (since + LATE).since(seen.now);
    if !left.is_zero() {
        let awaited = said(ConditionReason::BenchmarkRunning, format!("Job {name} measures it"));
        return Benchmarking { look_again: Some(left), ..awaited };
    }
    let results = results_of(blueprint);
    let message =
        format!("Job {name} is done, and its result is not in ConfigMap {results}; {again}");
    said(ConditionReason::BenchmarkFailed, message)
}

/// Whether a Job measures another configuration. Older ones did not say.
fn is_outdated(known: &Job, wanted: &Job) -> bool {
    let work = |job: &Job| job.metadata.annotations.as_ref()?.get(keys::JOB_WORK).cloned();
    work(known).is_some_and(|of| Some(of) != work(wanted))
}

/// Nobody serves the model, or several kinds of node do. What was found before stays true.
fn asleep(seen: &Seen<'_>) -> Benchmarking {
    let conditions = seen.status.iter().flat_map(|status| &status.conditions);
    let kind = ConditionType::BenchmarkComplete.to_string();
    let mut before = conditions.filter(|condition| condition.type_ == kind);
    let settled = [ConditionReason::BenchmarkSucceeded, ConditionReason::BenchmarkFailed];
    if let Some(condition) = before.next()
        && let Some(reason) =
            settled.into_iter().find(|known| condition.reason == known.to_string())
    {
        return said(reason, condition.message.clone());
    }
    if let Some(job) = seen.jobs.iter().find(|job| measures(job) && at_it(job)) {
        let name = job.metadata.name.clone().unwrap_or_default();
        return said(ConditionReason::BenchmarkRunning, format!("Job {name} measures it"));
    }
    let message = if seen.classes.is_empty() {
        "it is measured as soon as it serves"
    } else {
        "several kinds of nodes serve it; it is measured as soon as one kind does"
    };
    said(ConditionReason::BenchmarkPending, message.to_owned())
}

/// Whether this is a Job that measures, and no other that was made for the model.
fn measures(job: &Job) -> bool {
    let labels = job.metadata.labels.as_ref();
    labels.and_then(|all| all.get(keys::COMPONENT)).is_some_and(|part| part == BENCHMARK)
}

fn at_it(job: &Job) -> bool {
    condition(job, "Complete").is_none() && condition(job, "Failed").is_none()
}

fn condition<'j>(job: &'j Job, kind: &str) -> Option<&'j JobCondition> {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().find(|condition| condition.type_ == kind && condition.status == "True")
}
