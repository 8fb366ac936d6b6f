#!/bin/sh
# Compiles a crate of this workspace so that libFuzzer sees which way an input takes: what cargo-fuzz
# passes, by options that the stable compiler has. Called by cargo as RUSTC_WORKSPACE_WRAPPER.
exec "$@" --cfg fuzzing \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
