//! Prints the custom resource definitions as one JSON object from file name to YAML. `cargo xtask
//! generate` writes them to `crds/yaml`; it runs this, so that xtask itself needs no Kubernetes.

use std::collections::BTreeMap;
use std::error::Error;

use flexinfer_crds::{LoRAAdapter, Model};
use kube::{CustomResourceExt, ResourceExt};

const HEADER: &str = "# Made from crds/src by `cargo xtask generate`; do not edit.\n";

fn main() -> Result<(), Box<dyn Error>> {
    let definitions = vec![Model::crd(), LoRAAdapter::crd()];
    let mut files = BTreeMap::new();
    for definition in definitions {
        let yaml = serde_saphyr::to_string(&definition)?;
        files.insert(format!("{}.yaml", definition.name_any()), format!("{HEADER}{yaml}"));
    }
    println!("{}", serde_json::to_string(&files)?);
    Ok(())
}
