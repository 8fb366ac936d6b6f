//! Pages of `docs/` with tables that are made from the code, each between two marks.

use std::{env, fs};

/// Makes sure that the page `name`, which is `written` like this, has these tables, each given with the
/// name of its marks; with `UPDATE_DOCS` set it writes them.
pub(crate) fn has_tables(name: &str, written: &str, tables: &[(&str, String)]) {
    let mut page = written.to_owned();
    for (mark, text) in tables {
        replace(&mut page, mark, text);
    }
    if env::var_os("UPDATE_DOCS").is_some() {
        let path = format!("{}/../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        fs::write(path, &page).expect("the page can be written");
    } else {
        assert_eq!(page, written, "run with UPDATE_DOCS=1 to write the tables anew");
    }
}

/// Puts `text` between the page's two marks called `name`.
fn replace(page: &mut String, name: &str, text: &str) {
    let begin = format!("<!-- generated: {name} -->\n");
    let end = format!("<!-- end: {name} -->");
    let from = page.find(&begin).expect("the first mark") + begin.len();
    let to = page.find(&end).expect("the second mark");
    page.replace_range(from..to, &format!("\n{text}\n"));
}
