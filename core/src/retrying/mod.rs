//! What is done about a request that its engine did not take. Only what an engine cannot have begun is
//! tried again; whether a connection broke before that, the gateway's stages know.

mod busy;

pub use busy::pause;
