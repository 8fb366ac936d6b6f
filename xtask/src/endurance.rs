//! What only shows over many requests: that nothing a client invents is kept, and that every request is
//! accounted for when the gateway is ended under load.

use anyhow::Result;

use crate::test::Steps;
use crate::{bench, prerequisites, program, workspace};

/// Both as steps of the test run: some thousands of requests, or with `full` a million, in the profile of
/// released images.
pub(crate) fn steps(steps: &mut Steps, full: bool) {
    let (profile, requests, rounds) =
        if full { (bench::PROFILE, "1000000", "20") } else { ("dev", "20000", "3") };
    steps.run("memory over many names", |_| run(profile, &["names", "--requests", requests]));
    steps.run("ended under load", |_| run(profile, &["kills", "--rounds", rounds]));
}

fn run(profile: &str, arguments: &[&str]) -> Result<()> {
    prerequisites::ensure(&prerequisites::BUILD)?;
    workspace::build(&["flexinfer-gateway", "flexinfer-loadtest"], profile)?;
    let loadtest = workspace::binary("flexinfer-loadtest", profile)?;
    program::run(program::named(loadtest).args(arguments))
}
