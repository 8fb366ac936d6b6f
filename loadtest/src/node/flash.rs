//! `flexinfer-node flash` beside the yardstick, `cp -r`, and what else of its kind the machine has.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::{cached, yardstick};

/// Where things are.
pub(super) struct Places<'a> {
    pub(super) program: &'a Path,
    pub(super) from: &'a Path,
    pub(super) to: &'a Path,
}

/// What is copied.
pub(super) struct Weights {
    lengths: Vec<u64>,
}

impl Weights {
    /// `length` bytes in four files, of which the first has half of them: shards are not alike.
    pub(super) fn large(length: u64) -> Self {
        let half = length / 2;
        Self { lengths: vec![half, half / 2, half / 4, half - half / 2 - half / 4] }
    }

    pub(super) fn small(count: usize) -> Self {
        Self { lengths: vec![4096; count] }
    }

    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }

    /// Writes them into `folder`, and to its disk.
    fn write(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        // Bytes that no file system makes smaller: one of the four of each scattered number.
        let scattered = (0..1 << 18).flat_map(|n: u32| n.wrapping_mul(2_654_435_761).to_le_bytes());
        let block: Vec<u8> = scattered.collect();
        for (number, length) in self.lengths.iter().enumerate() {
            let mut file = fs::File::create(folder.join(format!("weights-{number:06}.bin")))?;
            let mut left = usize::try_from(*length)?;
            while left > 0 {
                let part = block.get(..left.min(block.len())).unwrap_or(&block);
                file.write_all(part)?;
                left -= part.len();
            }
        }
        // Else the system would write them to the disk while the first copies are measured.
        rustix::fs::sync();
        Ok(())
    }
}

/// Where the source is when a copy begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// All of it in the page cache.
    Warm,
    /// Nothing of it.
    Cold,
}

