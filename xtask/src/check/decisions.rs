//! Decisions are spoken of by their numbers: each has one of its own, in its file's name and its heading alike.

use super::tree::File;

const FOLDER: &str = "docs/decisions/";

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut taken: Vec<(&str, &str)> = Vec::new();
    for file in files.iter().filter(|file| file.path.starts_with(FOLDER)) {
        let Some(number) = number(&file.path) else {
            complaints.push(format!("{}: the name does not begin with four digits", file.path));
            continue;
        };
        if !file.text.starts_with(&format!("# {}. ", number.trim_start_matches('0'))) {
            complaints.push(format!("{}: the heading does not have the name's number", file.path));
        }
        match taken.iter().find(|(earlier, _)| *earlier == number) {
            Some((_, other)) => {
                complaints.push(format!("{} and {other} have one number", file.path));
            }
            None => taken.push((number, &file.path)),
        }
    }
    complaints
}

/// The four digits that a decision's file begins with.
fn number(path: &str) -> Option<&str> {
    let (number, _) = path.strip_prefix(FOLDER)?.split_once('-')?;
    (number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_number_that_is_there_twice_or_not_the_headings_is_complained_of() {
        let files = [
            file("docs/decisions/0001-a.md", "# 1. A\n"),
            file("docs/decisions/0010-b.md", "# 10. B\n"),
            file("docs/decisions/0010-c.md", "# 10. C\n"),
            file("docs/decisions/0011-d.md", "# 12. D\n"),
            file("docs/decisions/index.md", "# Index\n"),
            file("docs/routing.md", "# Routing\n"),
        ];
        assert_eq!(
            complaints(&files),
            [
                "docs/decisions/0010-c.md and docs/decisions/0010-b.md have one number",
                "docs/decisions/0011-d.md: the heading does not have the name's number",
                "docs/decisions/index.md: the name does not begin with four digits",
            ]
        );
    }
}
