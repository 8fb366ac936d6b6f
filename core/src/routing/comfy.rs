//! What ties the requests of ComfyUI's clients. A client says who it is where it opens its socket and queues a job, and
//! not where it asks what came of that. Pictures are counted by each engine for itself, so that several have one of the
//! same name, made for different people: nobody is shown one by an engine that has not told him of it.

use std::borrow::Cow;

use serde::Deserialize;

use super::key::{Key as RingKey, Source};
use super::mark::Mark;
use super::tie::{Absence, Asked, KnownBy, LONGEST, Only, Tie, after, parameter, path};
use crate::ids::ModelId;

/// What queries and answers call a picture.
const FILE: &str = "filename";

/// The client that a job of ComfyUI's names. Goes through all of `body`; one that is something else is for the engine
/// to refuse.
pub fn client_id(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Job {
        client_id: Option<String>,
    }
    serde_json::from_slice::<Job>(body).ok()?.client_id.filter(|id| id.len() <= LONGEST)
}

/// What it is remembered by that `client` was told of the picture `file`.
pub fn picture(model: &ModelId, client: &str, file: &str) -> String {
    format!("{model}\n{client}\n{file}")
}

/// Whether what is asked for is one file of those that engines have each for themselves, by its query: so ask ComfyUI's
/// `/view` and what is added to ComfyUI to show films and sounds. Of ComfyUI's own paths no other does.
pub fn shows_file(method: &str, url: &str, listed: bool) -> bool {
    let asks = matches!(method, "GET" | "HEAD") && (!listed || path(url).ends_with("/view"));
    asks && parameter(url, FILE).is_some()
}

/// A client with a mark comes back to the endpoint that it was given by, with all it asks. One that says who it is has
/// one by the ring. Any other comes back to where it was, or at least always to the same.
pub(super) fn tie(asked: &Asked<'_>) -> Tie {
    let path = path(asked.path);
    let job = after(asked.path, "/history/").map(Cow::into_owned);
    let shown = shows_file(asked.method, asked.path, asked.listed);
    let file = parameter(asked.path, FILE).filter(|_| shown).map(Cow::into_owned);
    let queues = asked.method == "POST" && path.ends_with("/prompt");
    let tie = Tie {
        tells: tells(asked.method, path).filter(|_| asked.listed),
        told_as: queues.then_some("prompt_id"),
        ..Tie::default()
    };
    if let Some(mark) = asked.mark {
        return of_marked(asked, mark, (job, file), tie);
    }
    let client = asked.name(Source::Client, asked.client);
    let told = parameter(asked.path, "clientId").or(asked.told.map(Cow::Borrowed));
    if let Some(id) = told.filter(|id| !id.is_empty() && id.len() <= LONGEST) {
        let own = asked.name(Source::ClientId, &id);
        return Tie {
            key: Some(RingKey::new(Source::ClientId, &id)),
            only: file.map(|what| {
                let known_by = KnownBy::Own(picture(asked.model, &own, &what));
                Only { what, known_by }
            }),
            told_to: vec![asked.client.to_owned(), own.clone()],
            queued_by: queues.then_some(own),
            leaves: vec![client],
            marks: true,
            ..tie
        };
    }
    let tie = Tie { told_to: vec![asked.client.to_owned()], ..tie };
    if let Some(what) = job.filter(|job| job.len() <= LONGEST) {
        return of_job(asked, what, tie);
    }
    let key = Some(RingKey::new(Source::Client, asked.client));
    let only = file.map(|what| {
        let known_by = KnownBy::Told(picture(asked.model, asked.client, &what));
        Only { what, known_by }
    });
    Tie { names: vec![client], key, only, ..tie }
}

/// That of a client with a mark, which asks for a job or a file. As long as it was at no other endpoint, whatever it was
/// told of is where it is.
fn of_marked(
    asked: &Asked<'_>,
    mark: &Mark,
    (job, file): (Option<String>, Option<String>),
    tie: Tie,
) -> Tie {
    let own = asked.name(Source::Mark, &mark.client().to_string());
    let tie = Tie { key: Some(mark.key()), told_to: vec![own.clone()], marks: true, ..tie };
    match (job, file) {
        (Some(what), _) if !mark.has_moved() => {
            Tie { only: Some(Only { what, known_by: KnownBy::Mark }), ..tie }
        }
        (Some(what), _) if what.len() <= LONGEST => of_job(asked, what, tie),
        (None, Some(what)) => {
            let told = picture(asked.model, &own, &what);
            let known_by =
                if mark.has_moved() { KnownBy::Moved(told) } else { KnownBy::Marked(told) };
            Tie { only: Some(Only { what, known_by }), ..tie }
        }
        _ => tie,
    }
}

/// That of who asks for a job. One that nobody is known to have taken is asked of one endpoint after the other, each in
/// its turn: not all say at once that they have it not.
fn of_job(asked: &Asked<'_>, what: String, tie: Tie) -> Tie {
    let name = asked.name(Source::PromptId, &what);
    Tie {
        ask_around: Some(Absence::Nothing),
        names: vec![name.clone()],
        key: None,
        only: Some(Only { what, known_by: KnownBy::Job(name) }),
        ..tie
    }
}

