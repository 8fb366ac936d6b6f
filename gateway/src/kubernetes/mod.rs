//! The cluster platform: Models are objects, engines are pods that the controller starts. This watches,
//! balances over endpoints, and reports what is asked for, which is what wakes a model.
//!
//! Guardrails. The kube client belongs to the runtime that made it and stays in here. Everything served
//! comes from the last snapshot: while the API server is away, nothing changes. One broken object never
//! stops a watch.

mod adapters;
mod connection;
mod doors;
mod endpoints;
mod external;
mod models;
mod observer;
mod orders;
mod pools;
mod probing;
mod reporting;
mod run;
mod said;
mod seen;
mod status;
mod watching;

pub use run::run;
