//! Which model of a service label answers next.

use std::collections::HashMap;
use std::sync::Arc;

use flexinfer_core::fleet::Served;
use parking_lot::Mutex;

use crate::parts::LivenessOf;

/// Whose turn it is, for each label that was asked for. As many as there are labels, since a name that
/// is none does not come here.
#[derive(Debug, Default)]
pub struct Labels {
    turns: Mutex<HashMap<Box<str>, usize>>,
}

impl Labels {
    /// The next of `models` that are up; if none is, the next of all, which wakes it.
    pub(crate) fn choose(
        &self,
        label: &str,
        models: &[Arc<Served>],
        liveness: &LivenessOf,
    ) -> Option<Arc<Served>> {
        let up: Vec<_> = models.iter().filter(|model| liveness(model).ready).collect();
        let eligible = if up.is_empty() { models.iter().collect() } else { up };
        let turn = self.turn(label);
        eligible.get(turn.checked_rem(eligible.len())?).map(|model| Arc::clone(model))
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
