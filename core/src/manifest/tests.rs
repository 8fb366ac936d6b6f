//! Files as people write them, and what they are told.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

/// What the file holds, in lines: names of Models, then warnings, then errors.
fn told(yaml: &str) -> String {
    let parsed = parse("models.yaml", yaml.as_bytes());
    let models = parsed.models.iter().map(|parsed| {
        let name = parsed.model.metadata.name.as_deref().unwrap();
        format!("model {name} on line {}", parsed.line)
    });
    let warnings = parsed.warnings.iter().map(|complaint| format!("warning {complaint}"));
    let errors = parsed.errors.iter().map(|complaint| format!("error {complaint}"));
    models.chain(warnings).chain(errors).collect::<Vec<_>>().join("\n")
}

/// A file with one Model whose spec holds `fields`, each on a line of its own from line 7 on.
fn with(fields: &str) -> String {
    let fields = fields.replace('\n', "\n  ");
    format!(
        "apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model\nmetadata:\n  name: small\nspec:\n  \
         backend: simulator\n  {fields}\n"
    )
}

#[test]
fn documents_are_read_each_with_its_line() {
    let one = with("");
    let file = format!(
        "# two models\n{one}---\n---\n# nothing here\n---\n{}",
        one.replace("small", "big")
    );
    assert_eq!(told(&file), "model small on line 2\nmodel big on line 13");
}

#[test]
fn a_faulty_document_does_not_hide_the_others() {
    let one = with("");
    let file = format!("{one}---\nkind: [1, 2\n---\n{}", one.replace("small", "big"));
    insta::assert_snapshot!(told(&file));
}

#[test]
fn unknown_fields_are_refused_with_the_nearest_right_name() {
    insta::assert_snapshot!(told(&with(
        "gpu:\n  sharedd: card\n  Priority: 1\n  gpus: 2\nidleTimeout: 5m\nflavour: sweet\ncache:\n  \
         flashLoader:\n    buffer_size_kb: 64"
    )));
}

#[test]
fn wrong_types_and_values_are_refused_with_what_to_write() {
    insta::assert_snapshot!(told(&with(
        "source: 12\n\
         image: true\n\
         imageDigest: latest\n\
         serviceLabels: chat\n\
         gpu:\n  vendor: nvidea\n  priority: \"7\"\n  count: 99\n  vramEstimateMB: 1.5\n  \
         forcePromotion: \"true\"\n  shared: {name: card}\n\
         serverless:\n  enabled: maybe\n  idleTimeout: 60\n  coldStartTimeout: 2d\n  minReplicas: -1\n\
         cache: Memory\n\
         kvCache:\n  highWatermark: 0.85\n  lowWatermark: low\n\
         nodeSelector:\n  zone: 1\n\
         resources:\n  limits:\n    memory: 8GB\n\
         config: [1]\n\
         tolerations:\n- key: [a]\n-\n\
         quantize: {bits: 4}"
    )));
}

#[test]
fn rules_over_several_fields_are_the_clusters() {
    insta::assert_snapshot!(told(&with(
        "source: pvc://claim/path\n\
         cache:\n  strategy: Memory\n\
         gpu:\n  vendor: cpu\n  count: 1\n\
         serverless: {minReplicas: 3, maxReplicas: 1}\n\
         resources:\n  limits: {nvidia.com/gpu: 1}"
    )));
}

#[test]
fn a_missing_source_is_told_once() {
    let file = with("").replace("simulator", "vllm") + "  gpu: {count: 1}\n";
    insta::assert_snapshot!(told(&file));
}

#[test]
fn a_backend_complains_at_the_line_of_its_option() {
    insta::assert_snapshot!(told(&with(
        "config:\n  maxConcurrency: \"8\"\n  preloadOnDeploy: 1\n  maxConcurency: 2"
    )));
    insta::assert_snapshot!(told(&with("").replace("simulator", "lamacpp")));
}

#[test]
fn the_older_group_is_read_with_a_warning_that_says_how_to_fix_it() {
    insta::assert_snapshot!(told(&with("").replace("inference.flexinfer.ai", "ai.flexinfer")));
}

#[test]
fn other_kinds_are_named_and_skipped() {
    let one = with("");
    let file = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n---\napiVersion: ai.flexinfer/v1alpha1\n\
         kind: ModelDeployment\nmetadata:\n  name: old\n---\napiVersion: inference.flexinfer.ai/v1alpha2\n\
         kind: GPUProfile\nmetadata: {{name: tuned}}\n---\n{one}"
    );
    insta::assert_snapshot!(told(&file));
}

