//! `docs/backends.md` says what the code says. `UPDATE_DOCS=1 cargo test -p flexinfer-core
//! documentation` writes its tables anew.

use std::time::Duration;

use super::*;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/backends.md");

#[test]
fn the_page_about_backends_has_the_tables_of_the_code() {
    let written = include_str!("../../../../docs/backends.md");
    let mut page = written.to_owned();
    replace(&mut page, "backends", &overview());
    replace(&mut page, "options", &options());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(PAGE, &page).expect("docs/backends.md can be written");
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

fn overview() -> String {
    let mut lines = vec![
        "| backend | also written | sources | at once | sleeps after | drains within | API families |"
            .to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    for backend in Backend::iter() {
        let slots = match backend.slots(Config::default()) {
            Some(slots) => slots.to_string(),
            None => "no limit".to_owned(),
        };
        let apis: Vec<String> = if backend.apis().len() == Api::iter().len() {
            vec!["whatever it serves".to_owned()]
        } else {
            backend.apis().iter().map(Api::to_string).collect()
        };
        lines.push(format!(
            "| `{backend}` | {} | {} | {slots} | {} | {} | {} |",
            quoted(backend.aliases().iter().copied()),
            quoted(backend.sources().iter().map(|scheme| scheme.name())),
            time(backend.idle_timeout()),
            time(backend.drain_limit()),
            apis.join(", "),
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn options() -> String {
    let mut lines = Vec::new();
    let mut table = |title: &str, keys: &[keys::Key]| {
        lines.push(format!("### {title}\n\n| option | type | becomes |\n|---|---|---|"));
        lines.extend(keys.iter().map(keys::Key::row));
        lines.push(String::new());
    };
    table("Every backend", keys::EVERYWHERE);
    for backend in Backend::iter() {
        table(&format!("`{backend}`"), backend.engine().keys());
    }
    lines.join("\n")
}

fn quoted<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "–".to_owned() } else { names.join(", ") }
}

fn time(duration: Duration) -> String {
    format!("{} min", duration.as_secs() / 60)
}
