//! Which files an artifact's layers are. A layer has the name that its annotation gives it; where it has none,
//! the name that its kind has here.
//!
//! Layers that are archives are refused: what is in them could be neither chosen nor checked by a digest.

use super::manifest::{Descriptor, sha256_hex};
use crate::sources::download::{Digest, Listed};
use crate::sources::{BadSource, RelativePath};

/// The file's name, as ORAS gives it.
const TITLE: &str = "org.opencontainers.image.title";

/// The file's path, as ModelPack and Docker give it, and as the former did before.
const PATHS: [&str; 2] = ["org.cncf.model.filepath", "org.cnai.model.filepath"];

/// ORAS has packed a folder under that title.
const PACKED_FOLDER: &str = "io.deis.oras.content.unpack";

/// What fills a place where a manifest must have a layer.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";

/// Files of a kind are called like this where nobody has named them.
const NAMES: [(&str, &str); 13] = [
    ("application/vnd.ollama.image.model", MODEL_FILE),
    ("application/vnd.ollama.image.projector", "mmproj.gguf"),
    ("application/vnd.ollama.image.adapter", "adapter.gguf"),
    ("application/vnd.ollama.image.template", "template"),
    ("application/vnd.ollama.image.system", "system"),
    ("application/vnd.ollama.image.params", "params.json"),
    ("application/vnd.ollama.image.messages", "messages.json"),
    ("application/vnd.ollama.image.license", "license"),
    ("application/vnd.docker.ai.gguf.v3", MODEL_FILE),
    ("application/vnd.docker.ai.mmproj", "mmproj.gguf"),
    ("application/vnd.docker.ai.chat.template.jinja", "chat_template.jinja"),
    ("application/vnd.docker.ai.license", "license"),
    ("application/vnd.cncf.model.weight.v1.gguf", MODEL_FILE),
];

/// The weights of an artifact that has named none of its files.
pub(in crate::sources) const MODEL_FILE: &str = "model.gguf";

/// Why an artifact cannot be laid out as files.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadArtifact {
    #[error(
        "its layer {number} is an archive ({kind}); only artifacts whose layers are the files themselves can be \
         used, as `oras push` makes them of files and `modctl build --raw` of a model"
    )]
    Archive { number: usize, kind: String },
    #[error("its layer {number} ({kind}) has no name; give it one by the annotation {TITLE}")]
    Unnamed { number: usize, kind: String },
    #[error("its layer {number} would leave its folder: {problem}")]
    Outside { number: usize, problem: BadSource },
    #[error("two of its layers are called `{0}`")]
    Twice(RelativePath),
    #[error("it has no files")]
    Empty,
}

/// The files that `layers` are.
pub(super) fn files(layers: &[Descriptor]) -> Result<Vec<Listed>, BadArtifact> {
    let mut files = Vec::<Listed>::new();
    for (index, layer) in layers.iter().enumerate() {
        let number = index + 1;
        let path = match named(layer, number)? {
            Some(path) => path.to_owned(),
            None if layer.kind() == EMPTY => continue,
            None => by_kind(layer, index, layers)
                .ok_or_else(|| BadArtifact::Unnamed { number, kind: layer.media_type.clone() })?,
        };
        let path = RelativePath::parse(&path)
            .map_err(|problem| BadArtifact::Outside { number, problem })?;
        let digest = sha256_hex(&layer.digest).map(|hex| Digest::Sha256(hex.to_owned()));
        match files.iter().find(|known| known.path == path) {
            // One file, named twice.
            Some(known) if known.digest == digest => {}
            Some(_) => return Err(BadArtifact::Twice(path)),
            None => files.push(Listed { path, size: Some(layer.size), digest }),
        }
    }
    if files.is_empty() { Err(BadArtifact::Empty) } else { Ok(files) }
}

/// The name that a layer was given.
fn named(layer: &Descriptor, number: usize) -> Result<Option<&str>, BadArtifact> {
    let archive = || BadArtifact::Archive { number, kind: layer.media_type.clone() };
    if layer.annotation(PACKED_FOLDER) == Some("true") {
        return Err(archive());
    }
    // ORAS calls whatever it is given a tar, so that the title tells more than the kind does.
    if let Some(title) = layer.annotation(TITLE) {
        return Ok(Some(title));
    }
    if is_archive(layer.kind()) {
        return Err(archive());
    }
    Ok(PATHS.iter().find_map(|key| layer.annotation(key)))
}

fn is_archive(kind: &str) -> bool {
    let kind = kind.rsplit('/').next().unwrap_or_default();
    let mut words = kind.split(['.', '+']);
    words.any(|word| word == "tar")
}

/// What the unnamed layer at `index` is called by its kind. Of several GGUFs each is a part of one, and called
/// as llama.cpp looks for them; of others the second is `-2`.
fn by_kind(layer: &Descriptor, index: usize, layers: &[Descriptor]) -> Option<String> {
    let (_, name) = NAMES.iter().find(|(kind, _)| *kind == layer.kind())?;
    let is_alike = |other: &&Descriptor| {
        other.kind() == layer.kind()
            && [TITLE, PATHS[0], PATHS[1]].iter().all(|key| other.annotation(key).is_none())
    };
    let alike = layers.iter().filter(is_alike).count();
    let number = 1 + layers.iter().take(index).filter(is_alike).count();
    Some(match name.strip_suffix(".gguf") {
        _ if alike == 1 => (*name).to_owned(),
        Some(stem) if *name == MODEL_FILE => format!("{stem}-{number:05}-of-{alike:05}.gguf"),
        _ if number == 1 => (*name).to_owned(),
        Some(stem) => format!("{stem}-{number}.gguf"),
        None => format!("{name}-{number}"),
    })
}
