//! What tests of several crates need: an HTTP/1.1 origin that answers by a script, engines on raw sockets, clients that control
//! every byte, the words of an API server, a collector of spans, a bounded wait for a state, and child programs that die with the test. Nothing here sleeps
//! to wait for a state, and every port comes from the system.

pub mod api_server;
pub mod at_head;
pub mod client;
mod collector;
mod eventually;
pub mod framing;
pub mod h2_client;
pub mod h2_frames;
mod head;
pub mod origin;
mod program;
pub mod reference;
pub mod websocket;

pub use collector::{Collector, Told};
pub use eventually::{eventually, eventually_async};
pub use flexinfer_simulator as simulator;
pub use program::{Program, ending_signal};
pub use tempfile::{TempDir, tempdir};
