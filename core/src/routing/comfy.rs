//! What ties the requests of ComfyUI's clients. A client says who it is where it opens its socket and queues a job, and
//! not where it asks what came of that. Pictures are counted by each engine for itself, so that several have one of the
//! same name, made for different people: nobody is shown one by an engine that has not told him of it.

use std::borrow::Cow;

use serde::Deserialize;

use super::key::{Key as RingKey, Source};
use super::tie::{Absence, Asked, KnownBy, LONGEST, Only, Tie, after, parameter, path};
use crate::ids::{EndpointId, ModelId};

/// The client that a job of ComfyUI's names. Goes through all of `body`; one that is something else is for the engine
/// to refuse.
pub fn client_id(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Job {
        client_id: Option<String>,
    }
    serde_json::from_slice::<Job>(body).ok()?.client_id.filter(|id| id.len() <= LONGEST)
}

/// What a client brings back that came to `endpoint`. It says nothing of what that is called.
pub fn mark(endpoint: &EndpointId) -> String {
    format!("{:016x}", RingKey::new(Source::Mark, &endpoint.0).fingerprint())
}

/// What it is remembered by that `client` was told of the picture `file`.
pub fn picture(model: &ModelId, client: &str, file: &str) -> String {
    format!("{model}\n{client}\n{file}")
}

/// A client with a mark comes back to the endpoint that it was given by, with all it asks. One that says who it is has
/// one by the ring. Any other comes back to where it was, or at least always to the same.
pub(super) fn tie(asked: &Asked<'_>) -> Tie {
    let path = path(asked.path);
    let job = after(asked.path, "/history/").map(Cow::into_owned);
    let file = parameter(asked.path, "filename").filter(|_| path.ends_with("/view"));
    let file = file.map(Cow::into_owned);
    let queues = asked.method == "POST" && path.ends_with("/prompt");
    let told_as = queues.then_some("prompt_id");
    if let Some(mark) = asked.mark {
        return Tie {
            key: Some(RingKey::new(Source::Mark, mark)),
            only: job.or(file).map(|what| Only { what, known_by: KnownBy::Mark }),
            told_as,
            marks: true,
            ..Tie::default()
        };
    }
    let told = parameter(asked.path, "clientId").or(asked.told.map(Cow::Borrowed));
    let client = asked.name(Source::Client, asked.client);
    let tells = tells(asked.method, path);
    if let Some(id) = told.filter(|id| !id.is_empty() && id.len() <= LONGEST) {
        let own = asked.name(Source::ClientId, &id);
        let known_by = KnownBy::Client(own.clone());
        return Tie {
            key: Some(RingKey::new(Source::ClientId, &id)),
            only: file.map(|what| Only { what, known_by }),
            leaves: vec![client, own],
            tells,
            told_as,
            marks: true,
            ..Tie::default()
        };
    }
    let key = Some(RingKey::new(Source::Client, asked.client));
    if let Some(what) = job.filter(|job| job.len() <= LONGEST) {
        let name = asked.name(Source::PromptId, &what);
        return Tie {
            ask_around: Some(Absence::Nothing),
            names: vec![name.clone()],
            key,
            only: Some(Only { what, known_by: KnownBy::Job(name) }),
            tells,
            ..Tie::default()
        };
    }
    let only = file.map(|what| {
        let known_by = KnownBy::Told(picture(asked.model, asked.client, &what));
        Only { what, known_by }
    });
    Tie { names: vec![client], key, only, tells, told_as, ..Tie::default() }
}

