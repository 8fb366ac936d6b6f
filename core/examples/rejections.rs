//! Prints `docs/reference/rejections.md`.

use std::io::Write as _;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(flexinfer_core::rejection::reference_page().as_bytes())
}
