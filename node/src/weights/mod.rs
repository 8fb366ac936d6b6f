//! What a node does with the weights that it holds in memory: hands them to other nodes, and removes those that
//! no model needs. Part of the agent, which is on every node.
//!
//! What must hold: only whole files of models are given, never a record or an unfinished file; what is given is
//! bounded, so that engines keep their network; and nothing is removed while it is not known what is needed.

mod removing;
mod serving;

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;
use flexinfer_crds::Quantity;

pub(crate) use removing::{Cluster, remove_unneeded};
pub(crate) use serving::serve;

/// The weights that this node holds.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct Arguments {
    /// Folder with models' weights, as in FOLDER/<namespace>/<model>; without it none are handed on
    #[arg(
        id = "weights_dir",
        long = "weights-dir",
        env = "FLEXINFER_WEIGHTS_DIR",
        value_name = "FOLDER"
    )]
    pub(crate) dir: Option<PathBuf>,
    /// Port on which other nodes get them
    #[arg(
        id = "weights_port",
        long = "weights-port",
        env = "FLEXINFER_WEIGHTS_PORT",
        default_value_t = 9876
    )]
    pub(crate) port: u16,
    /// Bytes that may leave each second, over all who ask; 0 is no limit
    #[arg(id = "weights_rate", long = "weights-rate", env = "FLEXINFER_WEIGHTS_RATE", default_value = "500Mi", value_parser = rate)]
    pub(crate) rate: u64,
    /// Whether weights are removed ten minutes after their Model
    #[arg(id = "weights_cleanup", long = "weights-cleanup", env = "FLEXINFER_WEIGHTS_CLEANUP", num_args = 0..=1, default_missing_value = "true",
        default_value = "true", value_parser = BoolishValueParser::new(), action = clap::ArgAction::Set)]
    pub(crate) cleanup: bool,
}

fn rate(text: &str) -> Result<u64, String> {
    Quantity::new(text).bytes().map_err(|error| error.to_string())
}
