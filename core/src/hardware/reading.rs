//! Reading numbers out of what tools print, where `N/A` and its kin mean "not known".

/// Bytes in a mebibyte.
pub(super) const MIB: u64 = 1 << 20;

/// The number that `text` begins with; `None` for `[N/A]`, `[Insufficient Permissions]`, `-` and the like.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let end = text.find(|char: char| !char.is_ascii_digit() && char != '.').unwrap_or(text.len());
    text.get(..end)?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The whole number that `text` begins with.
pub(super) fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    text.get(..end)?.parse().ok()
}

/// `text`, unless it says that there is nothing to say.
pub(super) fn known(text: &str) -> Option<String> {
    let text = text.trim();
    let bare = text.trim_matches(['[', ']']);
    let nothing = ["", "N/A", "None", "unknown", "Not Supported", "Insufficient Permissions"];
    let says_nothing = nothing.iter().any(|word| bare.eq_ignore_ascii_case(word));
    (!says_nothing && bare == text).then(|| text.to_owned())
}
