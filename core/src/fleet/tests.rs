//! Names, in every way they can collide.

use flexinfer_crds::Model;
use flexinfer_crds::model::ModelSpec;
use proptest::prelude::*;

use super::{Adapter, Cause, Fleet, Named, Served};
use crate::effective::{Defaults, Effective};
use crate::ids::ModelId;
use crate::rejection::Rejection;

pub(crate) fn served(namespace: &str, name: &str, aliases: &[&str]) -> Served {
    let spec = ModelSpec { backend: "simulator".to_owned(), ..ModelSpec::default() };
    let defaults = Defaults { namespace: namespace.into() };
    let effective = Effective {
        slots: None,
        served_name: None,
        aliases: aliases.iter().map(ToString::to_string).collect(),
        ..Effective::of(&Model::new(name, spec), 1, &defaults).unwrap()
    };
    Served::new(effective, "simulator", "", 1_700_000_000)
}

pub(crate) fn adapter(namespace: &str, own_name: &str, base: &str, name: &str) -> Adapter {
    Adapter {
        id: ModelId::new(namespace, own_name),
        base: ModelId::new(namespace, base),
        name: name.into(),
        created: 1_700_000_001,
        on_demand: None,
    }
}

fn labelled(mut model: Served, labels: &[&str]) -> Served {
    model.effective.service_labels = labels.iter().map(ToString::to_string).collect();
    model
}

fn parked(mut model: Served) -> Served {
    model.effective.parked = true;
    model
}

/// The fleet, the same whichever way round its models come.
fn fleet(models: Vec<Served>) -> (Fleet, Vec<String>) {
    let (fleet, conflicts) = Fleet::build(models.clone());
    let (turned, same) = Fleet::build(models.into_iter().rev().collect());
    assert_eq!(conflicts, same);
    assert!(fleet.all().eq(turned.all()));
    (fleet, conflicts.iter().map(ToString::to_string).collect())
}

/// The same for adapters too.
fn with_adapters(models: Vec<Served>, adapters: Vec<Adapter>) -> (Fleet, Vec<String>) {
    let (fleet, conflicts) = Fleet::with_adapters(models.clone(), adapters.clone());
    let turned = Fleet::with_adapters(
        models.into_iter().rev().collect(),
        adapters.into_iter().rev().collect(),
    );
    assert_eq!(conflicts, turned.1);
    assert!(fleet.adapters().eq(turned.0.adapters()));
    (fleet, conflicts.iter().map(ToString::to_string).collect())
}

/// All models that `name` can lead to.
fn candidates(fleet: &Fleet, name: &str) -> String {
    match fleet.lookup(name) {
        Ok(named) => {
            let ids = named.candidates().iter().map(|model| model.effective.id.to_string());
            ids.collect::<Vec<_>>().join(" ")
        }
        Err(rejection) => rejection.message(),
    }
}

fn found(fleet: &Fleet, name: &str) -> String {
    match fleet.resolve(name) {
        Ok(model) => model.effective.id.to_string(),
        Err(rejection) => rejection.message(),
    }
}

#[test]
fn a_model_goes_by_its_name_its_full_name_and_its_aliases() {
    let (fleet, conflicts) = fleet(vec![served("default", "qwen", &["gpt-4", "org/qwen"])]);
    for name in ["qwen", "default/qwen", "gpt-4", "org/qwen"] {
        assert_eq!(found(&fleet, name), "default/qwen");
        assert!(fleet.knows(name));
    }
    assert_eq!(conflicts, Vec::<String>::new());
    assert!(!fleet.knows("qwe"));
}

