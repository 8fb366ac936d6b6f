//! Removes weights whose Model is gone. What is needed is asked of the cluster each time; a list that cannot be
//! had removes nothing.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use flexinfer_core::loading::Unneeded;
use flexinfer_core::moment::Moment;
use tokio::task::spawn_blocking;

use crate::flash::copies::Copies;
use crate::inside;

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(60);

/// Who knows what is needed. Folders are named `<namespace>/<model>`.
#[async_trait]
pub(crate) trait Cluster: Send + Sync {
    /// All Models.
    async fn models(&self) -> anyhow::Result<BTreeSet<String>>;

    /// Models that have a pod on this node.
    async fn in_use(&self) -> anyhow::Result<BTreeSet<String>>;
}

/// Looks again and again, and removes what is not needed below `folder`.
pub(crate) async fn remove_unneeded(folder: PathBuf, cluster: impl Cluster) {
    let begun = Instant::now();
    let mut unneeded = Unneeded::default();
    let mut ticks = tokio::time::interval(INTERVAL);
    loop {
        ticks.tick().await;
        let held = held(&folder);
        if held.is_empty() {
            continue;
        }
        let (models, in_use) = match (cluster.models().await, cluster.in_use().await) {
            (Ok(models), Ok(in_use)) => (models, in_use),
            (Err(error), _) | (_, Err(error)) => {
                tracing::warn!(error = %format!("{error:#}"), "weights are kept: nobody knows what is needed");
                continue;
            }
        };
        let now = Moment::after_origin(begun.elapsed());
        for name in unneeded.of(&held, &models, &in_use, now) {
            let place = folder.join(&name);
            let folder = folder.clone();
            // Much takes long, and the agent has one thread for all that it does.
            let removing = spawn_blocking(move || remove(&folder, Path::new(&name))).await;
            match removing.unwrap_or_else(|error| Err(io::Error::other(error))) {
                Ok(false) => {}
                Ok(true) => {
                    tracing::info!(path = %place.display(), "removed: its Model is gone");
                    // Meanwhile the next one may be needed again.
                    ticks.reset_immediately();
                    break;
                }
                Err(error) => {
                    tracing::warn!(path = %place.display(), %error, "weights that nobody needs are left");
                }
            }
        }
    }
}

