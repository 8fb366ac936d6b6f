//! What a request is charged in the end.

use super::Rate;

/// The tokens that a request is charged when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Used {
    /// As many as were reserved for it.
    Reserved,
    /// So many, in place of the reserved ones.
    Tokens(u64),
    /// What was reserved for it, and what something took beyond what it was charged before.
    Beyond {
        /// How many it took in all.
        took: u64,
        /// What it was charged.
        paid: Paid,
    },
}

/// What was charged, by several requests together, for something that goes on after the first of them: a response
/// in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paid {
    /// The tokens that were reserved for it; of more than a whole minute's worth, that was charged.
    pub reserved: u64,
    /// The tokens that it was known to have taken, if those were more.
    pub tokens: u64,
}

impl Paid {
    /// What was charged where tokens come by `rate`.
    fn by(self, rate: Rate) -> u64 {
        self.tokens.max(rate.reserved(self.reserved))
    }
}

impl Used {
    /// How many tokens that is, where they come by `rate` and so many were reserved.
    pub(super) fn tokens(self, rate: Rate, reserved: u64) -> u64 {
        match self {
            Self::Reserved => reserved,
            Self::Tokens(tokens) => tokens,
            Self::Beyond { took, paid } => {
                reserved.saturating_add(took.saturating_sub(paid.by(rate)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_in_the_background_costs_in_the_end_what_it_took() {
        // A minute's worth that is less than what it may take, and one that is not.
        for (limit, reserved) in [(100, 100), (1000, 300)] {
            let rate = Rate::per_minute(limit, limit);
            let mut paid = Paid { reserved: 300, tokens: 0 };
            let mut charged = Used::Beyond { took: 0, paid }.tokens(rate, reserved);
            assert_eq!(charged, reserved, "nobody knows yet");
            for (took, in_all) in [(50, reserved), (400, 400), (400, 400), (900, 900), (0, 900)] {
                charged += Used::Beyond { took, paid }.tokens(rate, 0);
                assert_eq!(charged, in_all, "{took} of {limit}");
                paid.tokens = paid.tokens.max(took);
            }
        }
    }

    #[test]
    fn what_is_known_at_once_is_charged_in_place_of_what_was_reserved() {
        let rate = Rate::per_minute(100, 100);
        assert_eq!(Used::Reserved.tokens(rate, 70), 70);
        assert_eq!(Used::Tokens(9).tokens(rate, 70), 9);
    }
}
