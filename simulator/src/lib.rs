//! An engine without a GPU: a real HTTP server that speaks every API the gateway fronts, with set
//! latencies and set faults. It runs the quickstart, the tests and the load tests, in-process by
//! [`Simulator::start`] and as a program by [`run`]. Equal settings and requests give equal answers.

mod apis;
mod arguments;
mod connection;
mod durations;
mod engine;
mod faults;
mod generation;
mod loading;
mod metrics;
mod picture;
mod prefix_cache;
mod random;
mod request_log;
mod server;
mod settings;
mod shares;
mod slots;
mod sound;
mod vectors;
mod wire;
mod words;

pub use arguments::{SimulateArgs, run};
pub use durations::{DurationError, parse_duration};
pub use faults::{AnswerFaults, Busy, Cut, DiesAt, DoorWhileLoading, FaultError, LoadingFaults};
pub use request_log::{Outcome, RecordedRequest};
pub use server::{Ending, Running, Simulator, StartError};
pub use settings::{Settings, Timings};
