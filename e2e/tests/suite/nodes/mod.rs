//! What nodes have to do with models, with everything installed by the chart: each program is a pod under its own
//! service account, with the rights that the chart gives it and no others.

mod cloud;
mod freed;
mod installed;
mod measuring;
mod moving;
mod notices;
mod removing;
