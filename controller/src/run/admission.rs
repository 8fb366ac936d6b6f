//! The settings of the admission webhooks.

use std::time::Duration;

use clap::{ArgAction, Args};
use serde_json::{Map, Value, json};

use super::Binding;

/// How objects are looked at before they are stored.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Admission webhooks")]
pub struct Admission {
    /// Check Models and adapters before they are stored, and write down what decides between Models
    #[arg(long, env = "ENABLE_WEBHOOKS", default_value_t = true, action = ArgAction::Set,
        num_args = 0..=1, default_missing_value = "true")]
    pub enable_webhooks: bool,
    /// Where the API server asks: address and port
    #[arg(
        long,
        env = "FLEXINFER_WEBHOOK_BIND_ADDRESS",
        default_value = ":9443",
        value_name = "ADDRESS"
    )]
    pub webhook_bind_address: Binding,
    /// The Service by which the API server asks, in the controller's namespace; the Secret with its certificates has the same name
    #[arg(
        long,
        env = "FLEXINFER_WEBHOOK_SERVICE",
        default_value = "flexinfer-webhooks",
        value_name = "NAME"
    )]
    pub webhook_service: String,
    /// The name of the validating and of the mutating webhook configuration that shall trust them
    #[arg(
        long,
        env = "FLEXINFER_WEBHOOK_CONFIGURATION",
        default_value = "flexinfer-webhooks",
        value_name = "NAME"
    )]
    pub webhook_configuration: String,
    /// How long a certificate is good for; the next is made when two thirds are over
    #[arg(long, env = "FLEXINFER_WEBHOOK_CERTIFICATE_LIFE", default_value = "2160h", value_parser = life,
        value_name = "DURATION")]
    pub webhook_certificate_life: Duration,
}

impl Admission {
    /// The settings in force, by the name of their flags.
    pub(super) fn shown(&self) -> Map<String, Value> {
        let Self {
            enable_webhooks,
            webhook_bind_address,
            webhook_service,
            webhook_configuration,
            webhook_certificate_life,
        } = self;
        let life = u64::try_from(webhook_certificate_life.as_millis()).unwrap_or(u64::MAX);
        let life = flexinfer_crds::Duration::from_millis(life);
        [
            ("enable-webhooks", json!(enable_webhooks)),
            ("webhook-bind-address", json!(webhook_bind_address.to_string())),
            ("webhook-service", json!(webhook_service)),
            ("webhook-configuration", json!(webhook_configuration)),
            ("webhook-certificate-life", json!(life.to_string())),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

/// Shorter than this, a certificate is over before everybody knows of it.
const SHORTEST: Duration = Duration::from_secs(20);

fn life(text: &str) -> Result<Duration, String> {
    let life: flexinfer_crds::Duration = text.parse().map_err(|error| format!("{error}"))?;
    let life = life.get();
    if life < SHORTEST {
        return Err(format!("write at least {}s", SHORTEST.as_secs()));
    }
    Ok(life)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_is_a_duration_and_not_too_short() {
        assert_eq!(life("90s"), Ok(Duration::from_secs(90)));
        assert!(life("1s").unwrap_err().contains("20s"));
        assert!(life("90").unwrap_err().contains("90s"));
    }
}
