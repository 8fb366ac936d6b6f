//! Objects put back to what they shall be, less and less often where somebody changes them again and again, and with
//! a word about who that is.

use std::collections::BTreeSet;

use flexinfer_core::ids::GroupId;
use flexinfer_core::planning::objects::spec_hash;
use flexinfer_core::planning::writing::{Contest, Dispute, Stake, writers};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::{Metadata, NamespaceResourceScope};
use kube::{Resource, ResourceExt as _};
use serde_json::Value;

use super::apply::{Scaling, is_going, managed_fields};
use super::write::Object;
use super::{Error, Reconciler, Wrote};
use crate::world::{Kind, Member};

impl Reconciler {
    /// The object as it was applied; `None` where it is left for now as somebody else has made it.
    pub(super) async fn put<K>(
        &self,
        member: &Member,
        kind: Kind,
        wanted: &K,
        there: Option<&K>,
    ) -> Result<Option<K>, Error>
    where
        K: Object + Metadata<Ty = ObjectMeta> + Resource<Scope = NamespaceResourceScope>,
    {
        // What is being deleted takes no wish any more. When it is gone, it is made anew.
        if there.is_some_and(is_going) {
            return Ok(None);
        }
        let (wish, writers) = (wish(wanted), there.map(|there| writers(managed_fields(there))));
        let name = wanted.name_any();
        let contest = member.contest((kind, &name));
        let ends = there.is_some_and(|there| replicas(wanted) == 0 && replicas(there) != 0);
        if self.waits(member, &contest, (&wish, writers.as_ref()), stake(member, ends)) {
            return Ok(None);
        }
        let api = self.writer.api(&member.id);
        let (written, others) = self.writer.apply(&api, wanted, there).await?;
        let same = there.is_some_and(|there| spec_hash(there) == spec_hash(wanted));
        let undone = contest.undone(&wish, same, others);
        let put_back = PutBack { kind, named: &K::kind(&()), name: &name, undone: &undone };
        self.wrote(member, contest, (&wish, writers), put_back);
        Ok(Some(written))
    }

    /// Sets only how many replicas there are of what stays as it is otherwise.
    pub(super) async fn put_scale(
        &self,
        member: &Member,
        there: &Deployment,
        replicas: u32,
    ) -> Result<Wrote, Error> {
        let wish = format!("{replicas} replicas");
        let writers = Some(writers(managed_fields(there)));
        let (kind, name) = (Kind::Deployment, there.name_any());
        let contest = member.contest((kind, &name));
        let stake = stake(member, replicas == 0);
        if self.waits(member, &contest, (&wish, writers.as_ref()), stake) {
            return Ok(Wrote::Nothing);
        }
        let scaling = Scaling { replicas, version: None, dry_run: false };
        let wrote = self.scale(member, there, scaling).await?;
        if wrote == Wrote::Something {
            let put_back = PutBack { kind, named: "Deployment", name: &name, undone: &[] };
            self.wrote(member, contest, (&wish, writers), put_back);
        }
        Ok(wrote)
    }

    /// Whether an object is left as it is for now; it is looked at again when that is over.
    fn waits(
        &self,
        member: &Member,
        contest: &Contest,
        (wish, writers): (&str, Option<&BTreeSet<String>>),
        stake: Stake,
    ) -> bool {
        let until = contest.waits(wish, writers, (stake, self.world.clock.now()));
        if let Some(until) = until {
            self.world.look_again(&member.id, until);
        }
        until.is_some()
    }

    /// Keeps in mind that an object was written, and has it told if that put back what others wrote.
    fn wrote(
        &self,
        member: &Member,
        mut contest: Contest,
        (wish, writers): (&str, Option<BTreeSet<String>>),
        PutBack { kind, named, name, undone }: PutBack<'_>,
    ) {
        let (now, absent) = (self.world.clock.now(), writers.is_none());
        let put_backs = contest.wrote(wish, writers, now);
        let dispute = if absent && undone.is_empty() {
            Dispute::of_deletions((named, name), put_backs, now)
        } else {
            Dispute::of((named, name), undone, put_backs, now)
        };
        tracing::debug!(model = %member.id, kind = named, name, put_backs, "written");
        if let Some(told) = dispute.as_ref().and_then(|dispute| dispute.told(now)) {
            tracing::warn!(model = %member.id, told, put_backs, "put back");
        }
        self.world.note_contest(&member.model, (kind, name), contest);
        if let Some(dispute) = dispute {
            self.world.note_dispute(&member.model, dispute);
        }
    }
}

/// What was put back of an object of this kind and name.
struct PutBack<'a> {
    kind: Kind,
    /// As people call it.
    named: &'a str,
    name: &'a str,
    /// Who had written which fields.
    undone: &'a [(String, String)],
}

/// What is wanted of an object, told from what else might be.
pub(super) fn wish<K: Metadata<Ty = ObjectMeta> + serde::Serialize>(wanted: &K) -> String {
    format!("{} with {} replicas", spec_hash(wanted).unwrap_or_default(), replicas(wanted))
}

/// How many replicas an object shall have, or `null`.
fn replicas(object: &impl serde::Serialize) -> Value {
    let object = serde_json::to_value(object).unwrap_or_default();
    object.pointer("/spec/replicas").cloned().unwrap_or_default()
}

/// What is at stake while an object of `member` is left as it is, which by its wish would end engines or not.
fn stake(member: &Member, ends: bool) -> Stake {
    let group = member.effective.as_deref().map(|effective| &effective.group);
    let shares = matches!(group, Some(GroupId::Shared { .. }));
    if shares && ends { Stake::SharedGpu } else { Stake::Itself }
}
