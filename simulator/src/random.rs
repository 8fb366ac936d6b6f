//! Deterministic numbers: the same seed gives the same text, picture and sound on every machine.

/// A SplitMix64 generator: small, fast, and good enough for words and colours.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The generator that belongs to a seed and the texts an answer depends on.
    pub(crate) fn from_parts(seed: u64, parts: &[&str]) -> Self {
        let mut state = stable_hash(&seed.to_le_bytes(), 0);
        for part in parts {
            state = stable_hash(part.as_bytes(), state);
        }
        Self { state }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number from 0 up to and without `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.next() % bound).unwrap_or(0)
    }

    /// A number from 0 up to and without 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        let bits = u32::try_from(self.next() >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// One of `choices`, which must not be empty for an answer to exist.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let at = self.below(choices.len());
        choices.get(at)
    }
}

/// A 64-bit hash that never changes between versions or machines (FNV-1a, then mixed).
pub(crate) fn stable_hash(bytes: &[u8], start: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ start;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(hash)
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_numbers() {
        let mut one = Random::from_parts(7, &["model", "prompt"]);
        let mut two = Random::from_parts(7, &["model", "prompt"]);
        let mut other = Random::from_parts(8, &["model", "prompt"]);
        let drawn: Vec<u64> = (0..8).map(|_| one.next()).collect();
        assert_eq!(drawn, (0..8).map(|_| two.next()).collect::<Vec<_>>());
        assert_ne!(drawn, (0..8).map(|_| other.next()).collect::<Vec<_>>());
    }

    #[test]
    fn fractions_stay_below_one() {
        let mut random = Random::from_parts(1, &[]);
        assert!((0..10_000).map(|_| random.fraction()).all(|x| (0.0..1.0).contains(&x)));
    }
}
