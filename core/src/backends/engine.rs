//! What one file per engine answers. The defaults are those of a plain OpenAI server; a backend
//! overrides what its engine does otherwise.

use std::time::Duration;

use flexinfer_crds::model::QuantizationFormat;
use serde_json::Value;

use super::explain::Clue;
use super::keys::Key;
use super::{
    Api, Call, Complaint, Config, Launch, LaunchError, MetricNames, Placement, ProgressLine,
    Subject, Support, Vendor,
};
use crate::sources::Scheme;

pub(super) const MINUTE: Duration = Duration::from_mins(1);

/// One engine: everything that differs between backends, and nothing else.
pub(super) trait Engine: Sync {
    /// The options of `spec.config` that only this backend knows.
    fn keys(&self) -> &'static [Key];

    /// The API families it serves, whatever the model; the model may still refuse some.
    fn apis(&self) -> &'static [Api];

    /// The port its documentation names.
    fn port(&self) -> u16;

    /// What to start. `config.command`, `args` and `env` are applied afterwards.
    fn launch(&self, subject: &Subject<'_>, placement: &Placement) -> Result<Launch, LaunchError>;

    /// Requests it works on at once; `None` where it takes whatever comes and queues by itself.
    fn slots(&self, _config: Config<'_>) -> Option<u32> {
        None
    }

    /// The statuses by which it says that it can take nothing now and has not begun, besides 503 with
    /// `Retry-After`.
    fn busy_statuses(&self) -> &'static [u16] {
        &[]
    }

    fn idle_timeout(&self) -> Duration {
        5 * MINUTE
    }

    fn startup_limit(&self) -> Duration {
        5 * MINUTE
    }

    fn drain_limit(&self) -> Duration {
        MINUTE
    }

    /// The model name the engine insists on; `None` where it does not read it.
    fn served_name(&self, subject: &Subject<'_>) -> Option<String> {
        subject.config.text("servedModelName").ok().flatten().map(str::to_owned)
    }

    /// The name that its certificate must be for, where it is spoken to by TLS.
    fn tls_name(&self, _config: Config<'_>) -> Option<String> {
        None
    }

    fn metrics(&self) -> Option<&'static MetricNames> {
        None
    }

    /// The schemes of sources it can load; empty where it needs none.
    fn sources(&self) -> &'static [Scheme];

    /// The formats of quantized weights it can load.
    fn quantizations(&self) -> &'static [QuantizationFormat] {
        &[]
    }

    /// GPU makers it runs on.
    fn vendors(&self) -> &'static [Vendor] {
        &[Vendor::Nvidia, Vendor::Amd]
    }

    /// GPU architectures of which more is known than that nothing speaks against them, by how their
    /// names begin.
    fn architectures(&self) -> &'static [(&'static str, Support)] {
        &[]
    }

    /// Complaints beyond the types and names of options.
    fn check(&self, subject: &Subject<'_>) -> Vec<Complaint>;

    /// What its own messages mean.
    fn clues(&self) -> &'static [Clue] {
        &[]
    }

    /// Whether it downloads the model by itself.
    fn fetches_model(&self) -> bool {
        false
    }

    /// What one line of a streamed answer to an [`Call`] means.
    fn progress(&self, _line: &str) -> ProgressLine {
        ProgressLine::Nothing
    }

    /// How an adapter is loaded into the running engine; `None` where it cannot.
    fn load_adapter(&self, _name: &str, _path: &str) -> Option<Call> {
        None
    }

    /// How an adapter is taken out again.
    fn unload_adapter(&self, _name: &str) -> Option<Call> {
        None
    }

    /// Whether a refusal to load an adapter only says that it is loaded already.
    fn adapter_is_loaded_already(&self, _status: u16, _answer: &Value) -> bool {
        false
    }
}
