//! Loading: takes the set time, or as long as really reading the files of the model takes, tells its
//! progress in tenths, and fails in the ways it was told to.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::{Engine, Phase};
use crate::faults::DiesAt;
use crate::shares::share;

/// How often progress is looked at.
const TICK: Duration = Duration::from_millis(2);
/// Where an engine that hangs while loading stops.
const HANGS_AT: f64 = 0.4;

/// Loads the model; returns why when the engine died of it. An engine that hangs never returns.
pub(crate) async fn load(engine: &Arc<Engine>) -> Result<(), String> {
    let begun = Instant::now();
    let mut progress = Progress { engine, begun, announced: 0 };
    let faults = &engine.settings.loading_faults;
    if let Some(DiesAt::After(after)) = faults.dies_at {
        return match tokio::time::timeout(after, progress.run()).await {
            Ok(Err(reason)) => Err(reason),
            // Loaded sooner than its time to die: it still dies while it claims to be loading.
            Ok(Ok(())) => {
                tokio::time::sleep_until(begun + after).await;
                Err(died(after.as_secs_f64(), "s"))
            }
            Err(_) => Err(died(after.as_secs_f64(), "s")),
        };
    }
    progress.run().await
}

fn died(at: f64, unit: &str) -> String {
    format!("simulated fault: the engine died while loading, at {at}{unit}: CUDA out of memory")
}

struct Progress<'a> {
    engine: &'a Arc<Engine>,
    begun: Instant,
    announced: u32,
}

impl Progress<'_> {
    async fn run(&mut self) -> Result<(), String> {
        let settings = &self.engine.settings;
        let mut reading = match &settings.model_path {
            Some(path) => Some(Reading::open(path).map_err(|error| {
                format!("the model at {} cannot be read: {error}", path.display())
            })?),
            None => None,
        };
        loop {
            let by_time = time_share(self.begun.elapsed(), settings.timings.load);
            let by_bytes = match reading.take() {
                Some(files) if files.share() < 1.0 => {
                    let files = files.read_on(by_time).await.map_err(|error| {
                        format!("the model cannot be read while loading: {error}")
                    })?;
                    reading.insert(files).share()
                }
                other => {
                    reading = other;
                    1.0
                }
            };
            let loaded = by_time.min(by_bytes);
            self.reached(loaded)?;
            if settings.loading_faults.hangs && loaded >= HANGS_AT {
                std::future::pending::<()>().await;
            }
            if loaded >= 1.0 {
                self.announce_bytes(reading.as_ref());
                return Ok(());
            }
            if by_bytes >= by_time {
                tokio::time::sleep(TICK).await;
            }
        }
    }

    fn reached(&mut self, loaded: f64) -> Result<(), String> {
        let faults = &self.engine.settings.loading_faults;
        if let Some(DiesAt::Fraction(fraction)) = faults.dies_at
            && loaded >= fraction
        {
            return Err(died(fraction * 100.0, " %"));
        }
        let shown = if faults.hangs { loaded.min(HANGS_AT) } else { loaded };
        self.engine.phase.send_replace(Phase::Loading(shown));
        while f64::from(self.announced + 1) <= shown * 10.0 {
            self.announced += 1;
            if self.engine.settings.announces {
                let name = self.engine.own_name();
                announce(&format!("loading {name}: {} %", self.announced * 10));
            }
        }
        Ok(())
    }

    fn announce_bytes(&self, reading: Option<&Reading>) {
        if let Some(files) = reading
            && self.engine.settings.announces
        {
            let seconds = self.begun.elapsed().as_secs_f64();
            announce(&format!("read {} bytes in {seconds:.3} s", files.done));
        }
    }
}

/// Writes a line to standard output. That nobody reads it is no reason to stop serving.
pub(crate) fn announce(line: &str) {
    use std::io::Write as _;
    let _ = writeln!(io::stdout(), "{line}");
}

fn time_share(elapsed: Duration, whole: Duration) -> f64 {
    if whole.is_zero() { 1.0 } else { (elapsed.as_secs_f64() / whole.as_secs_f64()).min(1.0) }
}

/// The files of a model, read from beginning to end.
#[derive(Debug)]
struct Reading {
    todo: Vec<PathBuf>,
    open: Option<std::fs::File>,
    done: u64,
    total: u64,
}

impl Reading {
    fn open(path: &Path) -> io::Result<Self> {
        let mut reading = Self { todo: Vec::new(), open: None, done: 0, total: 0 };
        reading.add(path)?;
        Ok(reading)
    }

    fn add(&mut self, path: &Path) -> io::Result<()> {
        let metadata = std::fs::metadata(path)?;
        if metadata.is_dir() {
            for entry in std::fs::read_dir(path)? {
                self.add(&entry?.path())?;
            }
        } else {
            self.total += metadata.len();
            self.todo.push(path.to_owned());
        }
        Ok(())
    }

    fn share(&self) -> f64 {
        let finished = self.todo.is_empty() && self.open.is_none();
        if finished { 1.0 } else { share(self.done, self.total) }
    }

    /// Reads up to this share of all bytes, a few MiB at a time, off the threads that answer.
    async fn read_on(mut self, up_to: f64) -> io::Result<Self> {
        let read = tokio::task::spawn_blocking(move || {
            let mut buffer = vec![0; 1 << 20];
            for _ in 0..8 {
                if self.share() >= up_to.max(f64::MIN_POSITIVE) && up_to < 1.0 {
                    break;
                }
                if !self.read_once(&mut buffer)? {
                    break;
                }
            }
            Ok(self)
        });
        read.await.map_err(io::Error::other)?
    }

    /// False once there is nothing left.
    fn read_once(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        if self.open.is_none() {
            match self.todo.pop() {
                Some(path) => self.open = Some(std::fs::File::open(path)?),
                None => return Ok(false),
            }
        }
        if let Some(file) = &mut self.open {
            let count = file.read(buffer)?;
            self.done += count as u64;
            if count == 0 {
                self.open = None;
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[tokio::test]
    async fn every_byte_of_the_model_is_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("shards")).unwrap();
        std::fs::write(folder.path().join("a.gguf"), vec![1; 3_000_000]).unwrap();
        std::fs::write(folder.path().join("shards/b"), vec![2; 500]).unwrap();
        let mut reading = Reading::open(folder.path()).unwrap();
        while reading.share() < 1.0 {
            reading = reading.read_on(1.0).await.unwrap();
        }
        assert_eq!((reading.done, reading.total), (3_000_500, 3_000_500));
    }

    #[tokio::test]
    async fn a_missing_model_file_is_the_reason_of_death() {
        let model_path = Some(PathBuf::from("/nowhere/model.gguf"));
        let engine = Arc::new(Engine::new(Settings { model_path, ..Settings::default() }));
        let reason = load(&engine).await.unwrap_err();
        assert!(reason.contains("/nowhere/model.gguf"), "{reason}");
    }

    #[tokio::test]
    async fn an_engine_dies_at_the_share_it_was_told_to() {
        let mut settings = Settings::default();
        settings.timings.load = Duration::from_millis(20);
        settings.loading_faults.dies_at = Some(DiesAt::Fraction(0.5));
        let engine = Arc::new(Engine::new(settings));
        assert!(load(&engine).await.unwrap_err().contains("50 %"));
        assert!(!engine.is_ready());
    }
}
