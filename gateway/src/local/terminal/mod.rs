//! What a person at a terminal sees: a summary at the start, then one line for whatever happens to a
//! model. Text only; who prints it decides where it goes.

mod banner;
mod lines;

pub use banner::{Banner, Row};
pub use lines::Lines;

use flexinfer_core::ids::ModelId;

/// A model as people call it: without the namespace that local files rarely name.
fn short(model: &ModelId) -> String {
    if &*model.namespace == "default" { model.name.to_string() } else { model.to_string() }
}

/// `count` of what is called `one` or `many`.
fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}
