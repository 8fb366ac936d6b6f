//! What a benchmark's requests say together: rates and times, with the phases of an answer kept apart.

use std::time::Duration;

use serde::Serialize;

/// One answer, as whoever asked saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Tokens of the request, those that the engine had in its cache left out.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Pictures in the answer.
    pub images: u64,
    /// From sending the request to the first token, where the answer came token by token.
    pub first_token: Option<Duration>,
    /// From sending the request to the end of the answer.
    pub whole: Duration,
}

/// All answers of one measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Answers.
    pub samples: u64,
    /// Tokens of all answers.
    pub completion_tokens: u64,
    /// From the first request to the last answer, in seconds.
    pub duration_seconds: f64,
    /// Tokens of all answers by that time: what the engine does for all who ask at once.
    pub tokens_per_second: f64,
    /// Tokens per second of one answer from its first token on: the median.
    pub decode_tokens_per_second: Option<f64>,
    /// Tokens of the request per second until the first token: the median.
    pub prefill_tokens_per_second: Option<f64>,
    /// Seconds to the first token.
    pub first_token_seconds: Option<Spread>,
    /// Seconds to the end of the answer.
    pub whole_seconds: Option<Spread>,
    /// Pictures per minute, where there were any.
    pub images_per_minute: Option<f64>,
}

/// How numbers spread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Their sum by their number.
    pub mean: f64,
    /// Half of them are no larger.
    pub median: f64,
    /// 95 of 100 are no larger.
    pub p95: f64,
    /// The largest.
    pub largest: f64,
}

/// Sums up `samples`, which took `duration` from the first request to the last answer.
pub fn summarize(samples: &[Sample], duration: Duration) -> Summary {
    let seconds = duration.as_secs_f64();
    let tokens = samples.iter().map(|sample| sample.completion_tokens).sum();
    let images = samples.iter().map(|sample| sample.images).sum::<u64>();
    let first = |sample: &Sample| sample.first_token.map(|first| first.as_secs_f64());
    Summary {
        samples: samples.len() as u64,
        completion_tokens: tokens,
        duration_seconds: seconds,
        tokens_per_second: by(tokens, seconds).unwrap_or_default(),
        decode_tokens_per_second: median(samples.iter().filter_map(decode_rate)),
        prefill_tokens_per_second: median(samples.iter().filter_map(prefill_rate)),
        first_token_seconds: Spread::of(samples.iter().filter_map(first)),
        whole_seconds: Spread::of(samples.iter().map(|sample| sample.whole.as_secs_f64())),
        images_per_minute: if images > 0 { by(images * 60, seconds) } else { None },
    }
}

/// The first token belongs to the prompt: between n tokens there are n - 1 steps.
fn decode_rate(sample: &Sample) -> Option<f64> {
    let steps = sample.completion_tokens.checked_sub(1).filter(|steps| *steps > 0)?;
    by(steps, sample.whole.checked_sub(sample.first_token?)?.as_secs_f64())
}

fn prefill_rate(sample: &Sample) -> Option<f64> {
    let tokens = Some(sample.prompt_tokens).filter(|tokens| *tokens > 0)?;
    by(tokens, sample.first_token?.as_secs_f64())
}

fn by(count: u64, seconds: f64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "no engine makes 2^52 tokens")]
    let count = count as f64;
    (seconds > 0.0).then(|| count / seconds)
}

fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    Spread::of(numbers).map(|spread| spread.median)
}

impl Spread {
    /// How `numbers` spread; `None` if there are none.
    pub fn of(numbers: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted = numbers.collect::<Vec<_>>();
        sorted.sort_by(f64::total_cmp);
        // The smallest number that so many of a hundred do not exceed.
        let rank = |percent: usize| (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        let at = |percent: usize| sorted.get(rank(percent)).copied();
        #[expect(clippy::cast_precision_loss, reason = "nobody measures 2^52 times")]
        let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
        Some(Self { mean, median: at(50)?, p95: at(95)?, largest: at(100)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(tokens: u64, first: u64, whole: u64) -> Sample {
        Sample {
            prompt_tokens: 100,
            completion_tokens: tokens,
            images: 0,
            first_token: Some(Duration::from_millis(first)),
            whole: Duration::from_millis(whole),
        }
    }

    #[test]
    fn the_phases_of_an_answer_are_kept_apart() {
        // 100 tokens of prompt in half a second, then 50 steps of 20 ms.
        let summary = summarize(&[sample(51, 500, 1500)], Duration::from_millis(1700));
        assert_eq!(summary.decode_tokens_per_second, Some(50.0));
        assert_eq!(summary.prefill_tokens_per_second, Some(200.0));
        assert_eq!(Some(summary.tokens_per_second), by(51, 1.7), "all tokens by all the time");
        assert_eq!(summary.images_per_minute, None);
    }

    #[test]
    fn answers_at_once_add_up_and_each_keeps_its_own_rate() {
        let at_once = vec![sample(51, 500, 1500); 4];
        let summary = summarize(&at_once, Duration::from_secs(2));
        assert_eq!(Some(summary.tokens_per_second), Some(102.0));
        assert_eq!(summary.decode_tokens_per_second, Some(50.0));
    }

    #[test]
    fn what_cannot_be_told_is_not_made_up() {
        let nothing = summarize(&[], Duration::ZERO);
        assert_eq!(Some(nothing.tokens_per_second), Some(0.0));
        assert_eq!(nothing.first_token_seconds, None);
        let one_token = summarize(&[sample(1, 500, 500)], Duration::from_secs(1));
        assert_eq!(one_token.decode_tokens_per_second, None);
        let picture = Sample { first_token: None, images: 2, ..sample(0, 0, 4000) };
        let pictures = summarize(&[picture], Duration::from_secs(4));
        assert_eq!(pictures.images_per_minute, Some(30.0));
        assert_eq!(pictures.prefill_tokens_per_second, None);
    }

    #[test]
    fn a_spread_names_numbers_that_were_there() {
        let spread = Spread::of((1..=20).rev().map(f64::from)).unwrap();
        assert_eq!(spread, Spread { mean: 10.5, median: 10.0, p95: 19.0, largest: 20.0 });
        let one = Spread::of(std::iter::once(3.0)).unwrap();
        assert_eq!(one, Spread { mean: 3.0, median: 3.0, p95: 3.0, largest: 3.0 });
    }
}
