//! What the process says about routing where a Model does not.

use super::{KeyLengths, Strategy};

/// The settings of one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preferences {
    /// `PROXY_ROUTING_ENABLED`: without it every model is served round robin, whatever it asks for.
    pub enabled: bool,
    /// For Models without the annotation.
    pub strategy: Strategy,
    /// How long the texts may be that keys are made of.
    pub lengths: KeyLengths,
}

impl Default for Preferences {
    /// Models have what they ask for, and round robin if they ask for nothing.
    fn default() -> Self {
        Self { enabled: true, strategy: Strategy::default(), lengths: KeyLengths::default() }
    }
}

impl Preferences {
    /// The strategy of a Model that asks for `wanted`.
    pub fn strategy_for(&self, wanted: Option<Strategy>) -> Strategy {
        if self.enabled { wanted.unwrap_or(self.strategy) } else { Strategy::RoundRobin }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_has_its_own_way_unless_routing_is_switched_off() {
        let own = Preferences { strategy: Strategy::LeastLoaded, ..Preferences::default() };
        assert_eq!(own.strategy_for(None), Strategy::LeastLoaded);
        assert_eq!(own.strategy_for(Some(Strategy::Prefix)), Strategy::Prefix);
        let off = Preferences { enabled: false, ..own };
        assert_eq!(off.strategy_for(Some(Strategy::Prefix)), Strategy::RoundRobin);
    }
}