#[test]
fn a_name_in_two_namespaces_needs_the_namespace() {
    let (fleet, conflicts) =
        fleet(vec![served("a", "m", &[]), served("b", "m", &[]), served("b", "n", &[])]);
    assert_eq!(found(&fleet, "a/m"), "a/m");
    assert_eq!(found(&fleet, "m"), "several models go by 'm'; say which one: a/m, b/m");
    assert_eq!(fleet.listed().map(|model| model.name()).collect::<Vec<_>>(), ["a/m", "b/m", "n"]);
    assert_eq!(
        conflicts,
        [
            "a/m goes by a/m only, since b/m has the name m too",
            "b/m goes by b/m only, since a/m has the name m too"
        ]
    );
}

#[test]
fn a_parked_model_takes_nobodys_name_and_is_not_listed() {
    let (fleet, conflicts) = fleet(vec![
        served("a", "m", &[]),
        parked(served("b", "m", &["x"])),
        parked(served("b", "p", &[])),
    ]);
    assert_eq!(found(&fleet, "m"), "a/m");
    assert_eq!(fleet.listed().map(|model| model.name()).collect::<Vec<_>>(), ["m"]);
    for name in ["b/m", "p", "x", "P"] {
        assert!(matches!(fleet.resolve(name), Err(Rejection::ModelParked { .. })), "{name}");
    }
    for (spelled, listed) in [("P", "p"), ("B/p", "p"), ("X:latest", "b/m"), ("b/M", "b/m")] {
        let parked = Err(Rejection::ModelParked { name: listed.to_owned() });
        assert_eq!(fleet.resolve(spelled).map(|_| ()), parked, "{spelled}");
    }
    assert!(conflicts.is_empty());
    assert!(fleet.get(&ModelId::new("b", "p")).is_some());
}

#[test]
fn http_17_an_own_name_goes_before_an_alias() {
    let models = vec![served("default", "gpt-4", &[]), served("default", "m", &["gpt-4", "m"])];
    let (fleet, conflicts) = fleet(models);
    assert_eq!(found(&fleet, "gpt-4"), "default/gpt-4");
    assert_eq!(
        conflicts,
        [
            "default/m does not go by the alias gpt-4, which is the name of default/gpt-4; remove the alias"
        ]
    );
}

#[test]
fn an_alias_that_two_claim_is_nobodys() {
    let models = vec![served("default", "a", &["x", "x"]), served("default", "b", &["x", "y"])];
    let (fleet, conflicts) = fleet(models);
    assert!(found(&fleet, "x").starts_with("several models go by 'x'"));
    assert_eq!(found(&fleet, "y"), "default/b");
    assert_eq!(conflicts.len(), 2);
    assert!(
        conflicts[0].contains("default/a does not go by the alias x, which default/b claims too")
    );
}

#[test]
fn a_label_leads_to_all_that_offer_it() {
    let (fleet, conflicts) = fleet(vec![
        labelled(served("default", "b", &[]), &["textgen", "fast"]),
        labelled(served("default", "a", &[]), &["textgen"]),
        parked(labelled(served("default", "c", &[]), &["textgen"])),
    ]);
    assert_eq!(candidates(&fleet, "textgen"), "default/a default/b");
    assert_eq!(candidates(&fleet, "TextGen"), "default/a default/b");
    assert_eq!(candidates(&fleet, "default/textgen"), "default/a default/b");
    assert_eq!(found(&fleet, "fast"), "default/b");
    assert_eq!(found(&fleet, "textgen"), "several models go by 'textgen'; say which one: a, b");
    assert_eq!(fleet.lookup("textgen").expect("there").label(), Some("textgen"));
    assert!(conflicts.is_empty());
}

#[test]
fn a_label_goes_after_names_and_before_aliases() {
    let (fleet, conflicts) = fleet(vec![
        labelled(served("default", "chat", &[]), &["chat", "text"]),
        labelled(served("default", "m", &["text"]), &["chat"]),
    ]);
    assert_eq!(candidates(&fleet, "chat"), "default/chat");
    assert_eq!(candidates(&fleet, "text"), "default/chat");
    assert_eq!(
        conflicts,
        [
            "default/m does not go by the service label chat, which is the name of default/chat; rename the label",
            "default/m does not go by the alias text, which is the name of default/chat; remove the alias"
        ]
    );
}

