//! Prints the files that are made from the types, as one JSON object from path to content: custom
//! resource definitions, and the pages that tell of them. `cargo xtask generate` writes them; it runs
//! this, so that xtask itself needs no Kubernetes.

mod page;

use std::collections::BTreeMap;
use std::error::Error;

use flexinfer_crds::{LoRAAdapter, Model};
use kube::{CustomResourceExt, ResourceExt};

const HEADER: &str = "# Made from crds/src by `cargo xtask generate`; do not edit.\n";

fn main() -> Result<(), Box<dyn Error>> {
    let definitions = vec![
        (Model::crd(), "docs/reference/model.md"),
        (LoRAAdapter::crd(), "docs/reference/lora-adapter.md"),
    ];
    let mut files = BTreeMap::new();
    for (definition, page) in definitions {
        let yaml = serde_saphyr::to_string(&definition)?;
        files
            .insert(format!("crds/yaml/{}.yaml", definition.name_any()), format!("{HEADER}{yaml}"));
        let kind = definition.spec.names.kind.clone();
        let schema = serde_json::to_value(&definition)?;
        files.insert(page.to_owned(), page::page(&kind, &schema));
    }
    println!("{}", serde_json::to_string(&files)?);
    Ok(())
}
