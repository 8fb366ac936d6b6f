//! Models as Anthropic's clients list them: one page of all.

use serde::Serialize;

use super::{Entry, stamp, written};

#[derive(Serialize)]
struct List<'a> {
    data: Vec<Item<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Item<'a> {
    r#type: &'static str,
    id: &'a str,
    display_name: &'a str,
    created_at: String,
}

impl<'a> Item<'a> {
    fn of(entry: &Entry<'a>) -> Self {
        let (id, created_at) = (entry.id, stamp(entry.created()));
        Self { r#type: "model", id, display_name: id, created_at }
    }
}

pub(super) fn list(entries: &[Entry<'_>]) -> Vec<u8> {
    let data: Vec<_> = entries.iter().map(Item::of).collect();
    let (first_id, last_id) = (data.first().map(|item| item.id), data.last().map(|item| item.id));
    written(&List { has_more: false, first_id, last_id, data })
}

pub(super) fn object(entry: &Entry<'_>) -> Vec<u8> {
    written(&Item::of(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::tests::served;

    #[test]
    fn models_are_listed_on_one_page() {
        let models = [served("default", "llama", &[]), served("default", "qwen", &[])];
        let entries: Vec<_> = models.iter().map(Entry::model).collect();
        let body: serde_json::Value = serde_json::from_slice(&list(&entries)).expect("JSON");
        assert_eq!((&body["first_id"], &body["last_id"]), (&"llama".into(), &"qwen".into()));
        assert_eq!(body["has_more"], false);
        let alone: serde_json::Value = serde_json::from_slice(&object(&entries[1])).expect("JSON");
        assert_eq!(body["data"][1], alone);
        assert_eq!(alone["created_at"], "2023-11-14T22:13:20Z");
    }

    #[test]
    fn no_models_are_an_empty_page() {
        let body: serde_json::Value = serde_json::from_slice(&list(&[])).expect("JSON");
        assert_eq!(body["data"], serde_json::json!([]));
        assert!(body["first_id"].is_null());
    }
}
