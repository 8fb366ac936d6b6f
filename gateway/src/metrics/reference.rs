//! `docs/reference/metrics.md`, made from the definitions and held against the page.

use std::fmt::Write as _;

use super::Metrics;

const INTRODUCTION: &str = "\
# Metrics of the gateway

Made from the definitions in `gateway/src/metrics`; do not edit. They are at `/metrics` of the admin port, in Prometheus'
text format. Names and labels are those of the original's dashboards where it had them.

A `model` is the name that `GET /v1/models` lists, a `label` a service label: names that a client made up never become a
series, and the series of a model end with it. `status` is `success`, `error`, `cancelled` (the client left),
`rate_limited`, `admission_rejected` (413), `endpoint_unsupported` (404, the API is not served) or `parked`. A stream's first
token and the pace of the others are seen where they pass: from the request's head, so with the wait for a sleeping model
in it, and as the mean of one stream.

| metric | kind | labels | buckets | meaning |
|---|---|---|---|---|
";

fn page() -> String {
    let metrics = Metrics::new().expect("the definitions are sound");
    let mut page = INTRODUCTION.to_owned();
    for defined in metrics.defined() {
        let labels = defined.labels.iter().map(|label| format!("`{label}`")).collect::<Vec<_>>();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        let buckets = match (defined.buckets.first(), defined.buckets.last()) {
            (Some(first), Some(last)) => format!("{first} … {last}"),
            _ => "–".to_owned(),
        };
        writeln!(
            page,
            "| `{}` | {} | {labels} | {buckets} | {} |",
            defined.name, defined.kind, defined.help
        )
        .unwrap();
    }
    page
}

#[test]
fn the_page_of_metrics_is_fresh() {
    let test = "-p flexinfer-gateway --lib page_of_metrics";
    flexinfer_testkit::reference::fresh("metrics.md", &page(), test).unwrap();
}
