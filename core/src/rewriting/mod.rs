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
pub use splice::{Misplaced, Rope, Splice, splice};
