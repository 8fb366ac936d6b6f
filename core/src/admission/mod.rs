//! What the controller says when a cluster's API server asks it about an object before it is stored: whether it can
//! work ([`validate`]), and what is written into it that its author left open ([`set_defaults`]). From the question's
//! bytes to the answer's; when certificates for this conversation are renewed is in [`certificates`].

pub mod certificates;
mod defaults;
mod review;
mod validation;

#[cfg(test)]
mod tests;

pub use defaults::set_defaults;
pub use review::BadReview;
pub use validation::validate;
