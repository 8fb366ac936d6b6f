//! `flash` to a place with too little room, which the exit status tells whoever decides about another try.

use std::path::Path;

use crate::world::{World, bytes, mounting, text};

/// What programs end with that find no room, as `sysexits.h` has it.
const NO_ROOM: i32 = 73;

#[test]
fn too_little_room_has_an_exit_status_of_its_own() {
    let world = World::new();
    world.put("model.bin", &bytes(6 << 20, 1));
    let memory = world.destination.parent().unwrap().to_path_buf();
    std::fs::create_dir(&memory).unwrap();
    let flash = world.flash(&[]);
    let script = "mount -t tmpfs -o size=12m tmpfs \"$0\" || exit 99; exec \"$@\"";
    let words = [memory.as_os_str(), flash.get_program()].into_iter().chain(flash.get_args());
    let words = words.map(Path::new).collect::<Vec<_>>();
    let Some(output) = mounting(script, &words) else { return };
    let said = text(&output);
    assert_eq!(output.status.code(), Some(NO_ROOM), "{said}");
    for words in ["16 MiB are needed (6 to copy, 10 to stay free)", "12 MiB are free"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(said.contains(memory.to_str().unwrap()), "{said}");
}