/// The field by which the answer names pictures that its client may ask for.
fn tells(method: &str, path: &str) -> Option<&'static str> {
    let last = path.rsplit('/').next().unwrap_or_default();
    if method == "POST" {
        return path.contains("/upload/").then_some("name");
    }
    let tells = last == "history" || last == "ws" || path.contains("/history/");
    tells.then_some(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::EndpointId;
    use crate::routing::{BodyReader, ClientNumber, Presence};

    fn comfy(mark: Option<&Mark>, method: &str, path: &str, body: &str) -> Tie {
        asked_by(mark, true, method, path, body)
    }

    fn asked_by(mark: Option<&Mark>, listed: bool, method: &str, path: &str, body: &str) -> Tie {
        let model = ModelId::new("default", "m");
        let told = client_id(body.as_bytes());
        let (told, client) = (told.as_deref(), "10.0.0.9");
        tie(&Asked { model: &model, method, path, told, client, listed, mark })
    }

    fn only(what: &str, known_by: KnownBy) -> Only {
        Only { what: what.to_owned(), known_by }
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
        let own = "default/m client-id c1".to_owned();
        assert_eq!(socket.told_to, ["10.0.0.9".to_owned(), own.clone()]);
        assert_eq!((socket.queued_by, prompt.queued_by), (None, Some(own)));
        let history = comfy(None, "GET", "/api/history/p1", "");
        let name = "default/m prompt-id p1".to_owned();
        assert_eq!(history.names, std::slice::from_ref(&name));
        assert_eq!(history.only, Some(only("p1", KnownBy::Job(name))));
        assert_eq!((history.ask_around, &history.key), (Some(Absence::Nothing), &None));
        assert_eq!((history.tells, history.marks), (Some("filename"), false));
        assert_eq!(comfy(None, "POST", "/upload/image", "").tells, Some("name"));
        assert_eq!(comfy(None, "GET", "/queue", "").names, prompt.leaves);
        let view = comfy(None, "GET", "/view?type=output&filename=a+b%2Epng", "");
        let told = "default/m\n10.0.0.9\na b.png".to_owned();
        assert_eq!(view.only, Some(only("a b.png", KnownBy::Told(told))));
        assert!(view.key.is_some_and(|key| key.source().binds()));
        let view = comfy(None, "GET", "/view?file%6Eame=a.png&clientId=c1", "");
        let own = "default/m\ndefault/m client-id c1\na.png".to_owned();
        assert_eq!(view.only, Some(only("a.png", KnownBy::Own(own))));
    }

    #[test]
    fn http_22_a_mark_leads_back_whatever_else_is_said() {
        let [here, there] = ["painter-x2b", "painter-9qk"].map(|name| EndpointId(name.into()));
        let mark = Mark::new(&here, ClientNumber(7));
        let socket = comfy(Some(&mark), "GET", "/ws?clientId=c2", "");
        let view = comfy(Some(&mark), "GET", "/api/view?filename=a.png", "");
        assert_eq!(socket.key, view.key);
        let own = "default/m mark 0000000000000007";
        let told = format!("default/m\n{own}\na.png");
        assert_eq!(view.only, Some(only("a.png", KnownBy::Marked(told.clone()))));
        assert_eq!((&*socket.told_to, socket.tells), (&[own.to_owned()][..], Some("filename")));
        assert!(socket.leaves.is_empty() && socket.key.is_some_and(|key| key.source().binds()));
        let history = comfy(Some(&mark), "GET", "/history/p1", "");
        assert_eq!(history.only, Some(only("p1", KnownBy::Mark)));
        // Elsewhere, there may be another picture of that name.
        let moved = mark.moved_to(&there).expect("another");
        let view = comfy(Some(&moved), "GET", "/api/view?filename=a.png", "");
        assert_eq!(view.only, Some(only("a.png", KnownBy::Moved(told))));
        let history = comfy(Some(&moved), "GET", "/history/p1", "");
        assert_eq!(history.only, Some(only("p1", KnownBy::Job("default/m prompt-id p1".into()))));
        assert_eq!((&*history.told_to, history.marks), (&[own.to_owned()][..], true));
    }

    #[test]
    fn what_is_added_to_comfyui_shows_files_by_their_names_as_well() {
        let only = |listed, method, path| {
            asked_by(None, listed, method, path, "").only.map(|only| only.what)
        };
        let film = Some("a.mp4".to_owned());
        assert_eq!(only(false, "GET", "/viewvideo?filename=a.mp4&type=output"), film);
        assert_eq!(only(false, "HEAD", "/vhs/viewaudio?filename=a.mp4"), film);
        assert_eq!(only(false, "POST", "/vhs/viewvideo?filename=a.mp4"), None);
        assert_eq!(only(false, "GET", "/vhs/viewvideo?name=a.mp4"), None);
        assert_eq!(only(true, "GET", "/view_metadata/loras?filename=a.safetensors"), None);
        let told = asked_by(None, false, "GET", "/x/history/y?filename=a.mp4", "");
        assert_eq!(told.tells, None, "who knows what that says?");
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
        let nothing = |status, length| Absence::Nothing.presence(status, length);
        assert_eq!(nothing(200, Some(2)), Presence::Absent);
        assert_eq!(nothing(404, None), Presence::Absent);
        assert_eq!(nothing(200, Some(9)), Presence::Here);
        assert_eq!(nothing(200, None), Presence::Untold);
        assert_eq!(Absence::NotFound.presence(200, Some(2)), Presence::Here);
        assert_eq!(Absence::NotFound.presence(200, None), Presence::Here);
    }

    #[test]
    fn an_object_of_unknown_length_is_empty_until_something_in_it_is_seen() {
        let found = |pieces: &[&str]| {
            let mut body = BodyReader::default();
            pieces.iter().map(|piece| body.look(piece.as_bytes())).collect::<Vec<_>>()
        };
        assert_eq!(found(&["{}", "\r\n"]), [false, false]);
        assert_eq!(found(&["{ ", " }"]), [false, false]);
        assert_eq!(found(&["{", "\"", "p1", "\":{}}"]), [false, false, true, false]);
        assert_eq!(found(&[r#"{"p1":{}}"#]), [true]);
    }
}
