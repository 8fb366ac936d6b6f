//! Who holds what: the endpoint that keeps the state which later requests name. Bounded in number and in the length of
//! names, so that clients cannot make it grow: what was not asked for the longest is forgotten first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The longest name that is held, in bytes. It has room for a model's (63 and 253), its client's and that of what is asked
/// for (256 each, the longest ids that tie), and for what stands between them.
const LONGEST_NAME: usize = 1024;

/// The holders of things by their names.
#[derive(Clone, Debug)]
pub struct Pins<Holder> {
    capacity: usize,
    held: HashMap<Arc<str>, Pin<Holder>>,
    /// By when they were used last, counted in uses.
    order: BTreeMap<u64, Arc<str>>,
    uses: u64,
}

#[derive(Clone, Debug)]
struct Pin<Holder> {
    holder: Holder,
    used: u64,
}

impl<Holder: Clone> Pins<Holder> {
    /// No pins, and never more than `capacity`.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, held: HashMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// `holder` has what is called `name`. Names longer than any that an engine makes up are not held.
    pub fn pin(&mut self, name: &str, holder: Holder) {
        if name.len() > LONGEST_NAME {
            return;
        }
        self.forget(name);
        while self.held.len() >= self.capacity {
            let Some((_, oldest)) = self.order.pop_first() else { return };
            self.held.remove(&oldest);
        }
        let name: Arc<str> = name.into();
        self.uses += 1;
        self.order.insert(self.uses, Arc::clone(&name));
        self.held.insert(name, Pin { holder, used: self.uses });
    }

    /// Who has what is called `name`. Asking counts as use.
    pub fn holder(&mut self, name: &str) -> Option<Holder> {
        self.holder_mut(name).cloned()
    }

    /// The same, to be changed.
    pub fn holder_mut(&mut self, name: &str) -> Option<&mut Holder> {
        let pin = self.held.get_mut(name)?;
        let moved = self.order.remove(&pin.used)?;
        self.uses += 1;
        pin.used = self.uses;
        self.order.insert(self.uses, moved);
        Some(&mut pin.holder)
    }

    /// Nobody has it any more.
    pub fn forget(&mut self, name: &str) {
        if let Some(pin) = self.held.remove(name) {
            self.order.remove(&pin.used);
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
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((pins.len(), pins.order.len()), (100, 100));
        assert_eq!(pins.holder("99999"), Some(99_999));
        assert!(Pins::<u8>::new(0).is_empty());
    }

    #[test]
    fn a_name_that_takes_much_room_is_not_held() {
        let mut pins = Pins::new(2);
        pins.pin("a", 1);
        pins.pin(&"x".repeat(1 << 20), 2);
        assert_eq!((pins.len(), pins.order.len()), (1, 1));
        pins.pin(&"x".repeat(LONGEST_NAME), 3);
        assert_eq!((pins.len(), pins.holder("a")), (2, Some(1)));
    }

    #[test]
    fn a_table_without_room_holds_nothing() {
        let mut pins = Pins::new(0);
        pins.pin("a", 1);
        assert_eq!(pins.holder("a"), None);
    }
}
