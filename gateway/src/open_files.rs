//! How many files and connections the process may have open. A waiting request is one, and one that is
//! served two; the limit that most systems let a program begin with, 1024, is there for programs that
//! use `select`, and any program that does not may raise it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::debug;

/// Raises the limit as far as the system lets this process.
pub fn allow_many() {
    let limit = getrlimit(Resource::Nofile);
    // Refused where the system's own bound is lower than what it says; the limit then stays.
    let raised = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
    debug!(from = ?limit.current, to = ?limit.maximum, raised = raised.is_ok(), "open files");
}
