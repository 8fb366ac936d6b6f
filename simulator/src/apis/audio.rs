//! `POST /v1/audio/speech`, `/v1/audio/transcriptions` and `/v1/audio/translations`.

use std::fmt::Write as _;

use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::answer;
use super::call::Call;
use super::form::Form;
use super::refusal::Refusal;
use crate::random::{Random, stable_hash};
use crate::{sound, words};

#[derive(Debug, Deserialize)]
struct SpeechRequest {
    model: Option<String>,
    input: String,
    voice: Option<String>,
    response_format: Option<String>,
    speed: Option<f32>,
}

/// Speaks a text as tones.
pub(crate) async fn speech(call: Call) -> Result<Response, Refusal> {
    call.admit()?;
    let request: SpeechRequest = call.json()?;
    call.model(request.model.as_deref())?;
    let raw = match request.response_format.as_deref() {
        None | Some("wav") => false,
        Some("pcm") => true,
        Some(other) => {
            let message =
                format!("response_format: {other:?} is not made here; ask for wav or pcm");
            return Err(Refusal::bad_request(&message));
        }
    };
    call.read(std::slice::from_ref(&request.input)).await?;
    let voice = request.voice.as_deref().unwrap_or("alloy");
    let samples = sound::speak(&request.input, voice, request.speed.unwrap_or(1.0));
    let (kind, content) =
        if raw { ("audio/pcm", sound::raw(&samples)) } else { ("audio/wav", sound::wav(&samples)) };
    Ok(answer::bytes(&call.turn, kind, content.into()))
}

/// Writes down what it hears, in its own words.
pub(crate) async fn transcribe(call: Call) -> Result<Response, Refusal> {
    write_down(call, "transcribe").await
}

/// The same in English.
pub(crate) async fn translate(call: Call) -> Result<Response, Refusal> {
    write_down(call, "translate").await
}

async fn write_down(call: Call, task: &str) -> Result<Response, Refusal> {
    call.admit()?;
    let form = Form::read(&call).await?;
    let model = call.model(form.text("model").as_deref())?;
    let file = form.needed("file")?;
    let heard = stable_hash(&file.content, call.engine.settings.seed);
    let seconds = sound::seconds(&file.content).unwrap_or(1.0);
    let name = file.file_name.as_deref().unwrap_or("the recording");
    let mut random = Random::from_parts(heard, &[&model, task]);
    let sentence = words::sentence(&mut random);
    let text = format!("{model} heard {seconds:.1} seconds of {name}. {sentence}");
    call.read(std::slice::from_ref(&text)).await?;
    match form.text("response_format").as_deref().unwrap_or("json") {
        "json" => Ok(answer::json(&call.turn, &json!({ "text": text }))),
        "verbose_json" => {
            let segment = json!({"id": 0, "start": 0.0, "end": seconds, "text": text});
            let body = json!({"task": task, "language": "english", "duration": seconds,
                              "text": text, "segments": [segment]});
            Ok(answer::json(&call.turn, &body))
        }
        "text" => Ok(answer::bytes(&call.turn, "text/plain; charset=utf-8", text.into())),
        "srt" => {
            let body = format!("1\n{} --> {}\n{text}\n\n", stamp(0.0, ','), stamp(seconds, ','));
            Ok(answer::bytes(&call.turn, "text/plain; charset=utf-8", body.into()))
        }
        "vtt" => {
            let body =
                format!("WEBVTT\n\n{} --> {}\n{text}\n\n", stamp(0.0, '.'), stamp(seconds, '.'));
            Ok(answer::bytes(&call.turn, "text/vtt; charset=utf-8", body.into()))
        }
        other => Err(Refusal::bad_request(&format!(
            "response_format: {other:?} is none of json, text, srt, verbose_json, vtt"
        ))),
    }
}

/// Seconds as subtitles write them.
fn stamp(seconds: f64, point: char) -> String {
    let whole = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let (total, rest) = (whole.as_secs(), whole.subsec_millis());
    let mut text = String::new();
    let (hours, minutes) = (total / 3600, total / 60 % 60);
    // Writing to a String cannot fail.
    let _ = write!(text, "{hours:02}:{minutes:02}:{:02}{point}{rest:03}", total % 60);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_written_as_subtitles_have_them() {
        assert_eq!(stamp(3_723.5, ','), "01:02:03,500");
        assert_eq!(stamp(0.25, '.'), "00:00:00.250");
    }
}
