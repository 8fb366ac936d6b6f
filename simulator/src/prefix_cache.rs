//! Which beginnings of prompts were seen lately. As in vLLM a prompt is cut into blocks of 16 tokens;
//! a block counts as held only together with everything before it, and the least lately used go first.

use std::collections::{BTreeMap, HashMap};

use crate::random::stable_hash;

/// Tokens in one block.
pub(crate) const BLOCK_TOKENS: usize = 16;

/// The blocks held, by the hash of everything up to their end.
#[derive(Debug)]
pub(crate) struct PrefixCache {
    bound: usize,
    clock: u64,
    used_at: HashMap<u64, u64>,
    by_age: BTreeMap<u64, u64>,
}

impl PrefixCache {
    /// A cache of at most `bound` blocks; 0 holds nothing.
    pub(crate) fn new(bound: usize) -> Self {
        Self { bound, clock: 0, used_at: HashMap::new(), by_age: BTreeMap::new() }
    }

    /// How many leading tokens of the prompt were held; afterwards all its whole blocks are.
    pub(crate) fn visit(&mut self, tokens: &[&str]) -> usize {
        if self.bound == 0 {
            return 0;
        }
        let blocks = block_hashes(tokens);
        let held = blocks.iter().take_while(|hash| self.used_at.contains_key(hash)).count();
        // Later blocks are touched first, so that a prompt loses its end before its beginning.
        for hash in blocks.iter().take(self.bound).rev() {
            self.touch(*hash);
        }
        held * BLOCK_TOKENS
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.used_at.len()
    }

    fn touch(&mut self, hash: u64) {
        self.clock += 1;
        if let Some(before) = self.used_at.insert(hash, self.clock) {
            self.by_age.remove(&before);
        }
        self.by_age.insert(self.clock, hash);
        while self.used_at.len() > self.bound {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            self.used_at.remove(&oldest);
        }
    }
}

fn block_hashes(tokens: &[&str]) -> Vec<u64> {
    let mut hash = 0;
    tokens
        .chunks_exact(BLOCK_TOKENS)
        .map(|block| {
            for token in block {
                hash = stable_hash(token.as_bytes(), hash);
            }
            hash
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str, tokens: usize) -> Vec<&str> {
        std::iter::repeat_n(text, tokens).collect()
    }

    #[test]
    fn a_second_turn_finds_its_first_turn() {
        let mut cache = PrefixCache::new(64);
        let first = prompt("once", 40);
        assert_eq!(cache.visit(&first), 0);
        let second = [first, prompt("more", 40)].concat();
        assert_eq!(cache.visit(&second), 32, "40 tokens are two whole blocks");
        assert_eq!(cache.visit(&second), 80);
    }

    #[test]
    fn a_block_counts_only_after_the_same_beginning() {
        let mut cache = PrefixCache::new(64);
        cache.visit(&[prompt("a", 16), prompt("b", 16)].concat());
        assert_eq!(cache.visit(&[prompt("x", 16), prompt("b", 16)].concat()), 0);
    }

    #[test]
    fn the_bound_is_kept_and_the_oldest_goes_first() {
        let mut cache = PrefixCache::new(2);
        cache.visit(&prompt("old", 32));
        cache.visit(&prompt("new", 32));
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.visit(&prompt("new", 32)), 32);
        assert_eq!(cache.visit(&prompt("old", 32)), 0);
    }

    #[test]
    fn a_prompt_larger_than_the_cache_keeps_its_beginning() {
        let mut cache = PrefixCache::new(2);
        cache.visit(&prompt("long", 160));
        assert_eq!(cache.visit(&prompt("long", 160)), 32);
    }
}
