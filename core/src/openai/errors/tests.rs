//! Every rejection in every dialect, word for word.

use std::fmt::Write as _;

use strum::IntoEnumIterator as _;

use super::*;
use crate::rejection::examples;

fn in_dialect(dialect: Dialect) -> String {
    let mut shown = String::new();
    for rejection in examples() {
        let body = error_body(dialect, &rejection, Some("req-1"));
        let body = String::from_utf8(body).expect("JSON is UTF-8");
        writeln!(shown, "{} {body}", rejection.status()).expect("a String takes all");
    }
    shown
}

#[test]
fn every_rejection_in_openais_shape() {
    insta::assert_snapshot!(in_dialect(Dialect::OpenAi));
}

#[test]
fn every_rejection_in_anthropics_shape() {
    insta::assert_snapshot!(in_dialect(Dialect::Anthropic));
}

#[test]
fn every_rejection_in_ollamas_shape() {
    insta::assert_snapshot!(in_dialect(Dialect::Ollama));
}

#[test]
fn every_rejection_in_the_shape_of_the_stable_diffusion_web_ui() {
    insta::assert_snapshot!(in_dialect(Dialect::StableDiffusion));
}

#[test]
fn every_rejection_in_comfyuis_shape() {
    insta::assert_snapshot!(in_dialect(Dialect::ComfyUi));
}

#[test]
fn a_name_with_quotes_and_controls_stays_inside_its_string() {
    let name = "a\",\"code\":\"x\n\u{1}".to_owned();
    let rejection = Rejection::ModelNotFound { name, nearest: Vec::new() };
    for dialect in Dialect::iter() {
        let body = error_body(dialect, &rejection, Some("\"\n"));
        let parsed: serde_json::Value = serde_json::from_slice(&body).expect("still JSON");
        assert!(parsed.to_string().contains("does not exist"), "{dialect}: {parsed}");
    }
    let body = error_body(Dialect::OpenAi, &rejection, None);
    let parsed: serde_json::Value = serde_json::from_slice(&body).expect("still JSON");
    assert_eq!(parsed["error"]["code"], "model_not_found");
}