#[test]
fn mistakes_in_what_a_document_says_it_is_are_told() {
    let mistakes = [
        ("kind: Model", "kind: model"),
        ("kind: Model", "knd: Model"),
        ("v1alpha2", "v1"),
        ("inference.flexinfer.ai", "inference.flexinfer.io"),
        ("apiVersion: inference.flexinfer.ai/v1alpha2\nkind: Model", "spec2: {}"),
        ("name: small", "name: Small_Model"),
        ("name: small", "name: 12"),
        ("name: small", "nam: small"),
        ("name: small", "name: small\n  labels: {a: 1}\n  annotations: [b]"),
        ("name: small", "name: small\n  namespace: a.b"),
        ("metadata:\n  name: small", "metadata: small"),
        ("metadata:\n  name: small\n", ""),
        ("spec:\n  backend: simulator", "backend: simulator"),
    ];
    let told = mistakes.map(|(from, to)| format!("{to:?}\n{}", told(&with("").replace(from, to))));
    insta::assert_snapshot!(told.join("\n\n"));
}

#[test]
fn what_a_cluster_added_is_accepted_and_left_out() {
    let file = with("").replace(
        "  name: small",
        "  name: small\n  uid: 1-2-3\n  resourceVersion: \"7\"\n  generation: 4\n  managedFields: [{}]\n  \
         labels: {a: b}",
    ) + "status:\n  phase: Ready\n";
    let parsed = parse("exported.yaml", file.as_bytes());
    assert_eq!(parsed.errors, []);
    let model = &parsed.models[0].model;
    assert_eq!(model.metadata.uid, None);
    assert_eq!(model.metadata.labels.as_ref().unwrap()["a"], "b");
    assert_eq!(model.status, None);
}

#[test]
fn a_list_from_kubectl_holds_models() {
    let item = with("").trim_end().replace('\n', "\n  ");
    let file = format!(
        "apiVersion: v1\nkind: List\nitems:\n- {item}\n- {}\n",
        item.replace("small", "big")
    );
    assert_eq!(told(&file), "model small on line 4\nmodel big on line 10");
}

#[test]
fn the_same_name_twice_is_told_and_the_first_stays() {
    let one = with("");
    insta::assert_snapshot!(told(&format!("{one}---\n{one}")));
}

#[test]
fn values_reach_the_model_as_they_were_written() {
    let parsed = parse(
        "models.yaml",
        with(
            "gpu: {shared: card, vramEstimateMB: 9000, swapCooldown: 1h30m}\n\
             cache:\n\
             serverless: ~\n\
             config:\n  maxConcurrency: 8\n  own: {A: \"1\", EMPTY: null}\n  args: [--fast, \"8\"]",
        )
        .as_bytes(),
    );
    assert_eq!(parsed.errors, []);
    let spec = serde_json::to_value(&parsed.models[0].model.spec).unwrap();
    assert_eq!(
        spec,
        serde_json::json!({
            "backend": "simulator",
            "gpu": { "shared": "card", "vramEstimateMB": 9000, "swapCooldown": "1h30m" },
            "config": {
                "maxConcurrency": 8,
                "own": { "A": "1", "EMPTY": null },
                "args": ["--fast", "8"],
            },
        })
    );
}

#[test]
fn anchors_and_merges_are_filled_in() {
    let file = with(
        "nodeSelector: &where {disk: fast, zone: a}\nquantize:\n  format: AWQ\n  nodeSelector:\n    <<: *where\n    zone: b",
    );
    let parsed = parse("models.yaml", file.as_bytes());
    assert_eq!(parsed.errors, []);
    let spec = &parsed.models[0].model.spec;
    assert_eq!(spec.node_selector["zone"], "a");
    let selector = &spec.quantize.as_ref().unwrap().node_selector;
    assert_eq!((selector["disk"].as_str(), selector["zone"].as_str()), ("fast", "b"));
}

#[test]
fn body_01_duplicate_keys_are_refused() {
    insta::assert_snapshot!(told(&with("gpu: {count: 1, count: 2}\nbackend: vllm")));
}

#[test]
fn bombs_and_depths_are_refused_in_bounded_time() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let inner = format!("*a{}, ", level - 1).repeat(10);
        let _ = writeln!(bomb, "a{level}: &a{level} [{inner}]");
    }
    let deep = format!("a: {}{}\n", "[".repeat(5000), "]".repeat(5000));
    let chain =
        (0..100).fold(String::new(), |file, level| format!("{file}{}a:\n", " ".repeat(level)));
    for (name, file) in [("bomb", bomb), ("deep", deep), ("chain", chain)] {
        let file = format!("{file}---\n{}", with(""));
        insta::assert_snapshot!(name, told(&file));
    }
}

