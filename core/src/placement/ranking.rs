//! From raw scores to the whole numbers from 0 to 10 that kube-scheduler takes.

/// What the scheduler calls the best.
pub(super) const BEST: i64 = 10;

/// Below so many different scores each keeps a number of its own.
const NUMBERS: usize = 11;

/// The numbers for `raw` scores: 10 for the best of them, 0 for the worst and those that have none, and the
/// order is never turned round. Up to eleven different scores stay different; with more of them only the
/// best is sure to be alone. All equal: 10.
pub(super) fn numbers(raw: &[Option<f64>]) -> Vec<i64> {
    let mut different: Vec<f64> = raw.iter().copied().flatten().collect();
    different.sort_unstable_by(f64::total_cmp);
    different.dedup();
    let mut table: Vec<i64> = different.iter().map(|score| linear(*score, &different)).collect();
    if table.len() <= NUMBERS {
        spread(&mut table);
    } else if let Some((best, others)) = table.split_last_mut() {
        *best = BEST;
        for other in others {
            *other = (*other).min(BEST - 1);
        }
    }
    let number = |score: f64| {
        let place = different.binary_search_by(|other| other.total_cmp(&score)).ok()?;
        table.get(place).copied()
    };
    raw.iter().map(|score| score.and_then(number).unwrap_or_default()).collect()
}

fn linear(score: f64, sorted: &[f64]) -> i64 {
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else { return 0 };
    let width = most - least;
    if width <= 0.0 {
        return BEST;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it lies between 0 and 10")]
    let number = ((score - least) / width * 10.0).round() as i64;
    number.clamp(0, BEST)
}

/// Moves equal neighbours apart, as little as possible.
fn spread(table: &mut [i64]) {
    let mut least = 0;
    for number in table.iter_mut() {
        *number = (*number).max(least);
        least = *number + 1;
    }
    let mut most = BEST;
    for number in table.iter_mut().rev() {
        *number = (*number).min(most);
        most = *number - 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(raw: &[f64]) -> Vec<i64> {
        numbers(&raw.iter().copied().map(Some).collect::<Vec<_>>())
    }

    #[test]
    fn the_best_has_ten_and_the_worst_nothing() {
        assert_eq!(of(&[1.0, 3.0, 2.0]), [0, 10, 5]);
        assert_eq!(of(&[-40.0, 1e9]), [0, 10]);
        assert_eq!(of(&[]), [0; 0]);
    }

    #[test]
    fn nodes_that_differ_a_little_still_differ() {
        assert_eq!(of(&[100.0, 99.9, 99.8, 0.0]), [10, 9, 8, 0]);
        assert_eq!(of(&[0.0, 0.1, 0.2, 100.0]), [0, 1, 2, 10]);
    }

    #[test]
    fn equals_are_equally_good_and_what_has_no_score_comes_last() {
        assert_eq!(of(&[7.0, 7.0]), [10, 10]);
        assert_eq!(numbers(&[None, Some(-5.0), None]), [0, 10, 0]);
    }

    proptest! {
        #[test]
        fn the_order_is_never_turned_round(raw in prop::collection::vec(-1e6..1e6_f64, 1..40)) {
            let numbers = of(&raw);
            let best = raw.iter().copied().fold(f64::MIN, f64::max);
            for (a, first) in raw.iter().zip(&numbers) {
                prop_assert!((0..=BEST).contains(first));
                prop_assert_eq!(*first == BEST, a.total_cmp(&best).is_eq());
                for (b, second) in raw.iter().zip(&numbers) {
                    prop_assert!(!(a < b && first > second), "{} and {}", a, b);
                }
            }
        }
    }
}
