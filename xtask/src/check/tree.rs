//! The text files of the checkout as git sees them: tracked, or new and not ignored.

use std::fs;

use anyhow::Result;

use crate::{program, workspace};

/// A file of the checkout.
pub(crate) struct File {
    /// From the workspace's root, with forward slashes.
    pub path: String,
    pub text: String,
}

impl File {
    pub(crate) fn is_rust(&self) -> bool {
        self.has_extension("rs")
    }

    pub(crate) fn is_markdown(&self) -> bool {
        self.has_extension("md")
    }

    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    fn has_extension(&self, wanted: &str) -> bool {
        std::path::Path::new(&self.path).extension().is_some_and(|extension| extension == wanted)
    }
}

/// Every Rust and Markdown file.
pub(crate) fn files() -> Result<Vec<File>> {
    let mut git = program::named("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "--", "*.rs", "*.md"]);
    let root = workspace::root();
    let listed = program::output(&mut git)?;
    // A file that was removed and not yet staged is still listed.
    let read = listed.lines().filter_map(|path| {
        let text = fs::read_to_string(root.join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    });
    Ok(read.collect())
}