#[test]
fn files_that_are_no_text_are_refused() {
    let mut line_three = b"# fine\n# fine\nname: ".to_vec();
    line_three.push(0xFF);
    let utf16: Vec<u8> = std::iter::once(0xFEFF)
        .chain("kind: Model".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let huge = vec![b'#'; LARGEST_FILE + 1];
    let complaints: Vec<_> = [line_three.as_slice(), &utf16, &huge]
        .iter()
        .flat_map(|bytes| parse("models.yaml", bytes).errors)
        .map(|complaint| complaint.to_string())
        .collect();
    insta::assert_snapshot!(complaints.join("\n"));
}

#[test]
fn tabs_marks_and_line_ends_of_every_system_are_read_or_told() {
    assert_eq!(told(&format!("\u{FEFF}{}", with(""))), "model small on line 1");
    assert_eq!(told(&with("").replace('\n', "\r\n")), "model small on line 1");
    insta::assert_snapshot!(told(&with("gpu:\n\tcount: 1")));
}

#[test]
fn a_file_of_nothing_holds_nothing() {
    for file in ["", "\n\n", "# only a comment\n", "---\n", "---\n---\n...\n"] {
        assert_eq!(told(file), "", "{file:?}");
    }
}

proptest! {
    #[test]
    fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        parse("models.yaml", &bytes);
    }

    #[test]
    fn reading_something_like_yaml_never_panics(text in "([a-z]{1,3}: |- |\\[|\\]|\\{|\\}|&a |\\*a|\n|  |\"|'|---\n|<<: |!x |\t|[0-9]|,){0,60}") {
        parse("models.yaml", text.as_bytes());
    }

    /// One broken place anywhere: the file is told of or still means something; nothing panics.
    #[test]
    fn a_broken_file_is_told(at in 0_usize..400, with_text in "[:\\-\\[{\"'&*!\t\n a]{0,3}") {
        let mut file = with("gpu: {shared: card}\nconfig:\n  args: [\"a\", b]\nserviceLabels:\n- chat");
        let at = at.min(file.len());
        file.insert_str(at, &with_text);
        let parsed = parse("models.yaml", file.as_bytes());
        prop_assert!(!parsed.models.is_empty() || !parsed.errors.is_empty() || !parsed.warnings.is_empty());
    }
}

const ADAPTER: &str = "apiVersion: inference.flexinfer.ai/v1alpha2
kind: LoRAAdapter
metadata:
  name: sql
spec:
  modelRef: small
  adapterName: sql-expert
  source: {type: LocalPath, uri: ./adapters/sql}
";

#[test]
fn an_adapter_is_read_beside_its_model() {
    let parsed = parse("models.yaml", format!("{}---\n{ADAPTER}", with("")).as_bytes());
    assert_eq!((parsed.errors, parsed.warnings), (Vec::new(), Vec::new()));
    assert_eq!(parsed.models.len(), 1);
    let adapter = &parsed.adapters[0].adapter;
    assert_eq!(adapter.metadata.name.as_deref(), Some("sql"));
    assert_eq!((&*adapter.spec.model_ref, &*adapter.spec.adapter_name), ("small", "sql-expert"));
    assert_eq!(adapter.spec.source.uri, "./adapters/sql");
}

#[test]
fn mistakes_in_an_adapter_are_told_at_their_lines() {
    let mut told = String::new();
    for (right, wrong) in [
        ("  modelRef: small\n", ""),
        ("modelRef", "model"),
        ("sql-expert", "\"two words\""),
        ("LocalPath", "Folder"),
        ("  source: {type: LocalPath, uri: ./adapters/sql}\n", "  source: ./adapters/sql\n"),
        ("kind: LoRAAdapter", "kind: LoraAdapter"),
        ("v1alpha2", "v1alpha1"),
    ] {
        let parsed = parse("models.yaml", ADAPTER.replace(right, wrong).as_bytes());
        assert!(parsed.adapters.is_empty(), "{wrong}");
        for error in parsed.errors {
            told.extend([error.to_string().as_str(), "\n"]);
        }
    }
    let twice = format!("{ADAPTER}---\n{ADAPTER}");
    let parsed = parse("models.yaml", twice.as_bytes());
    assert_eq!(parsed.adapters.len(), 1);
    told.push_str(&parsed.errors[0].to_string());
    insta::assert_snapshot!(told);
}
