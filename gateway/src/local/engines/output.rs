//! What the engines of one model say: the last lines in memory, for explanations and the admin port,
//! and everything in a file that is kept from growing without end.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Lines kept in memory per model.
const KEPT_LINES: usize = 400;
/// A longer line is cut: it is somebody's binary or a progress bar without end.
const LONGEST_LINE: usize = 8 * 1024;
/// A file of this size becomes `<model>.log.1`, in place of the one before.
const LARGEST_FILE: u64 = 10 * 1024 * 1024;

/// The output of one model's engines.
pub(super) struct Output {
    lines: Mutex<Kept>,
    file: Mutex<LogFile>,
}

#[derive(Default)]
struct Kept {
    last: VecDeque<String>,
    /// How many were ever said.
    count: u64,
}

impl Output {
    /// Output that is also written to the file at `path`; its folder is made when it is missing.
    pub(super) fn new(path: PathBuf) -> Arc<Self> {
        let file = LogFile { path, open: None, written: 0 };
        Arc::new(Self { lines: Mutex::default(), file: Mutex::new(file) })
    }

    /// The last lines, oldest first.
    pub(super) fn last_lines(&self) -> Vec<String> {
        self.lines.lock().last.iter().cloned().collect()
    }

    /// The last line, and how many there were with it.
    pub(super) fn latest(&self) -> Option<(u64, String)> {
        let lines = self.lines.lock();
        lines.last.back().map(|line| (lines.count, line.clone()))
    }

    /// Forgets the lines of an earlier run, so that its end is not explained with them.
    pub(super) fn begin_run(&self, headline: &str) {
        self.lines.lock().last.clear();
        self.file.lock().write(format!("--- {headline}\n").as_bytes());
    }

    /// Reads `pipe` to its end on a thread of its own, so that a slow disk slows nobody else. What is
    /// returned resolves when all of it was read.
    pub(super) fn read_all(
        self: &Arc<Self>,
        pipe: PipeReader,
    ) -> io::Result<oneshot::Receiver<()>> {
        let (done, all_read) = oneshot::channel();
        let output = Arc::clone(self);
        thread::Builder::new().name("engine output".to_owned()).spawn(move || {
            output.read(pipe);
            let _ = done.send(());
        })?;
        Ok(all_read)
    }

    fn read(&self, mut pipe: impl Read) {
        let mut buffer = vec![0; 16 * 1024];
        let mut line = Vec::new();
        loop {
            let count = match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            let new = buffer.get(..count).unwrap_or_default();
            self.file.lock().write(new);
            for &byte in new {
                // A carriage return ends a line too: progress bars draw over themselves.
                if matches!(byte, b'\n' | b'\r') || line.len() >= LONGEST_LINE {
                    self.keep(&mut line);
                }
                if !matches!(byte, b'\n' | b'\r') {
                    line.push(byte);
                }
            }
        }
        self.keep(&mut line);
    }

    fn keep(&self, line: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        line.clear();
        if text.is_empty() {
            return;
        }
        let mut lines = self.lines.lock();
        if lines.last.len() == KEPT_LINES {
            lines.last.pop_front();
        }
        lines.last.push_back(text);
        lines.count += 1;
    }
}

/// A file that begins anew when it has grown too large. A disk that takes nothing more loses the file
/// and nothing else: the engine must not stop because its output cannot be kept.
struct LogFile {
    path: PathBuf,
    open: Option<File>,
    written: u64,
}

impl LogFile {
    fn write(&mut self, bytes: &[u8]) {
        if self.open.is_some() && self.written >= LARGEST_FILE {
            self.open = None;
            let _ = fs::rename(&self.path, older(&self.path));
        }
        if self.open.is_none()
            && let Ok((file, length)) = open(&self.path)
        {
            (self.open, self.written) = (Some(file), length);
        }
        if let Some(file) = &mut self.open {
            if file.write_all(bytes).is_ok() {
                self.written += bytes.len() as u64;
            } else {
                self.open = None;
            }
        }
    }
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().create(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn older(path: &Path) -> PathBuf {
    path.with_added_extension("1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_the_file_has_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/qwen.log");
        let output = Output::new(path.clone());
        let said: Vec<_> = (0..KEPT_LINES + 10).map(|number| format!("line {number}")).collect();
        let said = said.join("\n") + "\n";
        output.read(format!("10 %\r20 %\r\n{said}no end").as_bytes());
        let lines = output.last_lines();
        assert_eq!(lines.len(), KEPT_LINES);
        assert_eq!(lines.last().map(String::as_str), Some("no end"));
        assert!(fs::read_to_string(path).unwrap().contains("20 %\r\nline 0\n"));
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::new(folder.path().join("a.log"));
        output.read(vec![b'x'; 3 * LONGEST_LINE].as_slice());
        assert_eq!(output.last_lines().len(), 3);
    }

    #[test]
    fn a_large_file_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        let mut file = LogFile { path: path.clone(), open: None, written: 0 };
        file.write(b"old");
        file.written = LARGEST_FILE;
        file.write(b"new");
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read(older(&path)).unwrap(), b"old");
    }

    #[test]
    fn output_that_cannot_be_written_is_still_kept_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let output = Output::new(folder.path().to_path_buf());
        output.read(b"hello\n".as_slice());
        assert_eq!(output.last_lines(), ["hello"]);
    }
}
