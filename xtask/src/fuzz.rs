//! `cargo xtask fuzz`: looks for bytes that break what reads them, guided by which way they take through
//! the code. What is found is kept among the inputs of `fuzz/corpus`, where `cargo test` tries it again;
//! inputs that only reach something new are kept outside the checkout, and the next run begins with them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::test::Steps;
use crate::{cache, prerequisites, program, workspace};

/// The targets, as `fuzz/src/lib.rs` has them.
const TARGETS: [&str; 5] = ["facts", "splicing", "form", "usage", "paths"];
/// All of them together take a minute of the test run.
const SECONDS_IN_TESTS: u64 = 60;
/// Longer inputs are slower, and say little that is new.
const LONGEST: usize = 4096;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to feed: facts, splicing, form, usage or paths; all of them in turn without a name
    target: Option<String>,
    /// How long to look, for each target
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Compile for speed, which pays from some minutes on
    #[arg(long)]
    release: bool,
}

/// The step of the test run.
pub(crate) fn steps(steps: &mut Steps) {
    steps.needing("fuzzing", &[prerequisites::COMPILER_CXX], |counts| {
        let fuzzer = Fuzzer::build(false)?;
        for target in TARGETS {
            fuzzer.look(target, SECONDS_IN_TESTS / TARGETS.len() as u64)?;
            counts.passed += 1;
        }
        Ok(())
    });
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    prerequisites::ensure(&[prerequisites::COMPILER_CXX])?;
    let known = |name: &str| TARGETS.into_iter().find(|target| *target == name);
    let targets = match &arguments.target {
        None => TARGETS.to_vec(),
        Some(name) => match known(name) {
            Some(target) => vec![target],
            None => bail!("there is no target {name}; there are {}", TARGETS.join(", ")),
        },
    };
    let fuzzer = Fuzzer::build(arguments.release)?;
    targets.into_iter().try_for_each(|target| fuzzer.look(target, arguments.seconds))
}

/// The program that looks.
struct Fuzzer(PathBuf);

impl Fuzzer {
    /// Instruments the crates of the workspace and no others; the libraries are those of any build.
    fn build(release: bool) -> Result<Self> {
        let profile = if release { "release" } else { "dev" };
        let mut cargo = program::cargo();
        cargo.args(["build", "--package", "flexinfer-fuzz", "--features", "guided"]);
        cargo.args(["--profile", profile]);
        let wrapper = workspace::root().join("fuzz/instrumented.sh");
        cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
        program::run(&mut cargo)?;
        Ok(Self(workspace::binary("flexinfer-fuzz", profile)?))
    }

    fn look(&self, target: &str, seconds: u64) -> Result<()> {
        let kept = workspace::root().join("fuzz/corpus").join(target);
        let reached = cache::folder()?.join("fuzz").join(target);
        fs::create_dir_all(&reached)
            .with_context(|| format!("cannot create {}", reached.display()))?;
        println!("\n{target}: {seconds} s from the inputs in {}", kept.display());
        let mut look = Command::new(&self.0);
        look.env("FLEXINFER_FUZZ_TARGET", target).arg(&reached).arg(&kept);
        look.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={LONGEST}"));
        look.arg(format!("-artifact_prefix={}/", kept.display()));
        look.args(["-timeout=20", "-print_final_stats=1", "-verbosity=0"]);
        program::run(&mut look)
            .with_context(|| format!("an input breaks {target}; it is kept in {}", kept.display()))
    }
}
