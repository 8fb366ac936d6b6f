//! What kube-proxy is for: a connection to a Service's address and port goes to one of its ready pods. Here it
//! is carried by this process, which has each Service's address as one of its own.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, ResourceExt};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::network;

/// By this label a slice tells whose it is.
const OWNER: &str = "kubernetes.io/service-name";

/// Leads Services to their pods for as long as it is polled. Without a network of our own there is nobody to lead.
pub(super) async fn attend(client: &Client) {
    if !network::is_our_own() {
        return std::future::pending().await;
    }
    let (slices, writer) = reflector::store();
    let api: Api<EndpointSlice> = Api::all(client.clone());
    let follow = watch(api, watcher::Config::default()).default_backoff().reflect(writer);
    tokio::join!(follow.for_each(async |_| ()), lead(client, slices));
}

async fn lead(client: &Client, slices: Store<EndpointSlice>) {
    let api: Api<Service> = Api::all(client.clone());
    let mut events = watch(api, watcher::Config::default()).default_backoff().boxed();
    let mut led: HashMap<ObjectRef<Service>, Led> = HashMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(service) | Event::InitApply(service)) => {
                let key = ObjectRef::from_obj(&service);
                let ports = service.spec.as_ref().and_then(|spec| spec.ports.clone());
                if led.get(&key).is_none_or(|led| led.ports != ports) {
                    led.remove(&key);
                    let listeners = listen(&service, &slices).await;
                    led.insert(key, Led { ports, _listeners: listeners });
                }
            }
            Ok(Event::Delete(service)) => drop(led.remove(&ObjectRef::from_obj(&service))),
            // What was deleted while the watch was away keeps an address that leads nowhere.
            Ok(Event::Init | Event::InitDone) | Err(_) => {}
        }
    }
}

struct Led {
    ports: Option<Vec<ServicePort>>,
    _listeners: JoinSet<()>,
}

async fn listen(service: &Service, slices: &Store<EndpointSlice>) -> JoinSet<()> {
    let mut listeners = JoinSet::new();
    let spec = service.spec.as_ref();
    // A headless Service has `None` for an address, and an external one none.
    let address = spec.and_then(|spec| spec.cluster_ip.as_ref()?.parse::<Ipv4Addr>().ok());
    let Some(address) = address else { return listeners };
    if network::add_machine_address(address).await.is_err() {
        return listeners;
    }
    for port in spec.and_then(|spec| spec.ports.as_deref()).unwrap_or_default() {
        let Ok(number) = u16::try_from(port.port) else { continue };
        let Ok(listener) = TcpListener::bind((address, number)).await else { continue };
        let route = Route {
            namespace: service.namespace().unwrap_or_default(),
            service: service.name_any(),
            port: port.name.clone().unwrap_or_default(),
            slices: slices.clone(),
            turn: AtomicUsize::new(0),
        };
        listeners.spawn(serve(listener, Arc::new(route)));
    }
    listeners
}

async fn serve(listener: TcpListener, route: Arc<Route>) {
    let mut connections = JoinSet::new();
    loop {
        // Ended ones are let go of here.
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else { continue };
        let route = Arc::clone(&route);
        connections.spawn(async move { drop(route.carry(stream).await) });
    }
}

/// From one port of a Service to the pods behind it.
struct Route {
    namespace: String,
    service: String,
    /// Empty where the Service has one port without a name.
    port: String,
    slices: Store<EndpointSlice>,
    turn: AtomicUsize,
}

impl Route {
    async fn carry(&self, mut from: TcpStream) -> io::Result<()> {
        let endpoints = self.endpoints();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let chosen = turn.checked_rem(endpoints.len()).and_then(|index| endpoints.get(index));
        // Without one the connection is closed, as a refusal comes too late.
        let mut to = TcpStream::connect(chosen.ok_or(io::ErrorKind::HostUnreachable)?).await?;
        copy_bidirectional(&mut from, &mut to).await.map(drop)
    }

    fn endpoints(&self) -> Vec<SocketAddr> {
        let ours = |slice: &Arc<EndpointSlice>| {
            slice.namespace().as_ref() == Some(&self.namespace)
                && slice.labels().get(OWNER) == Some(&self.service)
        };
        let slices = self.slices.state().into_iter().filter(ours);
        slices.flat_map(|slice| self.ready_of(&slice)).collect()
    }

    fn ready_of(&self, slice: &EndpointSlice) -> Vec<SocketAddr> {
        let mut ports = slice.ports.iter().flatten();
        let port = ports.find(|port| port.name.as_deref().unwrap_or_default() == self.port);
        let port = port.and_then(|port| u16::try_from(port.port?).ok());
        let endpoints = slice.endpoints.iter().flatten().filter(|endpoint| {
            endpoint.conditions.as_ref().is_none_or(|conditions| conditions.ready != Some(false))
        });
        let addresses = endpoints.flat_map(|endpoint| &endpoint.addresses);
        let address = |address: &String| Some(SocketAddr::new(address.parse().ok()?, port?));
        addresses.filter_map(address).collect()
    }
}
