//! What a watch has told so far, so that a list after an interruption also tells what is gone (ROUTE-11).

use std::collections::HashSet;

use kube::ResourceExt;
use kube::runtime::watcher::Event;

use super::watching::Key;

/// One change of what there is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change<K> {
    /// The object is there, like this.
    Is(Key, K),
    /// It is there no more.
    Gone(Key),
    /// Everything that there is has been told.
    Complete,
}

impl<K> Change<K> {
    /// The same of what `read` makes of the object.
    pub(super) fn map<T>(self, read: impl FnOnce(K) -> T) -> Change<T> {
        match self {
            Self::Is(key, object) => Change::Is(key, read(object)),
            Self::Gone(key) => Change::Gone(key),
            Self::Complete => Change::Complete,
        }
    }
}

/// The names of all objects that a watch has told of.
#[derive(Debug, Default)]
pub(super) struct Seen {
    known: HashSet<Key>,
    /// The names that the list under way has told of.
    listing: Option<HashSet<Key>>,
}

impl Seen {
    /// What `event` changes.
    pub(super) fn take<K: ResourceExt>(&mut self, event: Event<K>) -> Vec<Change<K>> {
        match event {
            Event::Init => {
                self.listing = Some(HashSet::new());
                Vec::new()
            }
            Event::InitApply(object) => {
                let key = Key::of(&object);
                if let Some(listing) = &mut self.listing {
                    listing.insert(key.clone());
                }
                self.known.insert(key.clone());
                vec![Change::Is(key, object)]
            }
            Event::InitDone => {
                let listed = self.listing.take().unwrap_or_default();
                let gone: Vec<Key> = self.known.difference(&listed).cloned().collect();
                self.known = listed;
                gone.into_iter().map(Change::Gone).chain([Change::Complete]).collect()
            }
            Event::Apply(object) => {
                let key = Key::of(&object);
                self.known.insert(key.clone());
                vec![Change::Is(key, object)]
            }
            Event::Delete(object) => {
                let key = Key::of(&object);
                self.known.remove(&key);
                vec![Change::Gone(key)]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> ConfigMap {
        let object = json!({ "metadata": { "namespace": "default", "name": name } });
        serde_json::from_value(object).expect("an object")
    }

    fn left(events: Vec<Event<ConfigMap>>) -> BTreeSet<String> {
        let mut seen = Seen::default();
        let mut left = BTreeSet::new();
        for change in events.into_iter().flat_map(|event| seen.take(event)) {
            match change {
                Change::Is(key, _) => drop(left.insert(key.name)),
                Change::Gone(key) => drop(left.remove(&key.name)),
                Change::Complete => {}
            }
        }
        left
    }

    #[test]
    fn route_11_what_was_deleted_is_gone() {
        let events = vec![
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitDone,
            Event::Delete(object("a")),
        ];
        assert!(left(events).is_empty());
    }

    #[test]
    fn route_11_what_a_new_list_does_not_name_is_gone() {
        let events = vec![
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitDone,
            Event::Init,
            Event::InitApply(object("b")),
            Event::InitDone,
        ];
        assert_eq!(left(events), ["b".to_owned()].into());
    }

    #[test]
    fn a_list_that_breaks_off_takes_nothing_away() {
        let events = vec![
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitApply(object("b")),
            Event::InitDone,
            Event::Init,
            Event::InitApply(object("b")),
            Event::Init,
        ];
        assert_eq!(left(events), ["a".to_owned(), "b".to_owned()].into());
    }
}
