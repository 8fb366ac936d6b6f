//! On which terms sources are asked.

use super::{Hub, Patience};

/// Whom a download may ask for what, and how long it goes on trying.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The hub.
    pub hub: Hub,
    /// Registries, as `host` or `host:port`, that are asked over plain http, besides those on this machine.
    pub insecure_registries: Vec<String>,
    /// How often and how soon a failure is tried again.
    pub patience: Patience,
}

impl Terms {
    /// The usual ones, with this hub.
    pub fn with(hub: Hub) -> Self {
        Self { hub, insecure_registries: Vec::new(), patience: Patience::default() }
    }
}
