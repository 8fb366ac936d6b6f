//! The objects that are made for Models.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};

use super::following::{Followed, Place};
use crate::world::index::Index;
use crate::world::news::Named as _;
use crate::world::objects::Kind;

pub(super) const DEPLOYMENTS: Followed<Deployment, Place> = Followed {
    name: Deployment::place,
    see: Index::see_deployment,
    keep: |index, listed| index.keep(Kind::Deployment, listed),
    forget: Index::forget_deployment,
};

pub(super) const SERVICES: Followed<Service, Place> = Followed {
    name: Service::place,
    see: Index::see_service,
    keep: |index, listed| index.keep(Kind::Service, listed),
    forget: Index::forget_service,
};

/// The files that engines read at their start.
pub(super) const FILES: Followed<ConfigMap, Place> = Followed {
    name: ConfigMap::place,
    see: Index::see_files,
    keep: |index, listed| index.keep(Kind::Files, listed),
    forget: Index::forget_files,
};

pub(super) const JOBS: Followed<Job, Place> = Followed {
    name: Job::place,
    see: Index::see_job,
    keep: Index::keep_jobs,
    forget: Index::forget_job,
};

pub(super) const PODS: Followed<Pod, Place> = Followed {
    name: Pod::place,
    see: Index::see_pod,
    keep: |index, listed| index.keep(Kind::Pod, listed),
    forget: Index::forget_pod,
};
