//! `flexinfer-node check`: looks at weights that somebody else put somewhere, before an engine does.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use flexinfer_fetching::check_weights;

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
    let looking = tokio::task::spawn_blocking(move || check_weights(&arguments.path));
    let looked = looking.await.context("the looking ended by itself")?;
    Ok(looked.map_or_else(|failure| failed(&failure), |()| Ending::Done))
}
