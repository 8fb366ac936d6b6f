//! Lists of models, in the shapes of those who ask: from the fleet alone, sleeping models included. No
//! engine is asked, so that one that hangs cannot hold a list up (HTTP-19).

mod anthropic;
mod ollama;
mod openai;

use serde::Serialize;

use crate::fleet::{Adapter, Fleet, Named, Served};

pub use ollama::{Show, VERSION as OLLAMA_VERSION};

/// How a model is doing at this moment, which the fleet does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Whether an engine is up.
    pub ready: bool,
    /// The Model's phase, such as `Idle`, `Loading` or `Ready`.
    pub phase: &'static str,
    /// Requests in flight and waiting.
    pub load: u64,
}

/// In whose shape the path that OpenAI and Anthropic share, `/v1/models`, is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's, for whoever sends `anthropic-version`.
    Anthropic,
}

/// The models that one caller sees, and how they are doing.
pub struct Lists<'f, S, L> {
    /// The models.
    pub fleet: &'f Fleet,
    /// Whether the caller may see a model.
    pub seen: S,
    /// How a model is doing.
    pub liveness: L,
}

/// One line of a list.
pub(super) struct Entry<'f> {
    /// What requests call it.
    id: &'f str,
    /// The model that answers.
    model: &'f Served,
    /// The adapter that makes it another one.
    adapter: Option<&'f Adapter>,
}

impl<'f> Entry<'f> {
    fn model(model: &'f Served) -> Self {
        Self { id: model.name(), model, adapter: None }
    }

    fn adapter(adapter: &'f Adapter, model: &'f Served) -> Self {
        Self { id: &adapter.name, model, adapter: Some(adapter) }
    }

    /// What a name leads to; of a label, the first of its models.
    fn named(named: &'f Named) -> Option<Self> {
        let model = named.candidates().first()?;
        Some(match named.adapter() {
            Some(adapter) => Self::adapter(adapter, model),
            None => Self::model(model),
        })
    }

    fn created(&self) -> u64 {
        self.adapter.map_or(self.model.created, |adapter| adapter.created)
    }
}

impl<S: Fn(&Served) -> bool, L: Fn(&Served) -> Liveness> Lists<'_, S, L> {
    /// Models and adapters, sorted by name.
    fn entries(&self) -> Vec<Entry<'_>> {
        let models = self.fleet.listed().map(|model| Entry::model(model));
        let adapters = self.fleet.adapters().map(|(adapter, base)| Entry::adapter(adapter, base));
        let mut entries: Vec<_> =
            models.chain(adapters).filter(|entry| (self.seen)(entry.model)).collect();
        entries.sort_by_key(|entry| entry.id);
        entries
    }

    /// The body of `GET /v1/models`: every model and adapter that is offered.
    pub fn models_list(&self, shape: Shape) -> Vec<u8> {
        match shape {
            Shape::OpenAi => openai::list(&self.entries(), &self.liveness),
            Shape::Anthropic => anthropic::list(&self.entries()),
        }
    }

    /// The body of `GET /v1/models/<id>`, for a name that was looked up.
    pub fn model_object(&self, named: &Named, shape: Shape) -> Vec<u8> {
        let Some(entry) = Entry::named(named) else { return Vec::new() };
        match shape {
            Shape::OpenAi => openai::object(&entry, (self.liveness)(entry.model)),
            Shape::Anthropic => anthropic::object(&entry),
        }
    }

    /// The body of `GET /api/tags`.
    pub fn ollama_tags(&self) -> Vec<u8> {
        ollama::list(&self.entries())
    }

    /// The body of `GET /api/ps`: those that are awake.
    pub fn ollama_running(&self) -> Vec<u8> {
        let mut entries = self.entries();
        entries.retain(|entry| (self.liveness)(entry.model).ready);
        ollama::list(&entries)
    }

    /// The body of `POST /api/show`, for a name that was looked up.
    pub fn ollama_show(&self, named: &Named) -> Vec<u8> {
        Entry::named(named).map(|entry| ollama::show(&entry)).unwrap_or_default()
    }
}

/// The body of `GET /api/version`.
pub fn ollama_version() -> Vec<u8> {
    ollama::version()
}

fn written(object: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and string keys are all there is, and those can always be written.
    serde_json::to_vec(object).unwrap_or_default()
}

/// `seconds` of Unix time as RFC 3339 writes them.
fn stamp(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or_default();
    jiff::Timestamp::from_second(seconds).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::{adapter, served};

    fn ids(body: &[u8], list: &str) -> Vec<String> {
        let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
        let ids = body[list].as_array().expect("a list").iter();
        ids.map(|item| item.get("id").unwrap_or(&item["name"]).as_str().unwrap().into()).collect()
    }

    #[test]
    fn adapters_are_listed_among_the_models_and_shown_like_them() {
        let models = vec![served("default", "base", &[]), served("default", "zeta", &[])];
        let (fleet, conflicts) =
            Fleet::with_adapters(models, vec![adapter("default", "sql", "base", "sql-expert")]);
        assert_eq!(conflicts, []);
        let liveness =
            |model: &Served| Liveness { ready: model.name() == "base", phase: "Ready", load: 0 };
        let lists = Lists { fleet: &fleet, seen: |_: &Served| true, liveness };
        let all = ["base", "sql-expert", "zeta"];
        assert_eq!(ids(&lists.models_list(Shape::OpenAi), "data"), all);
        assert_eq!(ids(&lists.models_list(Shape::Anthropic), "data"), all);
        assert_eq!(ids(&lists.ollama_tags(), "models"), all);
        assert_eq!(ids(&lists.ollama_running(), "models"), ["base", "sql-expert"]);
        let named = fleet.lookup("sql-expert").expect("there");
        let shown = lists.model_object(named, Shape::OpenAi);
        let shown: serde_json::Value = serde_json::from_slice(&shown).expect("JSON");
        assert_eq!((&shown["id"], &shown["parent"]), (&"sql-expert".into(), &"base".into()));
    }
}
