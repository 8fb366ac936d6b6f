//! How engines on this machine are run.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use flexinfer_fetching::{FetchSettings, LoginFiles, Token};
use flexinfer_telemetry::log;

use super::reader::Reader;
use super::{Complaints, Defaults, LocalArguments, Settings};
use crate::queues::Budgets;

const DEFAULTS: Defaults = Defaults {
    address: Ipv4Addr::LOCALHOST,
    log_format: log::Format::Text,
    drain_delay: Duration::ZERO,
};

/// The settings of local mode.
#[derive(Clone, Debug)]
pub struct LocalSettings {
    /// How requests are served.
    pub serve: Settings,
    /// Where downloads, logs and the engines' own files are kept.
    pub data_dir: PathBuf,
    /// Folders that stand in for persistent volume claims.
    pub claims: BTreeMap<String, PathBuf>,
    /// VRAM that a group's residents may take together.
    pub vram_budgets: Budgets,
    /// Where models are downloaded from, and how.
    pub fetching: FetchSettings,
}

impl LocalSettings {
    /// Settings from the flags of `local` and `environment`, which answers a variable's name with its
    /// value.
    pub fn new(
        arguments: &LocalArguments,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, Complaints> {
        let mut read = Reader::new(&environment);
        let engines = &arguments.engines;
        let hub = read.hub("hf-endpoint", engines.hf_endpoint.as_deref());
        let token = environment("HF_TOKEN").and_then(|text| Token::new(&text));
        if token.is_some() {
            read.show("HF_TOKEN", "set (not shown)");
        }
        let mut fetching =
            FetchSettings::new(&hub, token).map_err(|error| Complaints(vec![error.to_string()]))?;
        fetching.logins = LoginFiles::of_user(&environment);
        fetching.terms.insecure_registries =
            read.names("insecure-registries", &engines.insecure_registries);
        let settings = Self {
            serve: Settings::read(&mut read, &arguments.serve, &DEFAULTS),
            data_dir: read
                .folder("data-dir", engines.data_dir.as_deref(), || data_dir(&environment)),
            claims: read.claims("pvc", &engines.pvc),
            vram_budgets: Budgets(read.budgets("vram-budget", &engines.vram_budget)),
            fetching,
        };
        let shown = read.finish()?;
        Ok(Self { serve: Settings { shown, ..settings.serve }, ..settings })
    }
}

/// The user's own data folder, as the XDG rules place it.
fn data_dir(environment: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute =
        |name: &str| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))?;
    Some(data.join("flexinfer"))
}
