//! What a collector is told of spans, and which traces of others go on.

use flexinfer_testkit::{Collector, Told};
use http::{HeaderMap, HeaderValue};
use opentelemetry_otlp::WithExportConfig as _;

use super::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SENDER: &str = "00f067aa0ba902b7";

/// What a collector is told of the spans that `work` makes.
async fn told<F: Future<Output = ()>>(work: impl FnOnce(Tracer) -> F) -> Vec<Told> {
    let collector = Collector::start().await.unwrap();
    let endpoint = format!("{}/v1/traces", collector.url());
    let exporter = exporter(SpanExporter::builder().with_http().with_endpoint(endpoint)).unwrap();
    let provider = provider(exporter, "a-service", Some("a-namespace"));
    work(Tracer::new(provider.tracer("flexinfer"))).await;
    let traces = Traces(Some(provider));
    tokio::task::spawn_blocking(|| traces.end()).await.unwrap();
    collector.spans().unwrap()
}

fn sent_by(traceparent: &str) -> HeaderMap {
    [("traceparent", traceparent), ("tracestate", "vendor=1")]
        .map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap()))
        .into_iter()
        .collect()
}

#[tokio::test]
async fn a_span_is_a_part_of_the_senders_and_its_parts_are_parts_of_it() {
    let head = sent_by(&format!("00-{TRACE}-{SENDER}-01"));
    let spans = told(async |tracer| {
        let whole = tracer.answering("whole", &head);
        let part = whole.asking("part");
        part.note("tries", 2);
        part.note_with("said", || "in words");
        part.fail("reset");
        let headers: HeaderMap = part.headers().into_iter().collect();
        let carried = headers.get("traceparent").unwrap().to_str().unwrap();
        assert!(carried.starts_with(&format!("00-{TRACE}-")) && carried.ends_with("-01"));
        assert_eq!(headers.get("tracestate").unwrap(), "vendor=1");
        assert_eq!(whole.trace().as_deref(), Some(TRACE));
    })
    .await;
    let [part, whole] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((part.name.as_str(), whole.name.as_str()), ("part", "whole"));
    assert_eq!((whole.trace.as_str(), whole.parent.as_str()), (TRACE, SENDER));
    assert_eq!((part.trace.as_str(), &part.parent), (TRACE, &whole.id));
    assert_eq!(part.notes.get("tries").map(String::as_str), Some("2"));
    assert_eq!(part.notes.get("said").map(String::as_str), Some("in words"));
    assert!(part.failed && !whole.failed);
    let program = |key| whole.program.get(key).map(String::as_str);
    assert_eq!(program("service.name"), Some("a-service"));
    assert_eq!(program("service.namespace"), Some("a-namespace"));
}

#[tokio::test]
async fn what_names_no_trace_begins_one() {
    for unreadable in ["", "00-0-0-01", "zz"] {
        let spans =
            told(async |tracer| drop(tracer.answering("whole", &sent_by(unreadable)))).await;
        let [whole] = spans.as_slice() else { panic!("{spans:?}") };
        assert_eq!(whole.parent, "", "{unreadable:?}");
        assert_ne!(whole.trace, TRACE);
    }
}

#[tokio::test]
async fn a_sender_that_samples_nothing_is_told_to_nobody_but_to_the_next() {
    let head = sent_by(&format!("00-{TRACE}-{SENDER}-00"));
    let spans = told(async |tracer| {
        let whole = tracer.answering("whole", &head);
        assert!(!whole.is_told());
        let (_, carried) = whole.headers().swap_remove(0);
        assert!(carried.to_str().unwrap().ends_with("-00"));
    })
    .await;
    assert_eq!(spans, []);
}

#[tokio::test]
async fn what_a_span_is_around_becomes_its_parts() {
    let spans = told(async |tracer| {
        let whole = tracer.doing("whole");
        let inner = async {
            tokio::task::yield_now().await;
            drop(tracer.asking("part"));
        };
        whole.around(inner).await;
        drop(tracer.asking("apart"));
    })
    .await;
    let [part, apart, whole] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!(part.parent, whole.id);
    assert_eq!((apart.name.as_str(), apart.parent.as_str()), ("apart", ""));
}

#[test]
fn without_a_collector_a_span_is_nothing() {
    let span = Tracer::of_this_process().answering("whole", &HeaderMap::new());
    span.note("key", 1);
    span.note_with("key", || -> i64 { panic!("made for nobody") });
    span.fail("in vain");
    assert!(!span.is_told() && !span.asking("part").is_told());
    assert!(span.headers().is_empty() && span.trace().is_none());
}

#[test]
fn nothing_is_sent_unless_asked_for() {
    assert!(begin(&Arguments::default(), "a-service").unwrap().0.is_none());
}
