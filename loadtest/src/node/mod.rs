//! What a node's program and the scheduler's extender cost, each beside the plainest thing that does the same
//! work in the same run. `cargo xtask bench-node` builds everything and calls it.

mod cached;
mod extender;
mod flash;
mod yardstick;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::binaries;
pub(crate) use extender::echo;
use flash::Source;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Where our binaries are; default beside this one
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Weights to copy, in MiB
    #[arg(long, default_value_t = 4096)]
    size: u64,
    /// Files of 4 KiB to copy as well; none are copied unless this is given
    #[arg(long, default_value_t = 0)]
    small_files: usize,
    /// Folder for the weights to copy from; a disk, or any place whose pages are cached
    #[arg(long)]
    from: Option<PathBuf>,
    /// Folder to copy to, in memory
    #[arg(long, default_value = "/dev/shm")]
    to: PathBuf,
    /// How often each is measured; the best counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How often the large weights are copied from the disk too, with nothing of them in the page cache; 0 is not at
    /// all
    #[arg(long, default_value_t = 2)]
    cold_rounds: u32,
    /// Nodes of the cluster whose scheduler asks
    #[arg(long, default_value_t = 5000)]
    nodes: usize,
    /// End with one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    let binaries = binaries::folder(arguments.binaries.as_deref())?;
    let from = arguments.from.clone().unwrap_or_else(std::env::temp_dir);
    let program = binaries.join("flexinfer-node");
    let places = flash::Places { program: &program, from: &from, to: &arguments.to };
    let large = flash::Weights::large(arguments.size << 20);
    let what = format!("{} MiB in {} files", arguments.size, large.count());
    let copies = flash::compare(&places, (&large, Source::Warm), arguments.rounds)?;
    copies.print(&format!("{what}, from the page cache to memory"));
    let cold = flash::compare(&places, (&large, Source::Cold), arguments.cold_rounds)?;
    if arguments.cold_rounds > 0 {
        cold.print(&format!("{what}, from the disk to memory"));
    }
    let small = match arguments.small_files {
        0 => None,
        count => {
            let files = flash::Weights::small(count);
            let small = flash::compare(&places, (&files, Source::Warm), arguments.rounds)?;
            small.print(&format!("{count} files of 4 KiB, from the page cache to memory"));
            Some(small)
        }
    };
    let asked = extender::compare(&binaries, arguments.nodes, arguments.rounds).await?;
    asked.print(arguments.nodes);
    if arguments.json {
        println!(
            "{}",
            json!({
                "flash_vs_yardstick": copies.times_as_fast("yardstick"),
                "flash_vs_cp": copies.times_as_fast("cp -r"),
                "flash_vs_yardstick_by_medians": copies.times_as_fast_commonly("yardstick"),
                "flash_vs_cp_by_medians": copies.times_as_fast_commonly("cp -r"),
                "flash_vs_rsync": copies.times_as_fast("rsync"),
                "flash_vs_rclone": copies.times_as_fast("rclone"),
                "flash_cold_vs_yardstick": cold.times_as_fast("yardstick"),
                "flash_cold_vs_cp": cold.times_as_fast("cp -r"),
                "flash_cold_vs_rsync": cold.times_as_fast("rsync"),
                "flash_cold_vs_rclone": cold.times_as_fast("rclone"),
                "flash_cold_best_seconds": cold.best("flash"),
                "flash_small_vs_cp": small.and_then(|small| small.times_as_fast("cp -r")),
                "score_5000_vs_echo": asked.times_as_long(),
                "flash_best_seconds": copies.best("flash"),
                "flash_memory_bytes": copies.memory,
                "score_milliseconds": asked.ours_milliseconds,
                "echo_milliseconds": asked.echo_milliseconds,
                "nodes": arguments.nodes,
            })
        );
    }
    Ok(())
}
