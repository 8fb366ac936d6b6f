//! Which of our crates may know which: `crds ← core ← fetching ← the acting crates`. The table in
//! `docs/architecture.md` says the same, or the check fails.

use serde_json::Value;

use super::tree::File;

/// The page with the table for people.
const PAGE: &str = "docs/architecture.md";

/// Each crate with those it may depend on. An acting crate imports no other, except that the gateway
/// carries the simulator for its quickstart.
const ARROWS: &[(&str, &[&str])] = &[
    ("flexinfer-crds", &[]),
    ("flexinfer-core", &["flexinfer-crds"]),
    ("flexinfer-fetching", &["flexinfer-crds", "flexinfer-core"]),
    ("flexinfer-simulator", &[]),
    ("flexinfer-telemetry", &[]),
    (
        "flexinfer-gateway",
        &[
            "flexinfer-crds",
            "flexinfer-core",
            "flexinfer-fetching",
            "flexinfer-simulator",
            "flexinfer-telemetry",
        ],
    ),
    ("flexinfer-controller", &["flexinfer-crds", "flexinfer-core", "flexinfer-telemetry"]),
    (
        "flexinfer-node",
        &["flexinfer-crds", "flexinfer-core", "flexinfer-fetching", "flexinfer-telemetry"],
    ),
    ("flexinfer-testkit", &["flexinfer-simulator"]),
    ("flexinfer-loadtest", &[]),
    ("flexinfer-fuzz", &["flexinfer-core"]),
    ("flexinfer-e2e", &["flexinfer-crds"]),
    ("xtask", &[]),
];

/// Only for tests, by anyone but the pure crates.
const TESTKIT: &str = "flexinfer-testkit";

/// Libraries that act on the world, which `core` decides without.
const IMPURE: &[&str] =
    &["tokio", "hyper", "reqwest", "axum", "rustix", "libc", "pingora", "kube", "rand", "socket2"];

pub(crate) fn complaints(metadata: &Value) -> Vec<String> {
    list(metadata, "packages").flat_map(package).collect()
}

/// Where the page says something else than the table above.
pub(crate) fn differences(files: &[File]) -> Vec<String> {
    let page = files.iter().find(|file| file.path == PAGE);
    let told: Vec<_> = page.map(|page| rows(&page.text).collect()).unwrap_or_default();
    let meant: Vec<_> = ARROWS.iter().map(|(from, to)| (*from, to.to_vec())).collect();
    let lacking = meant.iter().filter(|row| !told.contains(row)).map(|(from, to)| {
        let to = if to.is_empty() { "nothing".to_owned() } else { to.join(", ") };
        format!("{PAGE}: the table of crates does not say that {from} may use {to}")
    });
    lacking.collect()
}

/// The rows of a table that begins with a crate's folder and ends with what the crate may use.
fn rows(page: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    page.lines().filter_map(|line| {
        let cells = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let (first, rest) = cells.split_once("` |")?;
        let (_, last) = rest.rsplit_once('|')?;
        Some((package_in(first)?, last.split('`').filter_map(package_in).collect()))
    })
}

/// The name of the package in `folder`, as the table above has it.
fn package_in(folder: &str) -> Option<&'static str> {
    let name = |package: &&str| package.strip_prefix("flexinfer-").unwrap_or(package) == folder;
    ARROWS.iter().map(|(package, _)| *package).find(name)
}

fn package(package: &Value) -> Vec<String> {
    let name = text(package, "name");
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![format!(
            "crate {name} is not in the table of xtask/src/check/arrows.rs: say there what it may depend on"
        )];
    };
    let mut complaints = Vec::new();
    for dependency in list(package, "dependencies") {
        let to = text(dependency, "name");
        let for_tests = text(dependency, "kind") == "dev";
        let ours = dependency.get("path").is_some_and(Value::is_string);
        let excused = for_tests && to == TESTKIT && name != "flexinfer-core";
        if ours && !allowed.contains(&to) && !excused {
            complaints.push(format!("{name} must not depend on {to} (design: crate arrows)"));
        }
        if name == "flexinfer-core" && !for_tests && impure(to) {
            complaints.push(format!("flexinfer-core is pure and must not depend on {to}"));
        }
    }
    complaints
}

fn impure(library: &str) -> bool {
    IMPURE.iter().any(|known| library == *known || library.starts_with("pingora-"))
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn depending(from: &str, to: &Value) -> Vec<String> {
        complaints(&json!({ "packages": [{ "name": from, "dependencies": [to] }] }))
    }

    #[test]
    fn core_may_know_crds_and_not_the_gateway() {
        let crds = json!({ "name": "flexinfer-crds", "path": "crds", "kind": null });
        let gateway = json!({ "name": "flexinfer-gateway", "path": "gateway", "kind": null });
        assert_eq!(depending("flexinfer-core", &crds), Vec::<String>::new());
        assert_eq!(depending("flexinfer-core", &gateway).len(), 1);
    }

    #[test]
    fn core_may_use_an_acting_library_only_in_tests() {
        let tokio = json!({ "name": "tokio", "kind": null });
        assert_eq!(depending("flexinfer-core", &tokio).len(), 1);
        let rand = json!({ "name": "rand", "kind": "dev" });
        assert_eq!(depending("flexinfer-core", &rand), Vec::<String>::new());
    }

    #[test]
    fn a_page_that_says_something_else_is_a_complaint() {
        let row = |(package, to): &(&str, &[&str])| {
            let folder = |package: &str| package.replace("flexinfer-", "");
            let to: Vec<_> = to.iter().map(|to| format!("`{}`", folder(to))).collect();
            format!("| `{}` | what | {} |\n", folder(package), to.join(", "))
        };
        let page = |text: String| differences(&[File { path: PAGE.to_owned(), text }]);
        let all: String = ARROWS.iter().map(row).collect();
        assert_eq!(page(all.clone()), Vec::<String>::new());
        assert_eq!(
            page(all.replace("| `core` | what | `crds` |", "| `core` | what | – |")).len(),
            1
        );
        assert_eq!(page(String::new()).len(), ARROWS.len());
    }

    #[test]
    fn the_testkit_is_for_tests_alone() {
        let kit = |kind: Value| json!({ "name": TESTKIT, "path": "testkit", "kind": kind });
        assert_eq!(depending("flexinfer-gateway", &kit(json!("dev"))), Vec::<String>::new());
        assert_eq!(depending("flexinfer-gateway", &kit(Value::Null)).len(), 1);
    }

    #[test]
    fn a_crate_nobody_placed_is_a_complaint() {
        let complaints =
            complaints(&json!({ "packages": [{ "name": "new", "dependencies": [] }] }));
        assert_eq!(complaints.len(), 1);
    }
}
