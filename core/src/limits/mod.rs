//! How much may be used: of the gateway, of a model, by a caller or a tenant. `ledger.rs` decides who may
//! now and keeps the accounts (`account.rs`); the rest says what a request asks for (`demand.rs`, `bounds.rs`), cuts it down to what fits
//! (`clamp.rs`), and refuses what cannot fit (`admission.rs`) or is not well-formed (`validate.rs`).

mod account;
mod admission;
mod bounds;
mod clamp;
mod demand;
mod headers;
mod ledger;
mod options;
mod rate;
mod stream_usage;
#[cfg(test)]
mod tests;
mod used;
mod validate;

pub use admission::{Admission, Excess};
pub use clamp::{Clamp, Clamped};
pub use demand::{Demand, LONGEST_WORD, OPAQUE_TOKENS};
pub use headers::{REQUEST_HEADERS, TOKEN_HEADERS, figures, limited_headers};
pub use ledger::{Charge, Ledger, Limited, Need, Policy, Scope, Standing, Unit};
pub use rate::Rate;
pub use stream_usage::{UsageEvents, with_usage};
pub use used::{Paid, Used};
pub use validate::{Invalid, validate};

/// What one caller may use, or the callers of one tenant together. `None` is no limit, zero is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallerLimits {
    /// Requests over time.
    pub requests: Option<Rate>,
    /// Requests at the same time.
    pub concurrent: Option<u32>,
    /// Tokens over time, of each model for itself.
    pub tokens: Option<Rate>,
}

impl CallerLimits {
    /// Whether anything is limited.
    pub fn any(&self) -> bool {
        self.requests.is_some() || self.concurrent.is_some() || self.tokens.is_some()
    }
}
