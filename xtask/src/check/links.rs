//! Links between the project's own pages: the file must be there, and the heading in it.

use std::path::{Path, PathBuf};

use super::tree::File;
use crate::workspace;

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let root = workspace::root();
    let pages = files.iter().filter(|file| file.is_markdown());
    pages.flat_map(|page| broken(page, &root)).collect()
}

fn broken(page: &File, root: &Path) -> Vec<String> {
    let folder = root.join(&page.path).parent().map(PathBuf::from).unwrap_or_default();
    let mut complaints = Vec::new();
    for (line, target) in links(&page.text) {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let place = if file.is_empty() { root.join(&page.path) } else { folder.join(file) };
        if !place.exists() {
            complaints.push(format!("{}:{line}: the link {target} leads nowhere", page.path));
        } else if !heading.is_empty() && !has_heading(&place, heading) {
            complaints.push(format!("{}:{line}: {target} has no such heading", page.path));
        }
    }
    complaints
}

/// The targets of inline links to our own files, with their lines; code blocks are skipped.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut inside_code = false;
    let mut links = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            inside_code = !inside_code;
        }
        if inside_code {
            continue;
        }
        for piece in line.split("](").skip(1) {
            let target = piece.split([')', ' ']).next().unwrap_or_default();
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !target.is_empty() {
                links.push((number + 1, target));
            }
        }
    }
    links
}

fn has_heading(page: &Path, wanted: &str) -> bool {
    let text = std::fs::read_to_string(page).unwrap_or_default();
    text.lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#').trim()) == wanted)
}

/// The anchor that forges make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_outside_code_blocks_are_found_with_their_lines() {
        let text = "[a](x.md) and [b](y.md#z)\n```\n[c](no.md)\n```\n[d](https://e.f) [g](#h)\n";
        assert_eq!(links(text), [(1, "x.md"), (1, "y.md#z"), (5, "#h")]);
    }

    #[test]
    fn anchors_are_lower_case_with_dashes_and_without_signs() {
        assert_eq!(anchor("The `Model` kind, v1alpha2"), "the-model-kind-v1alpha2");
    }
}
