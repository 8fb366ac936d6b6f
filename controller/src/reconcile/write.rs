//! Every write goes through here: none without the lead, none without an end.

use std::time::Duration;

use flexinfer_core::ids::ModelId;
use flexinfer_core::planning::objects::{as_applied, is_of_the_model_before};
use flexinfer_core::planning::status::Announcement;
use flexinfer_crds::{Model, keys};
use flexinfer_telemetry::traces::Tracer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;

use super::error::Error;
use crate::author::signed;
use crate::leadership::Leadership;

/// How long the server may take for one write.
const LONGEST: Duration = Duration::from_secs(10);

/// The most characters of an event's note that the server takes.
const LONGEST_NOTE: usize = 900;

/// A kind of object that is made for models.
pub(super) trait Object:
    Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug
{
}

impl<K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug> Object
    for K
{
}

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

    /// Applies what this controller wants of an object of a model's, whoever wrote its fields before: who else wrote
    /// which of them otherwise is told beside it. `known` is the object as it was seen last; one that is not the
    /// model's is left alone.
    pub(super) async fn apply<K: Object>(
        &self,
        api: &Api<K>,
        wanted: &K,
        known: Option<&K>,
    ) -> Result<(K, Vec<(String, String)>), Error> {
        self.prepare(api, wanted, known).await?;
        let parameters = signed();
        let forced = parameters.clone().force();
        match self.patch(api, wanted, &parameters).await {
            Err(error) => {
                let Some(others) = error.field_conflict() else { return Err(error) };
                let written = self.patch(api, wanted, &forced).await?;
                Ok((written, others))
            }
            written => written.map(|written| (written, Vec::new())),
        }
    }

    /// Whether [`Self::apply`] would be taken; nothing is changed.
    pub(super) async fn try_apply<K: Object>(
        &self,
        api: &Api<K>,
        wanted: &K,
        known: Option<&K>,
    ) -> Result<(), Error> {
        self.prepare(api, wanted, known).await?;
        let parameters = PatchParams { dry_run: true, ..signed().force() };
        self.patch(api, wanted, &parameters).await.map(drop)
    }

    async fn patch<K: Object>(
        &self,
        api: &Api<K>,
        wanted: &K,
        parameters: &PatchParams,
    ) -> Result<K, Error> {
        let (kind, name) = (K::kind(&()), wanted.name_any());
        let act = if parameters.dry_run { "try" } else { "apply" };
        let patch = Patch::Apply(wanted);
        self.guarded(format!("{act} {kind} {name}"), api.patch(&name, parameters, &patch)).await
    }

    /// Makes sure that an object of that name is the model's, and that what was written by updates counts as applied.
    async fn prepare<K: Object>(
        &self,
        api: &Api<K>,
        wanted: &K,
        known: Option<&K>,
    ) -> Result<(), Error> {
        let (kind, name) = (K::kind(&()), wanted.name_any());
        let known = known.map(Resource::meta).filter(|known| belongs_with(known, wanted.meta()));
        let looked_up = if known.is_some() {
            None
        } else {
            let look = api.get_metadata_opt(&name);
            self.guarded(format!("look at {kind} {name}"), look).await?
        };
        let Some(there) = known.or(looked_up.as_ref().map(|there| &there.metadata)) else {
            return Ok(());
        };
        if !belongs_with(there, wanted.meta()) {
            if is_of_the_model_before(there, wanted.meta()) {
                return Err(Error::Outlived(format!("{kind} {name}")));
            }
            return Err(Error::Taken(taken(&kind, there)));
        }
        let entries = there.managed_fields.as_deref().and_then(as_applied);
        let Some(entries) = entries else { return Ok(()) };
        // The version makes the server refuse an account that was read too long ago.
        let patch = Patch::Merge(json!({ "metadata": {
            "managedFields": entries,
            "resourceVersion": there.resource_version,
        } }));
        let parameters = signed();
        let write = api.patch_metadata(&name, &parameters, &patch);
        self.guarded(format!("take over the fields of {kind} {name}"), write).await.map(drop)
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

/// Whether `there` is the object that `wanted` is: of the same Model, not only of the same name. What belongs to no
/// Model is told by its name, which nobody else gives.
fn belongs_with(there: &ObjectMeta, wanted: &ObjectMeta) -> bool {
    let owner = |meta: &ObjectMeta| controller_of(meta).map(|owner| owner.uid.clone());
    let wanted_owner = owner(wanted);
    there.name == wanted.name && (wanted_owner.is_none() || owner(there) == wanted_owner)
}

fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// That the name is somebody else's, and what to do about it.
fn taken(kind: &str, others: &ObjectMeta) -> String {
    let name = others.name.as_deref().unwrap_or_default();
    let whose = controller_of(others).map_or_else(
        || "is not this Model's".to_owned(),
        |owner| format!("belongs to another {} `{}`", owner.kind, owner.name),
    );
    format!(
        "there is a {kind} `{name}` already, which {whose}; give the Model another name, or delete the {kind} if nobody needs it"
    )
}

/// Records events, and counts those that are alike as one.
fn recorder(client: &Client) -> Recorder {
    Recorder::new(client.clone(), Reporter::from(keys::FIELD_MANAGER))
}
