//! Writes what this gateway has of each model's requests into the Model's status, where the controller
//! reads it. Each gateway owns its own entry by a field manager of its own, so that none waits for another.

use std::sync::Arc;
use std::time::Duration;

use flexinfer_core::ids::ModelId;
use flexinfer_core::queueing::Traffic;
use flexinfer_crds::{Model, ModelStatus, model};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

/// Writes under way at once, over all models.
const AT_ONCE: usize = 32;
/// A write that takes longer counts as failed.
const PATIENCE: Duration = Duration::from_secs(10);

/// An entry that was not renewed for so long is a dead gateway's. Far above every renewal, since clocks differ.
const DEAD_AFTER: Duration = Duration::from_secs(15 * 60);

/// Writes reports.
pub(super) struct Reporter {
    client: Client,
    gateway: String,
    resource: ApiResource,
    permits: Semaphore,
}

impl Reporter {
    /// Writes by `client`, as the gateway of this name.
    pub(super) fn new(client: Client, gateway: &str) -> Arc<Self> {
        Arc::new(Self {
            client,
            gateway: gateway.to_owned(),
            resource: ApiResource::erase::<Model>(&()),
            permits: Semaphore::new(AT_ONCE),
        })
    }

    /// Writes one model's entry; `last_active` is the latest that anybody wrote. Whether it has arrived,
    /// or needs not.
    pub(super) async fn write(
        &self,
        model: &ModelId,
        traffic: Traffic,
        last_active: Option<Timestamp>,
    ) -> bool {
        let Ok(_permit) = self.permits.acquire().await else { return true };
        let now = Timestamp::now();
        let own = traffic.quiet.and_then(|quiet| now.checked_sub(quiet).ok());
        let status = ModelStatus {
            last_active_time: own.max(last_active).map(Time),
            traffic: vec![model::Traffic {
                gateway: self.gateway.clone(),
                in_flight: bounded(traffic.in_flight),
                waiting: bounded(traffic.waiting),
                peak: bounded(traffic.peak),
                draining: traffic.draining,
                renew_time: MicroTime(now),
            }],
            ..ModelStatus::default()
        };
        self.apply(&self.gateway, model, &status).await
    }

    /// Takes back this gateway's entry, keeping when the model was last in use.
    pub(super) async fn withdraw(&self, model: &ModelId, last_active: Option<Timestamp>) -> bool {
        let last_active_time = last_active.map(Time);
        let status = ModelStatus { last_active_time, ..ModelStatus::default() };
        self.apply(&self.gateway, model, &status).await
    }

    /// Takes out the entries of gateways that ended without a word, in their name. To be called after a
    /// write of this gateway's own, which holds what they knew of the model's last use.
    pub(super) async fn clear(&self, model: &ModelId, entries: &[(String, Timestamp)]) {
        let now = Timestamp::now();
        let dead = |written: &Timestamp| {
            now.duration_since(*written).unsigned_abs() > DEAD_AFTER && *written < now
        };
        for (gateway, _) in entries.iter().filter(|(_, written)| dead(written)) {
            if *gateway != self.gateway {
                self.apply(gateway, model, &ModelStatus::default()).await;
            }
        }
    }

    async fn apply(&self, gateway: &str, model: &ModelId, status: &ModelStatus) -> bool {
        let models: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &model.namespace, &self.resource);
        let patch = Patch::Apply(json!({
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "metadata": { "name": &*model.name },
            "status": status,
        }));
        let parameters = PatchParams::apply(&format!("flexinfer-gateway-{gateway}")).force();
        let write = models.patch_status(&model.name, &parameters, &patch);
        match tokio::time::timeout(PATIENCE, write).await {
            Ok(Ok(_)) => true,
            // It was deleted meanwhile: there is nobody left to tell.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => true,
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403 | 422) => {
                warn!(%model, error = status.message, "the model's status may not be written");
                false
            }
            Ok(Err(error)) => {
                debug!(%model, %error, "the model's status was not written; trying again");
                false
            }
            Err(_) => {
                debug!(%model, "the model's status was not written in time; trying again");
                false
            }
        }
    }
}

fn bounded(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
