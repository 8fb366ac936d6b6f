//! The HTTP APIs of models as the gateway sees them, OpenAI's first of all: which paths there are, what
//! a request says that matters for routing, what an answer says that matters for accounting, and how to
//! say no in the words of whoever asked.

pub mod apis;
mod content_type;
mod dialect;
mod errors;
pub mod facts;
pub mod form;
pub mod frames;
pub mod lists;
pub mod paths;
mod pieces;
pub mod query;
mod skim;
mod stream;
mod understood;
mod usage;

#[cfg(test)]
mod tests;

pub use content_type::{BodyKind, Boundary};
pub use dialect::Dialect;
pub use errors::{CONTENT_TYPE, error_body};
pub use facts::Facts;
pub use form::{Form, FormScanner};
pub use lists::{Lists, Liveness};
pub use pieces::Pieces;
pub use stream::Stream;
pub use understood::Understood;
pub use usage::{SessionUsage, Usage, UsageReader};
