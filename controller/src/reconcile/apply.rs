//! The objects of a member, written only where they are not as they shall be.

use flexinfer_core::planning::objects::{owns_all, owns_replicas, spec_hash};
use flexinfer_core::planning::reconcile::{Finalizer, WantedEngine};
use flexinfer_crds::{Model, keys};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use k8s_openapi::{Metadata, NamespaceResourceScope};
use kube::api::{Patch, PatchParams};
use kube::{Api, Resource, ResourceExt as _};
use serde::Serialize;
use serde_json::json;

use super::write::Object;
use super::{Error, Reconciler, Wrote};
use crate::author::signed;
use crate::world::{Kind, Member, World};

/// Who owns `replicas` while another autoscaler sets them and has not done so yet.
pub(super) const SCALER: &str = "flexinfer-scaler";

impl Reconciler {
    /// Keeps the Model from vanishing before it is cleaned up.
    pub(super) async fn hold_on(&self, member: &Member, wanted: Finalizer) -> Result<Wrote, Error> {
        if wanted != Finalizer::Add {
            return Ok(Wrote::Nothing);
        }
        let mut finalizers = member.model.finalizers().to_vec();
        finalizers.push(keys::MODEL_FINALIZER.to_owned());
        let written = self.write_finalizers(member, &finalizers).await?;
        self.world.wrote_model(written);
        Ok(Wrote::Something)
    }

    /// Lets a Model go that was cleaned up.
    pub(super) async fn let_go(&self, member: &Member, wanted: Finalizer) -> Result<Wrote, Error> {
        if wanted != Finalizer::Remove {
            return Ok(Wrote::Nothing);
        }
        let mut finalizers = member.model.finalizers().to_vec();
        finalizers.retain(|known| known != keys::MODEL_FINALIZER);
        let written = self.write_finalizers(member, &finalizers).await;
        // Without any it is gone already: the answer is the last that there is of it.
        if let Some(written) = written.as_ref().ok().filter(|model| !model.finalizers().is_empty())
        {
            self.world.wrote_model(written.clone());
        }
        gone_is_well(written.map(drop)).map(|()| Wrote::Something)
    }

    async fn write_finalizers(
        &self,
        member: &Member,
        finalizers: &[String],
    ) -> Result<Model, Error> {
        let models: Api<Model> = self.writer.api(&member.id);
        // The version makes the server refuse a list that was read too long ago.
        let patch = Patch::Merge(json!({ "metadata": {
            "finalizers": finalizers,
            "resourceVersion": member.model.resource_version(),
        } }));
        let parameters = signed();
        let name = member.model.name_any();
        let write = models.patch(&name, &parameters, &patch);
        self.writer.guarded(format!("write the finalizers of {name}"), write).await
    }

    pub(super) async fn apply_service(
        &self,
        member: &Member,
        wanted: Option<Service>,
    ) -> Result<Wrote, Error> {
        let there = member.service.as_deref();
        self.apply_whole(member, (Kind::Service, there), wanted, World::wrote_service).await
    }

    pub(super) async fn apply_files(
        &self,
        member: &Member,
        wanted: Option<ConfigMap>,
    ) -> Result<Wrote, Error> {
        let there = member.files.as_deref();
        self.apply_whole(member, (Kind::Files, there), wanted, World::wrote_files).await
    }

    /// An object of which nothing is anybody else's; `wrote` takes the server's answer.
    async fn apply_whole<K>(
        &self,
        member: &Member,
        (kind, there): (Kind, Option<&K>),
        wanted: Option<K>,
        wrote: fn(&World, K),
    ) -> Result<Wrote, Error>
    where
        K: Object + Metadata<Ty = ObjectMeta> + Resource<Scope = NamespaceResourceScope>,
    {
        let Some(wanted) = wanted else { return Ok(Wrote::Nothing) };
        if there.is_some_and(|there| is_as_wanted(there, &wanted, member.left.get(&kind))) {
            return Ok(Wrote::Nothing);
        }
        let Some(written) = self.put(member, kind, &wanted, there).await? else {
            return Ok(Wrote::Nothing);
        };
        wrote(&self.world, written);
        Ok(Wrote::Something)
    }

    pub(super) async fn apply_engine(
        &self,
        member: &Member,
        wanted: WantedEngine,
    ) -> Result<Wrote, Error> {
        let there = member.deployment.as_deref();
        match wanted {
            WantedEngine::Deployment(wanted) => {
                let written = self.apply_deployment(member, &wanted).await?;
                Ok(Wrote::any(written.is_some()))
            }
            WantedEngine::ScaledElsewhere { deployment, step } => {
                self.give_replicas_away(member).await?;
                let written = self.apply_deployment(member, &deployment).await?;
                let wrote = Wrote::any(written.is_some());
                // The other autoscaler may have set more meanwhile: only what was seen is changed.
                let Some((replicas, there)) = step.zip(written.as_ref().or(there)) else {
                    return Ok(wrote);
                };
                let only = Scaling { replicas, version: there.resource_version(), dry_run: false };
                self.scale(member, there, only).await.map(|scaled| scaled.max(wrote))
            }
            WantedEngine::Scaled(replicas) => match there {
                Some(there) => self.put_scale(member, there, replicas).await,
                None => Ok(Wrote::Nothing),
            },
            WantedEngine::Tried { deployment, step } => {
                match self.try_engine(member, &deployment, step).await {
                    // What of it costs nobody anything is done, to find out at least that.
                    Err(error) if error.is_untried() => {
                        let mut asleep = *deployment;
                        asleep.spec.replicas = asleep.spec.replicas.map(|_| 0);
                        self.apply_deployment(member, &asleep).await?;
                    }
                    tried => tried?,
                }
                Ok(Wrote::Nothing)
            }
            WantedEngine::AsItIs | WantedEngine::Nothing => Ok(Wrote::Nothing),
        }
    }

