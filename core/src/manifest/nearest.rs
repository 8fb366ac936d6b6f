//! The name that somebody probably meant.

/// The one of `known` that is most like `name`, if any is like it at all.
pub(crate) fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let wanted = folded(name);
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(&wanted, &folded(known)), known))
        .filter(|(distance, known)| *distance <= 1.max(known.len().min(name.len()) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Case, hyphens and underscores are what people get wrong first.
fn folded(name: &str) -> String {
    name.chars().filter(|letter| !"-_".contains(*letter)).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_find_the_right_one() {
        let known = ["shared", "priority", "vramEstimateMB", "swapCooldown", "count"];
        for (name, meant) in [
            ("sharedd", Some("shared")),
            ("Shared", Some("shared")),
            ("vram_estimate_mb", Some("vramEstimateMB")),
            ("swap-cool-down", Some("swapCooldown")),
            ("proirity", Some("priority")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known), meant, "{name}");
        }
    }
}
