//! Which model of a service label answers next.

use std::collections::HashMap;
use std::sync::Arc;

use flexinfer_core::fleet::Served;
use flexinfer_core::routing::{Key, LabelRouting, Member};
use parking_lot::Mutex;

use crate::parts::LivenessOf;

/// Chooses among the models of labels.
#[derive(Debug, Default)]
pub struct Labels {
    routing: LabelRouting,
    /// Whose turn it is, for each label that was asked for. As many as there are labels, since a name
    /// that is none does not come here.
    turns: Mutex<HashMap<Box<str>, usize>>,
}

impl Labels {
    /// Labels whose requests are spread by `routing`.
    pub fn new(routing: LabelRouting) -> Self {
        Self { routing, turns: Mutex::default() }
    }

    /// How requests are spread over the models of a label.
    pub(crate) fn routing(&self) -> LabelRouting {
        self.routing
    }

    /// The one of `models` that answers a request for `label`, and whether it is up.
    pub(crate) fn choose(
        &self,
        label: &str,
        key: Option<&Key>,
        models: &[Arc<Served>],
        liveness: &LivenessOf,
    ) -> Option<(Arc<Served>, bool)> {
        let names: Vec<String> =
            models.iter().map(|model| model.effective.id.to_string()).collect();
        let members: Vec<Member<'_>> = names
            .iter()
            .zip(models)
            .map(|(name, model)| {
                let liveness = liveness(model);
                Member { name, ready: liveness.ready, load: liveness.load }
            })
            .collect();
        let place = self.routing.choose(&members, key, self.turn(label))?;
        let ready = members.get(place).is_some_and(|member| member.ready);
        models.get(place).map(|model| (Arc::clone(model), ready))
    }

    fn turn(&self, label: &str) -> usize {
        let mut turns = self.turns.lock();
        if let Some(turn) = turns.get_mut(label) {
            *turn = turn.wrapping_add(1);
            return *turn;
        }
        turns.insert(label.into(), 0);
        0
    }
}
