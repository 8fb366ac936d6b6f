//! Which engines a model has, by the EndpointSlices of its Service: the union of all slices, by pod.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};

use flexinfer_core::ids::EndpointId;
use flexinfer_core::queueing::Listed;
use flexinfer_crds::keys;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use kube::ResourceExt;

use super::watching::Key;

/// The name of the port that engines serve requests at.
const PORT: &str = "http";

/// Whose engines: the value of the label by which a Service and its slices say it, within a namespace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) namespace: String,
    pub(super) label: String,
}

/// All slices, and the nodes that are about to go.
#[derive(Debug, Default)]
pub(super) struct Endpoints {
    slices: HashMap<Key, Slice>,
    of_owner: HashMap<Owner, HashSet<Key>>,
    leaving_nodes: HashSet<String>,
}

/// What is read of a slice.
#[derive(Clone, Debug, PartialEq)]
struct Slice {
    owner: Owner,
    seats: Vec<Seat>,
}

/// One address of a slice.
#[derive(Clone, Debug, PartialEq)]
struct Seat {
    id: EndpointId,
    address: SocketAddr,
    ready: bool,
    terminating: bool,
    node: Option<String>,
}

impl Endpoints {
    /// The slice is now this. Whose endpoints that concerns.
    pub(super) fn put(&mut self, key: Key, slice: &EndpointSlice) -> Vec<Owner> {
        let Some(owner) = owner(slice) else { return self.remove(&key) };
        let slice = Slice { owner: owner.clone(), seats: seats(slice) };
        if self.slices.get(&key) == Some(&slice) {
            return Vec::new();
        }
        let before = self.slices.insert(key.clone(), slice).map(|before| before.owner);
        let mut concerned = vec![owner.clone()];
        if let Some(before) = before.filter(|before| *before != owner) {
            self.disown(&before, &key);
            concerned.push(before);
        }
        self.of_owner.entry(owner).or_default().insert(key);
        concerned
    }

    /// The slice is gone. Whose endpoints that concerns.
    pub(super) fn remove(&mut self, key: &Key) -> Vec<Owner> {
        let Some(slice) = self.slices.remove(key) else { return Vec::new() };
        self.disown(&slice.owner, key);
        vec![slice.owner]
    }

    fn disown(&mut self, owner: &Owner, key: &Key) {
        if let Some(keys) = self.of_owner.get_mut(owner) {
            keys.remove(key);
            if keys.is_empty() {
                self.of_owner.remove(owner);
            }
        }
    }

    /// The node is about to go, or is not. Whose endpoints that concerns.
    pub(super) fn node(&mut self, name: &str, leaving: bool) -> Vec<Owner> {
        let changed = if leaving {
            self.leaving_nodes.insert(name.to_owned())
        } else {
            self.leaving_nodes.remove(name)
        };
        if !changed {
            return Vec::new();
        }
        let on_it =
            |slice: &&Slice| slice.seats.iter().any(|seat| seat.node.as_deref() == Some(name));
        self.slices.values().filter(on_it).map(|slice| slice.owner.clone()).collect()
    }

    /// The endpoints of this owner, each pod once.
    pub(super) fn of(&self, owner: &Owner) -> Vec<Listed> {
        let mut union: BTreeMap<&EndpointId, &Seat> = BTreeMap::new();
        let keys = self.of_owner.get(owner).into_iter().flatten();
        for seat in keys.filter_map(|key| self.slices.get(key)).flat_map(|slice| &slice.seats) {
            // One pod in two slices: the newer word is not known, so the one that hopes more counts,
            // and the first family of addresses.
            let better = union.get(&seat.id).is_none_or(|known| seat.rank() > known.rank());
            if better {
                union.insert(&seat.id, seat);
            }
        }
        // Those on nodes that go are asked nothing more, unless there is nobody else: until another is ready they serve
        // as long as they can.
        let stays = |seat: &&Seat| seat.ready && !seat.terminating && !self.is_doomed(seat);
        let others = union.values().any(stays);
        let listed = |seat: &&Seat| Listed {
            id: seat.id.clone(),
            address: seat.address,
            ready: seat.ready,
            leaving: seat.terminating || (others && self.is_doomed(seat)),
        };
        union.values().map(listed).collect()
    }

