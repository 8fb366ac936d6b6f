//! Words that others have chosen.

/// Them as one line of at most `longest` characters and a sign that more was said.
pub(super) fn line(text: &str, longest: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    if line.chars().count() <= longest {
        return line;
    }
    let cut: String = line.chars().take(longest).collect();
    format!("{cut}…")
}