/// A way to copy a folder.
enum Way {
    Flash,
    Yardstick,
    /// A program of the machine, with the arguments before the two folders.
    Program(&'static str, &'static [&'static str]),
}

const WAYS: [(&str, Way); 5] = [
    ("flash", Way::Flash),
    ("yardstick", Way::Yardstick),
    ("cp -r", Way::Program("cp", &["-r"])),
    ("rsync", Way::Program("rsync", &["-r", "--inplace", "--whole-file"])),
    ("rclone", Way::Program("rclone", &["copy"])),
];

/// The times of each way, shortest first, and the most memory that `flash` took beyond its copy.
#[derive(Default)]
pub(super) struct Copies {
    times: BTreeMap<&'static str, Vec<Duration>>,
    pub(super) memory: Option<u64>,
    /// Bytes of the source that had left the page cache between copies.
    missed: u64,
    /// Whether nothing could be measured since the file system keeps its pages in memory.
    stays_warm: bool,
}

/// Copies `weights` in each way, in turns. Each round begins with another way, since what the one before leaves
/// behind is not alike.
pub(super) fn compare(
    places: &Places<'_>,
    (weights, from): (&Weights, Source),
    rounds: u32,
) -> Result<Copies> {
    let source = tempfile::Builder::new().prefix("flexinfer-bench-").tempdir_in(places.from)?;
    weights.write(source.path())?;
    let mut copies = Copies::default();
    for round in 0..rounds {
        for (name, way) in WAYS.iter().cycle().skip(usize::try_from(round)?).take(WAYS.len()) {
            let folder =
                tempfile::Builder::new().prefix("flexinfer-bench-").tempdir_in(places.to)?;
            match from {
                Source::Warm => copies.missed += cached::ensure_cached(source.path())?,
                Source::Cold if cached::ensure_cold(source.path())? => {}
                Source::Cold => return Ok(Copies { stays_warm: true, ..Copies::default() }),
            }
            let copy = folder.path().join("copy");
            let begun = Instant::now();
            let took = match way {
                Way::Flash => {
                    let memory = flash(places.program, source.path(), &copy, from)?;
                    copies.memory = copies.memory.max(memory);
                    Some(begun.elapsed())
                }
                Way::Yardstick => {
                    yardstick::copy(source.path(), &copy)?;
                    Some(begun.elapsed())
                }
                Way::Program(program, arguments) => {
                    by_program(program, arguments, source.path(), &copy)?.then(|| begun.elapsed())
                }
            };
            let Some(took) = took else { continue };
            if round == 0 {
                same(source.path(), &copy).with_context(|| format!("{name} copied wrongly"))?;
            }
            copies.times.entry(name).or_default().push(took);
        }
    }
    copies.times.values_mut().for_each(|times| times.sort_unstable());
    Ok(copies)
}

/// Runs `flash`; gives the most memory it had, without the copy, which is nobody's.
fn flash(program: &Path, from: &Path, to: &Path, source: Source) -> Result<Option<u64>> {
    let mut command = Command::new(program);
    command.arg("flash").arg("--src").arg(from).arg("--dst").arg(to);
    if source == Source::Warm {
        // The next round shall find the pages too.
        command.arg("--keep-page-cache");
    }
    command.stdin(Stdio::null()).stderr(Stdio::null());
    let mut child =
        command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let mut most = None;
    loop {
        most = most.max(peak(child.id()));
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "flash ended with {status}");
            return Ok(most);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The most private memory that a process had so far.
fn peak(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Whether the program is there; it must do what it is asked then.
fn by_program(program: &str, arguments: &[&str], from: &Path, to: &Path) -> Result<bool> {
    let mut command = Command::new(program);
    command.args(arguments).arg(with_slash(from, program)).arg(to);
    match command.stdin(Stdio::null()).stdout(Stdio::null()).status() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        status => {
            let status = status.with_context(|| format!("cannot start {program}"))?;
            ensure!(status.success(), "{program} ended with {status}");
            Ok(true)
        }
    }
}

/// rsync copies what is in a folder only if its name ends with a slash.
fn with_slash(folder: &Path, program: &str) -> PathBuf {
    if program == "rsync" { folder.join("") } else { folder.to_path_buf() }
}

/// Looks at lengths only: that copies are right is for tests to show.
fn same(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        let (wanted, found) = (entry.metadata()?.len(), fs::metadata(&copy)?.len());
        ensure!(wanted == found, "{} has {found} of {wanted} bytes", copy.display());
    }
    Ok(())
}

impl Copies {
    pub(super) fn print(&self, what: &str) {
        println!("\n{what}: best time, median, all");
        if self.stays_warm {
            println!("not measured: the file system of the source keeps its pages in memory");
        }
        for (name, times) in &self.times {
            let all = times.iter().map(|time| format!("{:.3}", time.as_secs_f64()));
            let all = all.collect::<Vec<_>>().join(" ");
            let (best, median) = (self.best(name), self.median(name));
            let [best, median] = [best, median].map(Option::unwrap_or_default);
            println!("{name:<14}{best:>9.3} s{median:>9.3} s   {all}");
        }
        if let Some(bytes) = self.memory {
            println!("flash had {} KiB of memory at most", bytes >> 10);
        }
        if self.missed > 0 {
            println!(
                "{} MiB left the page cache between copies and were read again",
                self.missed >> 20
            );
        }
    }

    /// The best time of a way, in seconds.
    pub(super) fn best(&self, name: &str) -> Option<f64> {
        self.times.get(name)?.first().map(Duration::as_secs_f64)
    }

    /// The time in the middle, in seconds; of two the longer.
    fn median(&self, name: &str) -> Option<f64> {
        let times = self.times.get(name)?;
        times.get(times.len() / 2).map(Duration::as_secs_f64)
    }

    /// How many times as fast `flash` is as another way, by the best times of both.
    pub(super) fn times_as_fast(&self, other: &str) -> Option<f64> {
        Some(self.best(other)? / self.best("flash")?)
    }

    /// The same by the times in the middle.
    pub(super) fn times_as_fast_commonly(&self, other: &str) -> Option<f64> {
        Some(self.median(other)? / self.median("flash")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_best_times_and_of_those_in_the_middle() {
        let seconds = |seconds: [u64; 3]| seconds.map(Duration::from_secs).to_vec();
        let times = [("flash", seconds([2, 5, 9])), ("yardstick", seconds([3, 10, 10]))].into();
        let copies = Copies { times, ..Copies::default() };
        assert_eq!(copies.times_as_fast("yardstick"), Some(1.5));
        assert_eq!(copies.times_as_fast_commonly("yardstick"), Some(2.0));
        assert_eq!(copies.times_as_fast("rclone"), None);
        assert_eq!(Weights::large(1001).lengths.iter().sum::<u64>(), 1000);
    }
}
