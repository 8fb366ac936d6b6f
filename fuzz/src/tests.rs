//! The inputs that are kept, each as it is, cut short, and with a byte changed.

use std::fs;
use std::path::Path;

use super::*;

/// Neighbours of one input: more of a longer one would take long, and say little.
const NEIGHBOURS: usize = 400;

fn inputs(target: Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()).collect()
}

/// Says which input it was, where one breaks the target.
fn check(target: Target, input: &[u8]) {
    let outcome = std::panic::catch_unwind(|| target.check(input));
    let shown = input.escape_ascii();
    outcome.unwrap_or_else(|_| panic!("this breaks {}: b\"{shown}\"", target.name));
}

#[test]
fn what_must_hold_holds_of_every_kept_input_and_of_its_neighbours() {
    for target in TARGETS {
        let inputs = inputs(target);
        assert!(!inputs.is_empty(), "{} has no inputs", target.name);
        for input in inputs {
            check(target, &input);
            let step = input.len().div_ceil(NEIGHBOURS).max(1);
            for at in (0..input.len()).step_by(step) {
                check(target, &input[..at]);
                for byte in [0, b'"', b'\r', 0xff] {
                    let mut other = input.clone();
                    other[at] = byte;
                    check(target, &other);
                }
            }
        }
    }
}

#[test]
fn a_target_is_found_by_its_name() {
    assert_eq!(Target::named("form").map(|target| target.name), Some("form"));
    assert!(Target::named("nothing").is_none());
}
