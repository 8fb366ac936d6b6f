//! The endpoints of one model, or whatever else requests are spread over: who takes requests, how
//! busy each is, whose turn it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use super::key::Key;
use super::ring::Ring;
use super::{Rank, Strategy};

/// What a request asks of the choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish<Id> {
    /// Keeps it together with others that have the same.
    pub key: Option<Key>,
    /// Who holds what the request goes on from; nobody else will do while it is open.
    pub holder: Option<Id>,
    /// What nobody but the holder has at all, as the client calls it: the holder is waited for as long as it is a member.
    pub insists: Option<String>,
    /// Who failed it already: taken again only where there is nobody else.
    pub avoid: Vec<Id>,
}

impl<Id> Default for Wish<Id> {
    fn default() -> Self {
        Self { key: None, holder: None, insists: None, avoid: Vec::new() }
    }
}

/// Those who can be chosen, with their loads. `Id` names them; its text is their place on the ring.
#[derive(Clone, Debug)]
pub struct Roster<Id> {
    strategy: Strategy,
    /// Requests at once for each; `None` is no limit.
    slots: Option<u32>,
    seats: BTreeMap<Id, Seat>,
    /// Those that can be booked now, in the order of the strategy.
    free: BTreeSet<(Rank, Id)>,
    /// Made when it is first asked for, then kept in step with the members.
    ring: Option<Ring<Id>>,
    turn: u64,
    /// Members that are open, and the requests on them.
    open: u64,
    load: u64,
}

/// What is known of one of them.
#[derive(Clone, Copy, Debug, Default)]
struct Seat {
    in_flight: u32,
    /// When it was booked last, counted in bookings.
    last_turn: u64,
    open: bool,
    /// It is gone, and stays only until its requests are.
    gone: bool,
}

impl<Id: Clone + Ord + Display> Roster<Id> {
    /// Nobody yet.
    pub fn new(strategy: Strategy, slots: Option<u32>) -> Self {
        Self {
            strategy,
            slots,
            seats: BTreeMap::new(),
            free: BTreeSet::new(),
            ring: None,
            turn: 0,
            open: 0,
            load: 0,
        }
    }

    /// Another strategy or number of slots counts from now on.
    pub fn configure(&mut self, strategy: Strategy, slots: Option<u32>) {
        if (self.strategy, self.slots) == (strategy, slots) {
            return;
        }
        (self.strategy, self.slots) = (strategy, slots);
        self.free = self
            .seats
            .iter()
            .filter(|(_, seat)| seat.bookable(slots))
            .map(|(id, seat)| (strategy.rank(seat.in_flight, seat.last_turn), id.clone()))
            .collect();
    }

    /// The members are now these. Who is new is closed until [`Roster::set_open`]; who is gone takes
    /// nothing new, and is forgotten when its last request ends.
    pub fn set_members(&mut self, members: impl IntoIterator<Item = Id>) {
        let members: BTreeSet<Id> = members.into_iter().collect();
        let gone: Vec<Id> = self.members().filter(|id| !members.contains(id)).cloned().collect();
        for id in &gone {
            self.change(id, |seat| (seat.open, seat.gone) = (false, true));
        }
        let new: Vec<Id> = members.into_iter().filter(|id| !self.is_member(id)).collect();
        for id in &new {
            self.seats.entry(id.clone()).or_default().gone = false;
        }
        if let Some(ring) = &mut self.ring {
            ring.remove(|id| gone.binary_search(id).is_ok());
            ring.add(&new);
        }
        self.seats.retain(|_, seat| !seat.over());
    }

    /// Whether a member takes requests. Its place on the ring is its own all the same.
    pub fn set_open(&mut self, id: &Id, open: bool) {
        if self.is_member(id) {
            self.change(id, |seat| seat.open = open);
        }
    }

    /// The members, open or not, in their order.
    pub fn members(&self) -> impl Iterator<Item = &Id> {
        self.seats.iter().filter(|(_, seat)| !seat.gone).map(|(id, _)| id)
    }

    fn is_member(&self, id: &Id) -> bool {
        self.seats.get(id).is_some_and(|seat| !seat.gone)
    }

    /// Whether this one is a member that takes requests.
    pub fn is_open(&self, id: &Id) -> bool {
        self.seats.get(id).is_some_and(|seat| seat.open)
    }

    /// Whether any member takes requests, free or not.
    pub fn any_open(&self) -> bool {
        self.open > 0
    }

    /// Whether a request that asks for nothing could be booked now.
    pub fn any_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Requests on `id`, those that it finishes while it is no longer a member included.
    pub fn in_flight(&self, id: &Id) -> u32 {
        self.seats.get(id).map_or(0, |seat| seat.in_flight)
    }

