//! Gets a model's weights to where its engine reads them.

use std::path::Path;
use std::str::FromStr;

use flexinfer_core::activation::{Failure, Progress, Reason};
use flexinfer_core::backends::{Backend, ModelPlace};
use flexinfer_core::sources::download::Selection;
use flexinfer_core::sources::{Place, Roots, Source};
use flexinfer_crds::ModelSpec;

use super::Settings;

/// Finds or downloads the weights that `spec` names. Cancelled by dropping; what was downloaded by
/// then is kept, and the next attempt goes on from there.
pub(super) async fn find(
    settings: &Settings,
    backend: Backend,
    spec: &ModelSpec,
    progress: impl Fn(Progress),
) -> Result<ModelPlace, Failure> {
    let Some(text) = spec.source.as_deref().filter(|source| !source.is_empty()) else {
        return Ok(ModelPlace::Nothing);
    };
    if backend.fetches_model() {
        return Ok(ModelPlace::Reference(text.to_owned()));
    }
    let bad = |error: &dyn std::error::Error| {
        Failure::new(Reason::BadSource, format!("spec.source: {error}"))
    };
    let source = Source::from_str(text).map_err(|error| bad(&error))?;
    let selection = Selection::from_config(&spec.config).map_err(|error| bad(&error))?;
    let roots = Roots {
        manifests: settings.models.clone(),
        data: settings.data.clone(),
        claims: settings.claims.clone(),
    };
    match source.place(&roots, &selection) {
        Place::Here(path) => here(&source, &path),
        Place::ByEngine(_) => Ok(ModelPlace::Reference(text.to_owned())),
        Place::Downloaded { folder, model } => {
            download(settings, &source, &selection, &folder, progress).await?;
            Ok(ModelPlace::Path(model.to_string_lossy().into_owned()))
        }
    }
}

fn here(source: &Source, path: &Path) -> Result<ModelPlace, Failure> {
    let shown = path.display();
    let readable = std::fs::metadata(path).and_then(|found| {
        if found.is_file() { std::fs::File::open(path).map(drop) } else { Ok(()) }
    });
    match readable {
        Ok(()) => Ok(ModelPlace::Path(path.to_string_lossy().into_owned())),
        Err(error) => {
            let hint = match source {
                Source::Pvc(location) => format!(
                    "; in local mode the claim `{}` is a folder: put the files there",
                    location.claim
                ),
                _ => String::new(),
            };
            let message = format!("spec.source: {source} is {shown}: {error}{hint}");
            Err(Failure::new(Reason::BadSource, message))
        }
    }
}

#[expect(clippy::unused_async, reason = "it will wait for the download")]
async fn download(
    _settings: &Settings,
    source: &Source,
    _selection: &Selection,
    _folder: &Path,
    _progress: impl Fn(Progress),
) -> Result<(), Failure> {
    Err(Failure::new(Reason::BadSource, format!("{source}: downloads are not connected yet")))
}
