//! `core` decides and does not act: its sources name no clock, file, socket, environment, process,
//! thread or die. Dependencies that act are kept out by `arrows.rs`; this looks at what the standard
//! library offers, and at paths that come in by another crate.

use super::tree::File;

/// The crate that is pure.
const INSIDE: &str = "core/src/";

/// Beginnings of paths.
const PATHS: &[&str] = &[
    "std::fs",
    "std::env",
    "std::process",
    "std::thread",
    "std::os",
    "tokio::",
    "rand::",
    // Hides what is used from the lines above.
    "std::{",
];

/// Names, wherever they come from.
const NAMES: &[&str] = &[
    "Instant",
    "SystemTime",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixListener",
    "UnixStream",
];

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.is_rust() && file.path.starts_with(INSIDE));
    rust.filter(|file| !for_tests(&file.path)).flat_map(acts).collect()
}

fn for_tests(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn acts(file: &File) -> Vec<String> {
    let without_tests = file.text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = without_tests.lines().enumerate();
    let complaint = |(number, line): (usize, &str)| {
        let named = named(line)?;
        let place = format!("{}:{}", file.path, number + 1);
        Some(format!("{place}: core is pure and must not name {named}; have it passed in"))
    };
    lines.filter_map(complaint).collect()
}

/// What the code of a line names that acts, if it does.
fn named(line: &str) -> Option<&'static str> {
    let code = line.split("//").next().unwrap_or_default();
    let close = code.replace(" ::", "::").replace(":: ", "::");
    let path = PATHS.iter().find(|path| {
        close.match_indices(**path).any(|(at, _)| {
            let before = close.get(..at).unwrap_or_default();
            !before.ends_with(|letter: char| letter.is_alphanumeric() || "_:\"".contains(letter))
        })
    });
    let mut words = code.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    path.copied()
        .or_else(|| words.find_map(|word| NAMES.iter().find(|name| **name == word).copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(path: &str, text: &str) -> Vec<String> {
        complaints(&[File { path: path.to_owned(), text: text.to_owned() }])
    }

    #[test]
    fn what_acts_is_named_with_its_line() {
        for acting in [
            "use std::time::{Duration, Instant};",
            "let now = std::time::SystemTime::now();",
            "use std::fs;",
            "pub use std::env;",
            "use std::net::{SocketAddr, TcpStream};",
            "std :: thread :: spawn(f);",
            "use tokio::sync::Mutex;",
            "let dice = rand::random();",
            "use std::{fs, io};",
        ] {
            let complaints = told("core/src/a.rs", &format!("//! x\n{acting}\n"));
            assert_eq!(complaints.len(), 1, "{acting}");
            assert!(complaints[0].starts_with("core/src/a.rs:2: "), "{complaints:?}");
        }
    }

    #[test]
    fn addresses_words_tests_and_other_crates_are_no_acts() {
        for (path, text) in [
            ("core/src/a.rs", "use std::net::SocketAddr; // no Instant\n"),
            ("core/src/a.rs", "let strand::x = \"std::fs\"; let instant = 1;\n"),
            ("core/src/a.rs", "fn f() {}\n\n#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n"),
            ("core/src/a/tests.rs", "use std::fs;\n"),
            ("core/src/a/tests/b.rs", "use std::fs;\n"),
            ("gateway/src/a.rs", "use std::fs;\n"),
        ] {
            assert_eq!(told(path, text), Vec::<String>::new(), "{path}: {text}");
        }
    }
}
