//! `GET /v1/models` and `GET /v1/models/<id>`: from the fleet alone, sleeping models included. No
//! engine is asked, so that one that hangs cannot hold the list up.

use serde::Serialize;

use crate::fleet::{Fleet, Served};
use crate::ids::GroupId;

/// How a model is doing at this moment, which the fleet does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// Whether an engine is up.
    pub ready: bool,
    /// The Model's phase, such as `Idle`, `Loading` or `Ready`.
    pub phase: &'static str,
}

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
}

impl<'a> Item<'a> {
    fn of(model: &'a Served, liveness: Liveness) -> Self {
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
            served_model_name: model.name_for_engine().unwrap_or(model.name()),
            aliases: &effective.aliases,
            service_labels: &effective.service_labels,
        };
        Self {
            id: model.name(),
            object: "model",
            created: model.created,
            owned_by: "flexinfer",
            metadata,
        }
    }
}

/// The body of `GET /v1/models`: every model that is offered and may be `seen` by whoever asks, sorted
/// by name.
pub fn models_list(
    fleet: &Fleet,
    seen: impl Fn(&Served) -> bool,
    liveness: impl Fn(&Served) -> Liveness,
) -> Vec<u8> {
    let seen = fleet.listed().filter(|model| seen(model));
    let data = seen.map(|model| Item::of(model, liveness(model))).collect();
    written(&List { object: "list", data })
}

/// The body of `GET /v1/models/<id>` for a model that [`Fleet::resolve`] found.
pub fn model_object(model: &Served, liveness: Liveness) -> Vec<u8> {
    written(&Item::of(model, liveness))
}

fn written(object: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and string keys are all there is, and those can always be written.
    serde_json::to_vec(object).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::served;

    const ASLEEP: Liveness = Liveness { ready: false, phase: "Idle" };

    fn text(body: Vec<u8>) -> String {
        String::from_utf8(body).expect("JSON is UTF-8")
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
            "llama" => Liveness { ready: true, phase: "Ready" },
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
        let one = text(model_object(fleet.resolve("qwen").expect("there"), ASLEEP));
        let list = text(models_list(&fleet, |_| true, |_| ASLEEP));
        assert_eq!(list, format!(r#"{{"object":"list","data":[{one}]}}"#));
    }

    #[test]
    fn what_may_not_be_seen_is_not_listed() {
        let (fleet, _) = Fleet::build(vec![served("default", "qwen", &[])]);
        let body = models_list(&fleet, |_| false, |_| ASLEEP);
        assert_eq!(text(body), r#"{"object":"list","data":[]}"#);
    }
}
