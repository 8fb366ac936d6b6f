//! What the cluster offers: nodes and RuntimeClasses.

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::node::v1::RuntimeClass;
use kube::ResourceExt as _;

use super::following::Followed;
use crate::world::index::Index;

pub(super) const NODES: Followed<Node, String> = Followed {
    name: Node::name_any,
    see: |index, node| index.see_node(&node),
    keep: Index::keep_nodes,
    forget: Index::forget_node,
};

pub(super) const RUNTIME_CLASSES: Followed<RuntimeClass, String> = Followed {
    name: RuntimeClass::name_any,
    see: |index, class| index.see_runtime_class(&class.name_any(), true),
    keep: Index::keep_runtime_classes,
    forget: |index, class| index.see_runtime_class(&class.name_any(), false),
};
