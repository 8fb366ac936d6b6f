//! What layers are called, and that no manifest breaks what reads it.

use proptest::prelude::*;
use serde_json::json;

use super::super::layers::files;
use super::super::manifest::Document;
use super::{layer, manifest, titled};

fn names(layers: &serde_json::Value) -> Vec<String> {
    let Ok(Document::Manifest(layers)) = Document::parse(&manifest(layers)) else { panic!() };
    files(&layers).unwrap().into_iter().map(|file| file.path.to_string()).collect()
}

#[test]
fn layers_have_the_name_that_they_were_given_or_that_of_their_kind() {
    let docker = |digits, kind: &str| {
        layer(digits, &format!("application/vnd.docker.ai.{kind}"), &json!({}))
    };
    let path = json!({ "org.cncf.model.filepath": "text_encoder/model.safetensors" });
    let older = json!({ "org.cnai.model.filepath": "a.bin" });
    let with_parameter = "application/vnd.ollama.image.model; name=x";
    for (layers, wanted) in [
        (json!([titled("01", "a/b.gguf")]), vec!["a/b.gguf"]),
        (
            json!([layer("01", "application/vnd.cncf.model.weight.v1.raw", &path)]),
            vec!["text_encoder/model.safetensors"],
        ),
        (json!([layer("01", "application/vnd.cnai.model.weight.v1.raw", &older)]), vec!["a.bin"]),
        (
            json!([docker("01", "gguf.v3"), docker("02", "license"), docker("03", "mmproj")]),
            vec!["model.gguf", "license", "mmproj.gguf"],
        ),
        (
            json!([docker("01", "gguf.v3"), docker("02", "gguf.v3"), titled("03", "x")]),
            vec!["model-00001-of-00002.gguf", "model-00002-of-00002.gguf", "x"],
        ),
        (json!([layer("01", with_parameter, &json!({}))]), vec!["model.gguf"]),
        (json!([titled("01", "x"), titled("01", "x")]), vec!["x"]),
        (
            json!([
                titled("01", "x"),
                layer("02", "application/vnd.oci.empty.v1+json", &json!({}))
            ]),
            vec!["x"],
        ),
    ] {
        assert_eq!(names(&layers), wanted, "{layers}");
    }
}

proptest! {
    #[test]
    fn no_manifest_breaks_what_reads_it(body in "[\\[\\]{}\":,a-z0-9]{0,80}") {
        let _ = Document::parse(body.as_bytes());
        let half = format!(r#"{{"layers":[{{"digest":"{body}","size":1}}]}}"#);
        let _ = Document::parse(half.as_bytes());
    }

    #[test]
    fn no_title_leads_out_of_the_folder(title in "[a./\\\\]{1,12}") {
        let body = manifest(&json!([titled("01", &title)]));
        let Ok(Document::Manifest(layers)) = Document::parse(&body) else { panic!() };
        if let Ok(files) = files(&layers) {
            prop_assert!(files[0].path.names().all(|name| !matches!(name, "" | "." | "..")));
        }
    }
}
