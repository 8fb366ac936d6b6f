//! The members of a group as a platform would have them, moved by events alone.

use std::time::Duration;

use flexinfer_core::ids::ModelId;
use flexinfer_core::moment::Moment;
use flexinfer_core::scaling::{Activity, Warmth};
use flexinfer_core::sharing::{Capacity, Election, Member, Residency, elect, room};

use super::events::{Edit, Event};

pub(super) const MEMBERS: usize = 4;

/// A load takes this long.
pub(super) const LOAD: Duration = Duration::from_secs(10);

pub(super) struct State {
    pub(super) members: Vec<Member>,
    pub(super) capacity: Capacity,
    pub(super) now: Moment,
}

fn member(number: usize) -> Member {
    Member {
        id: ModelId::new("default", ["a", "b", "c", "d"][number]),
        priority: 100,
        force_promotion: false,
        warmth: Warmth::None,
        idle_timeout: Duration::from_secs(300),
        swap_cooldown: Duration::from_secs(60),
        vram_mib: Some(8),
        barred_until: None,
        residency: Residency::Absent,
        activity: Activity::default(),
    }
}

impl State {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { members: (0..MEMBERS).map(member).collect(), capacity, now: Moment::ORIGIN }
    }

    pub(super) fn election(&self) -> Election {
        elect(&self.members, self.capacity, self.now)
    }

    pub(super) fn happen(&mut self, event: &Event) {
        let now = self.now;
        match event {
            Event::Ask(n) => {
                let activity = &mut self.members[*n].activity;
                activity.waiting += 1;
                activity.waiting_since.get_or_insert(now);
            }
            Event::Leave(n) => self.wait_less(*n),
            Event::Serve(n) => self.serve(*n),
            Event::Finish(n) => {
                let activity = &mut self.members[*n].activity;
                if activity.in_flight > 0 {
                    activity.in_flight -= 1;
                    activity.last_active = Some(now);
                }
            }
            Event::CarryOut => self.carry_out(),
            Event::Ready(n) => {
                if self.members[*n].residency == Residency::Loading {
                    // Who would have been displaced makes the difference only between one group and another.
                    let swapped_in = (*n % 2 == 0).then_some(now - LOAD);
                    self.members[*n].residency =
                        Residency::Serving { since: now, load_took: LOAD, swapped_in };
                }
            }
            Event::Fail(n, seconds) => {
                let member = &mut self.members[*n];
                if member.residency != Residency::Absent {
                    member.residency = Residency::Absent;
                    member.activity.in_flight = 0;
                    member.barred_until = Some(now + Duration::from_secs(*seconds));
                }
            }
            Event::Pass(milliseconds) => self.now = now + Duration::from_millis(*milliseconds),
            Event::Edit(n, edit) => self.edit(*n, edit),
        }
    }

    fn edit(&mut self, n: usize, edit: &Edit) {
        let member = &mut self.members[n];
        member.priority = edit.priority;
        member.warmth = edit.warmth;
        member.force_promotion = edit.forced;
        // The size of an engine that is there does not change.
        if member.residency == Residency::Absent {
            member.vram_mib = edit.vram;
        }
    }

    fn wait_less(&mut self, n: usize) {
        let activity = &mut self.members[n].activity;
        activity.waiting = activity.waiting.saturating_sub(1);
        if activity.waiting == 0 {
            activity.waiting_since = None;
        }
    }

    fn serve(&mut self, n: usize) {
        let election = self.election();
        let member = &self.members[n];
        let serving = matches!(member.residency, Residency::Serving { .. });
        let open = election.wants(&member.id) && !election.yielding.contains(&member.id);
        if serving && open && member.activity.waiting > 0 {
            self.wait_less(n);
            self.members[n].activity.in_flight += 1;
        }
    }

    /// Stops whoever is not wanted, at once, then starts whoever is and fits.
    pub(super) fn carry_out(&mut self) {
        let election = self.election();
        for member in self.members.iter_mut().filter(|member| !election.wants(&member.id)) {
            if member.residency != Residency::Absent {
                if member.activity.in_flight > 0 {
                    member.activity.last_active = Some(self.now);
                }
                member.residency = Residency::Absent;
                member.activity.in_flight = 0;
            }
        }
        for id in &election.residents {
            let there = self.members.iter().filter(|member| member.residency != Residency::Absent);
            let sizes: Vec<_> = there.map(|member| member.vram_mib).collect();
            let Some(member) = self.members.iter_mut().find(|member| member.id == *id) else {
                continue;
            };
            let fits = room(sizes.into_iter(), member.vram_mib, self.capacity);
            if member.residency == Residency::Absent && fits {
                member.residency = Residency::Loading;
            }
        }
    }

    /// Nobody asks for anything any more, and all that is kept warm stays so: nothing is loaded for ever.
    pub(super) fn come_to_be_left_alone(&self) {
        let mut left =
            Self { members: self.members.clone(), capacity: self.capacity, now: self.now };
        for member in &mut left.members {
            let last = member.activity.last_active;
            member.activity = Activity { last_active: last, ..Activity::default() };
        }
        for round in 0..100 {
            left.now = left.now + Duration::from_secs(30);
            left.carry_out();
            for n in 0..MEMBERS {
                let loads = left.members[n].residency == Residency::Loading;
                assert!(
                    !loads || round < 60,
                    "{} is loaded although nobody asks",
                    left.members[n].id
                );
                left.happen(&Event::Ready(n));
            }
        }
    }

    /// Nobody is edited, fails or comes any more: whoever still waits is served in the end, but for
    /// those behind somebody of a higher claim who never leaves.
    pub(super) fn come_to_rest(&mut self) {
        for member in &mut self.members {
            (member.warmth, member.force_promotion) = (Warmth::None, false);
        }
        for _ in 0..200 {
            self.carry_out();
            for n in 0..MEMBERS {
                self.happen(&Event::Ready(n));
                while self.members[n].activity.waiting > 0 {
                    let before = self.members[n].activity.waiting;
                    self.serve(n);
                    if self.members[n].activity.waiting == before {
                        break;
                    }
                }
            }
            self.check();
            for n in 0..MEMBERS {
                while self.members[n].activity.in_flight > 0 {
                    self.happen(&Event::Finish(n));
                }
            }
            self.now = self.now + Duration::from_secs(30);
        }
        for member in &self.members {
            assert_eq!(member.activity.waiting, 0, "{} is waited for for ever", member.id);
            assert_eq!(member.residency, Residency::Absent, "{} stays up for ever", member.id);
        }
    }
}
