//! What every test of `flash` begins with: a folder to copy from, one to copy to, and the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A stretch of test content that has one number in it; no multiple of any buffer's size.
const BLOCK: usize = 1021;

/// The program, without the environment of whoever runs the tests.
pub(crate) fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flexinfer-node"));
    command.env_clear();
    command
}

pub(crate) struct World {
    folder: tempfile::TempDir,
    pub(crate) source: PathBuf,
    pub(crate) destination: PathBuf,
}

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        let destination = folder.path().join("memory/model");
        fs::create_dir(&source).unwrap();
        Self { folder, source, destination }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Puts a file into the source.
    pub(crate) fn put(&self, path: &str, content: &[u8]) -> PathBuf {
        let place = self.source.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, content).unwrap();
        place
    }

    /// `flash` with these further arguments.
    pub(crate) fn flash(&self, arguments: &[&str]) -> Command {
        let mut command = program();
        command.arg("flash").arg("--src").arg(&self.source);
        command.arg("--dst").arg(&self.destination).args(arguments);
        command
    }

    /// Runs `flash`, which must do what it is asked.
    pub(crate) fn copied(&self, arguments: &[&str]) -> String {
        let output = self.flash(arguments).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    }

    /// Runs `flash`, which must refuse with this exit status, and gives what it says.
    pub(crate) fn refused(&self, status: i32, arguments: &[&str]) -> String {
        let output = self.flash(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", text(&output));
        assert_eq!(self.half_written(), 0, "{}", text(&output));
        text(&output)
    }

    pub(crate) fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.destination.join(path)).unwrap()
    }

    /// The names in the destination, our own apart.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        collect(&self.destination, "", &mut names);
        names.retain(|name| !name.starts_with(".flash/"));
        names.sort();
        names
    }

    pub(crate) fn half_written(&self) -> usize {
        self.names().iter().filter(|name| name.ends_with(".flash-tmp")).count()
    }
}

fn collect(folder: &Path, before: &str, names: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        if entry.file_type().unwrap().is_dir() {
            collect(&entry.path(), &format!("{name}/"), names);
        } else {
            names.push(name);
        }
    }
}

/// Runs a script of the shell's with these words, in a namespace of its own, since only there anybody may mount
/// something. Nothing where that cannot be; the script ends with 99 where a mount fails.
pub(crate) fn mounting(script: &str, words: &[&Path]) -> Option<Output> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    match command.args(words).output() {
        Ok(output) if !text(&output).contains("unshare: ") && output.status.code() != Some(99) => {
            Some(output)
        }
        other => {
            println!("not tested: nothing can be mounted here: {other:?}");
            None
        }
    }
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Bytes that differ from place to place, and for each `seed`.
pub(crate) fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + BLOCK);
    let mut number = seed << 32;
    while bytes.len() < length {
        number += 1;

        bytes.extend_from_slice(&number.wrapping_mul(6_364_136_223_846_793_005).to_le_bytes());
        bytes.resize(bytes.len() + BLOCK - 8, number.to_le_bytes()[0]);
    }
    bytes.truncate(length);
    bytes
}
