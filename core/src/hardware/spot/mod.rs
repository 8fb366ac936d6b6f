//! Whether a machine is about to be taken away, by what its cloud's metadata server answers or by what
//! others wrote on its node.
//!
//! A cloud is recognised only by what it alone answers, never by the absence of an error: each of these
//! servers answers the others' questions with some status.

pub mod aws;
pub mod azure;
pub mod gcp;
pub mod harvester;
pub mod signs;

mod mark;

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};

pub use mark::{is_ours, mark};

/// One request to a metadata server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// `GET` or `PUT`.
    pub method: &'static str,
    /// The path with its query.
    pub path: &'static str,
    /// Headers to send.
    pub headers: Vec<(&'static str, String)>,
}

impl Question {
    fn get(path: &'static str, header: &'static str, value: &str) -> Self {
        Self { method: "GET", path, headers: vec![(header, value.to_owned())] }
    }
}

/// Its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    fn ok(&self) -> bool {
        self.status == 200
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }
}

/// A cloud with a metadata server.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, strum::Display, strum::EnumIter, strum::EnumString,
)]
#[strum(serialize_all = "lowercase")]
pub enum Cloud {
    /// Amazon EC2.
    Aws,
    /// Microsoft Azure.
    Azure,
    /// Google Compute Engine.
    Gcp,
}

/// What `spec.providerID` of a node tells about its cloud.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// It is this one.
    Cloud(Cloud),
    /// It has no metadata server that tells notices.
    Silent,
    /// Nothing: there is none yet, or whoever wrote it (as k3s does) runs in any cloud.
    Unknown,
}

/// What `provider` (`spec.providerID` of the node) tells.
pub fn by_provider(provider: &str) -> Provider {
    match provider.split_once("://").map(|(scheme, _)| scheme) {
        Some("aws") => Provider::Cloud(Cloud::Aws),
        Some("azure") => Provider::Cloud(Cloud::Azure),
        Some("gce") => Provider::Cloud(Cloud::Gcp),
        Some("harvester") => Provider::Silent,
        _ => Provider::Unknown,
    }
}

/// The machine will be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Who says so and what, in a few words.
    pub reason: String,
    /// When.
    pub at: Timestamp,
    /// Set where somebody else wrote FlexInfer's own mark: it is theirs to clear, and nothing is added.
    pub marked_by_others: bool,
}

impl Notice {
    fn new(reason: impl Into<String>, at: Timestamp) -> Self {
        Self { reason: reason.into(), at, marked_by_others: false }
    }
}

/// What one look for a notice gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Nothing is to happen.
    Quiet,
    /// The machine will be taken away.
    Noticed(Notice),
    /// The token is not taken any more: get a new one.
    TokenRefused,
    /// The answer says neither; what was known holds.
    Unclear(String),
}

/// `now` and `seconds` more.
fn later(now: Timestamp, seconds: i64) -> Timestamp {
    now.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(now)
}

fn unclear(answer: &Answer) -> Reading {
    let body: String = answer.body.chars().take(80).collect();
    Reading::Unclear(format!("the metadata server answered {} `{body}`", answer.status))
}
