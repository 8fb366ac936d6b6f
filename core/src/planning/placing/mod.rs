//! On which GPUs a model's pods may run: the nodes' labels and what they offer, against what the Model asks
//! for and the backend can do. The nodes are chosen by the cluster's scheduler; here it is settled what has to
//! be known before a pod can be written, and which nodes would not do.

mod placement;

pub use placement::{NodeRule, Placement};
