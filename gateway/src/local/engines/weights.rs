//! Gets a model's weights to where its engine reads them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use flexinfer_core::activation::{Failure, Progress, Reason};
use flexinfer_core::backends::{Backend, ModelPlace};
use flexinfer_core::sources::download::Selection;
use flexinfer_core::sources::{Place, Roots, Source};
use flexinfer_crds::ModelSpec;

use super::Settings;

/// Finds or downloads the weights that `spec` names; whatever `before_download` has against it is
/// told instead of downloading. Cancelled by dropping; what was downloaded by
/// then is kept, and the next attempt goes on from there.
pub(super) async fn find(
    settings: &Settings,
    backend: Backend,
    spec: &ModelSpec,
    before_download: impl FnOnce() -> Result<(), Failure> + Send,
    progress: impl Fn(Progress) + Send + Sync,
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
        Place::Here(path) => {
            there(&source, &path)?;
            // The simulator reads whatever bytes there are.
            if backend != Backend::Simulator {
                whole(path.clone()).await?;
            }
            Ok(ModelPlace::Path(path.to_string_lossy().into_owned()))
        }
        Place::Downloaded { folder, .. } => {
            before_download()?;
            let model = flexinfer_fetching::fetch(
                &source,
                &selection,
                &folder,
                &settings.fetching,
                &progress,
            )
            .await?;
            Ok(ModelPlace::Path(model.to_string_lossy().into_owned()))
        }
    }
}

/// Refuses weights that are missing or may not be read, with the place where they were looked for.
fn there(source: &Source, path: &Path) -> Result<(), Failure> {
    let readable = std::fs::metadata(path).and_then(|found| {
        if found.is_file() { std::fs::File::open(path).map(drop) } else { Ok(()) }
    });
    readable.map_err(|error| {
        let hint = match source {
            Source::Pvc(location) => format!(
                "; in local mode the claim `{}` is a folder: put the files there",
                location.claim
            ),
            _ => String::new(),
        };
        let message = format!("spec.source: {source} is {}: {error}{hint}", path.display());
        Failure::new(Reason::BadSource, message)
    })
}

/// Refuses weights that are cut or damaged, as far as their format tells.
async fn whole(path: PathBuf) -> Result<(), Failure> {
    let checked =
        tokio::task::spawn_blocking(move || flexinfer_fetching::check_weights(&path)).await;
    // Cut off only by the end of the runtime; the engine would tell.
    checked.unwrap_or(Ok(()))
}
