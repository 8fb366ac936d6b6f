//! Looks for inputs that break a target, the one that `FLEXINFER_FUZZ_TARGET` names. The rest of the
//! command line is libFuzzer's. Built and run by `cargo xtask fuzz`.

#![no_main]

use std::sync::LazyLock;

use flexinfer_fuzz::Target;

static TARGET: LazyLock<Option<Target>> = LazyLock::new(|| {
    let name = std::env::var("FLEXINFER_FUZZ_TARGET").unwrap_or_default();
    Target::named(&name)
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let target = *TARGET;
    assert!(target.is_some(), "FLEXINFER_FUZZ_TARGET names no target");
    if let Some(target) = target {
        target.check(input);
    }
});
