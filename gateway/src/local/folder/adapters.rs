//! Which file defines which LoRA adapter, by the rules that hold for Models.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flexinfer_core::ids::ModelId;
use flexinfer_core::manifest::ParsedAdapter;

use super::ListedAdapter;

/// Everything that the files define.
#[derive(Default)]
pub(super) struct Adapters {
    files: BTreeMap<PathBuf, Vec<ListedAdapter>>,
}

impl Adapters {
    /// Takes in what a file says now. One that is `faulty` keeps the adapters it defined before and that
    /// are not understood now.
    pub(super) fn update(&mut self, file: &Path, understood: Vec<ParsedAdapter>, faulty: bool) {
        let listed = |ParsedAdapter { adapter, line }| ListedAdapter {
            id: id_of(&adapter.metadata),
            adapter: Arc::new(adapter),
            file: file.to_path_buf(),
            line,
        };
        let mut adapters: Vec<_> = understood.into_iter().map(listed).collect();
        if faulty {
            let known: BTreeSet<_> = adapters.iter().map(|adapter| adapter.id.clone()).collect();
            let before = self.files.remove(file).unwrap_or_default();
            adapters.extend(before.into_iter().filter(|adapter| !known.contains(&adapter.id)));
        }
        self.files.insert(file.to_path_buf(), adapters);
    }

    /// Takes in that a file is gone.
    pub(super) fn remove(&mut self, file: &Path) {
        self.files.remove(file);
    }

    /// The adapters of all files, in the order of their names. One that two files define is that of the
    /// first file, which is told.
    pub(super) fn contents(&self, complaints: &mut Vec<String>) -> Vec<ListedAdapter> {
        let mut served: BTreeMap<&ModelId, &ListedAdapter> = BTreeMap::new();
        for adapter in self.files.values().flatten() {
            match served.get(&adapter.id) {
                None => drop(served.insert(&adapter.id, adapter)),
                Some(first) => complaints.push(format!(
                    "{}:{}: the LoRAAdapter {} is defined in {}:{} already, and that one is served; remove one",
                    adapter.file.display(),
                    adapter.line,
                    adapter.id,
                    first.file.display(),
                    first.line
                )),
            }
        }
        served.into_values().cloned().collect()
    }
}

fn id_of(metadata: &flexinfer_crds::ObjectMeta) -> ModelId {
    let namespace = metadata.namespace.as_deref().unwrap_or("default");
    ModelId::new(namespace, metadata.name.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, uri: &str) -> ParsedAdapter {
        let adapter = serde_json::json!({
            "apiVersion": "inference.flexinfer.ai/v1alpha2",
            "kind": "LoRAAdapter",
            "metadata": { "name": name },
            "spec": {
                "modelRef": "m", "adapterName": name, "source": { "type": "LocalPath", "uri": uri },
            },
        });
        ParsedAdapter { adapter: serde_json::from_value(adapter).unwrap(), line: 1 }
    }

    fn shown(adapters: &Adapters) -> (Vec<String>, Vec<String>) {
        let mut complaints = Vec::new();
        let contents = adapters.contents(&mut complaints);
        let show = |listed: &ListedAdapter| {
            format!("{}={}", listed.id.name, listed.adapter.spec.source.uri)
        };
        (contents.iter().map(show).collect(), complaints)
    }

    #[test]
    fn adapters_come_change_stay_through_faults_and_go() {
        let (a, b) = (Path::new("a"), Path::new("b"));
        let mut adapters = Adapters::default();
        adapters.update(a, vec![parsed("x", "1"), parsed("y", "1")], false);
        adapters.update(b, vec![parsed("x", "2")], false);
        let (served, complaints) = shown(&adapters);
        assert_eq!(served, ["x=1", "y=1"]);
        assert!(complaints[0].starts_with("b:1: the LoRAAdapter default/x is defined in a:1"));
        adapters.update(a, vec![parsed("y", "3")], true);
        assert_eq!(shown(&adapters).0, ["x=1", "y=3"]);
        adapters.update(a, vec![], false);
        assert_eq!(shown(&adapters), (vec!["x=2".into()], vec![]));
        adapters.remove(b);
        assert_eq!(shown(&adapters).0, [""; 0]);
    }
}
