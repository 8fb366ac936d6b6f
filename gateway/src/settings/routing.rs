//! The settings that say how requests are spread over the endpoints of a model.

use clap::Args;
use flexinfer_core::routing::{KeyLengths, Preferences, Strategy};

use super::reader::{Choices, Reader};

/// The flags.
#[derive(Clone, Debug, Default, Args)]
pub struct RoutingArguments {
    /// Whether Models may choose how their requests are spread, by the annotation flexinfer.ai/routing
    /// [PROXY_ROUTING_ENABLED] [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Routing")]
    pub routing_enabled: Option<String>,
    /// How requests are spread for Models that do not say: round-robin, least-loaded, session-affinity or
    /// prefix [FLEXINFER_ROUTING] [default: round-robin]
    #[arg(long, value_name = "STRATEGY", help_heading = "Routing")]
    pub routing: Option<String>,
    /// The longest cache key of a client that counts [PROXY_ROUTING_EXPLICIT_KEY_MAX_LENGTH]
    /// [default: 128]
    #[arg(long, value_name = "BYTES", help_heading = "Routing")]
    pub routing_explicit_key_max_length: Option<String>,
    /// As much of a system prompt as counts [PROXY_ROUTING_SYSTEM_SEGMENT_MAX_LENGTH] [default: 512]
    #[arg(long, value_name = "BYTES", help_heading = "Routing")]
    pub routing_system_segment_max_length: Option<String>,
    /// As much of a document as counts [PROXY_ROUTING_DOCUMENT_SEGMENT_MAX_LENGTH] [default: 256]
    #[arg(long, value_name = "BYTES", help_heading = "Routing")]
    pub routing_document_segment_max_length: Option<String>,
}

/// The variables of these flags, where they are not `FLEXINFER_…`.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("routing-enabled", "PROXY_ROUTING_ENABLED"),
    ("routing-explicit-key-max-length", "PROXY_ROUTING_EXPLICIT_KEY_MAX_LENGTH"),
    ("routing-system-segment-max-length", "PROXY_ROUTING_SYSTEM_SEGMENT_MAX_LENGTH"),
    ("routing-document-segment-max-length", "PROXY_ROUTING_DOCUMENT_SEGMENT_MAX_LENGTH"),
];

impl Choices for Strategy {
    const CHOICES: &'static [&'static str] = <Self as strum::VariantNames>::VARIANTS;

    fn shown(&self) -> serde_json::Value {
        self.to_string().into()
    }
}

/// The longest text that may count, so that a key stays cheap.
const LONGEST: usize = 64 * 1024;

pub(super) fn preferences<E: Fn(&str) -> Option<String>>(
    read: &mut Reader<'_, E>,
    arguments: &RoutingArguments,
) -> Preferences {
    let enabled = read.choice("routing-enabled", arguments.routing_enabled.as_deref(), true);
    let strategy = read.choice("routing", arguments.routing.as_deref(), Strategy::default());
    let mut length = |name, flag: &Option<String>, default| {
        read.count(name, flag.as_deref(), default, 1..=LONGEST)
    };
    let lengths = KeyLengths {
        explicit: length(
            "routing-explicit-key-max-length",
            &arguments.routing_explicit_key_max_length,
            128,
        ),
        system: length(
            "routing-system-segment-max-length",
            &arguments.routing_system_segment_max_length,
            512,
        ),
        document: length(
            "routing-document-segment-max-length",
            &arguments.routing_document_segment_max_length,
            256,
        ),
    };
    Preferences { enabled, strategy, lengths }
}
