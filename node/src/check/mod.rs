//! `flexinfer-node check`: looks at weights that somebody else put somewhere, before an engine does.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use flexinfer_fetching::check_weights_alone;

use crate::ending::{Ending, failed};

/// What to look at.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// A file, or a folder of files
    #[arg(env = "CHECK_PATH")]
    pub path: PathBuf,
}

/// Looks, and says what is wrong if anything is.
pub async fn run(arguments: Arguments) -> anyhow::Result<Ending> {
    let path = arguments.path.clone();
    let looking = tokio::task::spawn_blocking(move || check_weights_alone(&path));
    let place = arguments.path.display();
    match looking.await.context("the looking ended by itself")? {
        Err(failure) => return Ok(failed(&failure)),
        Ok(0) => tracing::warn!(path = %place, "nothing is of a format that can be checked"),
        Ok(files) => tracing::info!(path = %place, files, "whole"),
    }
    Ok(Ending::Done)
}
