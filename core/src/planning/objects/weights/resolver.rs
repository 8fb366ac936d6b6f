//! One method for each scheme of sources, and what they have in common.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use flexinfer_crds::Model;
use flexinfer_crds::model::{Cache, CacheStrategy};

use super::host::{host_folder_allowed, not_allowed};
use super::{ClaimUse, Filling, Held, MODELS, Weights, Work};
use crate::backends::{Backend, Config, ModelPlace};
use crate::effective::Effective;
use crate::ids::GroupId;
use crate::planning::objects::{Refusal, Settings, names};
use crate::sources::download::Selection;
use crate::sources::{Place, RelativePath, Roots, Source, file, pvc};

/// `cache.hostPath` of a Model that names none.
const HOST_FOLDER: &str = "/var/lib/flexinfer/models";

/// What a source is looked at with.
pub(super) struct Resolver<'a> {
    pub(super) model: &'a Model,
    pub(super) effective: &'a Effective,
    pub(super) backend: Backend,
    pub(super) settings: &'a Settings,
    pub(super) cache: Option<&'a Cache>,
}

impl Resolver<'_> {
    /// The weights as they are fetched.
    pub(super) fn fetched(&self) -> Result<Weights, Refusal> {
        let text = self.model.spec.source.as_deref().filter(|source| !source.is_empty());
        let Some(text) = text.filter(|_| !self.backend.sources().is_empty()) else {
            return self.without_source();
        };
        let weights = match text.parse::<Source>()? {
            Source::Ollama(_) if self.backend.fetches_model() => self.by_engine(text)?,
            source @ (Source::HuggingFace(_) | Source::Oci(_) | Source::Ollama(_)) => {
                self.downloaded(&source)?
            }
            Source::Pvc(location) => self.on_claim(&location)?,
            Source::File(location) => self.on_file(&location)?,
        };
        if self.model.spec.config.contains_key("vaeRepo") && weights.autoencoder.is_none() {
            let message = "is fetched beside a source that is downloaded only; put the autoencoder beside the \
                           model and name it in config.vaePath";
            return Err(Refusal::field("spec.config.vaeRepo", message));
        }
        Ok(weights)
    }

    /// No weights of ours. A volume that is asked for all the same is there to be filled by hand.
    fn without_source(&self) -> Result<Weights, Refusal> {
        let place = ModelPlace::Nothing;
        match self.cache.and_then(|cache| cache.strategy) {
            None => Ok(held_nowhere(place)),
            Some(strategy) => self.kept(strategy, place),
        }
    }

    fn by_engine(&self, source: &str) -> Result<Weights, Refusal> {
        let place = ModelPlace::Reference(source.to_owned());
        let mut weights = self.kept(self.strategy(), place)?;
        weights.store = Some(format!("{MODELS}/ollama"));
        Ok(weights)
    }

    fn downloaded(&self, source: &Source) -> Result<Weights, Refusal> {
        let selection = Selection::from_config(&self.model.spec.config)?;
        let (folder, path) = placed(source, &selection);
        let source = source.to_string();
        let mut works = vec![Work::Fetch { source, selection, folder: folder.clone() }];
        let mut weights = self.kept(self.strategy(), ModelPlace::Path(path))?;
        weights.folder = Some(folder);
        if let Some((source, folder)) = self.autoencoder()? {
            weights.autoencoder = Some(folder.clone());
            works.push(Work::Fetch { source, selection: Selection::default(), folder });
        }
        weights.filling = match weights.held {
            Held::Claim { .. } => Filling::ByJob(works),
            _ => Filling::AtStart(works),
        };
        Ok(weights)
    }

    /// `config.vaeRepo` of a diffusers model: its source and its folder.
    fn autoencoder(&self) -> Result<Option<(String, String)>, Refusal> {
        let config = Config::of(Some(&self.model.spec.config));
        let Some(text) = config.text("vaeRepo")? else { return Ok(None) };
        let source = if text.contains("://") { text.to_owned() } else { format!("HF://{text}") };
        match source.parse::<Source>() {
            Ok(source @ Source::HuggingFace(_)) => {
                let (folder, _) = placed(&source, &Selection::default());
                Ok(Some((source.to_string(), folder)))
            }
            Ok(_) => Err(Refusal::field("spec.config.vaeRepo", "must be a repository: org/name")),
            Err(error) => Err(Refusal::field("spec.config.vaeRepo", &error.to_string())),
        }
    }

    /// Weights on a claim of somebody's: read where they are, or copied to a cache that the Model asks for.
    fn on_claim(&self, location: &pvc::Location) -> Result<Weights, Refusal> {
        let path = location.path.as_ref().map(RelativePath::as_str).unwrap_or_default();
        let whole = if path.is_empty() { MODELS.to_owned() } else { format!("{MODELS}/{path}") };
        let place = ModelPlace::Path(whole.clone());
        let copied = self.cache.is_some_and(|cache| match cache.strategy {
            Some(CacheStrategy::SharedPvc | CacheStrategy::Local) => true,
            Some(CacheStrategy::None | CacheStrategy::Memory) => false,
            None => {
                cache.pvc_name.is_some() || cache.size.is_some() || cache.storage_class.is_some()
            }
        });
        let folder = Some(folder_of(&whole));
        let only = self.only(&whole);
        if copied {
            let strategy = self.cache.and_then(|cache| cache.strategy);
            let below = folder.as_deref().and_then(|folder| folder.strip_prefix(MODELS));
            let from = below.unwrap_or_default().trim_start_matches('/').to_owned();
            let claim = location.claim.clone();
            let works = vec![Work::Copy { claim, folder: from, only: only.clone() }];
            let mut weights = self.kept(strategy.unwrap_or(CacheStrategy::SharedPvc), place)?;
            weights.folder = folder;
            weights.only = only;
            weights.filling = match &weights.held {
                // The copy would be the weights themselves.
                Held::Claim { name, .. } if *name == location.claim => Filling::Checked(whole),
                Held::Claim { .. } => Filling::ByJob(works),
                _ => Filling::AtStart(works),
            };
            return Ok(weights);
        }
        let held = Held::Claim { name: location.claim.clone(), made_by: ClaimUse::Source };
        let filling = Filling::Checked(whole);
        Ok(Weights { held, filling, folder, only, ..held_nowhere(place) })
    }

    /// Weights that lie somewhere already: on the node, where the settings allow that; on the volume that the
    /// Model asks for; else in the image.
    fn on_file(&self, location: &file::Location) -> Result<Weights, Refusal> {
        let file::Location::Absolute(path) = location else {
            let message =
                "a relative path has a meaning in local mode only; write file:///absolute/path";
            return Err(Refusal::field("spec.source", message));
        };
        let path = format!("/{path}");
        let place = ModelPlace::Path(path.clone());
        if let Some(strategy) = self.cache.and_then(|cache| cache.strategy) {
            return self.kept(strategy, place);
        }
        let folder = folder_of(&path);
        if !self.allowed(&folder) {
            return Ok(held_nowhere(place));
        }
        let held = Held::HostFolder(folder.clone());
        let only = self.only(&path);
        let mount = folder.clone();
        Ok(Weights { held, mount, folder: Some(folder), only, ..held_nowhere(place) })
    }

    /// The files beside a GGUF that matter to the engine that reads it: its further parts and the projector.
    /// Any other engine may want whatever lies in the folder.
    fn only(&self, path: &str) -> Vec<String> {
        let name = path.rsplit('/').next().unwrap_or_default();
        if self.backend != Backend::LlamaCpp || !name.to_ascii_lowercase().ends_with(".gguf") {
            return Vec::new();
        }
        let config = Config::of(Some(&self.model.spec.config));
        let projector = config.text("mmproj").ok().flatten().filter(|path| !path.starts_with('/'));
        let parts = name.rsplit_once("-of-").and_then(|(first, count)| {
            let (stem, _) = first.rsplit_once('-')?;
            Some(format!("{stem}-*-of-{count}"))
        });
        let own = parts.unwrap_or_else(|| name.to_owned());
        std::iter::once(own).chain(projector.map(str::to_owned)).collect()
    }

    /// `place` on what `strategy` means for this model; nothing fills it yet.
    fn kept(&self, strategy: CacheStrategy, place: ModelPlace) -> Result<Weights, Refusal> {
        let held = match strategy {
            CacheStrategy::SharedPvc => self.claim()?,
            CacheStrategy::Local => Held::HostFolder(self.host_folder()?),
            CacheStrategy::Memory => Held::Memory(self.cache.and_then(|cache| cache.size.clone())),
            CacheStrategy::None => Held::Disk,
        };
        Ok(Weights { held, strategy: Some(strategy), writable: true, ..held_nowhere(place) })
    }

    fn strategy(&self) -> CacheStrategy {
        let shared = matches!(self.effective.group, GroupId::Shared { .. });
        let default = if shared { CacheStrategy::Memory } else { CacheStrategy::SharedPvc };
        self.cache.and_then(|cache| cache.strategy).unwrap_or(default)
    }

    fn claim(&self) -> Result<Held, Refusal> {
        let named = self.cache.and_then(|cache| cache.pvc_name.as_deref());
        let Some(name) = named.map(str::trim).filter(|name| !name.is_empty()) else {
            let name = names::with_suffix(&self.effective.id.name, "-cache");
            return Ok(Held::Claim { name, made_by: ClaimUse::Made });
        };
        if !names::is_object_name(name) {
            let message =
                format!("`{name}` cannot be the name of a claim: use a-z, 0-9, `-` and `.`");
            return Err(Refusal::field("spec.cache.pvcName", &message));
        }
        Ok(Held::Claim { name: name.to_owned(), made_by: ClaimUse::Named })
    }

    fn host_folder(&self) -> Result<String, Refusal> {
        let own = self.cache.and_then(|cache| cache.host_path.as_deref());
        let top = own.unwrap_or(HOST_FOLDER).trim_end_matches('/');
        if !self.allowed(top) {
            return Err(not_allowed("spec.cache.hostPath", top, self.settings));
        }
        let id = &self.effective.id;
        Ok(format!("{top}/{}/{}", id.namespace, id.name))
    }

    fn allowed(&self, path: &str) -> bool {
        host_folder_allowed(path, self.settings)
    }
}

