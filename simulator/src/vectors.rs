//! Texts as vectors: a bag of hashed words of length one, so that texts that share words are near.

use crate::random::Random;

/// The vector of a text, of length one.
pub(crate) fn embed(model: &str, text: &str, dimensions: usize) -> Vec<f32> {
    let mut sum = vec![0.0_f32; dimensions];
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words.chain(text.is_empty().then_some("")) {
        let mut random = Random::from_parts(0, &[model, word]);
        for value in &mut sum {
            *value += narrow(random.fraction() * 2.0 - 1.0);
        }
    }
    let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        for value in &mut sum {
            *value /= length;
        }
    }
    sum
}

/// How near two vectors of length one are, from -1 to 1.
pub(crate) fn nearness(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

#[expect(clippy::cast_possible_truncation, reason = "vectors are of single precision everywhere")]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_words_make_texts_near() {
        let embed = |text| embed("m", text, 128);
        let cat = embed("The cat sat on the mat");
        assert!((nearness(&cat, &cat) - 1.0).abs() < 1e-5);
        assert!(
            nearness(&cat, &embed("a cat on a mat")) > nearness(&cat, &embed("stock prices fell"))
        );
    }
}
