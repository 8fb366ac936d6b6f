//! The admission webhooks: an API server asks about each Model and adapter before it stores it. What is answered is
//! decided in `flexinfer_core::admission`; here are the server and the certificates by which it is trusted.

mod edition;
mod keeper;
mod server;
mod shelf;
mod trust;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::Arc;

use kube::Client;
use tokio::task::JoinSet;

use crate::pages::Health;
use crate::run::Arguments;

use keeper::{Keeper, Place};
use server::Shown;

/// Begins to answer on `address`, and to keep the certificates; the tasks end when the set is dropped.
pub(crate) async fn serve(
    tasks: &mut JoinSet<()>,
    address: SocketAddr,
    client: Client,
    arguments: &Arguments,
    health: Health,
) -> anyhow::Result<SocketAddr> {
    let (shown, admission) = (Arc::new(Shown::default()), &arguments.admission);
    let objects = arguments.settings();
    let address = server::serve(tasks, address, Arc::clone(&shown), objects).await?;
    let place = Place {
        namespace: arguments.namespace.clone(),
        service: admission.webhook_service.clone(),
        configuration: admission.webhook_configuration.clone(),
        life: admission.webhook_certificate_life,
    };
    tasks.spawn(Keeper::new(client, place, shown, health).keep());
    Ok(address)
}
