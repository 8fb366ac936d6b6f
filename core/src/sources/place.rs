//! Where the weights of a source lie on one machine, or who gets them there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Source;
use super::download::Selection;

/// The folders of one machine that sources are resolved against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roots {
    /// The folder of the file that defines the Model; `file://./x` counts from here.
    pub manifests: PathBuf,
    /// Where downloads go, and claims that `claims` does not name.
    pub data: PathBuf,
    /// Folders that stand in for persistent volume claims, by the claim's name.
    pub claims: BTreeMap<String, PathBuf>,
}

/// Where weights are, or how they get there. What an engine fetches by itself has no place of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// They are here already; whether that is so is for the caller to look.
    Here(PathBuf),
    /// They must be downloaded into `folder`; the engine then reads `model`, which is the folder
    /// or something in it.
    Downloaded { folder: PathBuf, model: PathBuf },
}

impl Source {
    /// Where the weights of this source are on a machine with these `roots`, given what the
    /// Model's configuration selects of it.
    pub fn place(&self, roots: &Roots, selection: &Selection) -> Place {
        match self {
            Self::HuggingFace(repository) => {
                let revision = repository.revision.as_deref();
                let revision = revision.or(selection.revision.as_deref()).unwrap_or("main");
                let folder = roots
                    .data
                    .join("huggingface")
                    .join(&repository.organisation)
                    .join(&repository.name)
                    .join(one_name(revision));
                let model = selection.model_path(repository.path.as_ref(), &folder);
                Place::Downloaded { folder, model }
            }
            Self::Oci(reference) => {
                let (registry, repository) = (&reference.registry, &reference.repository);
                let folder = roots.data.join("oci").join(one_name(registry));
                let folder = pinned(&folder, repository, reference.revision());
                let model = selection.model_path(None, &folder);
                Place::Downloaded { folder, model }
            }
            Self::Ollama(reference) => {
                let (registry, repository) = reference.in_registry();
                let folder = roots.data.join("ollama").join(one_name(&registry));
                let folder = pinned(&folder, &repository, reference.revision());
                let file = super::ollama::Reference::model_file();
                let model = selection.model_path(Some(&file), &folder);
                Place::Downloaded { folder, model }
            }
            Self::File(location) => Place::Here(location.path(&roots.manifests)),
            Self::Pvc(location) => {
                let claim = roots
                    .claims
                    .get(&location.claim)
                    .cloned()
                    .unwrap_or_else(|| roots.data.join("pvc").join(&location.claim));
                let within = |path: &super::RelativePath| path.below(&claim);
                Place::Here(location.path.as_ref().map_or_else(|| claim.clone(), within))
            }
        }
    }
}

/// The folder of a repository at one revision. No name of a repository has an `@` in it, so that the folder of
/// `a` can never lie in the way of that of `a/b`.
fn pinned(registry: &Path, repository: &str, revision: &str) -> PathBuf {
    let mut folder = registry.join(repository).into_os_string();
    folder.push("@");
    folder.push(one_name(revision));
    folder.into()
}

/// A revision as one name of a path: its slashes must not make folders, since `a` and `a/b` can
/// both be revisions.
fn one_name(revision: &str) -> PathBuf {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    Path::new(&utf8_percent_encode(revision, KEPT).to_string()).to_path_buf()
}
