//! Which model of a service label answers: one of those that are up, so that nobody waits for a load
//! while another could answer; where none is, one that is woken.

use sha2::{Digest as _, Sha256};

use super::Strategy;
use super::key::{Key, Source};
use super::said::Said;

/// How requests for a label are spread over its models: `FLEXINFER_PROXY_LABEL_GROUP_ROUTING`.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    strum::Display,
    strum::EnumString,
    strum::EnumIter,
    strum::IntoStaticStr,
    strum::VariantNames,
)]
#[strum(serialize_all = "kebab-case")]
pub enum LabelRouting {
    /// Each in its turn.
    #[default]
    RoundRobin,
    /// The one with the fewest requests in flight and waiting; equals take turns.
    LeastLoaded,
    /// What begins with the same words stays together; what says nothing to go by takes turns.
    PrefixOrRr,
    /// The turns of one conversation stay together; likewise.
    SessionOrRr,
    /// By prefix, else by session, else in turn.
    PrefixSessionOrRr,
}

/// One model of a label at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'a> {
    /// Its identity, as text: its place for keys.
    pub name: &'a str,
    /// Whether an engine is up.
    pub ready: bool,
    /// Requests in flight and waiting.
    pub load: u64,
}

impl LabelRouting {
    /// The key that keeps a request together with others, if there is one.
    pub fn key(self, said: &Said<'_>) -> Option<Key> {
        match self {
            Self::RoundRobin | Self::LeastLoaded => None,
            Self::SessionOrRr => Strategy::SessionAffinity.key(said),
            Self::PrefixSessionOrRr => Strategy::Prefix.key(said),
            Self::PrefixOrRr => {
                Strategy::Prefix.key(said).filter(|key| key.source() != Source::SessionFallback)
            }
        }
    }

    /// The place among `members` of the one that answers; `turn` counts the requests for the label.
    /// `None` where there is nobody. With a key, few keys move when a member comes, goes, or is no
    /// longer up.
    pub fn choose(self, members: &[Member<'_>], key: Option<&Key>, turn: usize) -> Option<usize> {
        let up = members.iter().any(|member| member.ready);
        let eligible: Vec<(usize, &Member<'_>)> =
            members.iter().enumerate().filter(|(_, member)| member.ready || !up).collect();
        let in_turn = |those: &[(usize, &Member<'_>)]| {
            let at = turn.checked_rem(those.len())?;
            those.get(at).map(|(place, _)| *place)
        };
        if let Some(key) = key {
            let best = eligible.iter().max_by_key(|(_, member)| weight(key, member.name));
            return best.map(|(place, _)| *place);
        }
        if self == Self::LeastLoaded {
            let least = eligible.iter().map(|(_, member)| member.load).min()?;
            let idlest: Vec<_> =
                eligible.into_iter().filter(|(_, member)| member.load == least).collect();
            return in_turn(&idlest);
        }
        in_turn(&eligible)
    }
}

/// How much `name` wants `key`: whoever wants it most has it, so that one who goes gives up its own keys
/// and moves no others.
fn weight(key: &Key, name: &str) -> u64 {
    let mut digest = Sha256::new();
    for part in [key.text().as_bytes(), b"\0", name.as_bytes()] {
        digest.update(part);
    }
    let digest: [u8; 32] = digest.finalize().into();
    digest.first_chunk().copied().map_or(0, u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strum::IntoEnumIterator as _;

    use super::*;

    const NAMES: [&str; 4] = ["a", "b", "c", "d"];

    fn members(loads: &[(bool, u64)]) -> Vec<Member<'static>> {
        let member = |(name, (ready, load)): (&&'static str, &(bool, u64))| Member {
            name,
            ready: *ready,
            load: *load,
        };
        NAMES.iter().zip(loads).map(member).collect()
    }

    fn key(text: &str) -> Key {
        Key::new(Source::SessionHeader, text)
    }

    #[test]
    fn models_that_are_up_take_turns_and_sleeping_ones_only_where_none_is() {
        let mixed = members(&[(false, 0), (true, 9), (true, 0)]);
        let turns = |members: &[Member<'_>]| -> Vec<_> {
            (0..4).map(|turn| LabelRouting::RoundRobin.choose(members, None, turn)).collect()
        };
        assert_eq!(turns(&mixed), [Some(1), Some(2), Some(1), Some(2)]);
        let asleep = members(&[(false, 0), (false, 0)]);
        assert_eq!(turns(&asleep), [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(turns(&[]), [None; 4]);
    }

    #[test]
    fn the_least_loaded_answers_and_equals_take_turns() {
        let loaded = members(&[(true, 3), (true, 1), (true, 1), (false, 0)]);
        let choose = |turn| LabelRouting::LeastLoaded.choose(&loaded, None, turn);
        assert_eq!([choose(0), choose(1), choose(2)], [Some(1), Some(2), Some(1)]);
    }

    #[test]
    fn modes_are_written_as_the_original_has_them() {
        let names: Vec<String> = LabelRouting::iter().map(|mode| mode.to_string()).collect();
        assert_eq!(
            names,
            [
                "round-robin",
                "least-loaded",
                "prefix-or-rr",
                "session-or-rr",
                "prefix-session-or-rr"
            ]
        );
    }

    #[test]
    fn a_session_keeps_its_model_and_a_prefix_does_not_stand_in_for_it() {
        let header = |name: &str| (name == "x-session-id").then_some("s1");
        let said =
            Said { header: &header, json: None, lengths: super::super::KeyLengths::default() };
        assert!(LabelRouting::SessionOrRr.key(&said).is_some());
        assert!(LabelRouting::PrefixSessionOrRr.key(&said).is_some());
        assert_eq!(LabelRouting::PrefixOrRr.key(&said), None);
        assert_eq!(LabelRouting::LeastLoaded.key(&said), None);
    }

    proptest! {
        #[test]
        fn a_key_moves_only_when_its_own_model_is_gone(text in "[a-z]{1,8}", gone in 0_usize..4) {
            let all = members(&[(true, 0); 4]);
            let mode = LabelRouting::SessionOrRr;
            let before = mode.choose(&all, Some(&key(&text)), 0).unwrap();
            prop_assert_eq!(mode.choose(&all, Some(&key(&text)), 7), Some(before));
            let mut fewer = all.clone();
            fewer[gone].ready = false;
            let after = mode.choose(&fewer, Some(&key(&text)), 0).unwrap();
            prop_assert_ne!(after, gone);
            if before != gone {
                prop_assert_eq!(after, before);
            }
        }
    }
}
