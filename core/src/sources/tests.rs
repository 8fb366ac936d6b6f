//! The grammar of every scheme, by tables: what is read, what is refused and what it says.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use strum::IntoEnumIterator;

use super::download::Selection;
use super::{Place, RelativePath, Roots, Scheme, Source};

fn parse(text: &str) -> Source {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_source_is_written_in_its_canonical_form() {
    for (text, canonical) in [
        ("HF://org/name", "HF://org/name"),
        ("hf://Org/Name-1.5_b", "HF://Org/Name-1.5_b"),
        ("HuggingFace://org/name/", "HF://org/name"),
        ("hf://org/name@v1.0", "HF://org/name@v1.0"),
        ("hf://org/name/sub/model.gguf", "HF://org/name:sub/model.gguf"),
        ("hf://org/name:sub/model.gguf", "HF://org/name:sub/model.gguf"),
        ("ollama://name:7b-q4_K_M", "ollama://name:7b-q4_K_M"),
        ("ollama://name", "ollama://name"),
        ("OLLAMA://user/name", "ollama://user/name"),
        ("ollama://localhost:5000/a/b:c", "ollama://localhost:5000/a/b:c"),
        ("oci://ghcr.io/org/name:v1.0", "oci://ghcr.io/org/name:v1.0"),
        ("ORAS://Reg:5000/a/b", "oci://reg:5000/a/b"),
        ("oci://localhost/a_b/c__d.e-f---g", "oci://localhost/a_b/c__d.e-f---g"),
        ("oci://[::1]:5000/a", "oci://[::1]:5000/a"),
        ("oci://docker.io/ai/smollm2:360M-Q4_K_M", "oci://docker.io/ai/smollm2:360M-Q4_K_M"),
        ("oci://index.docker.io/name", "oci://docker.io/library/name"),
        ("file:///models/a b.gguf", "file:///models/a b.gguf"),
        ("file:///models/", "file:///models"),
        ("file://./tiny.gguf", "file://./tiny.gguf"),
        ("pvc://claim/path/to", "pvc://claim/path/to"),
        ("pvc://claim", "pvc://claim"),
        ("PVC://claim.x/", "pvc://claim.x"),
    ] {
        let source = parse(text);
        assert_eq!(source.to_string(), canonical);
        assert_eq!(parse(canonical), source, "{canonical} means the same");
    }
}

#[test]
fn load_10_casing_revisions_and_file_names_are_kept() {
    let Source::HuggingFace(pull) = parse("hf://Org/Name@refs/pr/1") else { panic!() };
    assert_eq!(pull.id(), "Org/Name");
    assert_eq!(pull.revision.as_deref(), Some("refs/pr/1"));
    assert_eq!(pull.path, None);

    let Source::HuggingFace(file) = parse("hf://Org/Name@main:sub dir/a+b.gguf") else { panic!() };
    assert_eq!(file.revision.as_deref(), Some("main"));
    assert_eq!(file.path.as_ref().map(RelativePath::as_str), Some("sub dir/a+b.gguf"));

    let digest = format!("sha256:{}", "0a".repeat(32));
    let text = format!("oci://reg:5000/a/b@{digest}");
    let Source::Oci(artifact) = parse(&text) else { panic!() };
    assert_eq!((artifact.registry.as_str(), artifact.repository.as_str()), ("reg:5000", "a/b"));
    assert_eq!((artifact.revision(), artifact.is_loose()), (digest.as_str(), false));
    assert_eq!(parse(&text).to_string(), text);
    let Source::Oci(both) = parse(&format!("oci://reg:5000/a/b:v1@{digest}")) else { panic!() };
    assert_eq!((both.tag.as_deref(), both.revision()), (Some("v1"), digest.as_str()));
    let Source::Oci(untagged) = parse("oci://reg:5000/a/b") else { panic!() };
    assert_eq!((untagged.revision(), untagged.is_loose()), ("latest", true));

    let Source::Ollama(name) = parse("ollama://name:7b-q4_K_M") else { panic!() };
    assert_eq!(name.tagged(), "name:7b-q4_K_M");
    let Source::Ollama(hub) = parse("ollama://hf.co/Org/Name:Q4") else { panic!() };
    assert_eq!((hub.name.as_str(), hub.tag.as_deref()), ("hf.co/Org/Name", Some("Q4")));
    let Source::Ollama(untagged) = parse("ollama://Name") else { panic!() };
    assert_eq!(untagged.tagged(), "Name:latest", "a missing tag is Ollama's own default");
}

#[test]
fn refusals_say_what_to_write_instead() {
    for (text, wanted) in [
        ("", "empty"),
        (" hf://a/b", "spaces around"),
        ("pvc://a/ /", "spaces around"),
        ("hf://a/b\n", "control characters"),
        ("Qwen/Qwen3-8B", "HF://Qwen/Qwen3-8B"),
        ("/models/x.gguf", "file:///models/x.gguf"),
        ("./x.gguf", "file://./x.gguf"),
        ("hf:a/b", "HF://a/b"),
        ("llama3", "ollama://"),
        ("olama://llama3", "did you mean ollama://llama3?"),
        ("hugingface://a/b", "did you mean huggingface://a/b?"),
        ("https://huggingface.co/a/b", "HF://a/b"),
        ("ocl://reg:5000/a/b", "did you mean oci://reg:5000/a/b?"),
        ("s3://bucket/x", "write one of"),
        ("hf://name", "lacks the name behind the organisation"),
        ("hf:///name", "lacks the organisation"),
        ("hf://org/", "lacks the repository name"),
        ("hf://org/name@", "lacks the revision behind `@`"),
        ("hf://org/name@a..b", "not the name of a branch"),
        ("hf://org/name@a b", "no revision can have"),
        ("hf://org/name@v1@v2", "no revision can have"),
        ("hf://or g/name", "may only have"),
        ("hf://../name", "may only have"),
        ("hf://org/name:", "empty name"),
        ("hf://org/name/../../etc/passwd", "`..`"),
        ("hf://org/name:a//b", "doubled slash"),
        ("hf://org/name:/etc/passwd", "begins with a slash"),
        ("hf://org/name:a\\b", "backslash"),
        ("ollama://", "lacks the model's name"),
        ("ollama://name:", "lacks the tag"),
        ("ollama://a//b", "lacks the namespace"),
        ("ollama://a/b/c/d", "too many parts"),
        ("ollama://na me", "may only have"),
        ("file://", "lacks the path"),
        ("file:///", "lacks the path"),
        ("file://./", "lacks the path"),
        ("file:///models/../etc/shadow", "`..`"),
        ("file://../x", "begins with neither"),
        ("file://~/x", "begins with neither"),
        ("file://host/x", "begins with neither"),
        ("pvc://", "lacks the claim's name"),
        ("pvc:///path", "lacks the claim's name"),
        ("pvc://Claim/x", "lower-case letters"),
        ("pvc://claim-/x", "lower-case letters"),
        ("pvc://../x", "lower-case letters"),
        ("pvc://claim/../x", "`..`"),
    ] {
        assert_refused(text, wanted);
    }
}

#[test]
fn load_10_references_to_registries_are_refused_with_what_is_wrong() {
    for (text, wanted) in [
        ("oci://reg:5000/a/b@sha256:0", "is not `sha256:` with 64 digits"),
        ("oci://reg:5000/a/b@sha512:00", "is not `sha256:` with 64 digits"),
        ("oci://reg:5000/a/b@", "is not `sha256:` with 64 digits"),
        ("oci://reg:5000/UPPER/b", "upper-case letters"),
        ("oci://org/name", "name the registry too"),
        ("oci://name", "lacks the repository's name behind the registry"),
        ("oci:///org/name", "lacks the registry's host"),
        ("oci://ghcr.io/", "lacks the repository's name"),
        ("oci://ghcr.io/a//b", "may only have words"),
        ("oci://ghcr.io/a/../b", "may only have words"),
        ("oci://ghcr.io/a___b", "may only have words"),
        ("oci://ghcr.io/a/b:", "lacks the tag"),
        ("oci://ghcr.io/a/b:v1/x", "may only have words"),
        ("oci://ghcr.io/a/b:-v1", "the tag `-v1`"),
        ("oci://ghcr.io:port/a", "not a host"),
        ("oci://ghcr.io:/a", "not a host"),
        ("oci://me@ghcr.io/a", "not a host"),
        ("oci://ghcr.io/a b", "may only have words"),
    ] {
        assert_refused(text, wanted);
    }
}

fn assert_refused(text: &str, wanted: &str) {
    let message = match text.parse::<Source>() {
        Ok(source) => panic!("{text:?} was read as {source}"),
        Err(error) => error.to_string(),
    };
    assert!(message.contains(wanted), "{text:?}: {message}");
}

#[test]
fn every_scheme_is_found_by_its_name_and_shows_itself() {
    for scheme in Scheme::iter() {
        assert_eq!(Scheme::named(&scheme.name().to_lowercase()), Some(scheme));
        assert!(scheme.example().starts_with(&format!("{}://", scheme.name())));
    }
}

const LATEST: &str = "/data/oci/reg.test%3A5000/o/n@latest";
const OF_OLLAMA: &str = "/data/ollama/registry.ollama.ai/library/a@latest";

#[test]
fn weights_lie_where_the_roots_say() {
    let roots = Roots {
        manifests: PathBuf::from("/home/me/models"),
        data: PathBuf::from("/data"),
        claims: BTreeMap::from([("nas".to_owned(), PathBuf::from("/mnt/nas"))]),
    };
    let here = |path: &str| Place::Here(PathBuf::from(path));
    let fetched = |folder: &str, model: &str| Place::Downloaded {
        folder: PathBuf::from(folder),
        model: PathBuf::from(model),
    };
    let all = Selection::default();
    for (text, place) in [
        ("file:///w/x.gguf", here("/w/x.gguf")),
        ("file://./x.gguf", here("/home/me/models/x.gguf")),
        ("pvc://claim/a/b", here("/data/pvc/claim/a/b")),
        ("pvc://nas/a", here("/mnt/nas/a")),
        ("pvc://nas", here("/mnt/nas")),
        ("hf://o/n", fetched("/data/huggingface/o/n/main", "/data/huggingface/o/n/main")),
        ("oci://reg.test:5000/o/n", fetched(LATEST, LATEST)),
        ("ollama://a", fetched(OF_OLLAMA, &format!("{OF_OLLAMA}/model.gguf"))),
        (
            "hf://o/n@refs/pr/1:x/y.gguf",
            fetched(
                "/data/huggingface/o/n/refs%2Fpr%2F1",
                "/data/huggingface/o/n/refs%2Fpr%2F1/x/y.gguf",
            ),
        ),
    ] {
        assert_eq!(parse(text).place(&roots, &all), place, "{text}");
    }
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_and_read_again_the_same(
        text in "(hf|oci|ollama|file|pvc)://[a-zA-Z0-9@:/. +_%-]{0,30}"
    ) {
        if let Ok(source) = text.parse::<Source>() {
            prop_assert_eq!(source.to_string().parse::<Source>(), Ok(source));
        }
    }

    #[test]
    fn no_text_makes_the_grammar_panic(text in "\\PC{0,40}") {
        let _ = text.parse::<Source>();
    }
}

#[test]
fn the_documentation_has_a_row_for_every_scheme() {
    let page = include_str!("../../../docs/sources.md");
    for scheme in Scheme::iter() {
        let row = format!("| `{}` |", scheme.example());
        assert!(page.contains(&row), "docs/sources.md lacks {row}");
    }
}

#[test]
fn ollamas_names_are_repositories_of_a_registry() {
    for (text, registry, repository) in [
        ("ollama://llama3.2", "registry.ollama.ai", "library/llama3.2"),
        ("ollama://me/llama3.2:1b", "registry.ollama.ai", "me/llama3.2"),
        ("ollama://hf.co/Org/Name:Q4", "hf.co", "Org/Name"),
        ("oci://ghcr.io/org/name:v1", "ghcr.io", "org/name"),
    ] {
        let wanted = Some((registry.to_owned(), repository.to_owned()));
        assert_eq!(parse(text).registry(), wanted, "{text}");
    }
    assert_eq!(parse("hf://o/n").registry(), None);
}
