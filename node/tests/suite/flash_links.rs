//! Links in the source: the hub's cache is made of them (LOAD-01).

use std::fs;
use std::os::unix::fs::symlink;

use crate::world::World;

#[test]
fn load_01_a_snapshot_of_the_hubs_cache_becomes_regular_files() {
    let mut world = World::new();
    world.put("blobs/abc", b"weights");
    world.put("snapshots/123/.keep", b"");
    let snapshot = world.source.join("snapshots/123");
    symlink("../../blobs/abc", snapshot.join("model.bin")).unwrap();
    // A chain, and an absolute link.
    symlink("model.bin", snapshot.join("chain.bin")).unwrap();
    symlink(world.source.join("blobs/abc"), snapshot.join("absolute.bin")).unwrap();
    let cache = world.source.clone();
    world.source = snapshot;
    world.copied(&[]);
    assert_eq!(world.names(), [".keep", "absolute.bin", "chain.bin", "model.bin"]);
    let metadata = fs::symlink_metadata(world.destination.join("model.bin")).unwrap();
    assert!(metadata.is_file());
    assert_eq!(world.read("chain.bin"), b"weights");

    // The cache as a whole: each file once, under the names of its snapshots.
    world.source = cache;
    world.destination = world.folder().join("whole");
    world.copied(&[]);
    assert_eq!(world.names().len(), 4);
    assert!(world.names().iter().all(|name| name.starts_with("snapshots/123/")));
}

#[test]
fn load_01_a_link_to_a_folder_within_is_followed() {
    let world = World::new();
    world.put("real/a", b"a");
    symlink("real", world.source.join("link")).unwrap();
    world.copied(&[]);
    assert_eq!(world.names(), ["link/a", "real/a"]);
}

#[test]
fn load_01_links_that_cannot_be_copied_right_are_refused_and_named() {
    for (target, says) in
        [("gone", "not there"), ("bad", "circle"), ("sub", "circle"), ("/etc/passwd", "outside")]
    {
        let world = World::new();
        world.put("config.json", b"{}");
        fs::create_dir(world.source.join("sub")).unwrap();
        let (link, target) = match target {
            // A folder within itself.
            "sub" => ("sub/bad", ".."),
            other => ("bad", other),
        };
        symlink(target, world.source.join(link)).unwrap();
        let said = world.refused(65, &[]);
        assert!(said.contains(says) && said.contains(link), "{target}: {said}");
        assert_eq!(world.names(), [""; 0], "{target}: nothing is copied");
        // What is not wanted is not looked at.
        world.copied(&["--exclude", "bad"]);
    }
}

#[test]
fn load_01_the_root_says_how_far_links_may_lead() {
    let world = World::new();
    fs::write(world.folder().join("shared"), "s").unwrap();
    symlink("../shared", world.source.join("a")).unwrap();
    assert!(world.refused(65, &[]).contains("FLASH_ROOT"));
    world.copied(&["--root", world.folder().to_str().unwrap()]);
    assert_eq!(world.read("a"), b"s");
}
