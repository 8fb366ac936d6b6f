//! The names of Services, in place of a cluster's DNS: each pod has them in its `/etc/hosts`, as they were when
//! it began. A headless Service goes by the addresses of its pods.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::volumes::Unready;

/// By this label a slice tells whose it is.
const OWNER: &str = "kubernetes.io/service-name";

/// Where every program looks.
pub(super) const PLACE: &str = "/etc/hosts";

/// Writes the file for a pod into its `folder`.
pub(super) async fn write(client: &Client, folder: &Path) -> Result<PathBuf, Unready> {
    let all = ListParams::default();
    let failed = |kind| {
        move |source| Unready::Object { kind, name: "list".to_owned(), source: Box::new(source) }
    };
    let services: Api<Service> = Api::all(client.clone());
    let services = services.list(&all).await.map_err(failed("services"))?;
    let slices: Api<EndpointSlice> = Api::all(client.clone());
    let slices = slices.list(&all).await.map_err(failed("endpointslices"))?;
    let mut text = fs::read_to_string(PLACE).unwrap_or_default();
    for service in &services {
        for address in addresses(service, &slices.items) {
            let name =
                format!("{}.{}", service.name_any(), service.namespace().unwrap_or_default());
            let _infallible =
                writeln!(text, "{address} {name} {name}.svc {name}.svc.cluster.local");
        }
    }
    let file = folder.join("hosts");
    fs::write(&file, text).map_err(Unready::writing(PLACE))?;
    Ok(file)
}

fn addresses(service: &Service, slices: &[EndpointSlice]) -> Vec<String> {
    let own = service.spec.as_ref().and_then(|spec| spec.cluster_ip.clone());
    if own.as_deref() != Some("None") {
        return own.into_iter().filter(|address| !address.is_empty()).collect();
    }
    let ours = slices.iter().filter(|slice| {
        slice.namespace() == service.namespace()
            && slice.labels().get(OWNER) == Some(&service.name_any())
    });
    let endpoints = ours.flat_map(|slice| slice.endpoints.iter().flatten());
    let ready = endpoints.filter(|endpoint| {
        endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false))
    });
    ready.flat_map(|endpoint| endpoint.addresses.clone()).collect()
}
