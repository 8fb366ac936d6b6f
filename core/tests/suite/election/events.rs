//! What can happen to the members of a group, and how often a random sequence has it happen.

use flexinfer_core::scaling::Warmth;
use proptest::prelude::*;

use super::state::MEMBERS;

#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A request for the n-th member begins to wait.
    Ask(usize),
    /// One that waits for the n-th member leaves.
    Leave(usize),
    /// What waits for the n-th member goes to its engine, where the election lets it.
    Serve(usize),
    /// A request on the n-th member's engine ends.
    Finish(usize),
    /// What the election says is done: who must go stops, who is wanted and fits starts.
    CarryOut,
    /// The n-th member's load ends.
    Ready(usize),
    /// The n-th member's engine fails; it is not tried again for some seconds.
    Fail(usize, u64),
    /// The clock moves by milliseconds.
    Pass(u64),
    /// The n-th member is edited.
    Edit(usize, Edit),
}

#[derive(Clone, Debug)]
pub(super) struct Edit {
    pub(super) priority: i32,
    pub(super) warmth: Warmth,
    pub(super) forced: bool,
    pub(super) vram: Option<u64>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let warmth = prop_oneof![
        4 => Just(Warmth::None),
        1 => Just(Warmth::Pinned),
        1 => Just(Warmth::Primary)
    ];
    let priority = prop_oneof![Just(50), Just(100), Just(100), Just(200)];
    let vram =
        prop_oneof![Just(None), Just(Some(4)), Just(Some(8)), Just(Some(12)), Just(Some(30))];
    (priority, warmth, prop::bool::weighted(0.1), vram)
        .prop_map(|(priority, warmth, forced, vram)| Edit { priority, warmth, forced, vram })
}

pub(super) fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..MEMBERS).prop_map(Event::Ask),
        2 => (0..MEMBERS).prop_map(Event::Leave),
        6 => (0..MEMBERS).prop_map(Event::Serve),
        6 => (0..MEMBERS).prop_map(Event::Finish),
        8 => Just(Event::CarryOut),
        6 => (0..MEMBERS).prop_map(Event::Ready),
        1 => (0..MEMBERS, 1_u64..60).prop_map(|(member, seconds)| Event::Fail(member, seconds)),
        6 => prop_oneof![0_u64..2_000, 0_u64..400_000].prop_map(Event::Pass),
        2 => (0..MEMBERS, edit()).prop_map(|(member, edit)| Event::Edit(member, edit)),
    ]
}
