//! What of a member is left alone for now, since the API server did not take it not long ago, and how it is tried again.

use flexinfer_crds::conditions::{ConditionReason, ConditionType};

use super::objects::Drawn;
use super::{Engine, Finalizer, Observed, Seen, Wanted, WantedEngine};
use crate::planning::status::Obstacle;
use crate::planning::writing::Part;

/// The member with what was refused as an obstacle. What only the Model's author can mend comes before that.
pub(super) fn obstructed(member: &Seen<'_>, drawn: Drawn) -> Drawn {
    let unfilled = drawn.obstacle.clone().filter(|own| own.condition == ConditionType::Cached);
    let refused = member.writing.obstacle(drawn.weights.met.is_some());
    let own = drawn.obstacle.filter(|own| own.lasting || refused.is_none());
    Drawn { unfilled, obstacle: own.or(refused), ..drawn }
}

/// Whether what runs may not have its new weights yet, or not all of them.
pub(super) fn waits_for_weights(obstacles: &[Option<Obstacle>]) -> bool {
    obstacles.iter().flatten().any(|found| found.condition == ConditionType::Cached)
}

/// How measuring stands, where the Jobs for that are refused.
pub(super) fn measured_or_not(
    member: &Seen<'_>,
    standing: Option<(ConditionReason, String)>,
) -> Option<(ConditionReason, String)> {
    let refused = member.writing.of_jobs();
    standing.map(|(reason, message)| match refused {
        Some(refused) if reason == ConditionReason::BenchmarkPending => {
            (reason, refused.to_owned())
        }
        _ => (reason, message),
    })
}

/// Takes out of `wanted` what has to be left alone. Nothing is made of a Model that may vanish at any time.
pub(super) fn withhold(
    observed: &Observed<'_>,
    member: &Seen<'_>,
    engine: &Engine,
    wanted: Wanted,
) -> Wanted {
    let generation = member.model.metadata.generation;
    let withheld: Vec<Part> = Part::ALL
        .into_iter()
        .filter(|part| member.writing.withholds(*part, generation, observed.now))
        .collect();
    let unheld = withheld.contains(&Part::Finalizer);
    let goes = |part| !unheld && !withheld.contains(&part);
    let refused =
        [Part::Engine, Part::Replicas].into_iter().any(|part| member.writing.is_refused(part));
    // Its pods would read files that are not there, or older ones.
    let changes = goes(Part::Engine) && goes(Part::Files);
    let engine = match wanted.engine {
        wanted if !changes => wanted.but_as_it_is(engine.asked),
        wanted if refused && engine.asked == 0 && goes(Part::Replicas) => tried(wanted),
        wanted => wanted,
    };
    let engine = match engine {
        WantedEngine::Scaled(_) if withheld.contains(&Part::Replicas) => WantedEngine::AsItIs,
        engine => engine,
    };
    Wanted {
        finalizer: if unheld { Finalizer::Keep } else { wanted.finalizer },
        service: wanted.service.filter(|_| goes(Part::Service)),
        files: wanted.files.filter(|_| goes(Part::Files)),
        caching: wanted.caching.filter(|_| goes(Part::Weights)),
        jobs: if goes(Part::Jobs) { wanted.jobs } else { Vec::new() },
        outdated: if goes(Part::Jobs) { wanted.outdated } else { Vec::new() },
        leftovers: if goes(Part::Pods) { wanted.leftovers } else { Vec::new() },
        released: if goes(Part::Pods) { wanted.released } else { Vec::new() },
        engine,
        withheld,
        ..wanted
    }
}

/// As it would be started, in the writes that would start it: a rule may forbid only that, and nobody gives up a GPU
/// before it is known.
fn tried(wanted: WantedEngine) -> WantedEngine {
    match wanted {
        WantedEngine::Deployment(mut deployment) => {
            deployment.spec.replicas = Some(1);
            WantedEngine::Tried { deployment, step: None }
        }
        WantedEngine::ScaledElsewhere { deployment, step: _ } => {
            WantedEngine::Tried { deployment, step: Some(1) }
        }
        wanted => wanted,
    }
}