fn held_nowhere(place: ModelPlace) -> Weights {
    Weights {
        place,
        store: None,
        strategy: None,
        held: Held::Nowhere,
        mount: MODELS.to_owned(),
        writable: false,
        filling: Filling::Nothing,
        folder: None,
        only: Vec::new(),
        autoencoder: None,
        quantized: None,
    }
}

/// The folder of `path`, if that names a file by what engines call theirs; else `path` itself.
fn folder_of(path: &str) -> String {
    let file = Path::new(path).extension().is_some_and(|extension| {
        ["gguf", "safetensors", "bin", "ckpt"]
            .iter()
            .any(|known| extension.eq_ignore_ascii_case(known))
    });
    match path.rsplit_once('/') {
        Some((folder, _)) if file && !folder.is_empty() => folder.to_owned(),
        _ => path.to_owned(),
    }
}

/// Where `source` lies below [`MODELS`], and what of it the engine is given.
fn placed(source: &Source, selection: &Selection) -> (String, String) {
    let roots =
        Roots { manifests: PathBuf::new(), data: PathBuf::from(MODELS), claims: BTreeMap::new() };
    let text = |path: PathBuf| path.to_string_lossy().into_owned();
    match source.place(&roots, selection) {
        Place::Downloaded { folder, model } => (text(folder), text(model)),
        Place::Here(path) => (text(path.clone()), text(path)),
    }
}
