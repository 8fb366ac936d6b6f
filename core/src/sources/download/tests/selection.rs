//! Which files of a repository a configuration selects.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::listing::Listed;
use super::super::selection::From;
use super::super::{Selection, Step};
use super::{head, source, terms};
use crate::activation::{Failure, Reason};
use crate::sources::{BadSource, RelativePath, Source};

const FILES: [&str; 9] = [
    "README.md",
    "config.json",
    "model.safetensors",
    "onnx/model.onnx",
    "onnx/config.json",
    "q4.gguf",
    "big-00001-of-00002.gguf",
    "big-00002-of-00002.gguf",
    "mmproj.gguf",
];

fn selection(config: Value) -> Result<Selection, BadSource> {
    let Value::Object(config) = config else { panic!("{config} is no object") };
    Selection::from_config(&config)
}

fn chosen(text: &str, config: Value) -> Result<Vec<String>, Failure> {
    let selection = selection(config).unwrap();
    let Source::HuggingFace(repository) = source(text) else { panic!("{text}") };
    let listed = FILES.map(|file| Listed {
        path: RelativePath::parse(file).unwrap(),
        size: None,
        digest: None,
    });
    let from = From { id: &repository.id(), within: repository.path.as_ref() };
    let chosen = selection.choose(&from, &listed)?;
    Ok(chosen.into_iter().map(|listed| listed.path.to_string()).collect())
}

#[test]
fn configuration_selects_files() {
    let all = FILES.as_slice();
    let cases: [(&str, Value, &[&str]); 12] = [
        ("hf://o/n", json!({}), all),
        ("hf://o/n", json!({"hfAllowPatterns": ["*.json"]}), &["config.json", "onnx/config.json"]),
        (
            "hf://o/n",
            json!({"hfAllowPatterns": ["*.json"], "hfIgnorePatterns": ["onnx/"]}),
            &["config.json"],
        ),
        (
            "hf://o/n",
            json!({"hfIgnorePatterns": ["*.gguf", "onnx/*", "README*"]}),
            &["config.json", "model.safetensors"],
        ),
        ("hf://o/n", json!({"ggufFile": "q4.gguf"}), &["q4.gguf"]),
        ("hf://o/n", json!({"modelFile": "q4.gguf", "hfIgnorePatterns": ["*"]}), &["q4.gguf"]),
        (
            "hf://o/n",
            json!({"ggufFile": "big-00001-of-00002.gguf"}),
            &["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"],
        ),
        (
            "hf://o/n",
            json!({"ggufFile": "q4.gguf", "mmproj": "mmproj.gguf"}),
            &["q4.gguf", "mmproj.gguf"],
        ),
        ("hf://o/n", json!({"ggufFile": "q4.gguf", "mmproj": "/abs/mm.gguf"}), &["q4.gguf"]),
        (
            "hf://o/n",
            json!({"ggufFile": "q4.gguf", "hfAllowPatterns": ["/config.json", "../x"]}),
            &["config.json", "q4.gguf"],
        ),
        ("hf://o/n/onnx", json!({}), &["onnx/model.onnx", "onnx/config.json"]),
        ("hf://o/n:q4.gguf", json!({}), &["q4.gguf"]),
    ];
    for (text, config, wanted) in cases {
        assert_eq!(chosen(text, config.clone()).unwrap(), wanted, "{text} {config}");
    }
}

#[test]
fn a_file_that_is_not_there_is_told_with_the_nearest_that_is() {
    let failure = chosen("hf://o/n", json!({"ggufFile": "Q4.ggu"})).unwrap_err();
    assert_eq!(failure.reason, Reason::BadSource);
    assert!(failure.message.contains("nearest name there is `q4.gguf`"), "{failure}");
    let failure = chosen("hf://o/n/onxx", json!({})).unwrap_err();
    assert!(failure.message.contains("no file or folder `onxx`"), "{failure}");
    let failure = chosen("hf://o/n", json!({"hfAllowPatterns": ["*.bin"]})).unwrap_err();
    assert!(failure.message.contains("loosen them"), "{failure}");
}

#[test]
fn keys_of_a_wrong_kind_are_refused_by_name() {
    for (config, wanted) in [
        (json!({"hfAllowPatterns": [1]}), "config.hfAllowPatterns"),
        (json!({"hfIgnorePatterns": {}}), "config.hfIgnorePatterns"),
        (json!({"ggufFile": 4}), "config.ggufFile"),
        (json!({"ggufFile": "../x.gguf"}), "`..`"),
        (json!({"hfRevision": "a..b"}), "revision"),
    ] {
        let message = selection(config.clone()).unwrap_err().to_string();
        assert!(message.contains(wanted), "{config}: {message}");
    }
}

#[test]
fn the_engine_is_given_the_named_file_or_the_folder() {
    let folder = Path::new("/d");
    for (text, config, wanted) in [
        ("hf://o/n", json!({}), "/d"),
        ("hf://o/n", json!({"ggufFile": "a/q4.gguf"}), "/d/a/q4.gguf"),
        ("hf://o/n:a/b", json!({}), "/d/a/b"),
    ] {
        let Source::HuggingFace(repository) = source(text) else { panic!("{text}") };
        let path = selection(config).unwrap().model_path(repository.path.as_ref(), folder);
        assert_eq!(path, PathBuf::from(wanted), "{text}");
    }
}

#[test]
fn an_empty_repository_is_a_bad_source() {
    let mut talk =
        source("hf://o/n").conversation(&Selection::default(), &terms()).unwrap().unwrap();
    talk.answered(&head(200, &[]), br#"{"siblings":[]}"#);
    let Step::Failed(failure) = talk.next() else { panic!() };
    assert_eq!(failure.reason, Reason::BadSource);
}
