//! Sounds: a tone for each word as a real WAV, and how long a WAV that was sent lasts.

use std::f32::consts::TAU;

use crate::random::stable_hash;

/// Samples a second.
pub(crate) const RATE: u32 = 24_000;
/// Seconds of one word at speed 1.
const WORD: f32 = 0.18;
/// Words spoken at most: three minutes.
const MOST_WORDS: usize = 1_000;
const HEADER_BYTES: u32 = 44;

/// The tones of a text: 16-bit samples of one channel.
pub(crate) fn speak(text: &str, voice: &str, speed: f32) -> Vec<i16> {
    let speed = speed.clamp(0.25, 4.0);
    let length = whole(WORD / speed * rate());
    let spoken = text.split_whitespace().take(MOST_WORDS);
    spoken.flat_map(|word| tone(word, voice, length)).collect()
}

fn tone(word: &str, voice: &str, length: u32) -> Vec<i16> {
    let hash = stable_hash(word.as_bytes(), stable_hash(voice.as_bytes(), 0));
    // Notes of a scale without half tones sound well in any order.
    let note = [0_u8, 2, 4, 7, 9, 12].get(usize::try_from(hash % 6).unwrap_or(0)).copied();
    let pitch = 220.0 * 2_f32.powf(f32::from(note.unwrap_or(0)) / 12.0);
    (0..u16::try_from(length).unwrap_or(u16::MAX))
        .map(|at| {
            let at = f32::from(at);
            let share = at / (WORD * rate());
            // Rises and falls within the word, so that words do not click.
            let loudness = (share.min(1.0) * TAU / 2.0).sin().max(0.0);
            sample((at * pitch * TAU / rate()).sin() * loudness * 9_000.0)
        })
        .collect()
}

/// The samples as a WAV file.
pub(crate) fn wav(samples: &[i16]) -> Vec<u8> {
    let bytes = u32::try_from(samples.len() * 2).unwrap_or(u32::MAX - HEADER_BYTES);
    let mut file = Vec::with_capacity(samples.len() * 2 + 44);
    file.extend_from_slice(b"RIFF");
    file.extend_from_slice(&(bytes + HEADER_BYTES - 8).to_le_bytes());
    file.extend_from_slice(b"WAVEfmt ");
    file.extend_from_slice(&16_u32.to_le_bytes());
    file.extend_from_slice(&1_u16.to_le_bytes()); // plain samples
    file.extend_from_slice(&1_u16.to_le_bytes()); // one channel
    file.extend_from_slice(&RATE.to_le_bytes());
    file.extend_from_slice(&(RATE * 2).to_le_bytes());
    file.extend_from_slice(&2_u16.to_le_bytes());
    file.extend_from_slice(&16_u16.to_le_bytes());
    file.extend_from_slice(b"data");
    file.extend_from_slice(&bytes.to_le_bytes());
    file.extend_from_slice(&raw(samples));
    file
}

/// The samples as bytes, as the format `pcm` has them.
pub(crate) fn raw(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// How many seconds a WAV file lasts; nothing when it is no WAV file.
pub(crate) fn seconds(file: &[u8]) -> Option<f64> {
    if file.get(..4)? != b"RIFF" || file.get(8..12)? != b"WAVE" {
        return None;
    }
    let bytes_a_second = u32::from_le_bytes(file.get(28..32)?.try_into().ok()?);
    let sound = u32::try_from(file.len()).ok()?.saturating_sub(HEADER_BYTES);
    (bytes_a_second > 0).then(|| f64::from(sound) / f64::from(bytes_a_second))
}

#[expect(clippy::cast_precision_loss, reason = "24,000 is exact as f32")]
fn rate() -> f32 {
    RATE as f32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a word is between 0.04 and 0.8 seconds long"
)]
fn whole(samples: f32) -> u32 {
    samples as u32
}

#[expect(clippy::cast_possible_truncation, reason = "the loudest value is 9,000")]
fn sample(value: f32) -> i16 {
    value as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speech_lasts_as_long_as_its_words() {
        let four = wav(&speak("one two three four", "alloy", 1.0));
        let length = seconds(&four).unwrap();
        assert!((length - 0.72).abs() < 0.01, "{length}");
        let faster = seconds(&wav(&speak("one two three four", "alloy", 2.0))).unwrap();
        assert!((faster - 0.36).abs() < 0.01, "{faster}");
        assert_eq!(seconds(b"not a sound"), None);
    }

    #[test]
    fn another_voice_sounds_otherwise() {
        assert_ne!(speak("hello there you", "alloy", 1.0), speak("hello there you", "onyx", 1.0));
    }

    #[test]
    fn speech_is_heard() {
        assert!(speak("hello", "alloy", 1.0).iter().any(|sample| sample.abs() > 5_000));
    }
}
