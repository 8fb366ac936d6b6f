//! The engine as a program of its own, for those who work on it:
//! `cargo run --package flexinfer-simulator --example simulate -- --port 8000 --load-time 2s`.

use clap::Parser;
use flexinfer_simulator::{SimulateArgs, run};

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    args: SimulateArgs,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    run(Program::parse().args).await
}
