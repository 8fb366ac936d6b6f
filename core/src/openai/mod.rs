//! OpenAI's HTTP API as the gateway sees it: which paths there are, what a request says that matters
//! for routing, what an answer says that matters for accounting, and how to say no.

mod content_type;
mod errors;
pub mod facts;
pub mod form;
mod models_list;
pub mod paths;
mod understood;
mod usage;

pub use content_type::{BodyKind, Boundary};
pub use errors::{CONTENT_TYPE, error_body};
pub use facts::Facts;
pub use form::{Form, FormScanner};
pub use models_list::{Liveness, model_object, models_list};
pub use understood::Understood;
pub use usage::{Usage, UsageReader};