    fn is_doomed(&self, seat: &Seat) -> bool {
        seat.node.as_ref().is_some_and(|node| self.leaving_nodes.contains(node))
    }
}

impl Seat {
    fn rank(&self) -> (bool, bool, bool) {
        (!self.terminating, self.ready, self.address.is_ipv4())
    }
}

/// Whether an agent or the cloud has said that the node goes.
pub(super) fn is_leaving(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    flexinfer_core::placement::is_leaving(node.annotations(), taints.map(|taint| &*taint.key))
}

fn owner(slice: &EndpointSlice) -> Option<Owner> {
    let label = slice.labels().get(keys::MODEL)?.clone();
    Some(Owner { namespace: slice.namespace().unwrap_or_default(), label })
}

fn seats(slice: &EndpointSlice) -> Vec<Seat> {
    // Names are no addresses (type FQDN); such a slice is not one of ours.
    let Some(port) = port(slice) else { return Vec::new() };
    slice.endpoints.iter().flatten().filter_map(|endpoint| seat(endpoint, port)).collect()
}

/// The port of that name, or the only one.
fn port(slice: &EndpointSlice) -> Option<u16> {
    let ports = slice.ports.as_deref().unwrap_or_default();
    let named = ports.iter().find(|port| port.name.as_deref() == Some(PORT));
    let only = match ports {
        [only] => Some(only),
        _ => None,
    };
    named.or(only)?.port.and_then(|port| u16::try_from(port).ok())
}

