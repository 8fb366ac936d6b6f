//! The two objects that tell the API server whom to ask, and whom to trust when it does. They are installed by whoever
//! installs the controller, which writes nothing into them but the authorities.

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};

use super::shelf::Shelf;

/// A validating or a mutating configuration.
pub(super) trait Configuration {
    /// Its webhooks, as far as they say who is asked.
    fn clients(&self) -> Vec<&WebhookClientConfig>;

    /// The same to be changed.
    fn clients_mut(&mut self) -> Vec<&mut WebhookClientConfig>;
}

impl Configuration for ValidatingWebhookConfiguration {
    fn clients(&self) -> Vec<&WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config).collect()
    }

    fn clients_mut(&mut self) -> Vec<&mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config).collect()
    }
}

impl Configuration for MutatingWebhookConfiguration {
    fn clients(&self) -> Vec<&WebhookClientConfig> {
        self.webhooks.iter().flatten().map(|webhook| &webhook.client_config).collect()
    }

    fn clients_mut(&mut self) -> Vec<&mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config).collect()
    }
}

/// Whether an API server that follows `configuration` takes what is on the shelf.
pub(super) fn trusts(configuration: &impl Configuration, shelf: &Shelf) -> bool {
    let bundle = |client: &WebhookClientConfig| {
        client.ca_bundle.as_ref().is_some_and(|bundle| shelf.is_trusted_by(&bundle.0))
    };
    configuration.clients().into_iter().all(bundle)
}

/// `configuration` with every authority on the shelf, and no other.
pub(super) fn trusting<C: Configuration>(mut configuration: C, shelf: &Shelf) -> C {
    for client in configuration.clients_mut() {
        client.ca_bundle = Some(ByteString(shelf.bundle().into_bytes()));
    }
    configuration
}
