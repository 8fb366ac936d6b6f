//! `clean` takes away what `flash` has put somewhere, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Output;

use crate::world::{World, program, text};

fn clean(folder: &Path, arguments: &[&str]) -> Output {
    program().arg("clean").arg(folder).args(arguments).output().unwrap()
}

#[test]
fn a_copy_goes_and_its_folder_with_it() {
    let world = World::new();
    world.put("config.json", b"{}");
    world.put("sub/model.bin", b"weights");
    world.copied(&[]);
    let output = clean(&world.destination, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!world.destination.exists(), "{:?}", world.names());
    let top = world.destination.parent().unwrap();
    world.copied(&["--alone-in", top.to_str().unwrap()]);
    let output = clean(top, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!top.exists(), "its lock and the folders on the way go too");
    let output = clean(&world.destination, &[]);
    assert!(output.status.success(), "what is gone already is well: {}", text(&output));
}

#[test]
fn what_no_load_has_put_there_stays() {
    let world = World::new();
    world.put("model.bin", b"weights");
    world.copied(&[]);
    fs::write(world.destination.join("theirs"), "not ours").unwrap();
    let output = clean(&world.destination, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("no load has put there are left"), "{}", text(&output));
    assert_eq!(world.names(), ["theirs"]);
    let output = clean(&world.destination, &[]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("no load of `flash` has left its record"), "{}", text(&output));
    assert_eq!(world.names(), ["theirs"]);
}

#[test]
fn a_copy_may_be_named_by_where_one_stands_and_another_below_it_stays() {
    let mut world = World::new();
    world.put("model.bin", b"weights");
    let folder = world.destination.clone();
    world.copied(&[]);
    world.destination = folder.join("other");
    world.copied(&[]);
    let clean = || program().current_dir(&folder).args(["clean", "."]).output().unwrap();
    let output = clean();
    assert!(output.status.success(), "{}", text(&output));
    assert!(!folder.join("model.bin").exists() && !folder.join(".flash").exists());
    assert_eq!(world.names(), ["model.bin"], "that is a copy of its own");
}

#[test]
fn copies_below_a_folder_where_a_load_has_merely_failed_stay() {
    let mut world = World::new();
    world.put("model.bin", b"weights");
    let folder = world.folder().join("memory");
    for name in ["a", "b"] {
        world.destination = folder.join(name);
        world.copied(&[]);
    }
    let typo = world.folder().join("typo");
    world.destination.clone_from(&folder);
    let flash = ["flash", "--src", typo.to_str().unwrap(), "--dst", folder.to_str().unwrap()];
    let output = program().args(flash).output().unwrap();
    assert_eq!(output.status.code(), Some(65), "{}", text(&output));
    assert!(folder.join(".flash/lock").exists(), "what it leaves");
    let output = clean(&folder, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("another copy below it is left"), "{}", text(&output));
    assert_eq!(
        world.names(),
        [
            "a/.flash/files.json",
            "a/.flash/lock",
            "a/model.bin",
            "b/.flash/files.json",
            "b/.flash/lock",
            "b/model.bin"
        ]
    );
    assert!(!folder.join(".flash").exists());
}

#[test]
fn folders_of_others_stay_also_empty_ones_behind_a_link() {
    let world = World::new();
    world.put("model.bin", b"weights");
    world.copied(&[]);
    let other = world.folder().join("other");
    fs::create_dir_all(other.join("empty")).unwrap();
    fs::create_dir(world.destination.join("prepared")).unwrap();
    symlink(&other, world.destination.join("link")).unwrap();
    let output = clean(&world.destination, &[]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(other.join("empty").exists() && world.destination.join("prepared").exists());
    assert_eq!(world.names(), ["link"]);
}

#[test]
fn whole_goes_nothing_in_a_folder_of_everybodys() {
    let world = World::new();
    world.put("model.bin", b"weights");
    world.copied(&[]);
    // Tests have their folders where everybody has.
    for within in ["memory", "no/such/folder", "../source"] {
        let within = world.destination.join("..").join(within);
        let output = clean(&world.destination, &["--within", within.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert_eq!(world.names(), ["model.bin"]);
    }
}

/// A folder in memory, where copies may go whole.
fn memory() -> Option<tempfile::TempDir> {
    let memory = tempfile::tempdir_in("/dev/shm").ok();
    if memory.is_none() {
        println!("not tested: there is no /dev/shm");
    }
    memory
}

#[test]
fn within_a_folder_of_copies_one_goes_whole_whoever_put_it_there() {
    let Some(memory) = memory() else { return };
    let mut world = World::new();
    world.put("model.bin", b"weights");
    world.destination = memory.path().join("models/llama/hub");
    let alone_in = memory.path().join("models/llama");
    world.copied(&["--alone-in", alone_in.to_str().unwrap()]);
    for name in ["theirs", "prepared/by/others"] {
        fs::create_dir_all(alone_in.join(name).parent().unwrap()).unwrap();
        fs::write(alone_in.join(name), "not ours").unwrap();
    }
    let outside = world.folder().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a"), "theirs").unwrap();
    symlink(&outside, alone_in.join("link")).unwrap();
    // What is written counts as well as where it leads.
    let link = world.folder().join("link");
    symlink(memory.path(), &link).unwrap();
    let refused = clean(&link.join("models/llama"), &["--within", link.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(1), "that is in /tmp: {}", text(&refused));
    assert!(alone_in.join("theirs").exists());
    let within = ["--within", memory.path().to_str().unwrap()];
    let output = clean(&alone_in, &within);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!alone_in.exists() && memory.path().join("models").exists());
    assert!(outside.join("a").exists(), "nothing goes behind a link");
    let output = clean(&alone_in, &within);
    assert!(output.status.success(), "what is gone already is well: {}", text(&output));
    symlink(&outside, &alone_in).unwrap();
    let output = clean(&alone_in, &within);
    assert!(output.status.success(), "{}", text(&output));
    assert!(fs::symlink_metadata(&alone_in).is_err() && outside.join("a").exists());
}

#[test]
fn within_a_folder_of_copies_too_one_stays_that_a_load_is_at_work_on() {
    let Some(memory) = memory() else { return };
    let mut world = World::new();
    world.put("model.bin", b"weights");
    world.destination = memory.path().join("llama/hub");
    let alone_in = memory.path().join("llama");
    world.copied(&["--alone-in", alone_in.to_str().unwrap()]);
    let within = ["--within", memory.path().to_str().unwrap()];
    for lock in [alone_in.join(".flash/lock"), world.destination.join(".flash/lock")] {
        let lock = fs::File::options().write(true).open(lock).unwrap();
        lock.lock().unwrap();
        let output = clean(&alone_in, &within);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("a load is at work there"), "{}", text(&output));
        assert_eq!(world.names(), ["model.bin"]);
    }
    let output = clean(&alone_in, &within);
    assert!(output.status.success(), "{}", text(&output));
    assert!(!alone_in.exists());
}

#[test]
fn a_link_on_the_way_that_leads_out_of_the_folder_of_copies_is_refused() {
    let Some(memory) = memory() else { return };
    let Some(other) = self::memory() else { return };
    let theirs = other.path().join("llama");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("a"), "theirs").unwrap();
    symlink(other.path(), memory.path().join("models")).unwrap();
    let folder = memory.path().join("models/llama");
    let output = clean(&folder, &["--within", memory.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(text(&output).contains("it is not below"), "{}", text(&output));
    assert!(theirs.join("a").exists());
}
