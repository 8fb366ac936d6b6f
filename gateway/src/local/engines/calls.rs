//! What is asked of an engine once its probe has answered and before it counts as ready, such as
//! pulling a model into Ollama.

use flexinfer_core::activation::{Failure, Progress, Reason};
use flexinfer_core::backends::{Backend, Call, Exit, ProgressLine};
use http::StatusCode;
use http_body_util::BodyExt;

use crate::ask;
use crate::way::Way;

/// A line of progress is JSON of a few hundred bytes.
const LONGEST_LINE: usize = 64 * 1024;

/// As much of a refusal as is passed on.
const LONGEST_REFUSAL: usize = 300;

/// Makes `call`, unless its own question says that it is not needed. Progress goes to `progress`.
pub(super) async fn make(
    backend: Backend,
    way: &Way<'_>,
    call: &Call,
    progress: impl Fn(Progress),
) -> Result<(), Failure> {
    if let Some(question) = &call.unless
        && let Ok(answer) = ask::call(way, question).await
        && answer.status().is_success()
    {
        return Ok(());
    }
    let broken = |error: &(dyn std::error::Error + 'static)| {
        let message = format!("{} did not answer {}: {error}", backend.name(), call.path);
        Failure::new(Reason::UnhealthyAnswer, message)
    };
    let response = ask::call(way, call).await.map_err(|error| broken(&error))?;
    let status = response.status();
    let mut body = response.into_body();
    let mut lines = Lines::default();
    let mut said = String::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Some(bytes) = frame.data_ref() else { continue };
        lines.add(bytes);
        while let Some(line) = lines.next() {
            heed(backend, call, &line, &progress)?;
            note(&mut said, &line);
        }
    }
    heed(backend, call, &lines.rest(), &progress)?;
    note(&mut said, &lines.rest());
    succeed(backend, call, status, &said)
}

fn heed(
    backend: Backend,
    call: &Call,
    line: &str,
    progress: &impl Fn(Progress),
) -> Result<(), Failure> {
    if !call.streams_progress {
        return Ok(());
    }
    match backend.progress(line) {
        ProgressLine::Progress(step) => progress(step),
        ProgressLine::Failed(failure) => return Err(failure),
        ProgressLine::Nothing => {}
    }
    Ok(())
}

/// Adds a line to what was said, as far as a person wants to read it.
fn note(said: &mut String, line: &str) {
    if said.len() < LONGEST_REFUSAL {
        said.extend([line, " "]);
    }
}

fn succeed(backend: Backend, call: &Call, status: StatusCode, said: &str) -> Result<(), Failure> {
    if status.is_success() {
        return Ok(());
    }
    // An engine that refuses says why in the words it would also end with.
    let explained = backend.explain(Exit::default(), &[said.to_owned()]);
    let reason = match explained.reason {
        Reason::DiedWhileLoading => Reason::UnhealthyAnswer,
        reason => reason,
    };
    let said: String = said.trim().chars().take(LONGEST_REFUSAL).collect();
    let message = format!("{} answered {} with {status}: {said}", backend.name(), call.path);
    Err(Failure::new(reason, message))
}

/// Cuts what arrives in pieces into lines.
#[derive(Default)]
struct Lines {
    pending: Vec<u8>,
}

impl Lines {
    fn add(&mut self, bytes: &[u8]) {
        if self.pending.len() < LONGEST_LINE {
            self.pending.extend_from_slice(bytes);
        }
    }

    fn next(&mut self) -> Option<String> {
        let end = memchr::memchr(b'\n', &self.pending)?;
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim().to_owned())
    }

    fn rest(&self) -> String {
        String::from_utf8_lossy(&self.pending).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_wherever_the_pieces_end() {
        let mut lines = Lines::default();
        lines.add(b"{\"a\":1}\r\n{\"b\"");
        assert_eq!(lines.next().as_deref(), Some("{\"a\":1}"));
        assert_eq!(lines.next(), None);
        lines.add(b":2}\n{}");
        assert_eq!(lines.next().as_deref(), Some("{\"b\":2}"));
        assert_eq!(lines.next(), None);
        assert_eq!(lines.rest(), "{}");
    }
}
