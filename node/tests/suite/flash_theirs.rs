//! What `flash` leaves alone in its destination: everything that no load has put there.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::world::{World, mounting, program, text};

#[test]
fn nothing_is_written_or_removed_behind_a_link() {
    let world = World::new();
    world.put("sub/a", b"a");
    world.copied(&[]);
    // Somebody has moved it, as to a larger disk.
    let (sub, elsewhere) = (world.destination.join("sub"), world.folder().join("elsewhere"));
    fs::rename(&sub, &elsewhere).unwrap();
    symlink(&elsewhere, &sub).unwrap();
    fs::remove_file(world.source.join("sub/a")).unwrap();
    world.put("sub/b", b"b");
    let said = world.refused(78, &[]);
    assert!(said.contains("model/sub is there already"), "{said}");
    let untouched = || elsewhere.join("a").exists() && !elsewhere.join("b").exists();
    assert!(untouched(), "{said}");
    fs::remove_file(world.source.join("sub/b")).unwrap();
    world.copied(&[]);
    assert!(untouched(), "what the source has no more was ours only where we had put it");
    world.put("sub/b", b"b");
    let said = world.copied(&["--alone-in", world.destination.to_str().unwrap()]);
    assert!(untouched(), "{said}");
    assert_eq!(world.names(), ["sub/b"], "the link was in the way");
}

#[test]
fn a_file_in_the_place_of_a_folder_is_told_of_before_anything_is_copied() {
    let world = World::new();
    world.put("a", b"a");
    world.put("sub/deeper/b", b"b");
    fs::create_dir_all(&world.destination).unwrap();
    fs::write(world.destination.join("sub"), "not ours").unwrap();
    let said = world.refused(78, &[]);
    assert!(said.contains("model/sub is there already"), "{said}");
    assert_eq!(world.names(), ["sub"]);
    world.copied(&["--alone-in", world.destination.to_str().unwrap()]);
    assert_eq!(world.names(), ["a", "sub/deeper/b"]);
}

#[test]
fn weights_are_not_copied_to_themselves() {
    let mut world = World::new();
    world.put("model.bin", b"weights");
    let source = world.source.clone();
    symlink(&source, world.folder().join("link")).unwrap();
    for destination in [source.clone(), world.folder().join("link")] {
        world.destination = destination;
        let said = world.refused(78, &[]);
        assert!(said.contains("the folder with the weights (FLASH_SRC) itself"), "{said}");
        // What is no copy is not removed as one.
        let output = program().arg("clean").arg(&source).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert_eq!(fs::read_dir(&source).unwrap().count(), 1);
    }
    world.destination = world.folder().join("memory/new");
    let said = world.refused(78, &["--alone-in", world.folder().to_str().unwrap()]);
    assert!(said.contains("source cannot be used"), "{said}");
    assert!(source.join("model.bin").exists());
}

#[test]
fn what_somebody_else_has_brought_there_is_not_removed_with_the_copy() {
    let world = World::new();
    for name in ["theirs.bin", "ours.bin"] {
        world.put(name, b"weights");
    }
    let (from, to) = (world.source.join("theirs.bin"), world.destination.join("theirs.bin"));
    fs::create_dir_all(&world.destination).unwrap();
    fs::copy(&from, &to).unwrap();
    let time = fs::metadata(&from).unwrap().modified().unwrap();
    File::options().write(true).open(&to).unwrap().set_modified(time).unwrap();
    let said = world.copied(&[]);
    assert!(said.contains("copied=1 whole=1"), "{said}");
    let output = program().arg("clean").arg(&world.destination).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert_eq!(world.names(), ["theirs.bin"]);
}

#[test]
fn a_link_in_the_place_of_our_records_is_none_of_ours() {
    let world = World::new();
    world.put("a", b"a");
    let theirs = world.folder().join("theirs");
    for folder in [&theirs, &world.destination] {
        fs::create_dir_all(folder).unwrap();
    }
    for name in ["files.json", "lock", "half.flash-tmp"] {
        fs::write(theirs.join(name), "theirs").unwrap();
    }
    symlink(&theirs, world.destination.join(".flash")).unwrap();
    let top = world.destination.parent().unwrap().to_path_buf();
    let said = world.refused(78, &[]);
    assert!(
        said.contains("model/.flash cannot be used") && said.contains("take it away"),
        "{said}"
    );
    symlink(&theirs, top.join(".flash")).unwrap();
    let said = world.refused(78, &["--alone-in", top.to_str().unwrap()]);
    assert!(said.contains("memory/.flash cannot be used"), "{said}");
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 3);
    assert_eq!(fs::read_to_string(theirs.join("files.json")).unwrap(), "theirs");
}

#[test]
fn a_record_that_a_power_cut_has_emptied_is_made_anew_where_the_copy_is_whole() {
    let world = World::new();
    world.put("a", b"a");
    world.copied(&[]);
    let record = world.destination.join(".flash/files.json");
    fs::write(&record, "").unwrap();
    world.put("b", b"b");
    let said = world.copied(&[]);
    assert!(said.contains("copied=1 whole=1"), "{said}");
    world.put("a", b"another");
    world.copied(&[]);
    assert_eq!(world.read("a"), b"another");
    fs::write(&record, "").unwrap();
    world.put("a", b"a third one");
    let said = world.refused(78, &[]);
    assert!(said.contains("model/a is there already"), "{said}");
    assert!(said.contains("model/.flash/files.json") && said.contains("take both away"), "{said}");
    for file in [record, world.destination.join("a")] {
        fs::remove_file(file).unwrap();
    }
    world.copied(&[]);
    assert_eq!(world.read("a"), b"a third one");
}

#[test]
fn only_copies_that_were_there_are_told_to_be_removed() {
    let mut world = World::new();
    world.put("a", b"a");
    let top = world.folder().join("memory");
    let alone = ["--alone-in", top.to_str().unwrap()];
    for _ in 0..2 {
        let said = world.copied(&alone);
        assert!(!said.contains("removed"), "{said}");
    }
    world.destination = top.join("new");
    let said = world.copied(&alone);
    assert_eq!(said.matches("removed").count(), 1, "{said}");
    assert!(
        said.contains("removed: no weights of this model any more")
            && said.contains("memory/model")
    );
    assert!(!top.join("model").exists());
}

#[test]
fn a_destination_that_cannot_be_written_to_is_a_fault_of_configuration() {
    let mut world = World::new();
    world.put("a", b"a");
    world.destination = world.put("file", b"not ours");
    let said = world.refused(78, &[]);
    assert!(said.contains("source/file failed: Not a directory"), "{said}");
    let memory = world.folder().join("memory");
    fs::create_dir(&memory).unwrap();
    let script =
        r#"mount -t tmpfs -o ro tmpfs "$2" || exit 99; "$0" flash --src "$1" --dst "$2/model""#;
    let words = [Path::new(env!("CARGO_BIN_EXE_flexinfer-node")), &world.source, &memory];
    let Some(output) = mounting(script, &words) else { return };
    assert_eq!(output.status.code(), Some(78), "{}", text(&output));
    assert!(
        text(&output).contains("memory/model failed: Read-only file system"),
        "{}",
        text(&output)
    );
}
