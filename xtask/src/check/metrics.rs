//! The page that says where each metric of the original is: what it says must be in the sources.

use super::tree::File;

const PAGE: &str = "docs/reference/metrics-of-the-original.md";

/// Where a program's metrics are defined. The gateway's names are put together there, but a page is made of them.
const SOURCES: [(&str, &str); 4] = [
    ("agent", "node/src/agent/"),
    ("controller", "controller/src/"),
    ("scheduler", "controller/src/scheduler/"),
    ("gateway", "docs/reference/metrics.md"),
];

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let Some(page) = files.iter().find(|file| file.path == PAGE) else {
        return vec![format!("{PAGE} is missing")];
    };
    let claims: Vec<Claim<'_>> = page.text.lines().filter_map(Claim::read).collect();
    if claims.is_empty() {
        return vec![format!("{PAGE} names no metric that could be looked for")];
    }
    claims.iter().filter_map(|claim| claim.complaint(files)).collect()
}

/// A row that says which program has a metric.
#[derive(Debug, PartialEq, Eq)]
struct Claim<'a> {
    metric: &'a str,
    program: &'a str,
}

impl<'a> Claim<'a> {
    /// `None` of a line that claims nothing: no row, or a metric that no program has.
    fn read(line: &'a str) -> Option<Self> {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, metric, _, program, _, _] = cells[..] else { return None };
        let metric = metric.strip_prefix('`')?.strip_suffix('`')?;
        (program != "–").then_some(Self { metric, program })
    }

    fn complaint(&self, files: &[File]) -> Option<String> {
        let Self { metric, program } = self;
        let Some((_, place)) = SOURCES.iter().find(|(name, _)| name == program) else {
            return Some(format!("{PAGE}: {metric}: there is no program {program}"));
        };
        let spelled = [format!("\"{metric}\""), format!("`{metric}`")];
        let defines = |file: &&File| spelled.iter().any(|name| file.text.contains(name));
        let mut sources = files.iter().filter(|file| file.path.starts_with(place));
        let missing = sources.find(defines).is_none();
        missing.then(|| format!("{PAGE}: {metric} is not in {place}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_metric_that_its_program_does_not_have_is_named() {
        let page = "| metric | labels | program | differs |\n|---|---|---|---|\n\
                    | `a_total` | node | agent | |\n| `b_total` | | agent | |\n| `c_total` | | – | why |\n\
                    | `d_total` | | nobody | |\n";
        let files = [file(PAGE, page), file("node/src/agent/metrics.rs", "new(\"a_total\")")];
        let complaints = complaints(&files);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints.iter().any(|complaint| complaint.contains("b_total is not in")));
        assert!(complaints.iter().any(|complaint| complaint.contains("no program nobody")));
    }

    #[test]
    fn a_page_without_rows_is_no_page() {
        assert_eq!(complaints(&[]).len(), 1);
        assert_eq!(complaints(&[file(PAGE, "# Metrics")]).len(), 1);
    }
}
