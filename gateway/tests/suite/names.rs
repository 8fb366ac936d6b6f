//! A name means the same wherever a request has it: in the header, the path, the query or the body.

use flexinfer_core::fleet::{Adapter, Fleet, Served};
use flexinfer_core::ids::ModelId;
use flexinfer_testkit::client::{Client, request};
use flexinfer_testkit::origin::Origin;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::callers::ask;
use crate::websockets::UPGRADE;
use crate::world::{World, model};

const CHAT: &str = "/v1/chat/completions";
const EDITS: &str = "/v1/images/edits";
const REALTIME: &str = "/v1/realtime";

fn anything(name: &str, aliases: &[&str]) -> Served {
    let mut model = Served::new(model(name, None).effective, "simulator", "", 0);
    model.effective.aliases = aliases.iter().map(ToString::to_string).collect();
    model.apis = Served::new(model.effective.clone(), "command", "", 0).apis;
    model
}

/// A request for each source that can name `name`, with what the engine has to see.
fn sources(name: &str) -> Vec<(Vec<u8>, &'static str)> {
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let json = json!({ "model": name }).to_string();
    let form = format!(
        "--cut\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{name}\r\n--cut--\r\n"
    );
    let form_type = ("Content-Type", "multipart/form-data; boundary=cut");
    let mut sources = vec![
        (request("POST", CHAT, &[], json.as_bytes()), "body"),
        (request("POST", EDITS, &[form_type], form.as_bytes()), "form"),
        (request("POST", &format!("/model/{encoded}{CHAT}"), &[], b"{}"), "path"),
        (request("GET", &format!("{REALTIME}?model={encoded}"), &UPGRADE, b""), "query"),
    ];
    if name.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && name.trim() == name {
        sources.push((request("POST", CHAT, &[("X-Model-ID", name)], b"{}"), "header"));
    }
    if name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte)) {
        sources.push((request("POST", &format!("/model/{name}{CHAT}"), &[], b"{}"), "raw path"));
    }
    sources
}

/// The name of the model that answered each source.
async fn reached(world: &World, name: &str) -> Vec<(&'static str, u16)> {
    let mut reached = Vec::new();
    for (request, source) in sources(name) {
        let mut client = Client::connect(world.address).await.unwrap();
        client.send(&request).await.unwrap();
        reached.push((source, client.answer().await.unwrap().status()));
    }
    reached
}

#[tokio::test]
async fn http_17_every_spelling_means_the_same_through_all_sources() {
    let engine = Origin::answering("{}").await.unwrap();
    let long = "x".repeat(300);
    let aliases = ["llama3:8b", "org/name", "a@b", "a+b", "a b", "100%", "\u{fc}ber", &long];
    let world = World::new(engine.address, vec![anything("m", &aliases), anything("n", &["N2"])]);
    for name in ["m", "default/m", "M", "m:latest", "LLAMA3:8B", "n2"].into_iter().chain(aliases) {
        for (source, status) in reached(&world, name).await {
            assert_eq!(status, 200, "{name} in the {source}");
        }
    }
    for name in ["llama3", "m:8b", "org%2Fname", "org/../name", "nobody"] {
        for (source, status) in reached(&world, name).await {
            assert_eq!(status, 404, "{name} in the {source}");
        }
    }
}

#[tokio::test]
async fn a_label_is_answered_by_each_of_its_models_in_turn() {
    let engine = Origin::answering("{}").await.unwrap();
    let mut models = vec![model("a", Some("engine-a")), model("b", Some("engine-b"))];
    for model in &mut models {
        model.effective.service_labels = vec!["textgen".into()];
    }
    let world = World::new(engine.address, models);
    for _ in 0..4 {
        let answer = ask(&world, "POST", CHAT, &[], br#"{"model":"textgen"}"#).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
    }
    let bodies: Vec<_> = engine
        .requests()
        .iter()
        .map(|seen| String::from_utf8(seen.body.clone()).unwrap())
        .collect();
    let (a, b) = (r#"{"model":"engine-a"}"#, r#"{"model":"engine-b"}"#);
    assert_eq!(bodies, [a, b, a, b]);
}

#[tokio::test]
async fn an_adapter_is_asked_for_by_its_own_name_at_the_engine_of_its_model() {
    let engine = Origin::answering("{}").await.unwrap();
    let adapter = Adapter {
        id: ModelId::new("default", "sql"),
        base: ModelId::new("default", "base"),
        name: "Sql-Expert".into(),
        created: 0,
        on_demand: None,
    };
    let models = vec![anything("base", &[])];
    let mut models = models;
    models[0].effective.served_name = Some("base-on-its-engine".into());
    let (fleet, conflicts) = Fleet::with_adapters(models, vec![adapter]);
    assert_eq!(conflicts, []);
    let world = World::of_fleet(engine.address, fleet);
    for name in ["Sql-Expert", "sql-expert", "default/Sql-Expert"] {
        for (source, status) in reached(&world, name).await {
            assert_eq!(status, 200, "{name} in the {source}");
        }
        for seen in engine.requests() {
            let whole = format!("{} {}", seen.head.target(), String::from_utf8(seen.body).unwrap());
            assert!(!whole.contains("base"), "{whole}");
            assert!(whole.contains("Sql-Expert") || whole.contains("Sql%2DExpert"), "{whole}");
        }
    }
    let listed = ask(&world, "GET", "/v1/models", &[], b"").await.json();
    assert_eq!(listed["data"][0]["id"], "Sql-Expert");
}

#[test]
fn every_id_of_the_list_can_be_called_as_it_is_listed() {
    let runtime = Runtime::new().unwrap();
    let models =
        prop::collection::btree_map("[a-z][a-z0-9.-]{0,12}[a-z0-9]", prop::bool::ANY, 1..5);
    let adapters =
        prop::collection::btree_set("[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,12}[A-Za-z0-9]", 0..3);
    let strategy = (models, adapters);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |(names, adapters)| {
        runtime.block_on(async {
            let engine = Origin::answering("{}").await.unwrap();
            let models: Vec<_> = names.keys().map(|name| anything(name, &[])).collect();
            let base = models[0].effective.id.clone();
            let adapter = |(at, name): (usize, &String)| Adapter {
                id: ModelId::new("default", &format!("adapter-{at}")),
                base: base.clone(),
                name: name.as_str().into(),
                created: 0,
                on_demand: None,
            };
            let adapters = adapters.iter().enumerate().map(adapter).collect();
            let world = World::of_fleet(engine.address, Fleet::with_adapters(models, adapters).0);
            let listed = ask(&world, "GET", "/v1/models", &[], b"").await.json();
            for item in listed["data"].as_array().unwrap() {
                let id = item["id"].as_str().unwrap();
                for (source, status) in reached(&world, id).await {
                    assert_eq!(status, 200, "{id} in the {source}");
                }
            }
        });
        Ok(())
    });
    outcome.unwrap();
}
