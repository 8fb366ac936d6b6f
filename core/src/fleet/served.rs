//! One model of the fleet.

use std::sync::Arc;

use crate::backends::{Api, Backend};
use crate::effective::Effective;
use crate::openai::apis::{Operation, Streams};

/// A model as the request path knows it: fixed for as long as a request lasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// What the model's spec means.
    pub effective: Effective,
    /// `spec.backend`, as the Model writes it.
    pub backend: String,
    /// `spec.source`, as the Model writes it; empty where the engine has its weights already.
    pub source: String,
    /// When the Model was created, in seconds of Unix time.
    pub created: u64,
    /// The families of APIs that its engine has.
    pub apis: &'static [Api],
    /// See [`Served::name`].
    pub(super) listed_as: Arc<str>,
}

impl Served {
    /// A model for [`Fleet::build`](super::Fleet::build), which decides the name it is listed by.
    pub fn new(effective: Effective, backend: &str, source: &str, created: u64) -> Self {
        let listed_as = Arc::clone(&effective.id.name);
        // A name that is no backend's is accepted only for an engine of the user's own.
        let apis = Backend::named(backend).unwrap_or(Backend::Command).apis();
        Self {
            apis,
            effective,
            backend: backend.to_owned(),
            source: source.to_owned(),
            created,
            listed_as,
        }
    }

    /// The name it is listed by: its own, or `namespace/name` where two namespaces offer the same.
    pub fn name(&self) -> &str {
        &self.listed_as
    }

    /// The name its engine insists on in a request's `model` field; `None` where any will do and
    /// the client's own is left as it is.
    pub fn name_for_engine(&self) -> Option<&str> {
        self.effective.served_name.as_deref()
    }

    /// Whether LoRA adapters can be added to it.
    pub fn takes_adapters(&self) -> bool {
        let backend = Backend::named(&self.backend);
        backend.is_some_and(|backend| backend.load_adapter("", "").is_some())
    }

    /// Whether its owner lets it be asked at `path`: everywhere, unless the annotation
    /// `flexinfer.ai/serve-paths` says where.
    pub fn is_open_at(&self, path: &str) -> bool {
        let paths = &self.effective.serve_paths;
        paths.is_empty() || paths.iter().any(|prefix| lies_under(path, prefix))
    }

    /// Whether its engine has this family of APIs.
    pub fn serves(&self, api: Api) -> bool {
        self.apis.contains(&api)
    }

    /// Whether its engine speaks nothing but a WebSocket at `operation`'s path. ComfyUI's is so short that an engine of
    /// the user's own may have something else there.
    pub fn speaks_websocket_only(&self, operation: &Operation) -> bool {
        let comfyuis = || {
            let backend = Backend::named(&self.backend);
            matches!(backend, Some(Backend::ComfyUi | Backend::Simulator))
        };
        operation.streams == Streams::Upgraded && (operation.api != Api::ComfyUi || comfyuis())
    }
}

/// Whether `path` is `prefix` or one of its children: `/v1/audio` is no parent of `/v1/audiobooks`.
fn lies_under(path: &str, prefix: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
