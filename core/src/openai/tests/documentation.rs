//! `docs/apis.md` says what the table says. `UPDATE_DOCS=1 cargo test -p flexinfer-core documentation`
//! writes its tables anew.

use strum::IntoEnumIterator as _;

use crate::backends::{Api, Backend};
use crate::openai::apis::{ModelAt, OPERATIONS, OWN, Operation, Streams, Tie};
use crate::openai::{Dialect, error_body};
use crate::rejection::Rejection;
use crate::tests::page;

#[test]
fn the_page_about_apis_has_the_tables_of_the_code() {
    let written = include_str!("../../../../docs/apis.md");
    let tables = [("operations", operations()), ("own", own()), ("dialects", dialects())];
    page::has_tables("apis.md", written, &tables);
}

fn operations() -> String {
    let mut lines = vec![
        "| path | methods | model | stream | tried again | tied by | engines |".to_owned(),
        "|---|---|---|---|---|---|---|".to_owned(),
    ];
    lines.extend(OPERATIONS.iter().map(row));
    lines.push(String::new());
    lines.join("\n")
}

fn row(operation: &Operation) -> String {
    let model = match operation.model_at {
        ModelAt::Json => "`model`",
        ModelAt::Form => "part `model`",
        ModelAt::Query => "`?model=`",
        ModelAt::Address if operation.recalls() => "its id, header or path",
        ModelAt::Address => "header or path",
    };
    let stream = match operation.streams {
        Streams::Never => "–",
        Streams::Asked => "if asked",
        Streams::UnlessDeclined => "unless declined",
        Streams::Upgraded => "WebSocket",
    };
    let tied = match operation.tied {
        None => "–",
        Some(Tie::Response) => "response",
        Some(Tie::ComfyClient) => "client",
    };
    let again = if !operation.methods.contains("POST") || operation.is_held_whole() {
        "yes"
    } else {
        "up to 1 MiB"
    };
    let (path, methods) = (operation.path, operation.methods);
    let engines = engines(operation.api);
    format!("| `{path}` | {methods} | {model} | {stream} | {again} | {tied} | {engines} |")
}

fn engines(api: Api) -> String {
    let serves = |backend: &Backend| backend.apis().contains(&api);
    let whatever = |backend: &Backend| backend.apis().len() == Api::iter().len();
    let named = Backend::iter().filter(|backend| serves(backend) && !whatever(backend));
    let named: Vec<String> = named.map(|backend| format!("`{backend}`")).collect();
    if named.is_empty() { "your own".to_owned() } else { named.join(", ") }
}

fn own() -> String {
    let mut lines = vec!["| path | methods | dialect |".to_owned(), "|---|---|---|".to_owned()];
    let row = |own: &crate::openai::apis::Own| {
        format!("| `{}` | {} | {} |", own.path, own.methods, own.dialect)
    };
    lines.extend(OWN.iter().map(row));
    lines.push(String::new());
    lines.join("\n")
}

fn dialects() -> String {
    let rejection = Rejection::ModelNotFound { name: "quen".into(), nearest: vec!["qwen".into()] };
    let mut lines =
        vec!["| dialect | APIs | an unknown model |".to_owned(), "|---|---|---|".to_owned()];
    for dialect in Dialect::iter() {
        let apis = Api::iter().filter(|api| Dialect::of(*api) == dialect);
        let apis: Vec<String> = apis.map(|api| api.to_string()).collect();
        let body = error_body(dialect, &rejection, Some("1764400000-0001"));
        let body = String::from_utf8(body).expect("JSON is UTF-8");
        lines.push(format!("| {dialect} | {} | `{body}` |", apis.join(", ")));
    }
    lines.push(String::new());
    lines.join("\n")
}
