//! The answers as a whole: what each says, and what holds for all of them.

use std::time::Duration;

use strum::IntoEnumIterator as _;

use super::reference::examples;
use super::{Rejection, RejectionName, reference_page};
use crate::activation::{Failure, Reason};
use crate::ids::ModelId;
use crate::limits::{Limited, Rate, Scope, Unit};

#[test]
fn route_03_clients_try_again_only_where_it_helps() {
    let model = ModelId::new("default", "m");
    let waited = Duration::from_secs(1);
    for (rejection, last) in [
        (Rejection::UpstreamTimeout { model: model.clone(), waited }, true),
        (Rejection::UpstreamBroke { model: model.clone() }, true),
        (Rejection::Internal, true),
        (Rejection::UpstreamUnreachable { model: model.clone() }, false),
        (Rejection::QueueTimeout { model, waited }, false),
        // No client tries these again by itself.
        (Rejection::ModelMissing, false),
    ] {
        assert_eq!(rejection.is_final(), last, "{rejection:?}");
    }
}

#[test]
fn every_rejection_has_an_example_of_its_own() {
    let shown: Vec<_> = examples().iter().map(RejectionName::from).collect();
    assert_eq!(shown, RejectionName::iter().collect::<Vec<_>>());
}

#[test]
fn every_answer_is_an_error_with_a_message() {
    for rejection in examples() {
        assert!((400..600).contains(&rejection.status()), "{rejection:?}");
        assert!(rejection.message().len() > 10, "{rejection:?}");
        assert_eq!(rejection.allow().is_some(), rejection.status() == 405, "{rejection:?}");
        assert_eq!(rejection.upgrade().is_some(), rejection.status() == 426, "{rejection:?}");
    }
}

#[test]
fn whatever_waiting_can_help_says_when_to_come_back() {
    for rejection in examples() {
        let waits = matches!(rejection.status(), 429 | 503);
        assert_eq!(rejection.retry_after().is_some(), waits, "{rejection:?}");
    }
}

#[test]
fn retry_after_is_whole_seconds_and_never_zero() {
    let in_time = |ready_in| {
        let model = ModelId::new("default", "m");
        Rejection::NotBeforeDeadline { model, ready_in }.retry_after()
    };
    assert_eq!(in_time(Duration::ZERO), Some(Duration::from_secs(1)));
    assert_eq!(in_time(Duration::from_millis(900)), Some(Duration::from_secs(1)));
    assert_eq!(in_time(Duration::from_millis(2001)), Some(Duration::from_secs(3)));
    assert_eq!(in_time(Duration::from_secs(7)), Some(Duration::from_secs(7)));
    assert!(in_time(Duration::MAX).is_some());
}

#[test]
fn a_failure_that_is_tried_again_says_when() {
    let failed = Rejection::ActivationFailed {
        model: ModelId::new("default", "m"),
        failure: Failure::new(Reason::Crashed, "it ended with code 1"),
        retry_in: Some(Duration::from_secs(10)),
    };
    assert_eq!(failed.retry_after(), Some(Duration::from_secs(10)));
}

#[test]
fn the_limit_that_was_reached_is_named_with_its_number() {
    let said = |scope, unit, limit, rate| {
        let retry_in = Some(Duration::from_secs(2));
        Rejection::from(Limited { scope, unit, limit, rate, left: 0, retry_in }).message()
    };
    for (limited, message) in [
        (
            said(Scope::PerCaller, Unit::Requests, 10, Some(Rate::per_second(5, 10))),
            "this API key may have 5 requests a second (10 at once), and none is left now; try again in 2s",
        ),
        (
            said(Scope::Global, Unit::Requests, 1, Some(Rate::per_minute(6, 1))),
            "all callers together may have 6 requests a minute (1 at once), and none is left now; try again in 2s",
        ),
        (
            said(Scope::PerCaller, Unit::Requests, 1, Some(Rate::per_second(1, 1))),
            "this API key may have 1 request a second (1 at once), and none is left now; try again in 2s",
        ),
        (
            said(Scope::PerCaller, Unit::Tokens, 1, Some(Rate::per_minute(1, 1))),
            "this API key may have 1 token a minute of each model, and 0 are left now; try again in 2s",
        ),
        (
            said(Scope::PerCaller, Unit::Concurrent, 1, None),
            "this API key may have 1 request at the same time; try again in 2s",
        ),
        (
            said(Scope::PerTenant, Unit::Tokens, 900, Some(Rate::per_minute(900, 900))),
            "all API keys of this tenant may have 900 tokens a minute of each model, and 0 are left now; try again in 2s",
        ),
        (
            said(Scope::PerModel, Unit::Concurrent, 4, None),
            "this model may have 4 requests at the same time; try again in 2s",
        ),
    ] {
        assert_eq!(limited, message);
    }
}

#[test]
fn those_who_wait_are_counted_like_people_count_them() {
    let said =
        |limit| Rejection::QueueFull { model: ModelId::new("default", "m"), limit }.message();
    assert!(said(1).starts_with("1 request waits for model m"), "{}", said(1));
    assert!(said(2).starts_with("2 requests wait for model m"), "{}", said(2));
}

#[test]
fn a_hostile_name_is_repeated_short_and_without_control_characters() {
    let name = format!("a\r\nb\u{0}{}", "x".repeat(5000));
    let message = Rejection::ModelNotFound { name, nearest: Vec::new() }.message();
    assert!(message.len() < 300, "{message}");
    assert!(!message.contains(|c: char| c.is_control()), "{message}");
}

#[test]
fn durations_read_like_people_say_them() {
    let said = |milliseconds| {
        let waited = Duration::from_millis(milliseconds);
        Rejection::UpstreamTimeout { model: ModelId::new("default", "m"), waited }.message()
    };
    assert!(said(850).ends_with("for 850ms"), "{}", said(850));
    assert!(said(2500).ends_with("for 2.5s"));
    assert!(said(60_000).ends_with("for 1m"));
    assert!(said(200_000).ends_with("for 3m20s"));
}

#[test]
fn the_reference_page_is_fresh() {
    let written = include_str!("../../../docs/reference/rejections.md");
    assert_eq!(
        written,
        reference_page(),
        "write the page anew: cargo run -p flexinfer-core --example rejections > docs/reference/rejections.md"
    );
}
