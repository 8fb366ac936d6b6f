//! Changing a body without touching the rest of it: what an engine must see differently is spliced,
//! and every other byte is the one that the client sent, in place and not copied. For JSON and for
//! forms alike. Called when a slot is booked, since the name depends on the model that was chosen.

mod form;
mod json;
mod splice;
#[cfg(test)]
mod tests;

pub use form::form_model;
pub use json::{json_model, json_string};
pub use splice::{Misplaced, Rope, Splice, splice, spliced};

use crate::openai::Understood;

/// What makes `body` fit for an engine that insists on being called `name`; `None` leaves the
/// client's name. Even then a byte order mark does not go on to the engine.
pub fn for_engine(body: &Understood, name: Option<&str>) -> Vec<Splice> {
    match (body, name) {
        (Understood::Json(facts), Some(name)) => json_model(facts, name),
        (Understood::Json(facts), None) => json::without_mark(facts).into_iter().collect(),
        (Understood::Form(form), Some(name)) => form_model(form, name),
        (Understood::Form(_), None) | (Understood::Opaque, _) => Vec::new(),
    }
}