fn seat(endpoint: &Endpoint, port: u16) -> Option<Seat> {
    // All addresses of one endpoint are the same engine: the first will do.
    let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
    let address = SocketAddr::new(address, port);
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let target = endpoint.target_ref.as_ref();
    let pod = target.and_then(|target| target.uid.clone().or_else(|| target.name.clone()));
    Some(Seat {
        id: EndpointId(pod.unwrap_or_else(|| address.to_string()).into()),
        address,
        // Nothing said means ready, by the API's own words.
        ready: conditions.ready.unwrap_or(true),
        terminating: conditions.terminating.unwrap_or(false),
        node: endpoint.node_name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice(name: &str, endpoints: &[Value]) -> EndpointSlice {
        let slice = json!({
            "metadata": { "namespace": "default", "name": name, "labels": { keys::MODEL: "a" } },
            "addressType": "IPv4",
            "ports": [{ "name": "metrics", "port": 9000 }, { "name": "http", "port": 8000 }],
            "endpoints": endpoints,
        });
        serde_json::from_value(slice).expect("a slice")
    }

    fn pod(number: usize) -> Value {
        json!({
            "addresses": [format!("10.0.{}.{}", number / 250, number % 250 + 1)],
            "conditions": { "ready": true },
            "nodeName": format!("node-{}", number % 2),
            "targetRef": { "kind": "Pod", "name": format!("pod-{number}"), "uid": format!("uid-{number}") },
        })
    }

    fn key(name: &str) -> Key {
        Key { namespace: "default".into(), name: name.into() }
    }

    fn a() -> Owner {
        Owner { namespace: "default".into(), label: "a".into() }
    }

    #[test]
    fn k8s_05_the_union_of_all_slices_counts_by_pod() {
        let mut endpoints = Endpoints::default();
        let pods: Vec<Value> = (0..250).map(pod).collect();
        for (number, part) in pods.chunks(100).enumerate() {
            let name = format!("a-{number}");
            assert_eq!(endpoints.put(key(&name), &slice(&name, part)), [a()]);
        }
        assert_eq!(endpoints.of(&a()).len(), 250);
        assert!(endpoints.of(&a()).iter().all(|listed| listed.address.port() == 8000));
        endpoints.remove(&key("a-1"));
        assert_eq!(endpoints.of(&a()).len(), 150);
        endpoints.put(key("empty"), &slice("empty", &[]));
        assert_eq!(endpoints.of(&a()).len(), 150);
    }

    #[test]
    fn k8s_05_a_pod_that_moves_between_slices_is_there_throughout() {
        let mut endpoints = Endpoints::default();
        endpoints.put(key("one"), &slice("one", &[pod(0), pod(1)]));
        endpoints.put(key("two"), &slice("two", &[pod(0), pod(1)]));
        assert_eq!(endpoints.of(&a()).len(), 2, "in both while it moves");
        endpoints.put(key("one"), &slice("one", &[]));
        assert_eq!(endpoints.of(&a()).len(), 2);
    }

    #[test]
    fn k8s_05_a_slice_of_names_or_without_the_port_has_no_endpoints() {
        let mut endpoints = Endpoints::default();
        let names = json!({
            "metadata": { "namespace": "default", "name": "names", "labels": { keys::MODEL: "a" } },
            "addressType": "FQDN", "ports": [{ "name": "http", "port": 80 }],
            "endpoints": [{ "addresses": ["engine.example"] }],
        });
        endpoints.put(key("names"), &serde_json::from_value(names).expect("a slice"));
        let others = json!({
            "metadata": { "namespace": "default", "name": "others", "labels": { keys::MODEL: "a" } },
            "addressType": "IPv4", "ports": [{ "name": "x", "port": 1 }, { "name": "y", "port": 2 }],
            "endpoints": [{ "addresses": ["10.0.0.1"] }],
        });
        endpoints.put(key("others"), &serde_json::from_value(others).expect("a slice"));
        assert!(endpoints.of(&a()).is_empty());
    }

    #[test]
    fn queue_09_terminating_pods_and_those_on_leaving_nodes_leave() {
        let mut endpoints = Endpoints::default();
        let mut terminating = pod(1);
        terminating["conditions"] = json!({ "ready": false, "serving": true, "terminating": true });
        endpoints.put(key("a"), &slice("a", &[pod(0), terminating, pod(3)]));
        let leaving = |endpoints: &Endpoints| {
            endpoints.of(&a()).iter().map(|listed| listed.leaving).collect::<Vec<_>>()
        };
        assert_eq!(leaving(&endpoints), [false, true, false]);
        assert_eq!(endpoints.node("node-0", true), [a()]);
        assert_eq!(leaving(&endpoints), [true, true, false]);
        assert!(endpoints.node("node-0", true).is_empty(), "nothing new");
        endpoints.node("node-0", false);
        assert_eq!(leaving(&endpoints), [false, true, false]);
    }

    #[test]
    fn the_last_endpoint_serves_on_a_node_that_goes_until_another_is_ready() {
        let mut endpoints = Endpoints::default();
        let mut starting = pod(1);
        starting["conditions"] = json!({ "ready": false });
        endpoints.put(key("a"), &slice("a", &[pod(0), starting]));
        endpoints.node("node-0", true);
        let leaving = |endpoints: &Endpoints| {
            endpoints.of(&a()).iter().map(|listed| listed.leaving).collect::<Vec<_>>()
        };
        assert_eq!(leaving(&endpoints), [false, false]);
        endpoints.put(key("a"), &slice("a", &[pod(0), pod(1)]));
        assert_eq!(leaving(&endpoints), [true, false]);
    }

    #[test]
    fn a_node_is_leaving_by_annotation_or_taint() {
        let node = |node: Value| serde_json::from_value::<Node>(node).expect("a node");
        let key = keys::SPOT_TERMINATING;
        assert!(is_leaving(&node(json!({ "metadata": { "annotations": { key: "true" } } }))));
        let taint = json!({ "key": key, "value": "true", "effect": "NoSchedule" });
        assert!(is_leaving(&node(json!({ "metadata": {}, "spec": { "taints": [taint] } }))));
        assert!(!is_leaving(&node(json!({ "metadata": { "annotations": { key: "false" } } }))));
    }
}
