//! Forms (`multipart/form-data`): finds the `model` part in bytes that arrive in any cuts, and where
//! its value stands; beside it, whether a stream is asked for. Nothing is decoded or kept but a part's headers
//! and what these two say, so a form of any size is read in bounded memory. See `docs/decisions/0002-multipart-offsets.md`.
//!
//! Only a whole delimiter line ends a part (MULTI-08); both line ends must be CRLF. What readers of forms
//! disagree on is refused: one of them is the engine.

mod delimiter;
mod part;
#[cfg(test)]
mod tests;

use std::ops::Range;

use memchr::memmem;

use delimiter::{CLOSING, Delimiter, LINE_END, Line};
use part::{Field, Kind};

use super::content_type::Boundary;
use crate::rejection::Rejection;

/// The most bytes that a part's headers may take.
const LONGEST_HEADERS: usize = 16 * 1024;
/// The most bytes that the name of a model may take.
const LONGEST_NAME: usize = 4 * 1024;
/// The most `model` parts; more than one is odd already.
const MOST_MODEL_PARTS: usize = 16;
/// A part that is longer is none of the fields that decide something.
const LONGEST_FIELD: usize = 64 * 1024;
/// The most of a field that says yes or no.
const LONGEST_ANSWER: usize = 16;
/// How forms say yes, which know no types but text: as pydantic reads it, and with it vLLM.
const YES: [&str; 6] = ["true", "1", "on", "yes", "t", "y"];

/// What a whole form says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The model, if a `model` part names one.
    pub model: Option<ModelParts>,
    /// Whether its `stream` part asks for a stream; the last one, if there are several.
    pub stream: bool,
    /// Where the first delimiter begins, its dashes included: a new part can be put here.
    pub(crate) opens_at: usize,
    pub(crate) boundary: Boundary,
}

/// The `model` part; or several that say the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelParts {
    /// The name. Never empty.
    pub name: String,
    /// Where each of the values stands, counted from the first byte of the body.
    pub spans: Vec<Range<usize>>,
}

/// Reads a form as its bytes arrive.
#[derive(Debug)]
pub struct FormScanner {
    boundary: Boundary,
    delimiter: Delimiter,
    /// Bytes that arrived and are not decided on yet. Begins with a line end that was never sent,
    /// since the first delimiter has none before it.
    pending: Vec<u8>,
    /// The place of the first pending byte in the body, plus the two that were never sent.
    place: usize,
    state: State,
    /// Where the blank line before the present part's content stands.
    blank_line: Option<usize>,
    opens_at: Option<usize>,
    model: Option<ModelParts>,
    stream: bool,
}

#[derive(Debug)]
enum State {
    /// Before the first delimiter, or in a part that is passed over.
    Passing,
    /// In a file, which is passed over too.
    File,
    /// In a field that has been this so far, from the end of the blank line on.
    Field(Field, Vec<u8>),
    /// In the headers of a part, from the line end before them.
    Headers,
    /// At the byte behind the closing delimiter's dashes, which must not go on with the line.
    Closing,
    /// Behind the closing delimiter, where nothing counts.
    Closed,
}

impl FormScanner {
    /// A scanner for a form with this boundary.
    pub fn new(boundary: Boundary) -> Self {
        Self {
            delimiter: Delimiter::of(&boundary),
            boundary,
            pending: LINE_END.to_vec(),
            place: 0,
            state: State::Passing,
            blank_line: None,
            opens_at: None,
            model: None,
            stream: false,
        }
    }

    /// The model, as soon as its part has been read whole. A later part may still disagree.
    pub fn model(&self) -> Option<&str> {
        self.model.as_ref().map(|model| model.name.as_str())
    }

    /// Whether all that decides something has been read: the model is known, and what comes now is a file, too
    /// long for a field that matters, or behind the end. Fields behind it do not count.
    pub fn has_said_all(&self) -> bool {
        let part = self.blank_line.map_or(0, |begin| self.place.saturating_sub(begin));
        let over = matches!(self.state, State::File | State::Closed) || part > LONGEST_FIELD;
        over && self.model.is_some()
    }

