//! `clean` takes away what `flash` has put somewhere, and nothing else.

use std::fs;
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
    std::os::unix::fs::symlink(&other, world.destination.join("link")).unwrap();
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
