//! Answers as engines send them, cut anywhere.

use proptest::prelude::*;

use super::{Usage, UsageReader};
use crate::openai::Dialect;

fn reader() -> UsageReader {
    UsageReader::for_answer(Some("text/event-stream; charset=utf-8"), None).expect("readable")
}

fn read_cut(answer: &[u8], size: usize) -> Usage {
    let mut reader = reader();
    for chunk in answer.chunks(size) {
        reader.look(chunk);
    }
    reader.usage().clone()
}

/// The usage, which must come out the same at every cut.
fn read(answer: &str) -> Usage {
    let whole = read_cut(answer.as_bytes(), answer.len().max(1));
    for size in 1..50 {
        assert_eq!(read_cut(answer.as_bytes(), size), whole, "in pieces of {size}");
    }
    whole
}

fn usage(prompt: u64, completion: u64, cached: Option<u64>, reason: &str) -> Usage {
    Usage {
        prompt_tokens: Some(prompt),
        completion_tokens: Some(completion),
        cached_tokens: cached,
        finish_reason: Some(reason.to_owned()),
    }
}

#[test]
fn a_chat_answer() {
    let answer = r#"{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"a \"usage\": {\"prompt_tokens\":9}"},"finish_reason":"stop","stop_reason":"END"}],
        "usage" : {"prompt_tokens": 12,"total_tokens":19,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":8}}}"#;
    assert_eq!(read(answer), usage(12, 7, Some(8), "stop"));
}

#[test]
fn a_chat_stream_with_frames_without_choices() {
    let answer = ": ping\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"你好🌍\"},\"finish_reason\":null}],\"usage\":null}\n\n\
        data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}]}\r\n\r\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":80,\"prompt_tokens_details\":null}}\n\ndata: [DONE]\n\n";
    assert_eq!(read(answer), usage(3, 80, None, "length"));
}

#[test]
fn a_stream_that_counts_as_it_goes_ends_with_the_last_count() {
    let event = |count: u64| {
        format!("data: {{\"usage\":{{\"prompt_tokens\":3,\"completion_tokens\":{count}}}}}\n\n")
    };
    let answer: String = (0..20).map(event).collect();
    assert_eq!(read(&answer).completion_tokens, Some(19));
}

#[test]
fn anthropics_events_are_put_together() {
    let answer = "event: message_start\ndata: {\"message\":{\"stop_reason\":null,\"usage\":{\"input_tokens\":25,\"cache_read_input_tokens\":20,\"output_tokens\":1}}}\n\n\
        event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":15}}\n\n";
    assert_eq!(read(answer), usage(25, 15, Some(20), "end_turn"));
}

#[test]
fn responses_and_embeddings() {
    let answer = r#"{"tools":[{"parameters":{"properties":{"usage":{"type":"string"}}}}],"usage":{"input_tokens":5,"input_tokens_details":{"cached_tokens":0},"output_tokens":6}}"#;
    assert_eq!(read(answer).cached_tokens, Some(0));
    assert_eq!(read(answer).completion_tokens, Some(6));
    let embeddings = read(r#"{"data":[],"usage":{"prompt_tokens":8,"total_tokens":8}}"#);
    assert_eq!((embeddings.prompt_tokens, embeddings.completion_tokens), (Some(8), None));
}

#[test]
fn body_02_duplicate_keys_in_an_answer_count_as_they_can() {
    let answer = r#"{"id":"a","object":"chat.completion","id":"a","choices":[],"usage":{"prompt_tokens":1,"prompt_tokens":2}}"#;
    assert_eq!(read(answer).prompt_tokens, Some(2));
}

#[test]
fn what_cannot_be_understood_is_unknown() {
    for answer in [
        "",
        "<html>\"usage\"</html>",
        r#"{"usage":null}"#,
        r#"{"usage":[1]}"#,
        r#"{"usage":{"prompt_tokens":-1,"completion_tokens":"many"}}"#,
        r#"{"usage":{"prompt_tokens":1,,}"#,
        r#"{"a":"usage","finish_reason":7}"#,
        r#"{"finish_reason":"<script>"}"#,
        r#"{"finish_reason":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#,
        r#"{"usage":{"prompt_tokens":12"#,
    ] {
        assert_eq!(read(answer), Usage::default(), "{answer}");
    }
}

#[test]
fn memory_stays_bounded_and_later_counts_are_still_found() {
    let mut reader = reader();
    reader.look(b"{\"usage\":{\"x\":\"");
    for _ in 0..100 {
        reader.look(&[b'u'; 1000]);
        assert!(reader.pending.len() <= super::LONGEST_VALUE);
    }
    reader.look(b"\"},\"usage\":{\"prompt_tokens\":4}}");
    assert_eq!(reader.usage().prompt_tokens, Some(4));
    assert!(reader.pending.is_empty());
}

#[test]
fn answers_that_are_no_text_are_not_looked_at() {
    assert!(UsageReader::for_answer(Some("audio/wav"), None).is_none());
    assert!(UsageReader::for_answer(None, None).is_none());
    assert!(UsageReader::for_answer(Some("application/json"), Some("gzip")).is_none());
    assert!(UsageReader::for_answer(Some("Application/JSON"), Some("identity")).is_some());
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        content in "\\PC{0,40}", prompt: u64, completion: u32,
        cuts in prop::collection::vec(1_usize..40, 1..20),
    ) {
        let event = serde_json::json!({
            "choices": [{"delta": {"content": content}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
        });
        let answer = format!("data: {event}\n\n").into_bytes();
        let mut reader = reader();
        let mut rest = answer.as_slice();
        for size in cuts.iter().cycle() {
            let (chunk, after) = rest.split_at((*size).min(rest.len()));
            reader.look(chunk);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(reader.usage(), &usage(prompt, completion.into(), None, "stop"));
    }

    #[test]
    fn any_bytes_can_be_looked_at(chunks in prop::collection::vec(prop_oneof![
        Just(b"\"usage\"".to_vec()), Just(b":{".to_vec()), Just(b"\"stop_reason\":\"".to_vec()),
        prop::collection::vec(any::<u8>(), 0..10)], 0..20)) {
        let mut reader = reader();
        for chunk in chunks {
            reader.look(&chunk);
        }
    }
}

#[test]
fn ollamas_lines_tell_their_tokens_at_the_end() {
    let answer = "{\"model\":\"m\",\"message\":{\"content\":\"\\\"eval_count\\\":9\"},\"done\":false}\n\
        {\"model\":\"m\",\"done\":true,\"done_reason\":\"length\",\"prompt_eval_count\": 26,\"eval_count\":298}\n";
    assert_eq!(read_ollama(answer), usage(26, 298, None, "length"));
}

/// What is read in Ollama's dialect, which must come out the same at every cut.
fn read_ollama(answer: &str) -> Usage {
    let cut = |size: usize| {
        let reader = UsageReader::for_answer(Some("application/x-ndjson"), None);
        let mut reader = reader.expect("readable").in_dialect(Dialect::Ollama);
        for chunk in answer.as_bytes().chunks(size) {
            reader.look(chunk);
        }
        reader.usage().clone()
    };
    let whole = cut(answer.len());
    for size in 1..answer.len() {
        assert_eq!(cut(size), whole, "in pieces of {size}");
    }
    whole
}

#[test]
fn a_quote_that_ends_one_key_begins_no_other() {
    let answer = "\",\"prompt_eval_count\"eval_count\":7,\"eval_count\":8}\n";
    assert_eq!(read_ollama(answer).completion_tokens, Some(8));
    assert_eq!(read_ollama("\"prompt_eval_count\"eval_count\":7}\n").completion_tokens, None);
}