#[test]
fn models_of_two_namespaces_never_answer_for_one_another() {
    let (fleet, conflicts) = fleet(vec![
        labelled(served("a", "one", &[]), &["text"]),
        labelled(served("a", "two", &[]), &["text"]),
        labelled(served("b", "three", &[]), &["text"]),
    ]);
    assert_eq!(
        candidates(&fleet, "text"),
        "several models go by 'text'; say which one: a/text, b/text"
    );
    assert_eq!(candidates(&fleet, "a/text"), "a/one a/two");
    assert_eq!(candidates(&fleet, "b/text"), "b/three");
    assert_eq!(conflicts.len(), 3);
    assert_eq!(
        conflicts[2],
        "b/three goes by the service label b/text only, since a/one, a/two offers text in another namespace"
    );
}

#[test]
fn an_adapter_goes_by_its_name_and_leads_to_its_model() {
    let (fleet, conflicts) = with_adapters(
        vec![served("default", "base", &[])],
        vec![adapter("default", "sql", "base", "Sql-Expert:v1")],
    );
    for name in ["Sql-Expert:v1", "sql-expert:V1", "default/Sql-Expert:v1"] {
        let Ok(Named::Adapter { adapter, base }) = fleet.lookup(name) else { panic!("{name}") };
        assert_eq!((&*adapter.name, base.name()), ("Sql-Expert:v1", "base"));
    }
    assert!(!fleet.knows("sql"));
    assert!(conflicts.is_empty());
}

#[test]
fn an_adapter_without_a_place_or_a_name_of_its_own_is_told() {
    let vllm = |name| Served::new(served("default", name, &["x"]).effective, "vllm", "", 0);
    let gguf = Served::new(served("default", "gguf", &[]).effective, "llamacpp", "", 0);
    let (fleet, conflicts) = with_adapters(
        vec![vllm("base"), gguf, parked(served("default", "off", &[]))],
        vec![
            adapter("default", "a1", "base", "one"),
            adapter("default", "a2", "base", "one"),
            adapter("default", "a3", "base", "x"),
            adapter("default", "a4", "gguf", "four"),
            adapter("default", "a5", "nobody", "five"),
            adapter("default", "a6", "off", "six"),
        ],
    );
    assert_eq!(fleet.adapters().count(), 0);
    assert!(matches!(fleet.lookup("one"), Err(Rejection::ModelAmbiguous { .. })));
    assert!(matches!(fleet.lookup("six"), Err(Rejection::ModelParked { .. })));
    assert_eq!(candidates(&fleet, "x"), "default/base");
    assert!(!fleet.knows("four") && !fleet.knows("five"));
    assert_eq!(
        conflicts,
        [
            "the adapter one of default/base is not served: another adapter, of default/base, has the same name; rename one",
            "the adapter x of default/base is not served: its name is taken by default/base; rename the adapter",
            "the adapter four of default/gguf is not served: its engine takes no adapters; use the vllm backend",
            "the adapter five is not served: there is no Model default/nobody; correct its modelRef",
        ]
    );
}

#[test]
fn http_17_the_tag_latest_may_be_there_or_not() {
    let (fleet, _) = fleet(vec![
        served("default", "qwen", &[]),
        served("default", "llama", &["llama3:8b", "phi:latest"]),
        served("default", "both", &["m"]),
        served("default", "tagged", &["m:latest"]),
    ]);
    assert_eq!(found(&fleet, "qwen:latest"), "default/qwen");
    assert_eq!(found(&fleet, "Qwen:LATEST"), "default/qwen");
    assert_eq!(found(&fleet, "phi"), "default/llama");
    assert_eq!(found(&fleet, "llama3:8b:latest"), "default/llama");
    assert!(!fleet.knows("llama3"));
    assert_eq!(
        (found(&fleet, "m"), found(&fleet, "m:latest")),
        ("default/both".into(), "default/tagged".into())
    );
}

