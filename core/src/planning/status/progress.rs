//! How far loading is, as the status says it.

use flexinfer_crds::model::{CacheProgress, CacheStatus, LoadingSubstage, ModelStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::Situation;
use crate::planning::progress::Told;
use crate::planning::time::time;

/// Where the weights are, with how much of them has come. What a quantizer counts is its own affair.
pub(super) fn cache(situation: &Situation<'_>) -> Option<CacheStatus> {
    let cache = situation.cache.clone();
    let come = situation.come.filter(|_| situation.caching != Some(LoadingSubstage::Quantizing));
    let Some(Told { share, .. }) = come else { return cache };
    // More than fits there is never taken for an answer.
    let bytes = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let progress = CacheProgress { done_bytes: bytes(share.done), total_bytes: bytes(share.total) };
    Some(CacheStatus { progress: Some(progress), ..cache.unwrap_or_default() })
}

/// When its loading went on last: when the part of it began that is under way, or when more had come.
pub(super) fn at(
    situation: &Situation<'_>,
    substage: Option<LoadingSubstage>,
    old: &ModelStatus,
) -> Option<Time> {
    let new = substage?;
    let Some(known) = old.loading_progress_at.clone().filter(|_| old.loading_substage == Some(new))
    else {
        return Some(time(situation.now));
    };
    let moved = situation.come.map(|told| time(told.moved));
    Some(moved.filter(|moved| moved.0 > known.0).unwrap_or(known))
}
