//! What an engine's end means: its exit and its last lines, turned into a reason that a person can
//! act on. Each backend adds its own clues before the ones that every program shares.

use crate::activation::{Failure, Reason};

/// How an engine's process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The code it ended with, unless a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it had been ready before.
    pub was_ready: bool,
    /// Whether the system killed something while it ran because memory had run out.
    pub memory_ran_out: bool,
}

/// Words in a line that give a cause away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clue {
    /// All of these are in the line, whatever their case; written here in lower case.
    pub(super) words: &'static [&'static str],
    pub(super) reason: Reason,
    /// What to do about it.
    pub(super) advice: &'static str,
}

/// Shorthand for the tables.
pub(super) const fn clue(
    words: &'static [&'static str],
    reason: Reason,
    advice: &'static str,
) -> Clue {
    Clue { words, reason, advice }
}

const SHARED: &[Clue] = &[
    clue(
        &["address already in use"],
        Reason::PortTaken,
        "another program took the port first; it will be tried again with another port",
    ),
    clue(&["eaddrinuse"], Reason::PortTaken, "another program took the port first"),
    clue(
        &["out of memory"],
        Reason::OutOfMemory,
        "use a smaller or more quantized model or a shorter context, or let fewer models share the GPU",
    ),
    clue(
        &["outofmemoryerror"],
        Reason::OutOfMemory,
        "use a smaller or more quantized model or a shorter context, or let fewer models share the GPU",
    ),
    clue(
        &["cannot allocate memory"],
        Reason::OutOfMemory,
        "this machine's memory is full; use a smaller model or end other programs",
    ),
    clue(&["no space left on device"], Reason::DiskFull, "make room on the disk"),
    clue(
        &["gated repo"],
        Reason::GatedRepository,
        "accept the model's licence on its page and set HF_TOKEN",
    ),
    clue(
        &["401 client error"],
        Reason::GatedRepository,
        "the hub refused the request; set HF_TOKEN to a token that may read the model",
    ),
    clue(
        &["repository not found"],
        Reason::BadSource,
        "check the name in spec.source; a private model needs HF_TOKEN",
    ),
    clue(
        &["unrecognized arguments"],
        Reason::InvalidConfig,
        "this version of the engine does not know the option; remove it or update the engine",
    ),
    clue(
        &["modulenotfounderror"],
        Reason::ProgramNotFound,
        "a Python package is missing; install the engine into the Python that `config.command` names",
    ),
    clue(
        &["no module named"],
        Reason::ProgramNotFound,
        "a Python package is missing; install the engine into the Python that `config.command` names",
    ),
    clue(
        &["error while loading shared libraries"],
        Reason::ProgramNotStarted,
        "a library is missing; install it or add its folder to LD_LIBRARY_PATH in `config.env`",
    ),
    clue(
        &["exec format error"],
        Reason::ProgramNotStarted,
        "the program is made for another kind of processor",
    ),
    clue(
        &["permission denied"],
        Reason::ProgramNotStarted,
        "the engine may not open or run something; check the owner and mode of what the line names",
    ),
];

/// What `exit` after `last_lines` means, the clues in `own` before the shared ones.
pub(super) fn explain(name: &str, own: &[Clue], exit: Exit, last_lines: &[String]) -> Failure {
    // Clues before lines: a table is ordered by how telling its clues are, and the true cause is
    // often some lines above the last one. Among the lines, the last that matches counts.
    for clue in own.iter().chain(SHARED) {
        let told = last_lines.iter().rev().find(|line| {
            let line = line.to_lowercase();
            clue.words.iter().all(|word| line.contains(word))
        });
        if let Some(line) = told {
            let message = format!("{name} said `{}`: {}", shortened(line), clue.advice);
            return Failure::new(clue.reason, message);
        }
    }
    from_exit(name, exit, last_lines)
}

fn from_exit(name: &str, exit: Exit, last_lines: &[String]) -> Failure {
    let (reason, what) = match (exit.signal, exit.code) {
        (Some(9), _) if exit.memory_ran_out => (
            Reason::OutOfMemory,
            "was killed (signal 9) as the system ran out of memory; use a smaller model or end \
             other programs"
                .to_owned(),
        ),
        (Some(9), _) => (
            died(exit),
            "was killed by signal 9; somebody sent it, or the system for a reason that `dmesg` \
             tells, most often memory"
                .to_owned(),
        ),
        (Some(4), _) => (
            Reason::ProgramNotStarted,
            "stopped at an instruction this processor does not have (signal 4); use a build for \
             this processor"
                .to_owned(),
        ),
        (Some(signal), _) => (died(exit), format!("was ended by signal {signal}")),
        (None, Some(126)) => (
            Reason::ProgramNotStarted,
            "could not be run (exit code 126); check that it is executable".to_owned(),
        ),
        (None, Some(127)) => {
            (Reason::ProgramNotFound, "was not found (exit code 127); install it".to_owned())
        }
        (None, Some(code)) => (died(exit), format!("ended with exit code {code}")),
        (None, None) => (died(exit), "ended".to_owned()),
    };
    let last = last_lines.iter().rev().find(|line| !line.trim().is_empty());
    let said = match last {
        Some(line) => format!("; its last line was `{}`", shortened(line)),
        None => " without a word".to_owned(),
    };
    Failure::new(reason, format!("{name} {what}{said}"))
}

const fn died(exit: Exit) -> Reason {
    if exit.was_ready { Reason::Crashed } else { Reason::DiedWhileLoading }
}

/// The first 200 characters, without white space around them.
fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or(line)),
        None => line.to_owned(),
    }
}
