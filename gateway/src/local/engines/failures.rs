//! What goes wrong before an engine runs, told so that a person can act on it.

use std::io;
use std::path::Path;

use flexinfer_core::activation::{Failure, Reason};
use flexinfer_core::backends::{Backend, LaunchError};
use rustix::io::Errno;

use super::supervised::StartError;

/// Why `program` does not run.
pub(super) fn not_started(backend: Backend, program: &str, error: &StartError) -> Failure {
    let StartError::Program { os_error, message } = error else {
        let mut told = error.to_string();
        if let Some(source) = std::error::Error::source(error) {
            told = format!("{told}: {source}");
        }
        return Failure::new(Reason::ProgramNotStarted, told);
    };
    let is = |errno: Errno| *os_error == Some(errno.raw_os_error());
    if is(Errno::NOENT) && Path::new(program).is_file() {
        let told = format!("{program} names an interpreter in its first line that is not here");
        return Failure::new(Reason::ProgramNotStarted, told);
    }
    if is(Errno::NOENT) {
        return no_program(backend, program);
    }
    let told = if is(Errno::ACCESS) {
        format!("{program} may not be run; make it executable: chmod +x {program}")
    } else if is(Errno::NOEXEC) {
        format!("{program} is not made for this machine, or is no program at all")
    } else {
        format!("{program} could not be started: {message}")
    };
    Failure::new(Reason::ProgramNotStarted, told)
}

/// There is nothing of this name.
pub(super) fn no_program(backend: Backend, program: &str) -> Failure {
    let told = format!("there is no program `{program}`; {}", how_to_get(backend));
    Failure::new(Reason::ProgramNotFound, told)
}

fn how_to_get(backend: Backend) -> &'static str {
    match backend {
        Backend::LlamaCpp => {
            "install llama.cpp (brew install llama.cpp, or a release from \
             github.com/ggml-org/llama.cpp), or name the path of llama-server in \
             spec.config.command"
        }
        Backend::Ollama => {
            "install Ollama from ollama.com, or name its path in spec.config.command"
        }
        Backend::Vllm => {
            "install vLLM (pip install vllm), or name the path of its program in \
             spec.config.command"
        }
        Backend::MlcLlm => {
            "install MLC LLM (llm.mlc.ai/docs/install) into a Python, and name that Python in \
             spec.config.command"
        }
        Backend::ComfyUi => {
            "install ComfyUI, and name its Python and main.py in spec.config.command"
        }
        Backend::VllmOmni => {
            "install vLLM-Omni (pip install vllm-omni), or name the path of its program in \
             spec.config.command"
        }
        Backend::Diffusers => "name the program of your diffusers server in spec.config.command",
        Backend::Simulator | Backend::External | Backend::Command => {
            "install it, or correct spec.config.command"
        }
    }
}

/// Why the Model cannot be launched.
pub(super) fn not_launched(error: &LaunchError) -> Failure {
    Failure::new(Reason::InvalidConfig, error.to_string())
}

/// Why something could not be written below the data folder.
pub(super) fn not_written(path: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            let told = format!("no room left for {path}; make room, or choose another --data-dir");
            Failure::new(Reason::DiskFull, told)
        }
        _ => Failure::new(
            Reason::NotWritable,
            format!("cannot write {path}: {error}; check --data-dir"),
        ),
    }
}

/// Why no port could be had.
pub(super) fn no_port(error: &io::Error) -> Failure {
    Failure::new(Reason::PortTaken, format!("the system has no free port on 127.0.0.1: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(os_error: Errno) -> StartError {
        let os_error = Some(os_error.raw_os_error());
        StartError::Program { os_error, message: "as the system says it".into() }
    }

    #[test]
    fn a_program_that_does_not_run_is_told_with_what_to_do() {
        let told = |name: &str, errno| {
            let failure = not_started(Backend::LlamaCpp, name, &program(errno));
            (failure.reason, failure.message)
        };
        let (reason, message) = told("llama-server", Errno::NOENT);
        assert_eq!(reason, Reason::ProgramNotFound);
        assert!(message.contains("`llama-server`; install llama.cpp"), "{message}");
        // A script that is there, whose interpreter is not.
        let here = std::env::current_exe().unwrap();
        let (reason, message) = told(&here.to_string_lossy(), Errno::NOENT);
        assert_eq!(reason, Reason::ProgramNotStarted);
        assert!(message.contains("interpreter"), "{message}");
        assert!(told("a", Errno::ACCESS).1.contains("chmod +x a"));
        assert!(told("a", Errno::NOEXEC).1.contains("not made for this machine"));
        assert!(told("a", Errno::NOMEM).1.contains("as the system says it"));
    }

    #[test]
    fn a_full_disk_is_told_apart_from_a_folder_that_may_not_be_written() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert_eq!(not_written(Path::new("/data"), &full).reason, Reason::DiskFull);
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let failure = not_written(Path::new("/data"), &denied);
        assert!(failure.message.contains("--data-dir"), "{failure}");
    }
}
