//! What can be made to go wrong: while loading (set once) and while answering (set for the whole
//! engine, changed while it runs, or asked for by one request's `x-simulate-*` headers).

use std::time::Duration;

use http::HeaderMap;

use crate::durations::parse_duration;

/// What goes wrong before the engine is ready.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadingFaults {
    /// The engine ends while loading, at this moment.
    pub dies_at: Option<DiesAt>,
    /// Loading stops at 40 % for ever.
    pub hangs: bool,
    /// What somebody who connects while it loads finds.
    pub door: DoorWhileLoading,
    /// `/health` says 200 although the model is not loaded; requests fail with 503.
    pub lies_about_readiness: bool,
    /// The port is never opened, not even once the model is loaded.
    pub port_never_opens: bool,
}

/// When an engine dies while loading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DiesAt {
    /// At this share of the load, from 0 to 1.
    Fraction(f64),
    /// This long after it was started.
    After(Duration),
}

impl DiesAt {
    /// Reads `30%`, `0.3` or a duration such as `500ms`.
    pub fn parse(text: &str) -> Result<Self, FaultError> {
        let wrong = || FaultError::new("die-while-loading", text, "30% or 500ms");
        let fraction = match text.strip_suffix('%') {
            Some(number) => number.parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse::<f64>().ok(),
        };
        match fraction {
            Some(fraction) if (0.0..=1.0).contains(&fraction) => Ok(Self::Fraction(fraction)),
            Some(_) => Err(wrong()),
            None => parse_duration(text).map(Self::After).map_err(|_| wrong()),
        }
    }
}

/// What somebody who connects while the model loads finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DoorWhileLoading {
    /// `/health` answers 503 with `{"status":"loading"}`, as llama-server does.
    #[default]
    Answers,
    /// The port is not open yet, as with vLLM.
    Closed,
    /// The connection is taken and nothing is ever answered.
    Silent,
}

/// What goes wrong with the answers of a loaded engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnswerFaults {
    /// Requests are refused as by an engine that has too much to do.
    pub busy: Option<Busy>,
    /// The answer breaks off after so many tokens (without a stream: in the middle of the body).
    pub cut_after_tokens: Option<usize>,
    /// How an answer that breaks off ends.
    pub cut: Cut,
    /// The head of the answer comes so much later.
    pub header_delay: Duration,
    /// The request is read and never answered.
    pub never_answers: bool,
    /// JSON answers carry their first keys twice.
    pub duplicate_keys: bool,
    /// Every byte of an answer is a write of its own.
    pub one_byte_writes: bool,
    /// `/health` answers bytes that are not HTTP.
    pub garbage_health: bool,
}

/// How a busy engine refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Busy {
    /// 503 Service Unavailable.
    #[value(name = "503")]
    Unavailable,
    /// 429 Too Many Requests, with Retry-After.
    #[value(name = "429")]
    TooManyRequests,
}

/// How a cut answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Cut {
    /// The connection is closed without the end of the body.
    #[default]
    Close,
    /// The connection is reset.
    Reset,
}

/// A fault that was asked for in words nobody understands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {value:?} is not understood; write {wanted}")]
pub struct FaultError {
    name: String,
    value: String,
    wanted: &'static str,
}

impl FaultError {
    fn new(name: &str, value: &str, wanted: &'static str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned(), wanted }
    }
}

const PREFIX: &str = "x-simulate-";

impl AnswerFaults {
    /// These faults with those that the request's own headers ask for. An unknown `x-simulate-`
    /// header is an error, so that a test cannot ask for a fault that does not exist.
    pub fn with_headers(&self, headers: &HeaderMap) -> Result<Self, FaultError> {
        let mut faults = self.clone();
        for (name, value) in headers {
            let Some(fault) = name.as_str().strip_prefix(PREFIX) else { continue };
            let text = value.to_str().unwrap_or("");
            faults.set(fault, text)?;
        }
        Ok(faults)
    }

    fn set(&mut self, fault: &str, text: &str) -> Result<(), FaultError> {
        let wrong = |wanted| FaultError::new(fault, text, wanted);
        let claim = || match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err(wrong("true or false")),
        };
        match fault {
            "busy" => {
                self.busy = match text {
                    "503" => Some(Busy::Unavailable),
                    "429" => Some(Busy::TooManyRequests),
                    "false" => None,
                    _ => return Err(wrong("503, 429 or false")),
                }
            }
            "cut-after-tokens" => {
                self.cut_after_tokens =
                    Some(text.parse().map_err(|_| wrong("a number of tokens"))?);
            }
            "cut" => {
                self.cut = match text {
                    "close" => Cut::Close,
                    "reset" => Cut::Reset,
                    _ => return Err(wrong("close or reset")),
                }
            }
            "header-delay" => {
                self.header_delay = parse_duration(text).map_err(|_| wrong("a duration"))?;
            }
            "never-answers" => self.never_answers = claim()?,
            "duplicate-keys" => self.duplicate_keys = claim()?,
            "one-byte-writes" => self.one_byte_writes = claim()?,
            "garbage-health" => self.garbage_health = claim()?,
            _ => {
                return Err(wrong(
                    "one of busy, cut-after-tokens, cut, header-delay, never-answers, \
                     duplicate-keys, one-byte-writes, garbage-health",
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_asks_for_its_own_faults() {
        let mut headers = HeaderMap::new();
        headers.insert("x-simulate-cut-after-tokens", "3".parse().unwrap());
        headers.insert("x-simulate-cut", "reset".parse().unwrap());
        headers.insert("content-type", "application/json".parse().unwrap());
        let faults = AnswerFaults::default().with_headers(&headers).unwrap();
        assert_eq!(faults.cut_after_tokens, Some(3));
        assert_eq!(faults.cut, Cut::Reset);
    }

    #[test]
    fn a_fault_that_does_not_exist_is_refused_by_name() {
        let mut headers = HeaderMap::new();
        headers.insert("x-simulate-explode", "true".parse().unwrap());
        let error = AnswerFaults::default().with_headers(&headers).unwrap_err();
        assert!(error.to_string().contains("explode"), "{error}");
    }

    #[test]
    fn the_moment_of_death_is_a_share_or_a_duration() {
        assert_eq!(DiesAt::parse("30%"), Ok(DiesAt::Fraction(0.3)));
        assert_eq!(DiesAt::parse("0.5"), Ok(DiesAt::Fraction(0.5)));
        assert_eq!(DiesAt::parse("250ms"), Ok(DiesAt::After(Duration::from_millis(250))));
        assert!(DiesAt::parse("300%").is_err());
        assert!(DiesAt::parse("soon").is_err());
    }
}
