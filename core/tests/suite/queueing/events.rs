//! What can happen to a sharing group, and how often a random sequence has it happen.

use flexinfer_core::scaling::Warmth;
use proptest::prelude::*;

use super::world::MODELS;

#[derive(Clone, Debug)]
pub(super) enum Event {
    Ask(usize),
    /// The n-th waiting request leaves.
    Leave(usize),
    /// The n-th booked slot is given back.
    Finish(usize),
    /// The n-th loading engine becomes ready.
    Ready(usize),
    /// The n-th living engine fails.
    Fail(usize),
    /// The n-th stopping engine is gone.
    Gone(usize),
    /// The clock moves by milliseconds, waking the group whenever it asked for it.
    Pass(u64),
    /// The n-th model gets other terms; odd generations change the engine too.
    Edit(usize, Edit),
    Remove(usize),
}

#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) priority: i32,
    pub(super) slots: Option<u32>,
    pub(super) warmth: Warmth,
    pub(super) forced: bool,
    pub(super) new_generation: bool,
    pub(super) max_queue: u32,
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    let warmth = prop_oneof![
        4 => Just(Warmth::None),
        1 => Just(Warmth::Pinned),
        1 => Just(Warmth::Primary)
    ];
    let slots = prop_oneof![Just(None), Just(Some(1)), Just(Some(3))];
    let priority = prop_oneof![Just(50), Just(100), Just(100), Just(200)];
    (priority, slots, warmth, prop::bool::weighted(0.05), any::<bool>(), 0_u32..6).prop_map(
        |(priority, slots, warmth, forced, new_generation, max_queue)| Edit {
            priority,
            slots,
            warmth,
            forced,
            new_generation,
            max_queue,
        },
    )
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (0..MODELS).prop_map(Event::Ask),
        3 => any::<usize>().prop_map(Event::Leave),
        8 => any::<usize>().prop_map(Event::Finish),
        8 => any::<usize>().prop_map(Event::Ready),
        3 => any::<usize>().prop_map(Event::Fail),
        8 => any::<usize>().prop_map(Event::Gone),
        6 => prop_oneof![0_u64..2_000, 0_u64..400_000].prop_map(Event::Pass),
        1 => (0..MODELS, edit()).prop_map(|(model, edit)| Event::Edit(model, edit)),
        1 => (0..MODELS).prop_map(Event::Remove),
    ]
}
