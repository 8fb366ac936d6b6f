//! The rules of leadership as tables: each test is one rule.

use super::*;

fn at(seconds: u64) -> Moment {
    Moment::ORIGIN + secs(seconds)
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn id(name: &str) -> ModelId {
    ModelId::new("default", name)
}

fn member(name: &str) -> Member {
    Member {
        id: id(name),
        priority: 100,
        force_promotion: false,
        warmth: Warmth::None,
        idle_timeout: secs(300),
        swap_cooldown: secs(300),
        vram_mib: None,
        barred_until: None,
        residency: Residency::Absent,
        activity: Activity::default(),
    }
}

impl Member {
    fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    fn warmth(mut self, warmth: Warmth) -> Self {
        self.warmth = warmth;
        self
    }

    fn forced(mut self) -> Self {
        self.force_promotion = true;
        self
    }

    fn vram(mut self, mib: u64) -> Self {
        self.vram_mib = Some(mib);
        self
    }

    fn waited_for(mut self, since: u64) -> Self {
        self.activity.waiting = 1;
        self.activity.waiting_since = Some(at(since));
        self
    }

    fn loading(mut self) -> Self {
        self.residency = Residency::Loading;
        self
    }

    /// Ready since `since` after a load of ten seconds, without having displaced anybody.
    fn serving(mut self, since: u64) -> Self {
        self.residency =
            Residency::Serving { since: at(since), load_took: secs(10), swapped_in: None };
        self
    }

    fn swapped_in(mut self, since: u64) -> Self {
        self.residency = Residency::Serving {
            since: at(since),
            load_took: secs(10),
            swapped_in: Some(at(since - 10)),
        };
        self
    }

    fn busy(mut self) -> Self {
        self.activity.in_flight = 1;
        self
    }

    fn last_active(mut self, seconds: u64) -> Self {
        self.activity.last_active = Some(at(seconds));
        self
    }
}

fn residents(members: &[Member], now: u64) -> Vec<String> {
    names(&elect(members, Capacity::One, at(now)).residents)
}

fn yielding(members: &[Member], now: u64) -> Vec<String> {
    names(&elect(members, Capacity::One, at(now)).yielding)
}

fn names(ids: &[ModelId]) -> Vec<String> {
    ids.iter().map(|id| id.name.to_string()).collect()
}

#[test]
fn nobody_is_resident_without_demand_or_warmth() {
    assert!(residents(&[member("a"), member("b").priority(900)], 0).is_empty());
}

#[test]
fn the_demanded_member_gets_an_empty_group() {
    assert_eq!(residents(&[member("a").priority(900), member("b").waited_for(0)], 0), ["b"]);
}

#[test]
fn of_two_demanded_members_the_higher_priority_wins_then_the_longest_wait() {
    assert_eq!(
        residents(&[member("a").waited_for(0), member("b").priority(200).waited_for(5)], 9),
        ["b"]
    );
    assert_eq!(residents(&[member("a").waited_for(5), member("b").waited_for(0)], 9), ["b"]);
}

#[test]
fn a_strictly_higher_demand_displaces_a_busy_resident() {
    let group = [member("low").serving(0).busy(), member("high").priority(200).waited_for(50)];
    assert_eq!(residents(&group, 60), ["high"]);
}

#[test]
fn an_equal_demand_displaces_an_idle_resident_once_its_load_time_is_over() {
    let group = [member("a").serving(0), member("b").waited_for(2)];
    assert_eq!(residents(&group, 5), ["a"], "its load took ten seconds");
    assert_eq!(residents(&group, 10), ["b"]);
}

#[test]
fn queue_18_an_equal_demand_lets_a_busy_resident_finish_and_stops_it_taking_more() {
    let group = [member("a").serving(0).busy(), member("b").waited_for(30)];
    assert_eq!(residents(&group, 60), ["a"]);
    assert_eq!(yielding(&group, 60), ["a"]);
    let queued_behind = [member("a").serving(0).waited_for(40), member("b").waited_for(30)];
    assert_eq!(residents(&queued_behind, 60), ["b"], "a's new requests queue behind b's");
}

#[test]
fn a_resident_whose_own_requests_waited_longer_does_not_yield() {
    let group = [member("a").serving(0).busy().waited_for(20), member("b").waited_for(30)];
    assert!(yielding(&group, 60).is_empty());
}

#[test]
fn a_lower_demand_waits_until_the_resident_has_gone_to_sleep() {
    let group = [member("high").priority(200).serving(0), member("low").waited_for(10)];
    assert_eq!(residents(&group, 299), ["high"]);
    assert_eq!(residents(&group, 300), ["low"]);
}

#[test]
fn the_winner_of_a_swap_keeps_the_group_for_the_cooldown_while_it_has_work() {
    let group = [member("b").swapped_in(10).busy(), member("a").priority(900).waited_for(20)];
    assert_eq!(residents(&group, 299), ["b"]);
    assert!(yielding(&group, 299).is_empty());
    assert_eq!(residents(&group, 300), ["a"]);
}

#[test]
fn a_cooldown_of_zero_protects_nobody() {
    let mut group = [member("b").swapped_in(10), member("a").waited_for(20)];
    for member in &mut group {
        member.swap_cooldown = Duration::ZERO;
    }
    assert_eq!(residents(&group, 11), ["a"]);
}

#[test]
fn the_largest_cooldown_of_the_members_counts() {
    let mut group = [member("b").swapped_in(10).busy(), member("a").priority(900).waited_for(20)];
    group[1].swap_cooldown = secs(600);
    assert_eq!(residents(&group, 400), ["b"]);
}

#[test]
fn a_load_that_has_begun_is_not_displaced_by_a_higher_demand() {
    let group = [member("low").loading(), member("high").priority(900).waited_for(0)];
    assert_eq!(residents(&group, 1), ["low"]);
}

#[test]
fn forced_promotion_displaces_even_a_protected_resident() {
    let group = [member("b").swapped_in(10).busy(), member("a").forced().priority(1)];
    assert_eq!(residents(&group, 20), ["a"]);
}

#[test]
fn a_failed_member_takes_no_demand_until_its_bar_is_over() {
    let mut failed = member("a").waited_for(0);
    failed.barred_until = Some(at(30));
    let group = [failed, member("b").waited_for(5)];
    assert_eq!(residents(&group, 29), ["b"]);
    assert_eq!(residents(&group, 30), ["a"]);
}

#[test]
fn a_pinned_member_is_preferred_over_an_idle_one_of_higher_priority() {
    let group = [member("idle").priority(900), member("pinned").warmth(Warmth::Pinned)];
    assert_eq!(residents(&group, 0), ["pinned"]);
}

#[test]
fn demand_of_higher_priority_displaces_a_pinned_idle_resident() {
    let group = [
        member("pinned").warmth(Warmth::Pinned).serving(0),
        member("high").priority(200).waited_for(20),
    ];
    assert_eq!(residents(&group, 20), ["high"]);
}

#[test]
fn a_pinned_resident_keeps_its_place_against_lower_demand_however_long_it_is_idle() {
    for warmth in [Warmth::Pinned, Warmth::Primary] {
        let group =
            [member("high").priority(200).warmth(warmth).serving(0), member("low").waited_for(20)];
        assert_eq!(residents(&group, 100_000), ["high"]);
    }
}

#[test]
fn of_two_pinned_members_the_higher_one_takes_an_idle_group() {
    let group = [
        member("low").warmth(Warmth::Pinned).serving(0),
        member("high").priority(200).warmth(Warmth::Pinned),
    ];
    assert_eq!(residents(&group, 119), ["low"]);
    assert_eq!(residents(&group, 120), ["high"]);
}

#[test]
fn the_pinned_member_returns_when_the_visitor_has_slept() {
    let group = [member("pinned").warmth(Warmth::Pinned), member("visitor").serving(0)];
    assert_eq!(residents(&group, 299), ["visitor"]);
    assert_eq!(residents(&group, 300), ["pinned"]);
}

#[test]
fn the_warm_primary_takes_an_idle_equal_after_the_demand_window() {
    let group =
        [member("primary").warmth(Warmth::Primary), member("visitor").serving(0).last_active(50)];
    assert_eq!(residents(&group, 169), ["visitor"]);
    assert_eq!(residents(&group, 170), ["primary"]);
    let above = [
        member("primary").warmth(Warmth::Primary),
        member("visitor").priority(101).serving(0).last_active(50),
    ];
    assert_eq!(residents(&above, 200), ["visitor"]);
}

#[test]
fn a_resident_that_should_sleep_does_not_linger_beside_the_warm_primary() {
    let group =
        [member("visitor").vram(8).serving(0), member("main").vram(4).warmth(Warmth::Primary)];
    let election = elect(&group, Capacity::Vram(20), at(300));
    assert_eq!(names(&election.residents), ["main"], "there is room, but its time is over");
}

#[test]
fn a_demand_displaces_the_idle_visitor_and_not_the_idle_primary_beside_it() {
    let group = [
        member("main").vram(8).warmth(Warmth::Primary).serving(0),
        member("visitor").vram(8).serving(0).last_active(10),
        member("asked").vram(8).waited_for(130),
    ];
    let capacity = Capacity::Vram(20);
    assert_eq!(names(&elect(&group, capacity, at(129)).residents), ["asked", "visitor"]);
    assert_eq!(names(&elect(&group, capacity, at(130)).residents), ["asked", "main"]);
}

#[test]
fn of_two_that_are_pinned_alike_beside_the_warm_primary_the_one_that_is_there_stays() {
    let group = [
        member("main").vram(8).warmth(Warmth::Primary).serving(0),
        member("first").vram(8).warmth(Warmth::Pinned).serving(0),
        member("second").vram(8).warmth(Warmth::Pinned),
    ];
    let election = elect(&group, Capacity::Vram(20), at(1000));
    let mut stay = names(&election.residents);
    stay.sort_unstable();
    assert_eq!(stay, ["first", "main"], "nobody asks for anything");
}

#[test]
fn members_that_fit_by_estimate_are_resident_together() {
    let group = [
        member("a").vram(8).serving(0).busy(),
        member("b").vram(10).waited_for(5),
        member("c").vram(10).waited_for(6),
    ];
    let election = elect(&group, Capacity::Vram(20), at(20));
    assert_eq!(names(&election.residents), ["a", "b"]);
    assert_eq!(names(&election.yielding), ["a"], "c of equal priority waits");
}

#[test]
fn a_member_without_an_estimate_is_resident_alone() {
    let group = [member("a").vram(1).serving(0), member("b").waited_for(5)];
    let election = elect(&group, Capacity::Vram(20), at(20));
    assert_eq!(names(&election.residents), ["b"]);
}

#[test]
fn an_equal_wait_behind_an_idle_resident_ends_with_its_load_time() {
    let group = [member("a").serving(0), member("b").waited_for(2)];
    let election = elect(&group, Capacity::One, at(5));
    assert_eq!(turn(&group, &election, &id("b"), |_| None, at(5)), Turn::NotBefore(at(10)));
}

#[test]
fn a_wait_behind_an_equal_that_another_displaces_at_once_could_end_with_it() {
    let group = [
        member("first").vram(8).waited_for(0),
        member("second").vram(30).serving(5).waited_for(1),
        member("third").vram(8).waited_for(6),
    ];
    let mut barred = group.clone();
    barred[0].barred_until = Some(at(13));
    let capacity = Capacity::Vram(20);
    let election = elect(&barred, capacity, at(7));
    assert_eq!(names(&election.residents), ["second"]);
    assert_eq!(turn(&barred, &election, &id("third"), |_| None, at(7)), Turn::Now);
    assert_eq!(names(&elect(&barred, capacity, at(13)).residents), ["first", "third"]);
}

#[test]
fn a_wait_behind_a_load_that_may_give_way_to_another_load_could_end_at_any_moment() {
    let mut group = [
        member("first").vram(8).loading(),
        member("second").vram(12).loading().waited_for(0),
        member("third").vram(8).waited_for(0),
        member("forced").priority(50).vram(4).forced(),
    ];
    let capacity = Capacity::Vram(20);
    let election = elect(&group, capacity, at(0));
    assert_eq!(names(&election.residents), ["forced", "second"]);
    let expected = |_: &_| Some((at(0), secs(10)));
    assert_eq!(turn(&group, &election, &id("third"), expected, at(0)), Turn::Now);
    group[1].activity = Activity::default();
    assert_eq!(names(&elect(&group, capacity, at(0)).residents), ["forced", "first", "third"]);
}

#[test]
fn a_wait_behind_a_busy_equal_could_end_at_any_moment() {
    let group = [member("a").serving(0).busy(), member("b").waited_for(20)];
    let election = elect(&group, Capacity::One, at(20));
    assert_eq!(turn(&group, &election, &id("b"), |_| None, at(20)), Turn::Now);
}

#[test]
fn a_wait_behind_a_higher_one_lasts_at_least_its_idle_timeout() {
    let group =
        [member("high").priority(200).serving(0).last_active(50), member("low").waited_for(60)];
    let election = elect(&group, Capacity::One, at(60));
    assert_eq!(turn(&group, &election, &id("low"), |_| None, at(60)), Turn::NotBefore(at(350)));
}

#[test]
fn a_pinned_higher_resident_holds_the_group_for_good() {
    let group = [
        member("high").priority(200).warmth(Warmth::Pinned).serving(0),
        member("low").waited_for(60),
    ];
    let election = elect(&group, Capacity::One, at(60));
    assert_eq!(turn(&group, &election, &id("low"), |_| None, at(60)), Turn::HeldBy(id("high")));
}

#[test]
fn the_election_is_looked_at_again_when_a_protection_ends() {
    let group = [member("a").serving(0), member("b").waited_for(2)];
    assert_eq!(revisit_at(&group, at(5)), Some(at(10)));
}
