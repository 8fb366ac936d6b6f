//! Who holds what: the endpoint that keeps the state which later requests name. Bounded in number and in the length of
//! names, so that clients cannot make it grow: what was not asked for the longest is forgotten first, of whoever has the
//! most of it, so that nobody's much drives out another's little.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The longest name that is held, in bytes. It has room for a model's (63 and 253), its client's and that of what is asked
/// for (256 each, the longest ids that tie), and for what stands between them.
const LONGEST_NAME: usize = 1024;

/// The holders of things by their names.
#[derive(Clone, Debug)]
pub struct Pins<Holder> {
    capacity: usize,
    held: HashMap<Arc<str>, Pin<Holder>>,
    /// The names of each owner, by when they were used last, counted in uses.
    owners: HashMap<Arc<str>, BTreeMap<u64, Arc<str>>>,
    /// How many names each owner has.
    sizes: BTreeSet<(usize, Arc<str>)>,
    uses: u64,
}

#[derive(Clone, Debug)]
struct Pin<Holder> {
    holder: Holder,
    used: u64,
    owner: Arc<str>,
}

impl<Holder: Clone> Pins<Holder> {
    /// No pins, and never more than `capacity`.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            held: HashMap::new(),
            owners: HashMap::new(),
            sizes: BTreeSet::new(),
            uses: 0,
        }
    }

    /// `holder` has what is called `name`. Names longer than any that an engine makes up are not held.
    pub fn pin(&mut self, name: &str, holder: Holder) {
        self.pin_of("", name, holder);
    }

    /// The same of something that counts as `owner`'s: where there is no room, whoever has the most makes some.
    pub fn pin_of(&mut self, owner: &str, name: &str, holder: Holder) {
        if name.len() > LONGEST_NAME {
            return;
        }
        self.forget(name);
        while self.held.len() >= self.capacity {
            let Some(oldest) = self.oldest(owner) else { return };
            self.forget(&oldest);
        }
        let known = self.owners.get_key_value(owner).map(|(known, _)| Arc::clone(known));
        let (name, owner): (Arc<str>, Arc<str>) =
            (name.into(), known.unwrap_or_else(|| owner.into()));
        self.uses += 1;
        let used = self.uses;
        self.change(&owner, |names| {
            names.insert(used, Arc::clone(&name));
        });
        self.held.insert(name, Pin { holder, used, owner });
    }

    /// Who has what is called `name`. Asking counts as use.
    pub fn holder(&mut self, name: &str) -> Option<Holder> {
        self.holder_mut(name).cloned()
    }

    /// The same, to be changed.
    pub fn holder_mut(&mut self, name: &str) -> Option<&mut Holder> {
        let pin = self.held.get_mut(name)?;
        let names = self.owners.get_mut(&pin.owner)?;
        let moved = names.remove(&pin.used)?;
        self.uses += 1;
        pin.used = self.uses;
        names.insert(self.uses, moved);
        Some(&mut pin.holder)
    }

    /// Nobody has it any more.
    pub fn forget(&mut self, name: &str) {
        if let Some(pin) = self.held.remove(name) {
            self.change(&pin.owner, |names| {
                names.remove(&pin.used);
            });
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// What makes room for something of `owner`'s: its own, unless somebody has more.
    fn oldest(&self, owner: &str) -> Option<Arc<str>> {
        let (most, largest) = self.sizes.last()?;
        let own = self.owners.get(owner).filter(|names| names.len() >= *most);
        own.or_else(|| self.owners.get(largest))?.values().next().cloned()
    }

    /// Changes the names of `owner`, and its place among the others.
    fn change(&mut self, owner: &Arc<str>, change: impl FnOnce(&mut BTreeMap<u64, Arc<str>>)) {
        let names = self.owners.entry(Arc::clone(owner)).or_default();
        let before = names.len();
        change(names);
        let after = names.len();
        self.sizes.remove(&(before, Arc::clone(owner)));
        if after == 0 {
            self.owners.remove(owner);
        } else {
            self.sizes.insert((after, Arc::clone(owner)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many names are in order of their use.
    fn ordered<Holder>(pins: &Pins<Holder>) -> usize {
        let counted: usize = pins.owners.values().map(BTreeMap::len).sum();
        assert_eq!(pins.sizes.iter().map(|(size, _)| size).sum::<usize>(), counted);
        assert_eq!(pins.sizes.len(), pins.owners.len());
        counted
    }

    #[test]
    fn what_was_not_asked_for_the_longest_makes_room() {
        let mut pins = Pins::new(2);
        pins.pin("a", 1);
        pins.pin("b", 2);
        assert_eq!(pins.holder("a"), Some(1));
        pins.pin("c", 3);
        assert_eq!(
            (pins.holder("a"), pins.holder("b"), pins.holder("c")),
            (Some(1), None, Some(3))
        );
        pins.pin("a", 4);
        *pins.holder_mut("a").expect("held") += 1;
        assert_eq!((pins.holder("a"), pins.len()), (Some(5), 2));
        pins.forget("a");
        assert_eq!((pins.holder("a"), pins.len()), (None, 1));
    }

    #[test]
    fn a_million_names_take_no_more_room_than_there_is() {
        let mut pins = Pins::new(100);
        for number in 0..100_000 {
            pins.pin(&number.to_string(), number);
        }
        assert_eq!((pins.len(), ordered(&pins)), (100, 100));
        assert_eq!(pins.holder("99999"), Some(99_999));
        assert!(Pins::<u8>::new(0).is_empty());
    }

    #[test]
    fn a_name_that_takes_much_room_is_not_held() {
        let mut pins = Pins::new(2);
        pins.pin("a", 1);
        pins.pin(&"x".repeat(1 << 20), 2);
        assert_eq!((pins.len(), ordered(&pins)), (1, 1));
        pins.pin(&"x".repeat(LONGEST_NAME), 3);
        assert_eq!((pins.len(), pins.holder("a")), (2, Some(1)));
    }

    #[test]
    fn a_table_without_room_holds_nothing() {
        let mut pins = Pins::new(0);
        pins.pin("a", 1);
        assert_eq!(pins.holder("a"), None);
    }

    #[test]
    fn who_has_much_drives_out_nothing_of_those_who_have_little() {
        let mut pins = Pins::new(100);
        for number in 0..10 {
            pins.pin_of("little", &format!("little-{number}"), number);
        }
        for number in 0..10_000 {
            pins.pin_of("much", &format!("much-{number}"), number);
        }
        assert_eq!((pins.len(), ordered(&pins)), (100, 100));
        assert!((0..10).all(|number| pins.holder(&format!("little-{number}")).is_some()));
        assert_eq!((pins.holder("much-9909"), pins.holder("much-9910")), (None, Some(9910)));
        // Another comes: each has as much as it wants, up to the same share.
        for number in 0..10_000 {
            pins.pin_of("more", &format!("more-{number}"), number);
        }
        let of = |owner: &str| pins.owners.get(owner).map_or(0, BTreeMap::len);
        assert_eq!((of("little"), of("much"), of("more")), (10, 45, 45));
        // What changes its owner counts for the new one alone.
        for number in 0..10 {
            pins.pin_of("other", &format!("little-{number}"), number);
        }
        assert_eq!((pins.owners.contains_key("little"), ordered(&pins)), (false, 100));
    }
}
