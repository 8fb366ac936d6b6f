//! What must hold of a group after every event, and of each thing that it does.

use flexinfer_core::ids::{InstanceId, ModelId};
use flexinfer_core::queueing::Phase;
use flexinfer_core::scaling::Warmth;
use flexinfer_core::sharing::Capacity;

use super::world::{Life, World};

impl World {
    /// A model that serves is asked to leave only for a higher one, or because it was edited.
    pub(super) fn check_drain(&self, model: &ModelId) {
        let Some(leaving) = self.terms.get(model) else { return };
        let engine = self.engines.values().find(|engine| engine.model == *model).unwrap();
        let edited = engine.generation != leaving.generation;
        let outranked = self.terms.values().any(|other| {
            other.id != *model && (other.priority > leaving.priority || other.force_promotion)
        });
        assert!(edited || outranked, "{model} serves and drains for nobody of higher priority");
    }

    /// A model that is kept warm leaves only for somebody of at least its priority.
    pub(super) fn check_stop(&self, model: &ModelId, instance: InstanceId) {
        let Some(leaving) = self.terms.get(model) else { return };
        let edited = self.engines[&instance].generation != leaving.generation;
        if edited || leaving.warmth == Warmth::None {
            return;
        }
        let outranked = self.terms.values().any(|other| {
            other.id != *model && (other.priority >= leaving.priority || other.force_promotion)
        });
        assert!(outranked, "{model} is kept warm and stops for nobody of its priority");
    }

    pub(super) fn check(&self) {
        self.check_capacity();
        let view = self.group.view(self.now);
        for member in &view {
            let waiting = self.waiting.get(&member.id).map_or(0, Vec::len);
            assert_eq!(member.waiting, waiting, "{}", member.id);
            let Some(engine) = self.engines.values().find(|engine| engine.model == member.id)
            else {
                continue;
            };
            if engine.life == Life::Serving {
                assert_eq!(member.in_flight, engine.in_flight, "{}", member.id);
            }
        }
        let alive = !self.engines.is_empty();
        for member in view.iter().filter(|member| member.waiting > 0) {
            assert!(
                alive || member.phase == Phase::Failed,
                "{} has waiters and nothing in its group runs or is barred",
                member.id
            );
        }
        assert!(self.group.wake_at().is_none_or(|wake| wake > self.now));
    }

    fn check_capacity(&self) {
        match self.capacity {
            Capacity::One => assert!(self.engines.len() <= 1, "{:?}", self.engines),
            Capacity::Vram(total) if self.engines.len() > 1 => {
                let used: Option<u64> = self.engines.values().map(|engine| engine.vram).sum();
                assert!(used.is_some_and(|used| used <= total), "{:?}", self.engines);
            }
            Capacity::Vram(_) => {}
        }
    }
}
