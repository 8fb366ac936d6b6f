//! Which models have which APIs, for requests that reach one that has not.

use super::{Fleet, Served};
use crate::backends::Api;
use crate::rejection::Rejection;

const MOST_NAMED: usize = 3;

impl Fleet {
    /// Whether `model` serves `api`, asked for at `path`; if not, the answer says who does. Nothing
    /// is translated from one API to another.
    pub fn must_serve(&self, model: &Served, api: Api, path: &str) -> Result<(), Rejection> {
        if model.serves(api) {
            return Ok(());
        }
        let others = self.listed().filter(|other| other.serves(api)).map(|other| other.name());
        let others: Vec<&str> = others.take(MOST_NAMED).collect();
        let hint = match others.as_slice() {
            [] => None,
            [only] => Some(format!("{only} does")),
            several => Some(format!("{} do", several.join(", "))),
        };
        Err(Rejection::ApiNotServed { name: model.name().into(), path: path.into(), hint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::served;

    fn with_backend(name: &str, backend: &str) -> Served {
        Served::new(served("default", name, &[]).effective, backend, "", 0)
    }

    #[test]
    fn an_api_that_the_engine_lacks_is_answered_with_those_that_have_it() {
        let models = vec![
            with_backend("chat", "vllm"),
            with_backend("comic", "comfyui"),
            with_backend("photo", "diffusers"),
        ];
        let (fleet, _) = Fleet::build(models);
        let chat = fleet.resolve("chat").expect("there");
        let path = "/v1/images/generations";
        assert_eq!(fleet.must_serve(chat, Api::Chat, "/v1/chat/completions"), Ok(()));
        let refused = fleet.must_serve(chat, Api::ImageGenerations, path).expect_err("refused");
        assert!(refused.message().ends_with("; photo does"), "{}", refused.message());

        let (alone, _) = Fleet::build(vec![with_backend("chat", "vllm")]);
        let refused = alone.must_serve(chat, Api::ImageGenerations, path).expect_err("refused");
        assert_eq!(refused.message(), format!("model 'chat' does not serve '{path}'"));
    }

    #[test]
    fn an_engine_of_the_users_own_is_trusted_with_every_api() {
        assert!(with_backend("m", "sglang").serves(Api::Chat));
    }
}
