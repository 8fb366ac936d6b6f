//! The flags of `flash`. Each has the environment variable that the original loader reads, if it has
//! one.

use std::path::PathBuf;

use clap::builder::{BoolishValueParser, RangedU64ValueParser};
use clap::{ArgAction, Args};
use flexinfer_core::loading::Wishes;

use crate::progress::Asked;

/// What to copy, and how.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// Folder with the weights
    #[arg(long, env = "FLASH_SRC", value_name = "DIR")]
    pub src: PathBuf,
    /// Folder to copy them to, such as a tmpfs; made if it is not there
    #[arg(long, env = "FLASH_DST", value_name = "DIR")]
    pub dst: PathBuf,
    /// Folder that is to hold this copy and nothing else: other copies in it are removed first, and what is in the way
    /// of this one is written over
    #[arg(long, env = "FLASH_ALONE_IN", value_name = "DIR")]
    pub alone_in: Option<PathBuf>,
    /// Readers at once, 1 to 32
    #[arg(long, env = "FLASH_CONCURRENCY", value_name = "COUNT", default_value = "4",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=32))]
    pub concurrency: usize,
    /// Size of one read in KiB, 32 to 16384
    #[arg(long, env = "FLASH_BUFFER_KB", value_name = "KIB", default_value = "4096",
        value_parser = RangedU64ValueParser::<usize>::new().range(32..=16384))]
    pub buffer_kb: usize,
    /// Check the copies: by SHA-256 where the source's name tells it, else by reading them back
    #[arg(long, env = "FLASH_VERIFY", num_args = 0..=1, default_missing_value = "true",
        default_value = "false", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub verify: bool,
    /// What to leave out: `name/` is a folder, `*` and `?` match, anything else is the beginning of a
    /// path or name. Caches and .git/ are always left out
    #[arg(long, env = "FLASH_EXCLUDE", value_name = "PATTERN", value_delimiter = ',')]
    pub exclude: Vec<String>,
    /// Only what one of these patterns names, in the same way
    #[arg(long, env = "FLASH_ONLY", value_name = "PATTERN", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave out x.safetensors where there is x.VARIANT.safetensors, such as fp16
    #[arg(long, env = "FLASH_VARIANT", value_name = "VARIANT")]
    pub variant: Option<String>,
    /// Folder that links in the source may not lead out of [default: the source, or the hub's cache
    /// of the repository that it is a snapshot of]
    #[arg(long, env = "FLASH_ROOT", value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Keep what was read in the page cache, for others that read the same volume on this node
    #[arg(long, env = "FLASH_KEEP_PAGE_CACHE", num_args = 0..=1, default_missing_value = "true",
        default_value = "false", value_parser = BoolishValueParser::new(), action = ArgAction::Set)]
    pub keep_page_cache: bool,
    /// Other nodes that may hold the weights, as host:port; a name may have several addresses
    #[arg(long, env = "FLASH_PEERS", value_name = "ADDRESS", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// What the weights are called there: <namespace>/<model>, and the folder below it that is copied
    #[arg(long, env = "FLASH_PEERS_NAME", value_name = "NAME")]
    pub peers_name: Option<String>,
    /// File to write how many bytes the weights have to at the end, as {"sizeBytes": 1}; on a cluster the container's
    /// termination message
    #[arg(long, env = "FLASH_REPORT", value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

impl Arguments {
    pub(super) fn wishes(&self) -> Wishes {
        let trimmed = |patterns: &[String]| {
            let trimmed = patterns.iter().map(|pattern| pattern.trim());
            trimmed.filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect()
        };
        Wishes {
            exclude: trimmed(&self.exclude),
            only: trimmed(&self.only),
            variant: self.variant.clone(),
        }
    }
}
