//! `flash` to a place with too little room, which the exit status tells whoever decides about another try.

use std::process::Command;

use crate::world::{World, bytes, text};

/// What programs end with that find no room, as `sysexits.h` has it.
const NO_ROOM: i32 = 73;

#[test]
fn too_little_room_has_an_exit_status_of_its_own() {
    let world = World::new();
    world.put("model.bin", &bytes(6 << 20, 1));
    let memory = world.destination.parent().unwrap().to_path_buf();
    std::fs::create_dir(&memory).unwrap();
    let flash = world.flash(&[]);
    // In a namespace of its own, since only there anybody may mount something.
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=12m tmpfs \"$0\" || exit 99; exec \"$@\"");
    command.arg(&memory).arg(flash.get_program()).args(flash.get_args());
    let output = match command.output() {
        Ok(output) if !text(&output).contains("unshare: ") && output.status.code() != Some(99) => {
            output
        }
        other => return println!("not tested: nothing can be mounted here: {other:?}"),
    };
    let said = text(&output);
    assert_eq!(output.status.code(), Some(NO_ROOM), "{said}");
    for words in ["16 MiB are needed (6 to copy, 10 to stay free)", "12 MiB are free"] {
        assert!(said.contains(words), "{said}");
    }
    assert!(said.contains(memory.to_str().unwrap()), "{said}");
}
