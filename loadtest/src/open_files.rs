//! How many files this process, and so each program it starts, may hold open: as many as the system allows,
//! since every connection is one and shells commonly begin with 1,024.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit; where that is refused, what needs more will say so.
pub(crate) fn as_many_as_allowed() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
