//! `docs/backends.md` says what the code says. `UPDATE_DOCS=1 cargo test -p flexinfer-core
//! documentation` writes its tables anew.

use std::time::Duration;

use super::*;
use crate::tests::page;

#[test]
fn the_page_about_backends_has_the_tables_of_the_code() {
    let written = include_str!("../../../../docs/backends.md");
    let tables = [("backends", overview()), ("options", options())];
    page::has_tables("backends.md", written, &tables);
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
