//! What a queue is told of a model that says nothing of itself.

use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::queueing::Terms;
use flexinfer_crds::Model;
use flexinfer_crds::model::ModelSpec;

pub(crate) fn terms(name: &str) -> Terms {
    let spec = ModelSpec { backend: "simulator".to_owned(), ..ModelSpec::default() };
    Terms::from(&Effective::of(&Model::new(name, spec), 1, &Defaults::default()).unwrap())
}
