//! What a load that waits for another makes of what happens meanwhile.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use crate::world::World;

/// Does `meanwhile` while a load with these further arguments waits for the lock in `folder`; gives what it has said.
fn waited(world: &World, folder: &Path, arguments: &[&str], meanwhile: impl FnOnce()) -> String {
    fs::create_dir_all(folder.join(".flash")).unwrap();
    let other = File::create(folder.join(".flash/lock")).unwrap();
    other.lock().unwrap();
    let mut load = world.flash(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(load.stderr.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains("waiting for another load")));
    meanwhile();
    drop(other);
    let said = said.map(Result::unwrap).collect::<Vec<_>>().join("\n");
    assert!(load.wait().unwrap().success(), "{said}");
    said
}

#[test]
fn a_load_whose_folder_is_removed_while_it_waits_makes_it_anew() {
    let world = World::new();
    world.put("sub/a", b"a");
    let top = world.folder().join("memory");
    let alone = ["--alone-in", top.to_str().unwrap()];
    for (folder, arguments) in [
        (&world.destination, [].as_slice()),
        (&top, alone.as_slice()),
        (&world.destination, alone.as_slice()),
    ] {
        // As whoever takes a copy away does it.
        waited(&world, folder, arguments, || fs::remove_dir_all(folder).unwrap());
        assert_eq!(world.names(), ["sub/a"], "{}", folder.display());
        fs::remove_dir_all(&top).unwrap();
    }
}

#[test]
fn a_link_that_comes_on_the_way_while_a_load_waits_is_not_followed() {
    let world = World::new();
    world.put("a", b"a");
    let (top, elsewhere) = (world.folder().join("memory"), world.folder().join("elsewhere"));
    fs::create_dir_all(&elsewhere).unwrap();
    let alone = ["--alone-in", top.to_str().unwrap()];
    let said = waited(&world, &top, &alone, || symlink(&elsewhere, &world.destination).unwrap());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0, "{said}");
    assert!(fs::symlink_metadata(&world.destination).unwrap().is_dir());
    assert_eq!(world.names(), ["a"]);
}