    /// How many `model` parts have been read whole.
    pub fn model_parts(&self) -> usize {
        self.model.as_ref().map_or(0, |model| model.spans.len())
    }

    /// What the form says so far, once its model is known: whatever comes behind that part leaves its place
    /// as it is.
    pub fn so_far(&self) -> Option<Form> {
        let (model, opens_at) = (self.model.clone()?, self.opens_at?);
        let (stream, boundary) = (self.stream, self.boundary.clone());
        Some(Form { model: Some(model), stream, opens_at, boundary })
    }

    /// Takes the next bytes of the body.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Rejection> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let used = self.scan(&pending)?;
        pending.drain(..used);
        self.place += used;
        self.pending = pending;
        Ok(())
    }

    /// Ends the form, which must have come to its closing delimiter.
    pub fn finish(self) -> Result<Form, Rejection> {
        match (self.state, self.opens_at) {
            (State::Closing | State::Closed, Some(opens_at)) => {
                let Self { model, stream, boundary, .. } = self;
                Ok(Form { model, stream, opens_at, boundary })
            }
            (State::Passing, None) => Err(invalid("its boundary appears nowhere in it")),
            _ => Err(invalid("it ends before its closing boundary")),
        }
    }

    /// Decides on as many of the `pending` bytes as can be decided on, and says how many.
    fn scan(&mut self, pending: &[u8]) -> Result<usize, Rejection> {
        let mut used = 0;
        loop {
            let rest = pending.get(used..).unwrap_or_default();
            let step = match self.state {
                State::Passing | State::File | State::Field(..) => self.content(rest, used)?,
                State::Headers => self.headers(rest, used)?,
                State::Closing => self.behind_closing(rest)?,
                State::Closed => return Ok(pending.len()),
            };
            used += step.used;
            if !step.more {
                return Ok(used);
            }
        }
    }

    /// Passes over a part's content up to the delimiter that ends it.
    fn content(&mut self, rest: &[u8], used: usize) -> Result<Step, Rejection> {
        let (at, line) = self.delimiter.next(rest);
        let content = rest.get(..at).unwrap_or_default();
        if self.opens_at.is_none() && content.iter().any(|byte| !LINE_END.contains(byte)) {
            // Some readers find a delimiter in the middle of such a line.
            return Err(invalid("other bytes come before its first boundary"));
        }
        self.keep(content)?;
        let delimiter = self.delimiter.len();
        let begins = self.place + used + at;
        match line {
            Line::Delimiter(length) => {
                self.end_part(begins)?;
                self.state = State::Headers;
                Ok(Step { used: at + length, more: true })
            }
            Line::Closing => {
                self.end_part(begins)?;
                self.state = State::Closing;
                Ok(Step { used: at + delimiter + CLOSING.len(), more: true })
            }
            Line::Data | Line::Undecided => Ok(Step { used: at, more: false }),
        }
    }

    /// Makes sure that the closing delimiter's line ends where it should: some readers take a line
    /// that goes on for a delimiter and others for content.
    fn behind_closing(&mut self, rest: &[u8]) -> Result<Step, Rejection> {
        match rest.first() {
            None => return Ok(Step { used: 0, more: false }),
            Some(b' ' | b'\t' | b'\r' | b'\n') => self.state = State::Closed,
            Some(_) => {
                return Err(invalid("its closing boundary is followed by other bytes at once"));
            }
        }
        Ok(Step { used: 0, more: true })
    }

    /// Reads a part's headers once all of them are there.
    fn headers(&mut self, rest: &[u8], used: usize) -> Result<Step, Rejection> {
        let Some(end) = memmem::find(rest, b"\r\n\r\n") else {
            return match rest.len() {
                ..=LONGEST_HEADERS => Ok(Step { used: 0, more: false }),
                _ => Err(invalid("a part has more than 16 KiB of headers")),
            };
        };
        if end == 0 {
            // Readers disagree on where the content of such a part begins.
            return Err(invalid("a part has no headers"));
        }
        // The blank line's own end is left, as a delimiter may try to use it for its own.
        let content = end + LINE_END.len();
        self.blank_line = Some(self.place + used + content);
        let headers = rest.get(..end).unwrap_or_default();
        if !part::well_formed(headers) {
            return Err(invalid(
                "a part has a header line that is not a name, a colon and a value",
            ));
        }
        self.state = match part::kind(headers) {
            Kind::Read(field) => State::Field(field, Vec::new()),
            Kind::File => State::File,
            Kind::Other => State::Passing,
            // Some readers take its name all the same.
            Kind::NoFormData => {
                return Err(invalid(
                    "a part's Content-Disposition is something else than form-data",
                ));
            }
            Kind::CodedName => {
                return Err(invalid("a part's name is coded (name*=); send it as name=\"…\""));
            }
        };
        Ok(Step { used: content, more: true })
    }

    /// Keeps `bytes` where they belong to a field that is read.
    fn keep(&mut self, bytes: &[u8]) -> Result<(), Rejection> {
        match &mut self.state {
            State::Field(Field::Model, value) => {
                value.extend_from_slice(bytes);
                if value.len() > LONGEST_NAME {
                    return Err(invalid("its \"model\" part is longer than 4 KiB"));
                }
            }
            State::Field(Field::Stream, value) => {
                let room = LONGEST_ANSWER.saturating_sub(value.len());
                value.extend(bytes.iter().take(room));
            }
            _ => {}
        }
        Ok(())
    }

    /// Ends the part that the delimiter at `end` ends. Places count the two bytes never sent.
    fn end_part(&mut self, end: usize) -> Result<(), Rejection> {
        self.opens_at.get_or_insert(end);
        let Some(blank_line) = self.blank_line.take() else {
            return Ok(());
        };
        if blank_line == end {
            // Some readers take this for a part's end and others for its content.
            return Err(invalid("a part's blank line is followed by a boundary at once"));
        }
        let State::Field(field, value) = std::mem::replace(&mut self.state, State::Passing) else {
            return Ok(());
        };
        // What was kept begins with the end of the blank line.
        let value = value.strip_prefix(LINE_END).unwrap_or_default();
        // The blank line is as long as the line end that was never sent.
        let span = blank_line..end.saturating_sub(LINE_END.len());
        match field {
            Field::Model => self.name(value.to_vec(), span),
            Field::Stream => {
                self.stream = YES.iter().any(|yes| value.eq_ignore_ascii_case(yes.as_bytes()));
                Ok(())
            }
        }
    }

    /// Notes what a `model` part, whose value stands at `span`, says.
    fn name(&mut self, value: Vec<u8>, span: Range<usize>) -> Result<(), Rejection> {
        let name =
            String::from_utf8(value).map_err(|_| invalid("its \"model\" part is not UTF-8"))?;
        if name.is_empty() {
            let expected = "a string that is not empty";
            return Err(Rejection::InvalidField { field: "model", expected });
        }
        match &mut self.model {
            None => self.model = Some(ModelParts { name, spans: vec![span] }),
            Some(first) if first.name != name => {
                let first = first.name.clone();
                return Err(Rejection::ConflictingModels { first, second: name });
            }
            Some(first) if first.spans.len() >= MOST_MODEL_PARTS => {
                return Err(invalid("it has too many \"model\" parts"));
            }
            Some(first) => first.spans.push(span),
        }
        Ok(())
    }
}

/// How far a step came, and whether another can follow at once.
struct Step {
    used: usize,
    more: bool,
}

fn invalid(problem: &str) -> Rejection {
    Rejection::InvalidForm { problem: problem.to_owned() }
}
