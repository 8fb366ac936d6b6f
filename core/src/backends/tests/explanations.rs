//! What engines say before they end, and what is made of it. The outputs are composed, each after a
//! report of the engine's users.

use super::*;
use crate::activation::Reason;

const FAILED: Exit = Exit { code: Some(1), signal: None, was_ready: false, memory_ran_out: false };

fn check(name: &str, table: &[(&[&str], Reason)]) {
    let backend = Backend::named(name).expect("known");
    for (words, reason) in table {
        let lines: Vec<_> = words.iter().map(|&line| line.to_owned()).collect();
        let failure = backend.explain(FAILED, &lines);
        assert_eq!(failure.reason, *reason, "{name} {words:?}: {failure}");
        if *reason != Reason::DiedWhileLoading {
            assert!(failure.message.starts_with(&format!("{name} said `")), "{failure}");
        }
    }
}

#[test]
fn llama_servers_last_words_become_reasons() {
    let table: &[(&[&str], Reason)] = &[
        (
            &[
                "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 11736.39 MiB on device 0: \
                 cudaMalloc failed: out of memory",
                "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
                "main: exiting due to model loading error",
            ],
            Reason::OutOfMemory,
        ),
        (
            &[
                "main: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080",
                "srv operator(): cleaning up before exit...",
            ],
            Reason::PortTaken,
        ),
        (
            &["error loading model architecture: unknown model architecture: 'qwen9'"],
            Reason::InvalidConfig,
        ),
        (
            &["gguf_init_from_file_impl: failed to open GGUF file '/models/none.gguf' (No such \
               file or directory)"],
            Reason::BadSource,
        ),
        (
            &["gguf_init_from_file_impl: invalid magic characters: '<htm', expected 'GGUF'"],
            Reason::BadSource,
        ),
        (
            &["tensor 'blk.3.ffn_up.weight' data is not within the file bounds, model is \
               corrupted or incomplete"],
            Reason::BadSource,
        ),
        (&["load_model: failed to load multimodal model, '/m/eyes.gguf'"], Reason::BadSource),
        (
            &["WARNING: failed to allocate 120.00 MB of pinned memory", "unknown failure"],
            Reason::DiedWhileLoading,
        ),
        (&["error: invalid argument: --kv-unified-per-slot"], Reason::InvalidConfig),
        (
            &["llama-server: error while loading shared libraries: libcudart.so.12: cannot open \
               shared object file"],
            Reason::ProgramNotStarted,
        ),
    ];
    check("llamacpp", table);
}

#[test]
fn vllms_last_words_become_reasons() {
    let table: &[(&[&str], Reason)] = &[
        (
            &[
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
                "RuntimeError: Engine core initialization failed. See root cause above.",
            ],
            Reason::OutOfMemory,
        ),
        (
            &["ValueError: No available memory for the cache blocks. Try increasing \
               `gpu_memory_utilization` when initializing the engine."],
            Reason::OutOfMemory,
        ),
        (
            &["ValueError: Free memory on device (3.2/23.6 GiB) on startup is less than desired \
               GPU memory utilization (0.9, 21.24 GiB)."],
            Reason::OutOfMemory,
        ),
        (
            &["ValueError: Model architectures ['FooForCausalLM'] are not supported for now."],
            Reason::InvalidConfig,
        ),
        (
            &["OSError: You are trying to access a gated repo.", "Make sure to have access to it"],
            Reason::GatedRepository,
        ),
        (&["vllm: error: unrecognized arguments: --swap-space 4.0"], Reason::InvalidConfig),
        (&["OSError: [Errno 98] Address already in use"], Reason::PortTaken),
    ];
    check("vllm", table);
}

#[test]
fn a_missing_python_package_or_script_is_a_missing_program() {
    let module: &[(&[&str], Reason)] =
        &[(&["/usr/bin/python: No module named mlc_llm"], Reason::ProgramNotFound)];
    check("mlc-llm", module);
    let script: &[(&[&str], Reason)] = &[(
        &["python: can't open file '/opt/ComfyUI/main.py': [Errno 2] No such file or directory"],
        Reason::ProgramNotFound,
    )];
    check("comfyui", script);
}

#[test]
fn the_cause_counts_even_when_other_lines_follow() {
    let lines: Vec<_> = ["OSError: [Errno 28] No space left on device", "Traceback ends", ""]
        .map(str::to_owned)
        .into();
    let failure = Backend::Diffusers.explain(FAILED, &lines);
    assert_eq!(failure.reason, Reason::DiskFull);
}

#[test]
fn exits_without_a_known_word_are_told_with_the_last_line() {
    let exit = |code, signal, was_ready| Exit { code, signal, was_ready, ..Exit::default() };
    let starved = Exit { memory_ran_out: true, ..exit(None, Some(9), false) };
    let table = [
        (exit(Some(1), None, false), Reason::DiedWhileLoading),
        (exit(Some(0), None, false), Reason::DiedWhileLoading),
        (exit(Some(1), None, true), Reason::Crashed),
        (exit(None, Some(11), true), Reason::Crashed),
        (exit(None, Some(11), false), Reason::DiedWhileLoading),
        (exit(None, Some(9), false), Reason::DiedWhileLoading),
        (starved, Reason::OutOfMemory),
        (exit(None, Some(4), false), Reason::ProgramNotStarted),
        (exit(Some(127), None, false), Reason::ProgramNotFound),
        (exit(Some(126), None, false), Reason::ProgramNotStarted),
        (exit(None, None, false), Reason::DiedWhileLoading),
    ];
    let lines = vec!["loading weights".to_owned(), "  ".to_owned()];
    let mut told = Vec::new();
    for (exit, reason) in table {
        let failure = Backend::LlamaCpp.explain(exit, &lines);
        assert_eq!(failure.reason, reason, "{exit:?}");
        told.push(failure.to_string());
    }
    told.push(Backend::Vllm.explain(FAILED, &[]).to_string());
    insta::assert_snapshot!(told.join("\n"));
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let line = format!("out of memory {}", "ü".repeat(1000));
    let failure = Backend::Vllm.explain(FAILED, &[line]);
    assert!(failure.message.contains('…') && failure.message.len() < 700, "{failure}");
}
