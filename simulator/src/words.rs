//! The text the engine says: pleasant, deterministic, and honest about who speaks. Also what counts as
//! a token here: a word with the space before it, in pieces of at most eight characters.

use crate::random::Random;

const LONGEST_TOKEN: usize = 8;

/// Cuts text into tokens; put together again they are the text.
pub(crate) fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut length = 0;
    let mut in_word = false;
    for (at, character) in text.char_indices() {
        let space = character.is_whitespace();
        if at > start && ((space && in_word) || (!space && length >= LONGEST_TOKEN)) {
            found.extend(text.get(start..at));
            start = at;
            length = 0;
        }
        in_word = !space;
        length += usize::from(!space);
    }
    if start < text.len() {
        found.extend(text.get(start..));
    }
    found
}

/// Bytes of a text that are really cut into tokens.
const LONGEST_CUT: usize = 1 << 20;
/// Bytes of a token where they are only estimated.
const ESTIMATED_TOKEN: usize = 5;

/// How many tokens a text has. Beyond a megabyte it is an estimate, so that huge bodies cost little.
pub(crate) fn count(text: &str) -> usize {
    let beginning = beginning(text);
    tokens(beginning).len() + (text.len() - beginning.len()) / ESTIMATED_TOKEN
}

/// The part of a text that is really cut into tokens.
pub(crate) fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST_CUT)).unwrap_or(text)
}

const SUBJECTS: &[&str] = &[
    "The morning light",
    "A quiet harbour",
    "The old lighthouse",
    "A small garden",
    "The slow river",
    "An open window",
    "The last train",
    "A distant bell",
    "The warm kitchen",
    "A field of clover",
];
const VERBS: &[&str] = &[
    "keeps a promise to",
    "remembers",
    "leans towards",
    "waits kindly for",
    "tells a story about",
    "makes room for",
    "carries the scent of",
    "borrows a colour from",
];
const OBJECTS: &[&str] = &[
    "the evening rain",
    "everyone who passes by",
    "the first swallows of spring",
    "a letter that was never sent",
    "the hills beyond the town",
    "the sound of bicycles",
    "bread and ripe apples",
    "the long way home",
];

/// What `model` says to `prompt`: a first sentence that names both, then as many more as `tokens` needs.
pub(crate) fn answer(model: &str, prompt: &str, random: &mut Random, wanted: usize) -> String {
    let mut text = match topic(prompt) {
        Some(topic) => format!("This is {model}, thinking about \u{201c}{topic}\u{201d}."),
        None => format!("This is {model}, glad to hear from you."),
    };
    // Each sentence is cut by itself: the space before it begins a token.
    let mut written = tokens(&text).len();
    while written < wanted {
        let sentence = format!(" {}", sentence(random));
        written += tokens(&sentence).len();
        text.push_str(&sentence);
    }
    text
}

/// One sentence.
pub(crate) fn sentence(random: &mut Random) -> String {
    let subject = random.pick(SUBJECTS).copied().unwrap_or_default();
    let verb = random.pick(VERBS).copied().unwrap_or_default();
    let object = random.pick(OBJECTS).copied().unwrap_or_default();
    format!("{subject} {verb} {object}.")
}

/// The first words of the last line of a prompt.
fn topic(prompt: &str) -> Option<String> {
    let line = prompt.lines().rev().find(|line| !line.trim().is_empty())?;
    let words: Vec<String> =
        line.split_whitespace().take(6).map(|word| word.chars().take(24).collect()).collect();
    let topic = words.join(" ");
    Some(topic.trim_end_matches(['.', '?', '!', ',', ';', ':']).to_owned())
}

/// Cuts text before the earliest stop sequence, and says which it was.
pub(crate) fn stop_at(text: &mut String, stops: &[String]) -> Option<String> {
    let found = stops.iter().filter(|stop| !stop.is_empty());
    let (at, stop) = found.filter_map(|stop| Some((text.find(stop)?, stop))).min()?;
    text.truncate(at);
    Some(stop.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_put_together_are_the_text() {
        for text in
            ["", " ", "a", "two words", "  spaced   out ", "你好🌍 extraordinarily", "x\n\ny"]
        {
            assert_eq!(tokens(text).concat(), text);
        }
        assert_eq!(tokens("two words"), ["two", " words"]);
        assert_eq!(tokens("extraordinarily"), ["extraord", "inarily"]);
    }

    #[test]
    fn an_answer_names_the_model_and_the_topic() {
        let mut random = Random::from_parts(0, &["m"]);
        let text = answer("llama-small", "Be brief.\nWhat is a haiku?", &mut random, 60);
        assert!(text.contains("llama-small") && text.contains("What is a haiku\u{201d}"), "{text}");
        assert!(tokens(&text).len() >= 60);
    }

    #[test]
    fn an_answer_is_as_long_as_wanted_and_not_a_sentence_longer() {
        for wanted in 1..200 {
            let mut random = Random::from_parts(0, &["m"]);
            let text = answer("llama-small", "What is a haiku?", &mut random, wanted);
            let shorter = text.trim_end_matches('.').rfind('.').unwrap_or(0);
            let enough = tokens(&text).len() >= wanted;
            assert!(enough && (shorter == 0 || tokens(&text[..=shorter]).len() < wanted), "{text}");
        }
    }

    #[test]
    fn the_earliest_stop_wins() {
        let mut text = "one two three".to_owned();
        assert_eq!(stop_at(&mut text, &["three".into(), "two".into()]), Some("two".into()));
        assert_eq!(text, "one ");
        assert_eq!(stop_at(&mut text, &[String::new()]), None);
    }
}
