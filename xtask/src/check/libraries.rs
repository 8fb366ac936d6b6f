//! Libraries that only some files may name, so that replacing one touches those files and no more.

use super::tree::File;

/// A library's crate names, whose sources are meant, and the places there that may name it.
struct Fence {
    library: &'static str,
    inside: &'static str,
    allowed: &'static [&'static str],
}

const FENCES: &[Fence] = &[
    Fence {
        library: "pingora",
        inside: "gateway/src/",
        allowed: &[
            "gateway/src/proxy.rs",
            "gateway/src/server/",
            "gateway/src/context.rs",
            "gateway/src/stages/",
            "gateway/src/replay/",
        ],
    },
    Fence { library: "kube", inside: "gateway/src/", allowed: &["gateway/src/kubernetes/"] },
];

pub(crate) fn complaints(files: &[File]) -> Vec<String> {
    let rust = files.iter().filter(|file| file.is_rust());
    rust.flat_map(|file| FENCES.iter().filter_map(|fence| fence.crossed(file))).collect()
}

impl Fence {
    fn crossed(&self, file: &File) -> Option<String> {
        let outside = file.path.starts_with(self.inside)
            && !self.allowed.iter().any(|allowed| file.path.starts_with(allowed));
        let line = file.text.lines().position(|line| outside && names(line, self.library))?;
        Some(format!(
            "{}:{}: only {} may name {}",
            file.path,
            line + 1,
            self.allowed.join(", "),
            self.library
        ))
    }
}

/// Whether the code of a line, not its comment, has a path that begins with the library or a part of it
/// (`pingora::`, `pingora_http::`).
fn names(line: &str, library: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.match_indices(library).any(|(at, _)| {
        let begins = code.get(..at).is_some_and(|before| {
            !before.ends_with(|letter: char| letter.is_alphanumeric() || "_:\"/-".contains(letter))
        });
        let rest = code.get(at + library.len()..).unwrap_or_default();
        let within = |letter: char| letter.is_alphanumeric() || letter == '_';
        let part = if rest.starts_with('_') { rest.trim_start_matches(within) } else { rest };
        begins && part.starts_with("::")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn a_library_named_outside_its_fence_is_a_complaint_with_its_line() {
        let stray = file("gateway/src/admin.rs", "//! x\nuse pingora_http::RequestHeader;\n");
        let complaints = complaints(&[stray]);
        assert!(complaints[0].starts_with("gateway/src/admin.rs:2:"), "{complaints:?}");
    }

    #[test]
    fn stages_and_comments_may_name_it() {
        let stage = file("gateway/src/stages/read.rs", "use pingora::Result;\n");
        let comment = file("gateway/src/admin.rs", "// pingora::Result is not used here\n");
        let word = file("gateway/src/admin.rs", "kubernetes::run(\"kube::\"); mykube::x();\n");
        assert_eq!(complaints(&[stage, comment, word]), Vec::<String>::new());
    }
}
