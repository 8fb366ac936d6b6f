//! What a request may ask for: lengths that fit the model's context, and bodies that are well formed.

use flexinfer_core::fleet::Served;
use flexinfer_core::limits::{Admission, Clamp};
use flexinfer_gateway::rules::Rules;
use flexinfer_testkit::eventually;
use flexinfer_testkit::origin::Origin;

use crate::limits::{ASK, chat, metric};
use crate::world::{BOUND, World, model};

/// A model whose context holds so many tokens.
fn with_window(tokens: u32) -> Served {
    let mut served = model("m", Some("engine-name"));
    served.effective.context_window = Some(tokens);
    served.effective.context_bounded = true;
    served
}

#[tokio::test]
async fn longer_answers_than_fit_are_cut_down_and_told() {
    let engine = Origin::answering("{}").await.unwrap();
    let rules = Rules { clamp: Some(Clamp { prompt_reserve: 512 }), ..Rules::default() };
    let world = World::ruled(engine.address, vec![with_window(4096), model("n", None)], rules);
    for bound in [
        r#""max_tokens" : 9000"#,
        r#""max_completion_tokens" : 9000"#,
        r#""max_output_tokens" : 9000"#,
        r#""n_predict" : 9000"#,
        r#""options" : {"top_k":1.0, "num_predict" : 9000 }"#,
    ] {
        let body = format!(r#"{{ {bound}, "model":"m", "x":1.50}}"#);
        let clamped = chat(&world, body.as_bytes()).await;
        let header = clamped.head.header("x-flexinfer-maxtokens-clamped");
        assert_eq!(header, Some("9000->3584"));
        let expected = body.replace("9000", "3584").replace("\"m\"", "\"engine-name\"");
        assert_eq!(String::from_utf8_lossy(&engine.requests().last().unwrap().body), expected);
    }
    let fits = br#"{"model":"m","max_tokens":3584}"#;
    assert_eq!(chat(&world, fits).await.head.header("x-flexinfer-maxtokens-clamped"), None);
    let unknown = br#"{"model":"n","max_tokens":9000000}"#;
    chat(&world, unknown).await;
    assert_eq!(engine.requests().last().unwrap().body, unknown);
    assert!(eventually(BOUND, || metric(&world,
        r#"flexinfer_proxy_max_tokens_clamped_total{model="m",reason="context_window_headroom"} 5"#)).await);
}

#[tokio::test]
async fn what_cannot_fit_is_413_with_the_budget() {
    let engine = Origin::answering("{}").await.unwrap();
    let admission = Some(Admission { safety_margin_percent: 5, default_max_tokens: 256 });
    let rules = Rules { admission, ..Rules::default() };
    let mut unbounded = model("n", None);
    unbounded.effective.context_window = Some(10);
    let world = World::ruled(engine.address, vec![with_window(1000), unbounded], rules);
    let long = "word ".repeat(800);
    let body = |name: &str| format!(r#"{{"model":"{name}","prompt":"{long}","max_tokens":100}}"#);
    let refused = chat(&world, body("m").as_bytes()).await;
    assert_eq!(refused.status(), 413);
    let error = &refused.json()["error"];
    assert_eq!(error["code"], "context_window_exceeded");
    assert_eq!(error["admission"]["model"], "m");
    assert_eq!(error["admission"]["tokens_budget"], 950);
    assert_eq!(error["admission"]["tokens_submitted"], 1100);
    assert_eq!(error["admission"]["tokens_over"], 150);
    assert_eq!(error["admission"]["suggested_truncate_to"], 850);
    assert_eq!(error["admission"]["context_window"], 1000);
    assert_eq!(chat(&world, body("n").as_bytes()).await.status(), 200, "it did not ask for it");
    assert_eq!(chat(&world, ASK).await.status(), 200);
    for line in [
        r#"flexinfer_proxy_admission_decisions_total{allow="false",model="m",reason="over_budget"} 1"#,
        r#"flexinfer_proxy_admission_decisions_total{allow="true",model="m",reason="in_budget"} 1"#,
    ] {
        assert!(eventually(BOUND, || metric(&world, line)).await, "{line}");
    }
}

#[tokio::test]
async fn what_is_not_well_formed_is_refused_only_where_that_is_asked_for() {
    let engine = Origin::answering("{}").await.unwrap();
    let body = br#"{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":7,"n":0}"#;
    let rules = Rules { validate: true, ..Rules::default() };
    let strict = World::ruled(engine.address, vec![model("m", None)], rules);
    let refused = chat(&strict, body).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.json()["error"]["code"], "validation_error");
    assert_eq!(refused.json()["error"]["param"], "temperature");
    let lenient = br#"{"model":"m","messages":[{"role":"developer","content":[{"type":"text","text":"x"}]}],"new":1}"#;
    assert_eq!(chat(&strict, lenient).await.status(), 200);
    let world = World::new(engine.address, vec![model("m", None)]);
    assert_eq!(chat(&world, body).await.status(), 200);
}