    /// Requests on all of them.
    pub fn all_in_flight(&self) -> u32 {
        self.seats.values().fold(0, |all, seat| all.saturating_add(seat.in_flight))
    }

    /// Chooses and books; `None` when nobody who would do has a free slot.
    pub fn book(&mut self, wish: &Wish<Id>) -> Option<Id> {
        let chosen = self.choose(wish)?;
        self.turn += 1;
        let turn = self.turn;
        self.change(&chosen, |seat| {
            seat.in_flight = seat.in_flight.saturating_add(1);
            seat.last_turn = turn;
        });
        Some(chosen)
    }

    /// A booked slot on `id` is given back.
    pub fn finish(&mut self, id: &Id) {
        self.change(id, |seat| seat.in_flight = seat.in_flight.saturating_sub(1));
        if self.seats.get(id).is_some_and(Seat::over) {
            self.seats.remove(id);
        }
    }

    /// Who would be booked now.
    pub fn choose(&mut self, wish: &Wish<Id>) -> Option<Id> {
        // 1. Who holds what the request goes on from.
        let holder = wish.holder.as_ref();
        let waits = |id: &&Id| self.is_open(id) || wish.insists.is_some() && self.is_member(id);
        if let Some(holder) = holder.filter(waits) {
            return self.is_free(holder).then(|| holder.clone());
        }
        // 2. Who failed it is left out while anybody else is open.
        let avoided = wish.avoid.iter().filter(|id| self.is_open(id)).count() as u64;
        let avoid = if avoided < self.open { wish.avoid.as_slice() } else { &[] };
        // 3. Whose key it is, and else whose turn it is by the strategy.
        match &wish.key {
            Some(key) if key.source().binds() => self.owner(key, avoid),
            Some(key) => self.near(key, avoid).or_else(|| self.first(avoid)),
            None => self.first(avoid),
        }
    }

    fn first(&self, avoid: &[Id]) -> Option<Id> {
        self.free.iter().map(|(_, id)| id).find(|id| !avoid.contains(id)).cloned()
    }

    /// The first open one on the ring, if it is free: nobody else will do.
    fn owner(&mut self, key: &Key, avoid: &[Id]) -> Option<Id> {
        self.ring();
        let ring = self.ring.as_ref()?;
        let owner = ring.from(key.text()).find(|id| self.is_open(id) && !avoid.contains(id))?;
        self.is_free(owner).then(|| owner.clone())
    }

    /// The first free one on the ring that has no more than its share: 1.25 times the mean, this
    /// request counted in. At least one open member is always below that.
    fn near(&mut self, key: &Key, avoid: &[Id]) -> Option<Id> {
        if self.free.is_empty() {
            return None;
        }
        self.ring();
        let ring = self.ring.as_ref()?;
        let within = |seat: &Seat| 4 * u64::from(seat.in_flight) * self.open <= 5 * (self.load + 1);
        ring.from(key.text())
            .find(|id| {
                self.seats.get(id).is_some_and(|seat| seat.bookable(self.slots) && within(seat))
                    && !avoid.contains(id)
            })
            .cloned()
    }

    fn ring(&mut self) {
        if self.ring.is_none() {
            self.ring = Some(Ring::new(self.members()));
        }
    }

    fn is_free(&self, id: &Id) -> bool {
        self.seats.get(id).is_some_and(|seat| seat.bookable(self.slots))
    }

    /// Changes a seat, and the order and the sums with it.
    fn change(&mut self, id: &Id, change: impl FnOnce(&mut Seat)) {
        let Some(seat) = self.seats.get_mut(id) else { return };
        let before = *seat;
        change(seat);
        let after = *seat;
        if before.bookable(self.slots) {
            let rank = self.strategy.rank(before.in_flight, before.last_turn);
            self.free.remove(&(rank, id.clone()));
        }
        if after.bookable(self.slots) {
            let rank = self.strategy.rank(after.in_flight, after.last_turn);
            self.free.insert((rank, id.clone()));
        }
        if before.open {
            (self.open, self.load) = (self.open - 1, self.load - u64::from(before.in_flight));
        }
        if after.open {
            (self.open, self.load) = (self.open + 1, self.load + u64::from(after.in_flight));
        }
    }
}

impl Seat {
    fn bookable(&self, slots: Option<u32>) -> bool {
        self.open && slots.is_none_or(|slots| self.in_flight < slots)
    }

    /// Nothing is left of it.
    fn over(&self) -> bool {
        self.gone && self.in_flight == 0
    }
}
