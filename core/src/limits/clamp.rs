//! Cuts down how many tokens a request asks for to what can fit into its model's context window, since
//! engines refuse what they could never hold. Only where the window is known.

use std::fmt;

use bytes::Bytes;

use super::bounds::bounds;
use crate::openai::Facts;
use crate::rewriting::Splice;

/// More is left to the engine to refuse.
const MOST: u64 = i32::MAX as u64;

/// How requests are cut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// The tokens of the window that are kept for the prompt.
    pub prompt_reserve: u32,
}

/// What was asked for and what is asked for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clamped {
    /// The largest number of tokens that was asked for.
    pub from: u64,
    /// The number that stands in its place.
    pub to: u64,
    /// The changes to the body.
    pub splices: Vec<Splice>,
}

impl fmt::Display for Clamped {
    /// The value of the header `X-FlexInfer-MaxTokens-Clamped`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}->{}", self.from, self.to)
    }
}

impl Clamp {
    /// What has to change in `body`, which `facts` were read from, for a model whose context window
    /// holds `window` tokens; `None` where it fits.
    pub fn apply(self, facts: &Facts, body: &[u8], window: u32) -> Option<Clamped> {
        let most = u64::from(window.saturating_sub(self.prompt_reserve).max(1));
        let mut clamped = Clamped { from: 0, to: most, splices: Vec::new() };
        for (wanted, span) in bounds(facts, body) {
            if (most + 1..=MOST).contains(&wanted) {
                clamped.from = clamped.from.max(wanted);
                clamped.splices.push(Splice::new(span, Bytes::from(most.to_string())));
            }
        }
        (!clamped.splices.is_empty()).then_some(clamped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rewriting::splice;

    const CLAMP: Clamp = Clamp { prompt_reserve: 512 };

    fn apply(body: &str, window: u32) -> Option<(String, String)> {
        let facts = Facts::read(body.as_bytes()).expect("readable");
        let clamped = CLAMP.apply(&facts, body.as_bytes(), window)?;
        let header = clamped.to_string();
        let rope = splice(&Bytes::copy_from_slice(body.as_bytes()), clamped.splices).expect("fits");
        Some((header, String::from_utf8(rope.to_bytes().to_vec()).expect("text")))
    }

    #[test]
    fn only_the_number_is_replaced() {
        for bound in [
            r#""max_tokens" : 9000 "#,
            r#""max_completion_tokens" : 9000"#,
            r#""max_output_tokens":9000"#,
            r#""n_predict":	9000"#,
            r#""options" : { "a":[1.0], "num_predict" : 9000 ,"num_ctx":8192}"#,
            r#""options":{"num\u005fpredict":9000,"num_predict":9000,"num_predict":7}"#,
            r#""options":{"num_predict":9000,"a":{"num_predict":9001}}"#,
            r#""max_tokens":9000.0"#,
            r#""max_tokens":"9000""#,
            r#""options":{"\ud800":0,"num_predict":9000}"#,
        ] {
            let body = format!(r#"{{ {bound} ,"x":1.10, "model":"m"}}"#);
            let (header, clamped) = apply(&body, 4096).expect(bound);
            assert_eq!(header, "9000->3584");
            assert_eq!(
                clamped,
                body.replace("9000.0", "9000").replace("\"9000\"", "9000").replace("9000", "3584")
            );
        }
    }

    #[test]
    fn every_bound_is_cut_down() {
        let (header, body) =
            apply(r#"{"max_tokens":5000,"max_completion_tokens":9000}"#, 4096).expect("too many");
        assert_eq!(header, "9000->3584");
        assert_eq!(body, r#"{"max_tokens":3584,"max_completion_tokens":3584}"#);
    }

    #[test]
    fn what_fits_or_is_no_such_number_is_left_alone() {
        for value in ["3584", "1", "0", "-5", "9.0", "\"90x0\"", "null", "2147483648"] {
            assert_eq!(apply(&format!(r#"{{"max_tokens":{value}}}"#), 4096), None, "{value}");
            let options = format!(r#"{{"options":{{"num_predict":{value}}}}}"#);
            assert_eq!(apply(&options, 4096), None, "{value}");
        }
        for options in [r#"{"a":{"num_predict":9000}}"#, r#"[{"num_predict":9000}]"#, "9000"] {
            assert_eq!(apply(&format!(r#"{{"options":{options}}}"#), 4096), None, "{options}");
        }
    }

    #[test]
    fn a_window_smaller_than_the_reserve_leaves_one_token() {
        assert_eq!(apply(r#"{"max_tokens":7}"#, 100).expect("too many").0, "7->1");
    }
}
