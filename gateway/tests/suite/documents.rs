//! What the documents say of the code is what the code says.

/// The stages in the order of their table in the document.
fn documented() -> Vec<&'static str> {
    let page = include_str!("../../../docs/request-path.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" |").next());
    rows.skip(1).collect()
}

#[test]
fn the_request_path_tells_the_stages_in_the_order_of_the_code() {
    let code = include_str!("../../src/stages/mod.rs");
    let modules =
        code.lines().filter_map(|line| line.strip_prefix("pub(crate) mod ")?.strip_suffix(';'));
    let stages: Vec<&str> = modules
        .filter(|module| !matches!(*module, "aside" | "respond" | "sessions" | "spans"))
        .collect();
    assert_eq!(documented(), stages);
}
