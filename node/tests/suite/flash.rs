//! What `flash` copies, what it skips, and what it refuses.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};

use crate::world::{World, bytes, program};

#[test]
fn all_files_come_out_as_they_are_and_a_second_run_copies_nothing() {
    let world = World::new();
    let weights = bytes((70 << 20) + 3, 1);
    world.put("model.bin", &weights);
    let config = world.put("sub/deeper/config.json", b"{}");
    world.put("empty", b"");
    fs::set_permissions(&config, fs::Permissions::from_mode(0o640)).unwrap();

    let said = world.copied(&[]);
    assert!(said.contains("copied=3 whole=0"), "{said}");
    assert_eq!(world.names(), ["empty", "model.bin", "sub/deeper/config.json"]);
    assert!(world.read("model.bin") == weights);
    let mode = fs::metadata(world.destination.join("sub/deeper/config.json")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o640);

    let said = world.copied(&[]);
    assert!(said.contains("copied=0 whole=3"), "{said}");
}

#[test]
fn the_originals_environment_says_the_same_as_the_flags() {
    let world = World::new();
    world.put("unet/m.safetensors.x", b"other");
    world.put("a.fp16.bin", b"small");
    world.put("a.bin", b"large");
    world.put("original/consolidated.pth", b"no");
    let output = program()
        .arg("flash")
        .env("FLASH_SRC", &world.source)
        .env("FLASH_DST", &world.destination)
        .env("FLASH_CONCURRENCY", "2")
        .env("FLASH_BUFFER_KB", "64")
        .env("FLASH_VERIFY", "1")
        .env("FLASH_EXCLUDE", "original, *.x")
        .env("FLASH_VARIANT", "fp16")
        .status()
        .unwrap();
    assert!(output.success());
    assert_eq!(world.names(), ["a.fp16.bin"]);
}

#[test]
fn the_size_of_all_weights_is_reported_also_of_those_that_were_there() {
    let world = World::new();
    world.put("a.bin", b"four");
    world.put("b.bin", b"seven..");
    let report = world.destination.with_extension("report");
    for _ in 0..2 {
        world.copied(&["--report", report.to_str().unwrap()]);
        assert_eq!(fs::read_to_string(&report).unwrap(), r#"{"sizeBytes":11}"#);
        fs::remove_file(&report).unwrap();
    }
}

#[test]
fn an_empty_source_is_a_success() {
    let world = World::new();
    world.copied(&[]);
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn a_source_that_is_not_there_is_named() {
    let world = World::new();
    fs::remove_dir(&world.source).unwrap();
    let said = world.refused(65, &[]);
    assert!(said.contains(world.source.to_str().unwrap()), "{said}");
}

#[test]
fn a_changed_file_is_copied_again_and_a_removed_one_is_removed_and_others_are_left_alone() {
    let world = World::new();
    world.put("config.json", b"old");
    world.put("model-3.bin", b"of the old revision");
    world.copied(&[]);
    fs::write(world.destination.join("theirs"), "not ours").unwrap();
    // The same length: only the time tells.
    world.put("config.json", b"new");
    fs::remove_file(world.source.join("model-3.bin")).unwrap();
    world.copied(&[]);
    assert_eq!(world.names(), ["config.json", "theirs"]);
    assert_eq!(world.read("config.json"), b"new");
}

#[test]
fn a_file_may_become_a_folder_and_a_folder_a_file() {
    let world = World::new();
    world.put("weights", b"in one file");
    world.put("sub/deeper/config.json", b"{}");
    world.copied(&[]);
    fs::remove_file(world.source.join("weights")).unwrap();
    fs::remove_dir_all(world.source.join("sub")).unwrap();
    world.put("weights/a", b"in two");
    world.put("weights/b", b"files");
    world.put("sub", b"a file");
    world.copied(&[]);
    assert_eq!(world.names(), ["sub", "weights/a", "weights/b"]);
    assert_eq!(world.read("sub"), b"a file");
}

#[test]
fn what_somebody_else_has_put_there_is_not_written_over() {
    let world = World::new();
    world.put("model.bin", b"weights");
    world.put("sub", b"a file");
    fs::create_dir_all(world.destination.join("sub/theirs")).unwrap();
    fs::write(world.destination.join("sub/theirs/a"), "not ours").unwrap();
    let said = world.refused(78, &[]);
    assert!(said.contains("sub/theirs/a is there already and no load has put it"), "{said}");
    fs::remove_dir_all(world.destination.join("sub")).unwrap();
    fs::write(world.destination.join("model.bin"), "not ours").unwrap();
    let said = world.refused(78, &[]);
    assert!(said.contains("model.bin is there already and no load has put it"), "{said}");
    assert_eq!(world.read("model.bin"), b"not ours");
    let alone_in = world.destination.to_str().unwrap();
    world.copied(&["--alone-in", alone_in]);
    assert_eq!(world.read("model.bin"), b"weights", "the folder is to hold this copy alone");
}

#[test]
fn load_04_damaged_weights_are_named_before_anything_is_copied() {
    let world = World::new();
    world.put("config.json", b"{}");
    world.put("model.safetensors", &1_000_u64.to_le_bytes());
    let said = world.refused(65, &[]);
    assert!(said.contains("model.safetensors is damaged"), "{said}");
    assert_eq!(world.names(), [""; 0]);
}

#[test]
fn load_05_a_copy_that_is_not_what_its_name_says_is_not_kept() {
    let world = World::new();
    let right = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    world.put(&format!("blobs/sha256-{right}"), b"hello");
    world.copied(&["--verify"]);
    let wrong = "0".repeat(64);
    world.put(&format!("blobs/sha256-{wrong}"), b"hello");
    let said = world.refused(76, &["--verify"]);
    assert!(said.contains(&wrong) && said.contains(right), "{said}");
    assert_eq!(world.names(), [format!("blobs/sha256-{right}")]);
}

#[test]
fn load_07_holes_stay_holes() {
    let world = World::new();
    let file = File::create(world.source.join("sparse.bin")).unwrap();
    file.set_len(200 << 20).unwrap();
    let data = bytes(1 << 20, 7);
    file.write_all_at(&data, 100 << 20).unwrap();
    file.sync_all().unwrap();
    world.copied(&["--verify"]);
    let copy = File::open(world.destination.join("sparse.bin")).unwrap();
    let metadata = copy.metadata().unwrap();
    assert_eq!(metadata.len(), 200 << 20);
    assert!(metadata.blocks() * 512 < 3 << 20, "{} blocks", metadata.blocks());
    let mut found = vec![0; (1 << 20) + 2];
    copy.read_exact_at(&mut found, (100 << 20) - 1).unwrap();
    assert!(found[1..=1 << 20] == data && found[0] == 0 && found[(1 << 20) + 1] == 0);
}

#[test]
fn what_the_original_loader_left_half_written_is_removed() {
    let world = World::new();
    world.put("sub/a", b"a");
    fs::create_dir_all(world.destination.join("sub")).unwrap();
    fs::write(world.destination.join("sub/a.flash-tmp"), "half").unwrap();
    world.copied(&[]);
    assert_eq!(world.names(), ["sub/a"]);
}

#[test]
fn what_a_killed_load_left_in_a_folder_that_the_source_has_no_more_is_removed() {
    let world = World::new();
    world.put("old/a", b"a");
    world.put("new/b", b"b");
    world.copied(&[]);
    fs::write(world.destination.join("old/.1-1-1.flash-tmp"), "half").unwrap();
    fs::remove_dir_all(world.source.join("old")).unwrap();
    world.copied(&[]);
    assert_eq!(world.names(), ["new/b"]);
}
