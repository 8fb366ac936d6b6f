//! Reads Models out of a file's bytes with the parser that every platform uses.

use std::path::Path;

use flexinfer_core::manifest;

use super::catalog::Understood;

/// What the file at `path` defines. A Model that could not be served counts as an error in its file,
/// so that an edit that breaks it leaves the version before in place.
pub(super) fn file(path: &Path, bytes: &[u8]) -> Understood {
    let parsed = manifest::parse(&path.display().to_string(), bytes);
    Understood {
        models: parsed.models,
        adapters: parsed.adapters,
        warnings: parsed.warnings.iter().map(ToString::to_string).collect(),
        errors: parsed.errors.iter().map(ToString::to_string).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_and_what_is_wrong_come_with_their_lines() {
        let text = "\
apiVersion: inference.flexinfer.ai/v1alpha2
kind: Model
metadata: {name: qwen}
spec: {backend: simulator}
---
apiVersion: inference.flexinfer.ai/v1alpha2
kind: Model
metadata: {name: llama}
spec: {backend: simulator, gpu: {sharedd: a}}
";
        let understood = file(Path::new("models.yaml"), text.as_bytes());
        let names: Vec<_> = understood
            .models
            .iter()
            .map(|parsed| (&*parsed.effective.id.name, parsed.line))
            .collect();
        assert_eq!(names, [("qwen", 1)]);
        assert_eq!(understood.errors.len(), 1);
        assert!(understood.errors[0].starts_with("models.yaml:9: "), "{:?}", understood.errors);
    }
}
