//! What `flash` takes beside the copy: little memory, however long or many the files are.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::world::{World, bytes};

/// Beyond the destination, which is nobody's.
const LIMIT: u64 = 64 << 20;

/// How many small files are copied: `FLEXINFER_FILES`, else this.
const FILES: u64 = 3000;

/// Runs it to its good end and gives the most memory that it had of its own.
fn peak(mut flash: Command) -> u64 {
    let mut child = flash.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut most = 0;
    loop {
        most = most.max(anonymous(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            assert!(most > 0, "it was never seen");
            return most;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Memory that is not a file's: the program's own pages are shared, and those of a tmpfs are the copy.
fn anonymous(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

#[test]
fn long_files_take_no_more_memory_than_the_readers_buffers() {
    let world = World::new();
    let weights = bytes(150 << 20, 1);
    world.put("model.bin", &weights);
    for arguments in [&[][..], &["--verify"]] {
        let most = peak(world.flash(arguments));
        assert!(most < LIMIT, "{most} bytes with {arguments:?}");
        assert!(world.read("model.bin") == weights);
        fs::remove_dir_all(&world.destination).unwrap();
    }
}

#[test]
fn a_great_many_small_files_all_come_out_and_take_little_memory() {
    let files = std::env::var("FLEXINFER_FILES").map_or(FILES, |count| count.parse().unwrap());
    let world = World::new();
    let name = |number: u64| format!("part-{}/{number}.bin", number % 7);
    let content = |number: u64| bytes(usize::try_from(number % 5000).unwrap(), number);
    for number in 0..files {
        world.put(&name(number), &content(number));
    }
    let most = peak(world.flash(&[]));
    assert!(most < LIMIT, "{most} bytes for {files} files");
    for number in 0..files {
        assert!(world.read(&name(number)) == content(number), "{}", name(number));
    }
    let said = world.copied(&[]);
    assert!(said.contains(&format!("copied=0 whole={files}")), "{said}");
}
