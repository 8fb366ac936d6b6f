//! What must hold of every election.

use std::time::Duration;

use flexinfer_core::moment::Moment;
use flexinfer_core::sharing::{
    Capacity, Election, Member, Residency, Turn, elect, revisit_at, room, turn,
};

use super::state::{LOAD, State};

/// Later than anything that an election counts with.
const LONG: Duration = Duration::from_secs(100_000);

impl State {
    pub(super) fn check(&self) {
        let election = self.election();
        self.only_members_that_may(&election);
        self.what_is_wanted_fits(&election);
        self.nobody_waits_for_an_empty_group(&election);
        self.priority_is_kept(&election);
        self.only_the_busy_yield_and_only_to_equals(&election);
        self.the_order_of_the_members_does_not_matter(&election);
        self.nothing_changes_before_it_is_looked_at_again(&election);
        self.what_is_carried_out_is_still_wanted(&election);
        self.nobody_gets_a_turn_before_it_was_foretold(&election);
    }

    fn barred(&self, member: &Member) -> bool {
        member.barred_until.is_some_and(|until| self.now < until)
    }

    fn only_members_that_may(&self, election: &Election) {
        for (place, id) in election.residents.iter().enumerate() {
            let member = self.members.iter().find(|member| member.id == *id).expect("a member");
            assert!(!self.barred(member), "{id} is elected and barred");
            assert!(!election.residents[..place].contains(id), "{id} is elected twice");
        }
    }

    fn what_is_wanted_fits(&self, election: &Election) {
        let mut taken = Vec::new();
        for member in self.members.iter().filter(|member| election.wants(&member.id)) {
            assert!(
                room(taken.iter().copied(), member.vram_mib, self.capacity),
                "{:?} do not fit together",
                election.residents
            );
            taken.push(member.vram_mib);
        }
    }

    fn nobody_waits_for_an_empty_group(&self, election: &Election) {
        let waited_for = |member: &&Member| member.activity.waiting > 0 && !self.barred(member);
        let waited_for = self.members.iter().find(waited_for);
        assert!(
            waited_for.is_none() || !election.residents.is_empty(),
            "{:?} is waited for and nobody is elected",
            waited_for.map(|member| &member.id)
        );
    }

    /// A waiting member gives way only to the forced, the protected and those of at least its priority.
    fn priority_is_kept(&self, election: &Election) {
        if self.capacity != Capacity::One {
            return;
        }
        let Some(elected) = self.members.iter().find(|member| election.wants(&member.id)) else {
            return;
        };
        let protected = match elected.residency {
            Residency::Absent => false,
            Residency::Loading => true,
            Residency::Serving { since, load_took, swapped_in } => {
                let cooldown = Duration::from_secs(60);
                self.now < since + load_took.min(cooldown)
                    || swapped_in.is_some_and(|swap| self.now < swap + cooldown)
            }
        };
        if elected.force_promotion || protected {
            return;
        }
        for other in self.members.iter().filter(|other| !self.barred(other)) {
            let asks = other.activity.waiting > 0 && other.id != elected.id;
            assert!(
                !asks || other.priority <= elected.priority,
                "{} is waited for and gives way to {}, which is lower",
                other.id,
                elected.id
            );
            let serves = matches!(other.residency, Residency::Serving { .. });
            let busy = serves && other.activity.in_flight > 0 && other.id != elected.id;
            assert!(
                !busy || other.priority < elected.priority,
                "{} is busy and gives way to {}, which is not higher",
                other.id,
                elected.id
            );
        }
    }

    fn only_the_busy_yield_and_only_to_equals(&self, election: &Election) {
        for id in &election.yielding {
            let member = self.members.iter().find(|member| member.id == *id).expect("a member");
            assert!(election.wants(id), "{id} yields and is not wanted");
            assert!(member.activity.in_flight > 0, "{id} yields and is idle");
            let equal = self.members.iter().any(|other| {
                let absent = other.residency == Residency::Absent;
                absent && other.activity.waiting > 0 && other.priority == member.priority
            });
            assert!(equal, "{id} yields to nobody");
        }
    }

    fn the_order_of_the_members_does_not_matter(&self, election: &Election) {
        let mut members = self.members.clone();
        members.reverse();
        let mut other = elect(&members, self.capacity, self.now);
        members.rotate_left(1);
        assert_eq!(other.residents, elect(&members, self.capacity, self.now).residents);
        assert_eq!(other.residents, election.residents);
        let mut yielding = election.yielding.clone();
        yielding.sort();
        other.yielding.sort();
        assert_eq!(other.yielding, yielding);
    }

    /// A shell that wakes the group at `revisit_at` misses nothing.
    fn nothing_changes_before_it_is_looked_at_again(&self, election: &Election) {
        let revisit = revisit_at(&self.members, self.now);
        assert!(revisit.is_none_or(|at| at > self.now));
        let end = revisit.unwrap_or(self.now + LONG);
        let almost = end - Duration::from_millis(1);
        let half = self.now + self.now.until(end) / 2;
        for at in [half, almost].into_iter().filter(|at| *at >= self.now && *at < end) {
            assert_eq!(elect(&self.members, self.capacity, at), *election, "at {at:?}");
        }
    }

    /// A swap under way is joined, not taken back.
    fn what_is_carried_out_is_still_wanted(&self, election: &Election) {
        let mut next =
            Self { members: self.members.clone(), capacity: self.capacity, now: self.now };
        next.carry_out();
        let later = next.election();
        for id in &election.residents {
            assert!(later.wants(id), "{id} was wanted, is loading, and is not wanted any more");
        }
    }

    /// Whoever is told that waiting is hopeless would have waited in vain, however soon the others end
    /// what they have.
    fn nobody_gets_a_turn_before_it_was_foretold(&self, election: &Election) {
        let waiting = |member: &&Member| member.activity.waiting > 0;
        for member in self.members.iter().filter(waiting) {
            let expected = |_: &_| Some((self.now, LOAD));
            let until = match turn(&self.members, election, &member.id, expected, self.now) {
                Turn::Now => continue,
                Turn::NotBefore(at) => at,
                Turn::HeldBy(_) => self.now + LONG,
            };
            assert!(until > self.now);
            for at in self.looks_until(until) {
                for others in
                    [self.as_they_are(), self.all_at_rest(member), self.none_waits(member)]
                {
                    let earlier = elect(&others, self.capacity, at);
                    assert!(
                        !earlier.wants(&member.id),
                        "{} would have had its turn at {at:?} and was told {until:?}",
                        member.id
                    );
                }
            }
        }
    }

    fn looks_until(&self, end: Moment) -> Vec<Moment> {
        let span = self.now.until(end);
        let parts = (0..10_u32).map(|part| self.now + span / 10 * part);
        parts.chain([end - Duration::from_millis(1)]).filter(|at| *at < end).collect()
    }

    fn as_they_are(&self) -> Vec<Member> {
        self.members.clone()
    }

    /// Every other member has just ended what it had, and is waited for by nobody.
    fn all_at_rest(&self, but: &Member) -> Vec<Member> {
        let mut members = self.none_waits(but);
        for other in members.iter_mut().filter(|other| other.id != but.id) {
            if other.activity.in_flight > 0 {
                other.activity.in_flight = 0;
                other.activity.last_active = Some(self.now);
            }
        }
        members
    }

    fn none_waits(&self, but: &Member) -> Vec<Member> {
        let mut members = self.members.clone();
        for other in members.iter_mut().filter(|other| other.id != but.id) {
            other.activity.waiting = 0;
            other.activity.waiting_since = None;
        }
        members
    }
}
