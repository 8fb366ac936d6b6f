//! Models as OpenAI's clients list them, with what else is known of them under `metadata`.

use serde::Serialize;

use super::{Entry, Liveness, written};
use crate::fleet::Served;
use crate::ids::GroupId;

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Item<'a>>,
}

#[derive(Serialize)]
struct Item<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// The model that an adapter is added to.
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<&'a str>,
    metadata: Metadata<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    backend: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    source: &'a str,
    ready: bool,
    version: &'static str,
    phase: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_shared: Option<&'a str>,
    gpu_priority: i32,
    served_model_name: &'a str,
    aliases: &'a [String],
    service_labels: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_input_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
}

impl<'a> Item<'a> {
    fn of(entry: &Entry<'a>, liveness: Liveness) -> Self {
        let model = entry.model;
        let effective = &model.effective;
        let gpu_shared = match &effective.group {
            GroupId::Shared { name, .. } => Some(&**name),
            GroupId::Alone(_) => None,
        };
        let metadata = Metadata {
            backend: &model.backend,
            source: &model.source,
            ready: liveness.ready,
            version: "v1alpha2",
            phase: liveness.phase,
            gpu_shared,
            gpu_priority: effective.priority,
            served_model_name: match entry.adapter {
                Some(adapter) => &adapter.name,
                None => model.name_for_engine().unwrap_or(model.name()),
            },
            // Other names lead to the model without its adapter.
            aliases: if entry.adapter.is_some() { &[] } else { &effective.aliases },
            service_labels: if entry.adapter.is_some() { &[] } else { &effective.service_labels },
            context_window: effective.context_window,
            max_input_tokens: effective.max_input_tokens,
            max_output_tokens: effective.max_output_tokens,
        };
        Self {
            id: entry.id,
            object: "model",
            created: entry.created(),
            owned_by: "flexinfer",
            parent: entry.adapter.map(|_| model.name()),
            metadata,
        }
    }
}

pub(super) fn list(entries: &[Entry<'_>], liveness: impl Fn(&Served) -> Liveness) -> Vec<u8> {
    let data = entries.iter().map(|entry| Item::of(entry, liveness(entry.model))).collect();
    written(&List { object: "list", data })
}

pub(super) fn object(entry: &Entry<'_>, liveness: Liveness) -> Vec<u8> {
    written(&Item::of(entry, liveness))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Fleet;
    use crate::fleet::tests::{adapter, served};
    use crate::openai::lists::{Lists, Shape};

    const ASLEEP: Liveness = Liveness { ready: false, phase: "Idle", load: 0 };

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).expect("JSON is UTF-8")
    }

    fn models_list(
        fleet: &Fleet,
        seen: impl Fn(&Served) -> bool,
        liveness: impl Fn(&Served) -> Liveness,
    ) -> Vec<u8> {
        Lists { fleet, seen, liveness }.models_list(Shape::OpenAi)
    }

    #[test]
    fn models_are_listed_by_name_and_parked_ones_are_not() {
        let mut grouped = served("default", "llama", &["gpt-4"]);
        grouped.effective.group =
            GroupId::Shared { namespace: "default".into(), name: "gpu0".into() };
        grouped.source = "HF://org/llama".into();
        grouped.effective.served_name = Some("org/llama".into());
        let mut parked = served("default", "hidden", &[]);
        parked.effective.parked = true;
        let (fleet, _) = Fleet::build(vec![served("default", "qwen", &[]), grouped, parked]);
        let liveness = |model: &Served| match model.name() {
            "llama" => Liveness { ready: true, phase: "Ready", load: 0 },
            _ => ASLEEP,
        };
        insta::assert_snapshot!(text(models_list(&fleet, |_| true, liveness)));
    }

    #[test]
    fn no_models_are_an_empty_list() {
        let body = models_list(&Fleet::default(), |_| true, |_| ASLEEP);
        assert_eq!(text(body), r#"{"object":"list","data":[]}"#);
    }

    #[test]
    fn one_model_is_what_its_line_in_the_list_says() {
        let (fleet, _) = Fleet::build(vec![served("default", "qwen", &[])]);
        let one = text(object(&Entry::model(fleet.resolve("qwen").expect("there")), ASLEEP));
        let list = text(models_list(&fleet, |_| true, |_| ASLEEP));
        assert_eq!(list, format!(r#"{{"object":"list","data":[{one}]}}"#));
    }

    #[test]
    fn an_adapter_has_none_of_the_other_names_of_its_model() {
        let mut base = served("default", "qwen", &["gpt-4"]);
        base.effective.service_labels = vec!["textgen".into()];
        let (fleet, _) =
            Fleet::with_adapters(vec![base], vec![adapter("default", "sql", "qwen", "sql-expert")]);
        let list = models_list(&fleet, |_| true, |_| ASLEEP);
        let list: serde_json::Value = serde_json::from_slice(&list).expect("JSON");
        let metadata = |nth: usize| &list["data"][nth]["metadata"];
        assert_eq!(metadata(0)["aliases"][0], "gpt-4", "{list}");
        for names in ["aliases", "service_labels"] {
            assert_eq!(metadata(1)[names], serde_json::json!([]), "{list}");
        }
    }

    #[test]
    fn what_may_not_be_seen_is_not_listed() {
        let (fleet, _) = Fleet::build(vec![served("default", "qwen", &[])]);
        let body = models_list(&fleet, |_| false, |_| ASLEEP);
        assert_eq!(text(body), r#"{"object":"list","data":[]}"#);
    }
}
