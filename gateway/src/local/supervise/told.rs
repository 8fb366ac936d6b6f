//! What a supervisor tells the gateway about its engine: one JSON object a line on standard output.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};

/// One thing that a supervisor tells. After the engine has ended, the pipe's closing tells that
/// nothing of the engine is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "told", rename_all = "kebab-case")]
pub(crate) enum Told {
    /// The engine's program runs, as the leader of the process group `pid`.
    Started { pid: i32 },
    /// The engine's program could not be run.
    NotStarted { os_error: Option<i32>, message: String },
    /// The engine's own process ended.
    Exited { code: Option<i32>, signal: Option<i32> },
}

impl Told {
    pub(super) fn not_started(error: &io::Error) -> Self {
        Self::NotStarted { os_error: error.raw_os_error(), message: error.to_string() }
    }

    /// Tells it. A gateway that is gone is noticed by the pipe that orders come through, not here.
    pub(super) fn say(&self) {
        if let Ok(line) = serde_json::to_string(self) {
            let mut output = io::stdout().lock();
            let _ = writeln!(output, "{line}").and_then(|()| output.flush());
        }
    }

    /// What a line says, if it is one of ours.
    pub(crate) fn heard(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_heard() {
        for told in [
            Told::Started { pid: 7 },
            Told::NotStarted { os_error: Some(2), message: "No such file".into() },
            Told::Exited { code: None, signal: Some(9) },
        ] {
            let line = serde_json::to_string(&told).unwrap();
            assert_eq!(Told::heard(&line), Some(told));
        }
        assert_eq!(Told::heard("llama server listening"), None);
    }
}
