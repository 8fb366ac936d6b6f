//! Microsoft Azure: scheduled events, which reach every machine of a group and name those that they are for.

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimeParser;
use serde::Deserialize;

use super::{Answer, Notice, Question, Reading, unclear};

/// How a request shows that it is meant.
const HEADER: (&str, &str) = ("metadata", "true");

/// Asks who this is.
pub fn identity_question() -> Question {
    Question::get("/metadata/instance?api-version=2021-02-01", HEADER.0, HEADER.1)
}

#[derive(Deserialize)]
struct Instance {
    compute: Compute,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Compute {
    name: String,
    az_environment: String,
}

/// The machine's name, if the answer is Azure's.
pub fn identity(answer: &Answer) -> Option<String> {
    let instance: Instance = serde_json::from_str(&answer.body).ok().filter(|_| answer.ok())?;
    (!instance.compute.az_environment.is_empty()).then_some(instance.compute.name)
}

/// Asks for events.
pub fn notice_question() -> Question {
    Question::get("/metadata/scheduledevents?api-version=2020-07-01", HEADER.0, HEADER.1)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    events: Vec<Event>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    #[serde(rename = "EventType")]
    kind: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    not_before: String,
}

/// Reads the events for the machine called `name`. One that has begun has no time any more: it is now.
pub fn notice(answer: &Answer, name: &str, now: Timestamp) -> Reading {
    let Some(page) = serde_json::from_str::<Page>(&answer.body).ok().filter(|_| answer.ok()) else {
        return unclear(answer);
    };
    let takes_away = |event: &&Event| ["Preempt", "Terminate"].contains(&event.kind.as_str());
    let is_for_us = |event: &&Event| event.resources.iter().any(|resource| resource == name);
    let Some(event) = page.events.iter().filter(takes_away).find(is_for_us) else {
        return Reading::Quiet;
    };
    let at = DateTimeParser::new().parse_timestamp(&event.not_before).unwrap_or(now);
    let what = if event.kind == "Preempt" { "evict" } else { "delete" };
    Reading::Noticed(Notice::new(format!("Azure will {what} this machine"), at))
}