/// The field by which the answer names pictures that its client may ask for.
fn tells(method: &str, path: &str) -> Option<&'static str> {
    let last = path.rsplit('/').next().unwrap_or_default();
    if method == "POST" {
        return path.contains("/upload/").then_some("name");
    }
    let tells = last == "history" || last == "ws" || path.contains("/history/");
    tells.then_some("filename")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comfy(mark: Option<&str>, method: &str, path: &str, body: &str) -> Tie {
        let model = ModelId::new("default", "m");
        let told = client_id(body.as_bytes());
        let (told, client) = (told.as_deref(), "10.0.0.9");
        tie(&Asked { model: &model, method, path, told, client, mark })
    }

    #[test]
    fn http_22_all_that_a_client_of_comfyui_asks_for_meets_one_endpoint() {
        let socket = comfy(None, "GET", "/ws?clientId=c1", "");
        let prompt = comfy(None, "POST", "/prompt", r#"{"prompt":{},"client_id":"c1"}"#);
        assert_eq!(socket.key, Some(RingKey::new(Source::ClientId, "c1")));
        assert_eq!(socket.key, prompt.key);
        assert!(socket.names.is_empty() && prompt.names.is_empty());
        assert_eq!(prompt.told_as, Some("prompt_id"));
        assert!(socket.marks && prompt.marks);
        let [client, known] = <[String; 2]>::try_from(prompt.leaves).expect("two names");
        let history = comfy(None, "GET", "/api/history/p1", "");
        let name = "default/m prompt-id p1".to_owned();
        assert_eq!(history.names, std::slice::from_ref(&name));
        assert_eq!(history.only, Some(Only { what: "p1".into(), known_by: KnownBy::Job(name) }));
        assert_eq!(history.ask_around, Some(Absence::Nothing));
        assert_eq!((history.tells, history.marks), (Some("filename"), false));
        assert_eq!(comfy(None, "POST", "/upload/image", "").tells, Some("name"));
        assert_eq!(comfy(None, "GET", "/queue", "").names, [client]);
        let view = comfy(None, "GET", "/view?type=output&filename=a+b%2Epng", "");
        let told = "default/m\n10.0.0.9\na b.png".to_owned();
        let only = |what: &str, known_by| Some(Only { what: what.to_owned(), known_by });
        assert_eq!(view.only, only("a b.png", KnownBy::Told(told)));
        assert!(view.key.is_some_and(|key| key.source().binds()));
        let view = comfy(None, "GET", "/view?filename=a.png&clientId=c1", "");
        assert_eq!(view.only, only("a.png", KnownBy::Client(known)));
    }

    #[test]
    fn http_22_a_mark_leads_back_whatever_else_is_said() {
        let mark = mark(&EndpointId("painter-x2b".into()));
        assert_eq!(mark.len(), 16);
        let socket = comfy(Some(&mark), "GET", "/ws?clientId=c2", "");
        let view = comfy(Some(&mark), "GET", "/api/view?filename=a.png", "");
        assert_eq!(socket.key, view.key);
        let only = Some(Only { what: "a.png".into(), known_by: KnownBy::Mark });
        assert_eq!(view.only, only);
        assert!(socket.leaves.is_empty() && socket.key.is_some_and(|key| key.source().binds()));
    }

    #[test]
    fn nobody_is_known_by_what_is_longer_than_any_id() {
        let long = "x".repeat(1 << 20);
        let body = format!(r#"{{"prompt":{{}},"client_id":"{long}"}}"#);
        let nobody = comfy(None, "POST", "/prompt", r#"{"prompt":{}}"#);
        assert_eq!(comfy(None, "POST", "/prompt", &body), nobody);
        assert_eq!(comfy(None, "POST", &format!("/prompt?clientId={long}"), ""), nobody);
        let history = comfy(None, "GET", &format!("/history/{long}"), "");
        assert_eq!((history.only, history.ask_around), (None, None));
        assert_eq!(nobody.name_of(&ModelId::new("default", "m"), &long), None);
    }

    #[test]
    fn an_engine_that_knows_nothing_of_a_job_says_so_by_an_empty_object() {
        assert!(Absence::Nothing.is_told_by(200, Some(2)));
        assert!(Absence::Nothing.is_told_by(404, None));
        assert!(
            !Absence::Nothing.is_told_by(200, None) && !Absence::Nothing.is_told_by(200, Some(9))
        );
        assert!(!Absence::NotFound.is_told_by(200, Some(2)));
    }
}