    /// Whether the writes would be taken that start an engine; nothing is changed.
    async fn try_engine(
        &self,
        member: &Member,
        deployment: &Deployment,
        step: Option<u32>,
    ) -> Result<(), Error> {
        let there = member.deployment.as_deref();
        let deployments: Api<Deployment> = self.writer.api(&member.id);
        self.writer.try_apply(&deployments, deployment, there).await?;
        let Some((replicas, there)) = step.zip(there) else { return Ok(()) };
        let trial = Scaling { replicas, version: None, dry_run: true };
        self.scale(member, there, trial).await.map(drop)
    }

    /// The Deployment as it was written, where it was not as wanted.
    async fn apply_deployment(
        &self,
        member: &Member,
        wanted: &Deployment,
    ) -> Result<Option<Deployment>, Error> {
        let there = member.deployment.as_deref();
        if there.is_some_and(|there| as_wanted(there, wanted, member)) {
            return Ok(None);
        }
        let Some(written) = self.put(member, Kind::Deployment, wanted, there).await? else {
            return Ok(None);
        };
        tracing::info!(model = %member.id, replicas = wanted.spec.replicas, "the Deployment was applied");
        self.world.wrote_deployment(written.clone());
        Ok(Some(written))
    }

    /// Stops to own `replicas`, so that leaving them out of what is applied changes nothing: a
    /// field that nobody owns any more falls back to its default.
    async fn give_replicas_away(&self, member: &Member) -> Result<(), Error> {
        let Some(there) = member.deployment.as_deref() else {
            return Ok(());
        };
        if !has_replicas(there) || is_going(there) {
            return Ok(());
        }
        let deployments: Api<Deployment> = self.writer.api(&member.id);
        let name = there.name_any();
        let patch = Patch::Apply(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": name },
            "spec": { "replicas": there.spec.replicas },
        }));
        let parameters = PatchParams::apply(SCALER).force();
        let write = deployments.patch(&name, &parameters, &patch);
        self.writer.guarded(format!("hand over the replicas of {name}"), write).await.map(drop)
    }

    /// Sets only how many replicas there are.
    pub(super) async fn scale(
        &self,
        member: &Member,
        there: &Deployment,
        Scaling { replicas, version, dry_run }: Scaling,
    ) -> Result<Wrote, Error> {
        let replicas = i32::try_from(replicas).unwrap_or(i32::MAX);
        // Nobody scales what is being deleted: Kubernetes does nothing about its replicas any more.
        if there.spec.replicas == Some(replicas) || is_going(there) {
            return Ok(Wrote::Nothing);
        }
        let deployments: Api<Deployment> = self.writer.api(&member.id);
        let mut change = json!({ "spec": { "replicas": replicas } });
        if let Some((version, change)) = version.zip(change.as_object_mut()) {
            change.insert("metadata".to_owned(), json!({ "resourceVersion": version }));
        }
        let patch = Patch::Merge(change);
        let parameters = PatchParams { dry_run, ..signed() };
        let name = there.name_any();
        let write = deployments.patch(&name, &parameters, &patch);
        let act = if dry_run { "try to scale" } else { "scale" };
        let written = self.writer.guarded(format!("{act} Deployment {name}"), write).await;
        if let Some(written) = written.as_ref().ok().filter(|_| !dry_run) {
            self.world.wrote_deployment(written.clone());
        }
        gone_is_well(written.map(drop)).map(|()| Wrote::Something)
    }
}

/// A change of how many replicas there are.
pub(super) struct Scaling {
    pub(super) replicas: u32,
    /// The server refuses where somebody changed the Deployment since this version.
    pub(super) version: Option<String>,
    /// Nothing is changed; only whether it would be taken is found out.
    pub(super) dry_run: bool,
}

/// Whether this controller's applies own `replicas`.
fn has_replicas(there: &Deployment) -> bool {
    owns_replicas(managed_fields(there))
}

pub(super) fn managed_fields(there: &impl Resource) -> &[ManagedFieldsEntry] {
    there.meta().managed_fields.as_deref().unwrap_or_default()
}

/// Whether an object is being deleted.
pub(super) fn is_going(there: &impl Resource) -> bool {
    there.meta().deletion_timestamp.is_some()
}

/// Whether an object is as it shall be, and nobody has changed any of it since; what was `left` like this by this
/// process is not asked about again, whatever the server made of it.
fn is_as_wanted<K>(there: &K, wanted: &K, left: Option<&String>) -> bool
where
    K: Resource + Metadata<Ty = ObjectMeta> + Serialize,
{
    let untouched = left.is_some_and(|left| Some(left) == there.meta().resource_version.as_ref());
    spec_hash(there) == spec_hash(wanted)
        && !is_going(there)
        && (untouched || owns_all(wanted, managed_fields(there)))
}

fn as_wanted(there: &Deployment, wanted: &Deployment, member: &Member) -> bool {
    is_as_wanted(there, wanted, member.left.get(&Kind::Deployment))
        && wanted
            .spec
            .replicas
            .map_or(!has_replicas(there), |replicas| there.spec.replicas == Some(replicas))
}

/// What is to go and is gone already is as it shall be.
pub(super) fn gone_is_well(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_absence() => Ok(()),
        result => result,
    }
}
