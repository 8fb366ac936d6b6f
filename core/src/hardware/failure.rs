//! Why a look at the hardware gave no answer. The caller keeps what it knew.

use std::time::Duration;

/// Why a probe failed. None of these says anything about how many GPUs there are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProbeFailure {
    /// The tool or library is not on this node.
    #[error("{source_name} is not on this node")]
    Absent {
        /// Which tool or library.
        source_name: String,
    },
    /// The tool did not end in time, or an earlier call of it has not ended yet.
    #[error(
        "{source_name} did not answer within {limit:?}; the driver may hang, see the node's kernel log"
    )]
    TimedOut {
        /// Which tool or library.
        source_name: String,
        /// How long it was given.
        limit: Duration,
    },
    /// The tool or library said that it failed.
    #[error("{source_name} failed: {said}")]
    Failed {
        /// Which tool or library.
        source_name: String,
        /// What it said, cut short.
        said: String,
    },
    /// The answer makes no sense.
    #[error("the answer of {source_name} cannot be read: {problem}")]
    Unreadable {
        /// Which tool or library.
        source_name: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// The most of a tool's words that are repeated.
const SAID_LIMIT: usize = 200;

impl ProbeFailure {
    /// The tool or library `source` is not there.
    pub fn absent(source: &str) -> Self {
        Self::Absent { source_name: source.to_owned() }
    }

    /// `source` failed with `said`, of which the first line that says something is kept.
    pub fn failed(source: &str, said: &str) -> Self {
        let line = said.lines().map(str::trim).find(|line| !line.is_empty());
        let said = line.unwrap_or("it said nothing").chars().take(SAID_LIMIT).collect();
        Self::Failed { source_name: source.to_owned(), said }
    }

    /// `source` answered, and the answer has `problem`.
    pub fn unreadable(source: &str, problem: impl Into<String>) -> Self {
        Self::Unreadable { source_name: source.to_owned(), problem: problem.into() }
    }

    /// The source is simply not there, so another one may be asked.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}
