//! A watched folder, with files of a toy language: each line `name priority` is a Model, and a line
//! `!` is an error.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use flexinfer_core::effective::{Defaults, Effective};
use flexinfer_core::manifest::ParsedModel;
use flexinfer_crds::Model;
use tempfile::TempDir;

use super::catalog::Understood;
use super::{Contents, Folder};

/// A save that took this long, on a machine with too much to do, may rightly look like a removal.
const TOO_SLOW_TO_TELL: Duration = Duration::from_millis(200);

struct Watched {
    folder: TempDir,
    seen: Arc<Mutex<Vec<Contents>>>,
    _watch: Folder,
}

impl Watched {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self::on(folder)
    }

    fn on(folder: TempDir) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let changed = move |contents| sink.lock().unwrap().push(contents);
        let (watch, first) = Folder::watch_with(folder.path(), toy, changed).unwrap();
        seen.lock().unwrap().push(first);
        Self { folder, seen, _watch: watch }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Waits until the folder says this; see [`shown`].
    #[track_caller]
    fn says(&self, wanted: &str) -> Contents {
        let began = Instant::now();
        loop {
            let now = self.seen.lock().unwrap().last().cloned().unwrap();
            if shown(&now) == wanted {
                return now;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "it says {}", shown(&now));
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until it has said something that begins so.
    #[track_caller]
    fn says_first(&self, wanted: &str) {
        let began = Instant::now();
        while !self.seen.lock().unwrap().iter().any(|now| shown(now).starts_with(wanted)) {
            assert!(began.elapsed() < Duration::from_secs(60), "it never said {wanted}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn ever_said(&self, wanted: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|contents| shown(contents) == wanted)
    }
}

/// The Models as `name=priority`.
fn shown(contents: &Contents) -> String {
    let show = |listed: &super::Listed| {
        let priority = listed.model.spec.gpu.as_ref().unwrap().priority.unwrap();
        format!("{}={priority}", listed.id().name)
    };
    contents.models.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn toy(path: &Path, bytes: &[u8]) -> Understood {
    let mut understood = Understood::default();
    for (number, line) in std::str::from_utf8(bytes).unwrap().lines().enumerate() {
        match line.split_once(' ') {
            Some((name, priority)) => {
                understood.models.push(parsed(name, priority.parse().unwrap(), number + 1));
            }
            None => understood.errors.push(format!("{}:{}: !", path.display(), number + 1)),
        }
    }
    understood
}

pub(super) fn parsed(name: &str, priority: i32, line: usize) -> ParsedModel {
    let object = serde_json::json!({
        "apiVersion": "inference.flexinfer.ai/v1alpha2",
        "kind": "Model",
        "metadata": { "name": name },
        "spec": { "backend": "simulator", "gpu": { "priority": priority } },
    });
    let model: Model = serde_json::from_value(object).unwrap();
    let effective = Effective::of(&model, 0, &Defaults::default()).unwrap();
    ParsedModel { model, effective, line }
}

#[test]
fn files_added_edited_and_removed_take_effect() {
    let watched = Watched::new(&[("a.yaml", "llama 1")]);
    watched.says("llama=1");
    watched.write("b.yml", "qwen 1");
    watched.says("llama=1 qwen=1");
    watched.write("a.yaml", "llama 2");
    watched.says("llama=2 qwen=1");
    fs::remove_file(watched.path("b.yml")).unwrap();
    watched.says("llama=2");
    fs::rename(watched.path("a.yaml"), watched.path("c.yaml")).unwrap();
    let contents = loop {
        let contents = watched.says("llama=2");
        if contents.models[0].file.ends_with("c.yaml") {
            break contents;
        }
    };
    assert_eq!(contents.models[0].line, 1);
    assert!(!watched.ever_said(""), "a renamed file's models were never missing");
}

#[test]
fn a_broken_edit_keeps_the_old_version_until_it_is_mended() {
    let watched = Watched::new(&[("a.yaml", "llama 1")]);
    watched.write("a.yaml", "!");
    watched.write("b.yaml", "qwen 1");
    let contents = watched.says("llama=1 qwen=1");
    let told = contents.complaints.join("\n");
    assert!(told.contains("a.yaml:1: !") && told.contains("stays as it was"), "{told}");
    watched.write("a.yaml", "llama 2");
    assert_eq!(watched.says("llama=2 qwen=1").complaints, [""; 0]);
}

#[test]
fn a_file_that_is_saved_by_moving_the_old_one_away_is_never_missing() {
    let watched = Watched::new(&[("a.yaml", "llama 1")]);
    let mut slowest = Duration::ZERO;
    for round in 2..6 {
        let began = Instant::now();
        fs::rename(watched.path("a.yaml"), watched.path("a.yaml~")).unwrap();
        watched.write(".a.yaml.new", &format!("llama {round}"));
        fs::rename(watched.path(".a.yaml.new"), watched.path("a.yaml")).unwrap();
        slowest = slowest.max(began.elapsed());
    }
    watched.write("b.yaml", "qwen 1");
    watched.says_first("llama=5");
    let missing = watched.ever_said("") || watched.ever_said("qwen=1");
    assert!(!missing || slowest >= TOO_SLOW_TO_TELL);
}

#[test]
fn a_file_that_is_truncated_and_written_again_is_never_empty() {
    let watched = Watched::new(&[("a.yaml", "llama 1")]);
    let mut slowest = Duration::ZERO;
    for round in 2..6 {
        let began = Instant::now();
        watched.write("a.yaml", "");
        watched.write("a.yaml", &format!("llama {round}"));
        slowest = slowest.max(began.elapsed());
    }
    watched.says_first("llama=5");
    assert!(!watched.ever_said("") || slowest >= TOO_SLOW_TO_TELL);
    watched.write("a.yaml", "");
    watched.says("");
}

#[test]
fn a_mounted_config_map_is_followed_when_its_link_moves() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (version, text) in [("..1", "llama 1"), ("..2", "llama 2")] {
        fs::create_dir(path(version)).unwrap();
        fs::write(path(version).join("a.yaml"), text).unwrap();
    }
    symlink("..1", path("..data")).unwrap();
    symlink("..data/a.yaml", path("a.yaml")).unwrap();
    let watched = Watched::on(folder);
    watched.says("llama=1");
    symlink("..2", watched.path("..data_tmp")).unwrap();
    fs::rename(watched.path("..data_tmp"), watched.path("..data")).unwrap();
    watched.says("llama=2");
}

#[test]
fn a_file_that_cannot_be_read_any_more_keeps_its_models_and_says_so() {
    let watched = Watched::new(&[("a.yaml", "llama 1"), ("b.yaml", "phi 1")]);
    // A link that leads nowhere cannot be read by anybody, root included.
    symlink("nowhere", watched.path("link")).unwrap();
    fs::rename(watched.path("link"), watched.path("a.yaml")).unwrap();
    watched.write("c.yaml", "qwen 1");
    let contents = watched.says("llama=1 phi=1 qwen=1");
    let told = contents.complaints.join("\n");
    assert!(told.contains("a.yaml: cannot be read"), "{told}");
}

#[test]
fn a_folder_that_goes_away_leaves_its_models_and_is_found_again() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("models");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.yaml"), "llama 1").unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let changed = move |contents: Contents| sink.lock().unwrap().push(shown(&contents));
    let (_watch, first) = Folder::watch_with(&folder, toy, changed).unwrap();
    assert_eq!(shown(&first), "llama=1");
    fs::rename(&folder, outer.path().join("away")).unwrap();
    fs::create_dir(outer.path().join("next")).unwrap();
    fs::write(outer.path().join("next/a.yaml"), "llama 2").unwrap();
    fs::rename(outer.path().join("next"), &folder).unwrap();
    let began = Instant::now();
    while seen.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(*seen.lock().unwrap(), ["llama=2"]);
}

#[test]
fn a_folder_that_is_missing_is_an_error_that_names_it() {
    let refused = Folder::watch_with(Path::new("/no/such/folder"), toy, |_| {}).err().unwrap();
    assert!(refused.to_string().contains("/no/such/folder"), "{refused}");
}