#[test]
fn http_17_case_matters_only_where_it_tells_models_apart() {
    let (fleet, _) = fleet(vec![
        served("default", "one", &["Llama3:8b"]),
        served("default", "two", &["llama3:8b"]),
        served("default", "three", &["Qwen:7B-Q4"]),
    ]);
    assert_eq!(found(&fleet, "Llama3:8b"), "default/one");
    assert_eq!(found(&fleet, "llama3:8b"), "default/two");
    assert!(matches!(fleet.resolve("LLAMA3:8B"), Err(Rejection::ModelAmbiguous { .. })));
    assert_eq!(found(&fleet, "qwen:7b-q4"), "default/three");
    assert_eq!(found(&fleet, "DEFAULT/Three"), "default/three");
}

#[test]
fn http_17_odd_names_are_names_like_any_other() {
    for name in ["a@b", "a+b", "a b", "100%", "ü", &"x".repeat(300)] {
        let (fleet, _) = fleet(vec![served("default", "m", &[name])]);
        assert_eq!(found(&fleet, name), "default/m");
    }
}

#[test]
fn an_unknown_name_is_answered_with_those_like_it() {
    let (fleet, _) = fleet(vec![
        served("default", "qwen-chat", &[]),
        served("default", "qwen-code", &[]),
        served("default", "sdxl", &[]),
    ]);
    let Err(Rejection::ModelNotFound { nearest, .. }) = fleet.resolve("qwen-cat") else {
        panic!("found");
    };
    assert_eq!(nearest, ["qwen-chat", "qwen-code"]);
    assert_eq!(
        found(&fleet, "zzz"),
        "model 'zzz' does not exist; GET /v1/models lists those that do"
    );
    assert!(found(&fleet, &"q".repeat(1_000_000)).len() < 300);
}

#[test]
fn the_second_model_of_an_identity_is_left_out() {
    let mut second = served("default", "m", &["late"]);
    second.created = 5;
    let (fleet, _) = Fleet::build(vec![served("default", "m", &[]), second]);
    assert_eq!(fleet.all().count(), 1);
    assert!(!fleet.knows("late"));
}

#[test]
fn conflicts_name_their_cause() {
    let (_, conflicts) = Fleet::build(vec![served("a", "m", &["k"]), served("b", "m", &["k"])]);
    let causes: Vec<_> = conflicts.iter().map(|conflict| conflict.cause).collect();
    assert_eq!(
        causes,
        [Cause::AliasShared, Cause::NameShared, Cause::AliasShared, Cause::NameShared]
    );
}

proptest! {
    #[test]
    fn every_listed_name_finds_its_model_and_every_lost_name_is_told(
        models in prop::collection::vec(
            ("[ab]", "[mnM]{1,2}", prop::collection::vec("[mnMxab/]{1,3}", 0..3), any::<bool>()), 0..8),
    ) {
        let models: Vec<Served> = models.iter().map(|(namespace, name, aliases, parked)| {
            let mut model = served(namespace, name, &[]);
            model.effective.aliases.clone_from(aliases);
            model.effective.parked = *parked;
            model
        }).collect();
        let (fleet, conflicts) = Fleet::build(models);
        for model in fleet.listed() {
            let id = &model.effective.id;
            prop_assert_eq!(&fleet.resolve(model.name()).unwrap().effective.id, id);
            prop_assert_eq!(&fleet.resolve(&id.to_string()).unwrap().effective.id, id);
            for name in model.effective.aliases.iter().map(String::as_str).chain([&*id.name]) {
                let found = fleet.resolve(name).is_ok_and(|found| found.effective.id == *id);
                let told = conflicts.iter().any(|conflict| conflict.model == *id && conflict.name == name);
                prop_assert_eq!(found, !told, "{} of {}", name, id);
            }
        }
    }
}
