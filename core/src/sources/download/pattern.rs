//! The patterns of `hfAllowPatterns` and `hfIgnorePatterns`, with the meaning that the hub's own
//! tools give them: `*` any run of characters, slashes too; `?` one; `[a-z]` and `[!a-z]` a set;
//! a pattern that ends with a slash means everything below it.

/// Whether `path` matches `pattern` as a whole. Takes time linear in `path` for each star.
pub(crate) fn matches(pattern: &str, path: &str) -> bool {
    let mut pattern = pattern.chars().collect::<Vec<_>>();
    if pattern.last() == Some(&'/') {
        pattern.push('*');
    }
    let path = path.chars().collect::<Vec<_>>();
    let (mut rest, mut at) = (pattern.as_slice(), path.as_slice());
    let mut retry: Option<(&[char], &[char])> = None;
    loop {
        if let ['*', after @ ..] = rest {
            retry = Some((after, at));
            rest = after;
            continue;
        }
        match (one(rest, at.first().copied()), at) {
            (Some(after), [_, tail @ ..]) => (rest, at) = (after, tail),
            _ if rest.is_empty() && at.is_empty() => return true,
            _ => match retry {
                Some((after, [_, tail @ ..])) => {
                    retry = Some((after, tail));
                    (rest, at) = (after, tail);
                }
                _ => return false,
            },
        }
    }
}

/// What is left of the pattern once its first part has matched `letter`.
fn one(pattern: &[char], letter: Option<char>) -> Option<&[char]> {
    let letter = letter?;
    match pattern {
        ['?', rest @ ..] => Some(rest),
        ['[', rest @ ..] => match set(rest) {
            Some((negated, members, after)) => {
                (contains(members, letter) != negated).then_some(after)
            }
            None => (letter == '[').then_some(rest),
        },
        [first, rest @ ..] => (*first == letter).then_some(rest),
        [] => None,
    }
}

/// A set behind its `[`: whether it is negated, its members, and the pattern behind its `]`.
fn set(pattern: &[char]) -> Option<(bool, &[char], &[char])> {
    let (negated, rest) = match pattern {
        ['!', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    // A bracket right at the beginning is a member.
    let end = 1 + rest.iter().skip(1).position(|letter| *letter == ']')?;
    let (members, after) = rest.split_at_checked(end)?;
    Some((negated, members, after.split_first()?.1))
}

fn contains(mut members: &[char], letter: char) -> bool {
    loop {
        match members {
            [low, '-', high, rest @ ..] => {
                if (*low..=*high).contains(&letter) {
                    return true;
                }
                members = rest;
            }
            [one, rest @ ..] => {
                if *one == letter {
                    return true;
                }
                members = rest;
            }
            [] => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_mean_what_the_hubs_own_tools_say() {
        for (pattern, path, wanted) in [
            ("*", "a/b.txt", true),
            ("*.json", "config.json", true),
            ("*.json", "sub/config.json", true),
            ("*.json", "config.jsonl", false),
            ("sub/", "sub/config.json", true),
            ("sub/", "subtle.json", false),
            ("model-0000?-of-*", "model-00001-of-00002.safetensors", true),
            ("model-[0-9]*.bin", "model-7x.bin", true),
            ("model-[!0-9]*.bin", "model-7x.bin", false),
            ("[]]x", "]x", true),
            ("[", "[", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3", false),
            ("", "", true),
            ("", "x", false),
            ("Q4*", "q4.gguf", false),
            ("*ü?", "grün", true),
        ] {
            assert_eq!(matches(pattern, path), wanted, "{pattern} against {path}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!matches(&"*a".repeat(30), &"a".repeat(29)));
        assert!(!matches(&format!("{}b", "*a".repeat(50)), &"a".repeat(2_000)));
    }
}
