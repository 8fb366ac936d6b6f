//! Whatever a Model's options are, a backend answers: with a launch, or with a complaint about them.

use proptest::prelude::*;

use super::*;

/// A JSON value of any kind, nested at most once.
fn value() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9/.{}\"' é-]{0,12}".prop_map(Value::from),
    ];
    let list = proptest::collection::vec(plain.clone(), 0..3).prop_map(Value::from);
    let object = proptest::collection::btree_map("[A-Z=]{0,4}", plain.clone(), 0..3)
        .prop_map(|map| Value::Object(map.into_iter().collect()));
    prop_oneof![4 => plain, 1 => list, 1 => object]
}

fn backend() -> impl Strategy<Value = Backend> {
    proptest::sample::select(Backend::iter().collect::<Vec<_>>())
}

/// Options that the backend knows, with values that may be anything.
fn options(backend: Backend) -> impl Strategy<Value = Map<String, Value>> {
    let known: Vec<_> =
        backend.engine().keys().iter().chain(keys::EVERYWHERE).map(|key| key.name).collect();
    proptest::collection::btree_map(proptest::sample::select(known), value(), 0..6)
        .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn sample(backend: Backend, config: Map<String, Value>) -> Sample {
    let source = match backend {
        Backend::Ollama => "ollama://writer",
        _ => "HF://org/writer:writer.gguf",
    };
    Sample { config, ..Sample::new(backend.name(), source, json!({})) }
}

proptest! {
    #[test]
    fn options_never_break_a_backend(
        (backend, config) in backend().prop_flat_map(|backend| (Just(backend), options(backend))),
    ) {
        let sample = sample(backend, config);
        let subject = sample.subject();
        let told = backend.check(subject);
        let launched = backend.launch(subject, &machine("/m/writer.gguf"));
        if told.iter().any(|complaint| !complaint.warning) {
            prop_assert!(matches!(launched, Err(LaunchError::Model(_))), "{told:?} {launched:?}");
        }
        if let Ok(launch) = launched {
            prop_assert_eq!(launch.program.is_empty(), backend == Backend::External);
            prop_assert!(!launch.startup_limit.is_zero());
        }
        // What does not decide about starting is answered whatever the options are.
        let _ = (backend.slots(subject.config), backend.served_name(subject));
        let _ = (backend.startup_limit(subject.config), subject.config.context_window());
    }

    #[test]
    fn every_complaint_names_a_field_of_the_spec(
        (backend, config) in backend().prop_flat_map(|backend| (Just(backend), options(backend))),
    ) {
        for complaint in backend.check(sample(backend, config).subject()) {
            prop_assert!(complaint.field.starts_with("spec."), "{}", complaint);
            prop_assert!(!complaint.message.is_empty());
        }
    }

    #[test]
    fn any_answer_to_a_probe_is_judged(status in 100_u16..600, body in ".{0,300}") {
        for expected in [
            Expected::Success,
            Expected::Text("ready"),
            Expected::Json { field: "status", value: Some("ok") },
        ] {
            let probe = Probe::Http { path: "/health".into(), expected };
            let verdict = probe.judge(status, body.as_bytes());
            prop_assert!(verdict != Verdict::Ready || (200..300).contains(&status));
        }
    }

    #[test]
    fn any_last_words_are_explained(
        lines in proptest::collection::vec(".{0,300}", 0..5),
        code in proptest::option::of(any::<i32>()),
        signal in proptest::option::of(1..64_i32),
    ) {
        for backend in Backend::iter() {
            let exit = Exit { code, signal, ..Exit::default() };
            let failure = backend.explain(exit, &lines);
            prop_assert!(failure.message.starts_with(backend.name()), "{}", failure);
        }
    }
}
