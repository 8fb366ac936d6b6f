//! The Job that removes what the flash loader left in the memory of a node, when its Model is deleted or keeps nothing
//! there any more. A deleted Model waits for it, so that a new one of the same name cannot lose its weights to it.

use std::time::Duration;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    Affinity, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, PodSpec,
    PodTemplateSpec, Toleration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use flexinfer_crds::keys;

use super::environment::variable;
use super::flash::KEPT;
use super::initial::{as_root, ours};
use super::metadata::{Texts, metadata, stamped};
use super::volumes::{MODEL, host_folder, mounted};
use super::{Blueprint, names};

/// The component that a Job is which does that.
pub(in crate::planning) const COMPONENT: &str = "tmpfs-cleanup";

/// Where it has the folder with the copies of the namespace, and nothing else.
const MEMORY: &str = "/memory";

/// The field by which nodes are told apart.
const NODE_NAME: &str = "metadata.name";

/// How long it may take, in seconds: a Model waits no longer for it either.
const DEADLINE: i64 = 40;

/// By when it has ended or never will: its pod may take half a minute to end after that, and on a node that is lost it
/// hangs for as long as the node is known.
pub(in crate::planning) const LIMIT: Duration = Duration::from_secs(80);

/// How long it stays to be looked at, in seconds.
const STAYS: i32 = 120;

/// How long one of a Model that lives on stays, in seconds: one that failed is made again when it is gone. One that did
/// its work is deleted.
const STAYS_FAILED: i32 = 3600;

impl Blueprint<'_> {
    /// The Job for `node`; `None` where there is no image for it. It belongs to nobody, since the Model is
    /// going, and goes by itself.
    pub fn memory_cleanup_job(&self, node: &str) -> Option<Job> {
        let image = self.settings.images.node().ok()?;
        let id = &self.effective.id;
        let arguments = ["clean".to_owned(), format!("{MEMORY}/{}", id.name)];
        let mounts = vec![mounted(MODEL, MEMORY, false)];
        // A variable, which an older program passes over.
        let within = vec![variable("CLEAN_WITHIN", MEMORY)];
        let mut cleaner = ours("clean", &image, &arguments, within, mounts);
        as_root(&mut cleaner);
        let pod = PodSpec {
            containers: vec![cleaner],
            volumes: Some(vec![host_folder(MODEL, &format!("{KEPT}/{}", id.namespace), true)]),
            restart_policy: Some("Never".to_owned()),
            affinity: Some(on(node)),
            // The node may be closed to everything else by now.
            tolerations: Some(vec![everything()]),
            image_pull_secrets: self.pull_secrets().ok().flatten(),
            automount_service_account_token: Some(false),
            enable_service_links: Some(false),
            ..PodSpec::default()
        };
        let labels = Texts::from([
            (keys::MANAGED_BY.to_owned(), keys::MANAGED_BY_FLEXINFER.to_owned()),
            (keys::COMPONENT.to_owned(), COMPONENT.to_owned()),
        ]);
        let lives = self.model.metadata.deletion_timestamp.is_none();
        let spec = JobSpec {
            active_deadline_seconds: Some(DEADLINE),
            backoff_limit: Some(1),
            ttl_seconds_after_finished: Some(if lives { STAYS_FAILED } else { STAYS }),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), ..ObjectMeta::default() }),
                spec: Some(pod),
            },
            ..JobSpec::default()
        };
        // An earlier Model of this name may have left a Job that still stays, and so may this one have before an edit.
        let about = &self.model.metadata;
        let uid = about.uid.as_deref().unwrap_or_default();
        let which = format!("{node}/{uid}/{}", about.generation.unwrap_or_default());
        let suffix = format!("-{COMPONENT}-{}", names::hash(which.as_bytes(), 8));
        let name = names::with_suffix(&id.name, &suffix);
        let metadata = ObjectMeta {
            owner_references: None,
            ..metadata(self.model, self.effective, name, COMPONENT)
        };
        Some(stamped(Job { metadata, spec: Some(spec), status: None }))
    }
}

/// The node that a Job removes a copy from.
pub(in crate::planning) fn node_of_cleanup(job: &Job) -> Option<&str> {
    let pod = job.spec.as_ref()?.template.spec.as_ref()?;
    let of_node = pod.affinity.as_ref()?.node_affinity.as_ref()?;
    let only = of_node.required_during_scheduling_ignored_during_execution.as_ref()?;
    let mut fields = only.node_selector_terms.iter().flat_map(|term| &term.match_fields).flatten();
    fields.find(|field| field.key == NODE_NAME)?.values.as_ref()?.first().map(String::as_str)
}

/// On this node and no other, whatever its labels.
fn on(node: &str) -> Affinity {
    let name = NodeSelectorRequirement {
        key: NODE_NAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![node.to_owned()]),
    };
    let term = NodeSelectorTerm { match_expressions: None, match_fields: Some(vec![name]) };
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![term],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

fn everything() -> Toleration {
    Toleration { operator: Some("Exists".to_owned()), ..Toleration::default() }
}
