//! `flexinfer-node fetch`: a thin command over `flexinfer-fetching`, for init containers and people.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context as _;
use clap::Args;
use flexinfer_core::activation::{Failure, Progress, Reason};
use flexinfer_core::sources::download::{Hub, Selection};
use flexinfer_core::sources::huggingface::checked_revision;
use flexinfer_core::sources::{RelativePath, Source};
use flexinfer_fetching::{FetchSettings, LoginFiles, Token};

use crate::ending::{Ending, Stops, failed, report_size};
use crate::flash::place;
use crate::progress::{Asked, Counts, Shown};

/// What to get and where to put it. A token for gated repositories is taken from `HF_TOKEN`.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// Where the weights are, as in a Model's spec.source: HF://org/name[@revision][:path],
    /// oci://host/name[:tag][@sha256:digest] or ollama://name[:tag]
    #[arg(env = "FETCH_SOURCE")]
    pub source: Source,
    /// Folder to put them in; made if it is not there
    #[arg(long, env = "FETCH_TO", value_name = "DIR")]
    pub to: PathBuf,
    /// Branch, tag or commit [default: main, or what the source says]
    #[arg(long, env = "FETCH_REVISION", value_parser = checked_revision)]
    pub revision: Option<String>,
    /// Only files that match one of these patterns, such as *.safetensors
    #[arg(long, env = "FETCH_ALLOW", value_name = "PATTERN", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// No file that matches one of these patterns
    #[arg(long, env = "FETCH_IGNORE", value_name = "PATTERN", value_delimiter = ',')]
    pub ignore: Vec<String>,
    /// This file, and its further parts if it is the first of several
    #[arg(long, env = "FETCH_FILE", value_name = "PATH", value_parser = RelativePath::parse)]
    pub file: Option<RelativePath>,
    /// Further files needed beside it
    #[arg(long, env = "FETCH_BESIDE", value_name = "PATH", value_delimiter = ',',
        value_parser = RelativePath::parse)]
    pub beside: Vec<RelativePath>,
    /// Files fetched at the same time
    #[arg(long, env = "FETCH_CONCURRENCY", value_name = "COUNT", default_value = "4")]
    pub concurrency: NonZeroUsize,
    /// The hub
    #[arg(long, env = "HF_ENDPOINT", value_name = "URL", default_value = Hub::PUBLIC)]
    pub hf_endpoint: String,
    /// File with logins for registries, as `docker login` writes it [default: those of Docker and podman]
    #[arg(long, env = "FETCH_REGISTRY_LOGINS", value_name = "FILE", value_delimiter = ',')]
    pub registry_logins: Vec<PathBuf>,
    /// Registries that are asked over plain http, besides those on this machine
    #[arg(
        long,
        env = "FLEXINFER_INSECURE_REGISTRIES",
        value_name = "HOST[:PORT]",
        value_delimiter = ','
    )]
    pub insecure_registries: Vec<String>,
    /// File to write how many bytes were fetched to at the end, as {"sizeBytes": 1}; on a cluster the container's
    /// termination message
    #[arg(long, env = "FETCH_REPORT", value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

/// Downloads, and prints the path that an engine is to read.
pub async fn run(arguments: &Arguments) -> anyhow::Result<Ending> {
    let mut stops = Stops::listen().context("signals cannot be listened for")?;
    if let Err(error) = place::check(&arguments.to) {
        return Ok(failed(&Failure::new(Reason::InvalidConfig, format!("{error:#}"))));
    }
    let token = std::env::var("HF_TOKEN").ok().and_then(|text| Token::new(&text));
    let mut settings = FetchSettings::new(&arguments.hf_endpoint, token)?;
    settings.concurrency = arguments.concurrency;
    settings.terms.insecure_registries.clone_from(&arguments.insecure_registries);
    settings.logins = match arguments.registry_logins.as_slice() {
        [] => LoginFiles::of_user(|name| std::env::var(name).ok()),
        files => LoginFiles::at(files.to_vec()),
    };
    let selection = Selection {
        revision: arguments.revision.clone(),
        allow: arguments.allow.clone(),
        ignore: arguments.ignore.clone(),
        file: arguments.file.clone(),
        beside: arguments.beside.clone(),
    };
    let counts = Counts::default();
    let _answering = arguments.asked.tell(&counts).await;
    let (shown, size) = (Shown::new(counts), AtomicU64::new(0));
    let progress = |progress: Progress| {
        let (done, total) = progress.done.unwrap_or_default();
        size.fetch_max(total, Ordering::Relaxed);
        shown.tell(done, total, || progress.message);
    };
    let fetching = flexinfer_fetching::fetch(
        &arguments.source,
        &selection,
        &arguments.to,
        &settings,
        &progress,
    );
    let fetched = tokio::select! {
        fetched = fetching => fetched,
        stop = stops.next() => {
            tracing::info!("stopped; what has come is kept, and the next run goes on from it");
            return Ok(Ending::Stopped(stop));
        }
    };
    drop(shown);
    let path = match fetched {
        Ok(path) => path,
        Err(failure) => return Ok(failed(&failure)),
    };
    println!("{}", path.display());
    if let Some(file) = &arguments.report {
        // What was there already has told it before.
        report_size(file, size.into_inner());
    }
    Ok(Ending::Done)
}
