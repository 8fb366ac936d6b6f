//! What the controller does on a cluster, as functions of what it saw: which model of a group runs
//! ([`group`]), what a model's pods say about its engine ([`model`]), which nodes would do ([`placing`]), what
//! objects a model becomes ([`objects`]), how its weights get there ([`caching`]), how fast it is ([`benchmarking`]),
//! what is done when its cache fills up ([`pressure`]), how much of its weights has come ([`progress`]), which of its
//! pods ([`pod`]) nobody needs any more ([`pruning`], [`releasing`]) or go with their nodes ([`moving`]), what becomes of writes
//! that are refused ([`writing`]), and what people and gateways are told about it ([`status`]).

pub mod benchmarking;
pub mod caching;
pub mod group;
pub mod model;
pub mod moving;
pub mod objects;
pub mod placing;
pub mod pod;
pub mod pressure;
pub mod progress;
pub mod pruning;
pub mod reconcile;
pub mod releasing;
pub mod status;
pub mod time;
pub mod writing;

mod words;
