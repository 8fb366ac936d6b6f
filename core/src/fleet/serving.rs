//! Which models have which APIs, for requests that reach one that has not.

use super::{Fleet, Named, Served};
use crate::backends::Api;
use crate::rejection::Rejection;

const MOST_NAMED: usize = 3;

impl Fleet {
    /// Those candidates of `named` that can be asked at `path` for `api`; `None` is a path in no
    /// table, which any engine may have. If there are none, the answer says who does. Nothing is
    /// translated from one API to another.
    pub fn serving(&self, named: &Named, api: Option<Api>, path: &str) -> Result<Named, Rejection> {
        match named.narrowed(|model| serves(model, api, path)) {
            Some(narrowed) => Ok(narrowed),
            None => Err(self.not_served(named, api, path)),
        }
    }

    fn not_served(&self, named: &Named, api: Option<Api>, path: &str) -> Rejection {
        let first = named.candidates().first();
        let closed = first.filter(|model| !model.is_open_at(path));
        let open_at = closed.map(|model| model.effective.serve_paths.join(", "));
        let others = self.listed().filter(|other| api.is_some() && serves(other, api, path));
        let others: Vec<&str> = others.map(|other| other.name()).take(MOST_NAMED).collect();
        let others = match others.as_slice() {
            [] => None,
            [only] => Some(format!("{only} does")),
            several => Some(format!("{} do", several.join(", "))),
        };
        let hint = match (open_at, others) {
            (Some(paths), Some(others)) => Some(format!("it is asked at {paths} only; {others}")),
            (Some(paths), None) => Some(format!("it is asked at {paths} only")),
            (None, others) => others,
        };
        let name = match named.label() {
            Some(label) => label.to_owned(),
            None => first.map(|model| model.name().to_owned()).unwrap_or_default(),
        };
        Rejection::ApiNotServed { name, path: path.to_owned(), hint }
    }
}

fn serves(model: &Served, api: Option<Api>, path: &str) -> bool {
    api.is_none_or(|api| model.serves(api)) && model.is_open_at(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::served;

    const CHAT: (Option<Api>, &str) = (Some(Api::Chat), "/v1/chat/completions");
    const IMAGES: (Option<Api>, &str) = (Some(Api::ImageGenerations), "/v1/images/generations");

    fn with_backend(name: &str, backend: &str) -> Served {
        Served::new(served("default", name, &[]).effective, backend, "", 0)
    }

    fn asked(fleet: &Fleet, name: &str, (api, path): (Option<Api>, &str)) -> Result<Named, String> {
        let named = fleet.lookup(name).expect("there");
        fleet.serving(named, api, path).map_err(|rejection| rejection.message())
    }

    #[test]
    fn an_api_that_the_engine_lacks_is_answered_with_those_that_have_it() {
        let models = vec![
            with_backend("chat", "vllm"),
            with_backend("comic", "comfyui"),
            with_backend("photo", "diffusers"),
        ];
        let (fleet, _) = Fleet::build(models);
        assert!(asked(&fleet, "chat", CHAT).is_ok());
        let refused = asked(&fleet, "chat", IMAGES).expect_err("refused");
        assert!(refused.ends_with("; photo does"), "{refused}");

        let (alone, _) = Fleet::build(vec![with_backend("chat", "vllm")]);
        let refused = asked(&alone, "chat", IMAGES).expect_err("refused");
        assert_eq!(refused, "model 'chat' does not serve '/v1/images/generations'");
    }

    #[test]
    fn a_label_leads_to_those_of_its_models_that_serve_the_api() {
        let mut models = vec![with_backend("chat", "vllm"), with_backend("photo", "diffusers")];
        for model in &mut models {
            model.effective.service_labels = vec!["any".into()];
        }
        let (fleet, _) = Fleet::build(models);
        let names = |named: Result<Named, String>| -> Vec<String> {
            let named = named.expect("served");
            named.candidates().iter().map(|model| model.name().to_owned()).collect()
        };
        assert_eq!(names(asked(&fleet, "any", CHAT)), ["chat"]);
        assert_eq!(names(asked(&fleet, "any", IMAGES)), ["photo"]);
        let refused = asked(&fleet, "any", (Some(Api::Rerank), "/v1/rerank"));
        assert!(refused.is_ok_and(|named| named.single().is_some()));
        let refused = asked(&fleet, "any", (Some(Api::ComfyUi), "/prompt")).expect_err("refused");
        assert_eq!(refused, "model 'any' does not serve '/prompt'");
    }

    #[test]
    fn a_model_whose_paths_are_listed_is_asked_nowhere_else() {
        let mut ear = with_backend("ear", "vllm");
        ear.effective.serve_paths = vec!["/v1/audio".into(), "/health".into()];
        let (fleet, _) = Fleet::build(vec![ear, with_backend("chat", "vllm")]);
        let audio = (Some(Api::AudioTranscriptions), "/v1/audio/transcriptions");
        assert!(asked(&fleet, "ear", audio).is_ok());
        assert!(asked(&fleet, "ear", (None, "/health")).is_ok());
        let refused = asked(&fleet, "ear", CHAT).expect_err("refused");
        assert!(
            refused.ends_with("it is asked at /v1/audio, /health only; chat does"),
            "{refused}"
        );
        for path in ["/v1/audiobooks", "/healthy", "/metrics"] {
            let refused = asked(&fleet, "ear", (None, path)).expect_err(path);
            assert!(refused.ends_with("it is asked at /v1/audio, /health only"), "{refused}");
        }
    }

    #[test]
    fn an_engine_of_the_users_own_is_trusted_with_every_api() {
        assert!(with_backend("m", "sglang").serves(Api::Chat));
    }
}
