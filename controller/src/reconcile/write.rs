//! Every write goes through here: none without the lead, none without an end.

use std::time::Duration;

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::status::Announcement;
use flexinfer_crds::{Model, keys};
use flexinfer_telemetry::traces::Tracer;
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::error::Error;
use crate::leadership::Leadership;

/// How long the server may take for one write.
const LONGEST: Duration = Duration::from_secs(10);

/// The most characters of an event's note that the server takes.
const LONGEST_NOTE: usize = 900;

/// Writes to the cluster while this process leads.
pub(super) struct Writer {
    client: Client,
    recorder: Recorder,
    leadership: Leadership,
    tracer: Tracer,
}

impl Writer {
    pub(super) fn new(client: Client, leadership: Leadership) -> Self {
        let recorder = recorder(&client);
        Self { client, recorder, leadership, tracer: Tracer::of_this_process() }
    }

    /// Waits until this process may write again.
    pub(super) async fn lead_regained(&self) {
        self.leadership.regained().await;
    }

    /// The objects of a kind in a model's namespace.
    pub(super) fn api<K>(&self, id: &ModelId) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &id.namespace)
    }

    /// Applies what this controller wants of an object, whoever wrote it before.
    pub(super) async fn apply<K>(&self, api: &Api<K>, name: &str, wanted: &K) -> Result<K, Error>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let parameters = PatchParams::apply(keys::FIELD_MANAGER).force();
        let patch = Patch::Apply(wanted);
        self.guarded(format!("apply {} {name}", K::kind(&())), api.patch(name, &parameters, &patch))
            .await
    }

    /// Does `write`, if this process still leads and for as long as that lasts.
    pub(super) async fn guarded<T>(
        &self,
        act: String,
        write: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        let left = self.leadership.left().ok_or(Error::LeadLost)?;
        let limit = left.min(LONGEST);
        let span = self.tracer.asking("controller.write");
        span.note_with("flexinfer.act", || act.clone());
        let written = match timeout(limit, write).await {
            Ok(Ok(written)) => return Ok(written),
            Ok(Err(source)) => Error::Refused { act, source: Box::new(source) },
            Err(_) => Error::Silent { act, limit },
        };
        span.fail(&written.to_string());
        Err(written)
    }

    /// Tells about a Model. One that cannot be told is only logged: the status says it too.
    pub(super) async fn announce(&self, model: &Model, announcement: Announcement) {
        let Announcement { warning, reason, note, own } = announcement;
        let event = Event {
            type_: if warning { EventType::Warning } else { EventType::Normal },
            action: reason.clone(),
            reason,
            note: Some(note.chars().take(LONGEST_NOTE).collect()),
            secondary: None,
        };
        let about = model.object_ref(&());
        // One that has recorded nothing yet has nothing to count this with.
        let recorder = if own { recorder(&self.client) } else { self.recorder.clone() };
        let told = self.guarded("record an event".to_owned(), recorder.publish(&event, &about));
        if let Err(error) = told.await {
            tracing::warn!(%error, "an event was not recorded");
        }
    }
}

/// Records events, and counts those that are alike as one.
fn recorder(client: &Client) -> Recorder {
    Recorder::new(client.clone(), Reporter::from(keys::FIELD_MANAGER))
}
