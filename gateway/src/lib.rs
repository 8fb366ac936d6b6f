//! The gateway: one front door for every model. `docs/request-path.md` tells a request's way through it.

pub mod accounts;
pub mod admin;
pub mod keys;
pub mod kubernetes;
pub mod labels;
pub mod lifecycle;
pub mod local;
pub mod metrics;
pub mod open_files;
pub mod parts;
mod pictures;
pub mod proxy;
pub mod queues;
pub mod remembered;
pub mod replay;
pub mod rules;
pub mod secrets;
pub mod server;
pub mod settings;
pub mod signals;
pub mod telemetry;
pub mod tls;

pub mod adapters;
mod ask;
mod context;
mod decimal;
mod followed;
mod stages;
mod way;
