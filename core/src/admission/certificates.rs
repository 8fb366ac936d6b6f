//! When a webhook's certificate is made, trusted, used and replaced. An *edition* is an authority with the one
//! certificate that it signed. The next edition is made while the present one is still good, the API server is told to
//! trust both, and only then is it used: there is no moment at which what is served is not trusted.

/// How much an edition is still good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Worth {
    /// Nothing: it is not valid now, or not for the name that it is reached by.
    None,
    /// Less than a quarter of its life is left.
    Old,
    /// Less than a third of its life is left.
    Ageing,
    /// It is good for long.
    Fresh,
}

/// What shall be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make an edition and use it at once: there is none that could be used.
    Begin,
    /// Make the edition that will follow.
    Prepare,
    /// Tell the API server to trust every authority that is kept.
    Trust,
    /// Use the edition that follows.
    Promote,
    /// Nothing.
    Rest,
}

/// What shall be done where the `present` edition and the one that `follows` are worth this, and the API server trusts
/// the authorities of both or not.
pub fn step(present: Option<Worth>, follows: Option<Worth>, trusted: bool) -> Step {
    let of_use = |worth: &Worth| *worth != Worth::None;
    match (present.filter(of_use), follows.filter(of_use)) {
        (None, None) => Step::Begin,
        (Some(_), _) if !trusted => Step::Trust,
        (None | Some(Worth::Old), Some(_)) => Step::Promote,
        (Some(worth), None) if worth < Worth::Fresh => Step::Prepare,
        (Some(_), _) => Step::Rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_or_nothing_of_use_begins_anew() {
        assert_eq!(step(None, None, false), Step::Begin);
        assert_eq!(step(Some(Worth::None), None, true), Step::Begin);
        assert_eq!(step(Some(Worth::None), Some(Worth::None), true), Step::Begin);
    }

    #[test]
    fn what_is_used_is_trusted_before_anything_else_is_done() {
        for present in [Worth::Fresh, Worth::Ageing, Worth::Old] {
            for follows in [None, Some(Worth::Fresh)] {
                assert_eq!(step(Some(present), follows, false), Step::Trust, "{present:?}");
            }
        }
    }

    #[test]
    fn the_next_is_made_in_time_and_used_later() {
        assert_eq!(step(Some(Worth::Fresh), None, true), Step::Rest);
        assert_eq!(step(Some(Worth::Ageing), None, true), Step::Prepare);
        assert_eq!(step(Some(Worth::Ageing), Some(Worth::Fresh), true), Step::Rest);
        assert_eq!(step(Some(Worth::Old), Some(Worth::Fresh), true), Step::Promote);
    }

    #[test]
    fn a_controller_that_was_away_too_long_uses_what_is_left() {
        assert_eq!(step(Some(Worth::None), Some(Worth::Old), false), Step::Promote);
        assert_eq!(step(Some(Worth::Old), None, true), Step::Prepare);
        assert_eq!(step(Some(Worth::Old), Some(Worth::None), true), Step::Prepare);
    }

    /// Whatever is found, the steps come to rest with something trusted that is of use.
    #[test]
    fn every_beginning_comes_to_rest() {
        let worths =
            [None, Some(Worth::None), Some(Worth::Old), Some(Worth::Ageing), Some(Worth::Fresh)];
        for present in worths {
            for follows in worths {
                for trusted in [false, true] {
                    let (mut present, mut follows, mut trusted) = (present, follows, trusted);
                    let mut steps = Vec::new();
                    loop {
                        let step = step(present, follows, trusted);
                        steps.push(step);
                        assert!(steps.len() < 8, "{steps:?}");
                        match step {
                            Step::Begin => {
                                (present, follows, trusted) = (Some(Worth::Fresh), None, false);
                            }
                            Step::Prepare => (follows, trusted) = (Some(Worth::Fresh), false),
                            Step::Trust => trusted = true,
                            Step::Promote => (present, follows) = (follows, None),
                            Step::Rest => break,
                        }
                    }
                    assert!(trusted && present > Some(Worth::None), "{steps:?}");
                }
            }
        }
    }
}
