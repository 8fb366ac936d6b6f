//! `clean`, and a load that is to be alone, where other file systems are mounted: these are somebody else's.

use std::fs;
use std::path::Path;

use crate::world::{World, mounting, text};

const PROGRAM: &str = env!("CARGO_BIN_EXE_flexinfer-node");

#[test]
fn what_a_load_has_written_to_another_file_system_stays_in_its_record() {
    let world = World::new();
    world.put("model.bin", b"weights");
    world.put("loras/a.bin", b"adapter");
    let loras = world.destination.join("loras");
    fs::create_dir_all(&loras).unwrap();
    let script = r#"mount -t tmpfs tmpfs "$3" || exit 99
        "$0" flash --src "$1" --dst "$2" || exit 98
        "$0" clean "$2"; echo "ended with $?"
        cat "$2/.flash/files.json"; ls "$2" "$3"
        umount "$3" || exit 97
        "$0" clean "$2"; echo "ended with $?""#;
    let words = [Path::new(PROGRAM), &world.source, &world.destination, &loras];
    let Some(output) = mounting(script, &words) else { return };
    let (said, told) = (String::from_utf8_lossy(&output.stdout), text(&output));
    assert!(said.starts_with("ended with 1\n[\"loras/a.bin\"]"), "{said}{told}");
    assert!(said.contains("\na.bin\n") && !said.contains("model.bin"), "{said}");
    assert!(told.contains("on another file system"), "{told}");
    assert!(said.ends_with("ended with 0\n"), "{said}{told}");
    assert!(!world.destination.exists());
}

#[test]
fn empty_folders_of_another_file_system_stay() {
    let world = World::new();
    world.put("model.bin", b"weights");
    let top = world.destination.parent().unwrap();
    let old = top.join("old");
    fs::create_dir_all(&old).unwrap();
    let script = r#"mount -t tmpfs tmpfs "$4" && mkdir "$4/prepared" || exit 99
        "$0" flash --src "$1" --dst "$2" --alone-in "$3" || exit 98
        ls "$4""#;
    let words = [Path::new(PROGRAM), &world.source, &world.destination, top, &old];
    let Some(output) = mounting(script, &words) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "prepared\n", "{}", text(&output));
}

#[test]
fn a_mounted_destination_stays_when_its_copy_is_gone_whatever_keeps_it() {
    let world = World::new();
    world.put("model.bin", b"weights");
    let above = world.destination.parent().unwrap();
    fs::create_dir_all(above).unwrap();
    // As in a container whose own file system cannot be written to.
    let script = r#"mount -t tmpfs tmpfs "$3" && mkdir "$2" && mount -t tmpfs tmpfs "$2" || exit 99
        "$0" flash --src "$1" --dst "$2" || exit 98
        mount -o remount,ro "$3" || exit 99
        "$0" clean "$2"; echo "ended with $?"; ls -A "$2""#;
    let words = [Path::new(PROGRAM), &world.source, &world.destination, above];
    let Some(output) = mounting(script, &words) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "ended with 0\n", "{}", text(&output));
}