/// Memory holds nothing but copies there, of other loaders too; on a disk there may be somebody else's files. What is
/// mounted in the place of a model's folder stays as an empty one. Gives whether there was anything to remove.
fn remove(folder: &Path, name: &Path) -> io::Result<bool> {
    let place = folder.join(name);
    let (Some(namespace), Some(model)) = (name.parent(), name.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = inside::top(folder).and_then(|top| inside::folder(&top, namespace))?;
    let held = match inside::folder(&above, Path::new(model)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        held => held?,
    };
    let is_mounted = inside::device(&held)? != inside::device(&above)?;
    let is_empty = inside::entries(&held)?.is_empty();
    let copies = Copies::of(held, &place)?;
    let found = if copies.are_in_memory()? {
        if !is_empty {
            copies.remove_all()?;
        }
        !is_empty
    } else {
        let found = copies.find(None);
        // One that cannot be removed keeps no other.
        let removed = found.iter().map(|copy| copies.remove(copy, None));
        removed.fold(Ok(()), io::Result::and)?;
        !found.is_empty()
    };
    if is_mounted {
        return Ok(found);
    }
    // What a load has put there since then stays.
    let removed = inside::remove_empty(&above, model, &place);
    removed.map(|()| true).map_err(|error| match error.kind() {
        io::ErrorKind::NotADirectory => {
            io::Error::other(format!("no load has put there all that is in it: {error}"))
        }
        _ => error,
    })
}

/// The folders of models, as `<namespace>/<model>`.
fn held(folder: &Path) -> BTreeSet<String> {
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        real.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let namespaces = folders(folder).into_iter();
    let models = namespaces.flat_map(|namespace| {
        let models = folders(&folder.join(&namespace));
        models.into_iter().map(move |model| format!("{namespace}/{model}"))
    });
    models.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on shall fail where it stands")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn of_a_folder_with_somebody_elses_files_only_copies_go() {
        let top = tempfile::tempdir().unwrap();
        if Copies::at(top.path()).unwrap().are_in_memory().unwrap() {
            return println!("not tested: temporary files are in memory here");
        }
        let place = top.path().join("models/llama");
        let write = |name: &str, content: &str| {
            fs::create_dir_all(place.join(name).parent().unwrap()).unwrap();
            fs::write(place.join(name), content).unwrap();
        };
        write("hub/a.bin", "weights");
        write("hub/.flash/files.json", r#"["a.bin"]"#);
        write("theirs", "not ours");
        let remove = || remove(top.path(), Path::new("models/llama"));
        let said = remove().unwrap_err().to_string();
        assert!(said.contains("models/llama/theirs"), "{said}");
        assert!(place.join("theirs").exists() && !place.join("hub").exists());
        fs::remove_file(place.join("theirs")).unwrap();
        write("b.bin", "weights");
        write(".flash/files.json", r#"["b.bin"]"#);
        // Each of the two is looked at before the other, in one of the turns.
        for (garbled, old) in [("x", "y"), ("y", "x")] {
            for (name, record) in [(garbled, ""), (old, r#"["a.bin"]"#)] {
                write(&format!("{name}/a.bin"), "weights");
                write(&format!("{name}/.flash/files.json"), record);
            }
            let said = remove().unwrap_err().to_string();
            assert!(said.contains(&format!("{garbled}/.flash/files.json")), "{said}");
            assert!(place.join(garbled).join("a.bin").exists());
            assert!(!place.join(old).exists() && !place.join("b.bin").exists(), "the others go");
            write(&format!("{garbled}/.flash/files.json"), r#"["a.bin"]"#);
        }
        remove().unwrap();
        assert!(!place.exists());
    }

    #[test]
    fn from_memory_goes_all_but_what_a_load_is_at_work_on() {
        let Ok(top) = tempfile::tempdir_in("/dev/shm") else {
            println!("not tested: there is no /dev/shm");
            return;
        };
        let place = top.path().join("models/llama");
        for name in [".flash/lock", "hub/.flash/lock", "hub/.flash/files.json", "hub/a", "b"] {
            fs::create_dir_all(place.join(name).parent().unwrap()).unwrap();
            fs::write(place.join(name), "[]").unwrap();
        }
        let remove = || remove(top.path(), Path::new("models/llama"));
        for lock in [".flash/lock", "hub/.flash/lock"] {
            let lock = fs::File::options().write(true).open(place.join(lock)).unwrap();
            lock.lock().unwrap();
            let said = remove().unwrap_err().to_string();
            assert!(said.contains("a load is at work there"), "{said}");
            assert!(place.join("hub/a").exists() && place.join("b").exists());
        }
        remove().unwrap();
        assert!(!place.exists());
    }

    #[test]
    fn what_is_mounted_in_the_place_of_a_model_is_emptied() {
        const INSIDE: &str = "REMOVING_WHERE_ONE_MAY_MOUNT";
        if std::env::var_os(INSIDE).is_none() {
            let test =
                "weights::removing::tests::what_is_mounted_in_the_place_of_a_model_is_emptied";
            let mut again = Command::new("unshare");
            again.args(["--user", "--map-root-user", "--mount"]);
            again.arg(std::env::current_exe().unwrap()).args(["--exact", "--nocapture", test]);
            again.env(INSIDE, "");
            match again.output() {
                Ok(output) if String::from_utf8_lossy(&output.stderr).contains("unshare: ") => {
                    println!("not tested: nothing can be mounted here: {output:?}");
                }
                Ok(output) => {
                    let said = String::from_utf8_lossy(&output.stdout);
                    assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
                    println!("{said}");
                }
                Err(error) => println!("not tested: {error}"),
            }
            return;
        }
        let top = tempfile::tempdir().unwrap();
        let place = top.path().join("models/llama");
        fs::create_dir_all(&place).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&place).status();
        if !mount.unwrap().success() {
            return println!("not tested: nothing can be mounted here");
        }
        fs::create_dir(place.join("hub")).unwrap();
        fs::write(place.join("hub/a"), "weights").unwrap();
        let remove = || remove(top.path(), Path::new("models/llama"));
        assert!(remove().unwrap());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
        assert!(!remove().unwrap(), "what stays empty is not told of each minute");
        Command::new("umount").arg(&place).status().unwrap();
    }
}
