//! What `flash` leaves when it is interrupted, and when somebody else works in its folders. The
//! program is stopped in the middle of a copy, so that what a test does then is surely in the middle.

use std::fs;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::world::{World, bytes, program, text};

const LENGTH: usize = 24 << 20;

/// How often a load is killed at a moment that nobody chose: `FLEXINFER_KILLS`, else this.
const KILLS: u32 = 12;

/// A load that stands still half-way, with `model.bin` not yet whole.
struct Standing {
    child: Child,
}

impl Standing {
    fn begin(world: &World) -> Self {
        let begun = Instant::now();
        loop {
            let _none_yet = fs::remove_dir_all(&world.destination);
            let mut flash = world.flash(&["--buffer-kb", "32", "--concurrency", "1", "--verify"]);
            let child = flash.stderr(Stdio::piped()).spawn().unwrap();
            let standing = Self { child };
            while world.half_written() == 0 && !world.destination.join("model.bin").exists() {
                std::hint::spin_loop();
            }
            standing.signal(Signal::STOP);
            while !standing.stands() {
                std::hint::spin_loop();
            }
            if world.half_written() > 0 {
                return standing;
            }
            // It was faster than we: once more.
            standing.signal(Signal::CONT);
            standing.end();
            assert!(begun.elapsed() < Duration::from_secs(60), "never caught in the middle");
        }
    }

    fn stands(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        stat.rsplit(')').next().unwrap().trim_start().starts_with(['T', 'Z'])
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(self) -> (Option<i32>, String) {
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn world() -> World {
    let world = World::new();
    world.put("model.bin", &bytes(LENGTH, 1));
    world.put("config.json", b"old");
    world
}

#[test]
fn a_load_that_is_asked_to_end_leaves_nothing_half_written() {
    let world = world();
    let load = Standing::begin(&world);
    load.signal(Signal::TERM);
    load.signal(Signal::CONT);
    let (code, said) = load.end();
    assert_eq!(code, Some(143), "{said}");
    assert_eq!(world.half_written(), 0);
    world.copied(&[]);
    assert!(world.read("model.bin") == bytes(LENGTH, 1));
}

#[test]
fn a_killed_load_is_cleared_away_and_made_good_by_the_next() {
    let world = world();
    let load = Standing::begin(&world);
    load.signal(Signal::KILL);
    load.end();
    assert_eq!(world.half_written(), 1, "this is what it left");
    world.copied(&[]);
    assert_eq!(world.names(), ["config.json", "model.bin"]);
    assert!(world.read("model.bin") == bytes(LENGTH, 1));
}

#[test]
fn load_08_a_source_that_is_replaced_in_the_middle_is_begun_anew() {
    let world = world();
    let load = Standing::begin(&world);
    fs::write(world.folder().join("next"), bytes(LENGTH, 2)).unwrap();
    fs::rename(world.folder().join("next"), world.source.join("model.bin")).unwrap();
    world.put("config.json", b"new");
    load.signal(Signal::CONT);
    let (code, said) = load.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("begun anew"), "{said}");
    assert!(world.read("model.bin") == bytes(LENGTH, 2));
    assert_eq!(world.read("config.json"), b"new", "never a mixture");
}

#[test]
fn load_08_a_source_that_is_cut_or_removed_in_the_middle_never_comes_out_mixed() {
    let world = world();
    let load = Standing::begin(&world);
    world.put("model.bin", b"cut");
    load.signal(Signal::CONT);
    let (code, said) = load.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(world.read("model.bin"), b"cut");

    let world = self::world();
    let load = Standing::begin(&world);
    fs::remove_file(world.source.join("model.bin")).unwrap();
    load.signal(Signal::CONT);
    let (code, said) = load.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(world.names(), ["config.json"]);
}

#[test]
fn what_somebody_puts_there_in_the_middle_is_not_written_over_and_no_record_claims_it() {
    for (theirs, ours) in [("model.bin", "config.json"), ("config.json", "model.bin")] {
        let world = world();
        let load = Standing::begin(&world);
        fs::write(world.destination.join(theirs), "not ours").unwrap();
        load.signal(Signal::CONT);
        let (code, said) = load.end();
        assert_eq!(code, Some(78), "{said}");
        let told = format!("model/{theirs} is there already and no load has put it there");
        assert!(said.contains(&told), "{said}");
        // Nor does a later load, that goes on from the record of this one.
        world.refused(78, &[]);
        assert_eq!(world.read(theirs), b"not ours", "{said}");
        assert_eq!(world.half_written(), 0, "{said}");
        let output = program().arg("clean").arg(&world.destination).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        assert_eq!(world.names(), [theirs], "{ours} is removed as ours if it came");
    }
}

#[test]
fn what_came_before_a_load_failed_is_gone_on_from() {
    let world = world();
    let load = Standing::begin(&world);
    fs::write(world.destination.join("config.json"), "not ours").unwrap();
    load.signal(Signal::CONT);
    let (code, said) = load.end();
    assert_eq!(code, Some(78), "{said}");
    fs::remove_file(world.destination.join("config.json")).unwrap();
    let said = world.copied(&[]);
    assert!(said.contains("copied=1 whole=1"), "{said}");
    let output = program().arg("clean").arg(&world.destination).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(!world.destination.exists(), "{:?}", world.names());
}

#[test]
fn load_02_a_second_load_waits_for_the_first_and_finds_everything_whole() {
    let world = world();
    let first = Standing::begin(&world);
    let second = world.flash(&[]).stderr(Stdio::piped()).spawn().unwrap();
    let second = Standing { child: second };
    assert_eq!(world.half_written(), 1, "the second does not touch what the first writes");
    first.signal(Signal::CONT);
    let (code, said) = first.end();
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = second.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("copied=0 whole=2"), "{said}");
}

#[test]
fn killed_at_any_moment_a_load_is_made_good_by_the_next() {
    let kills = std::env::var("FLEXINFER_KILLS").map_or(KILLS, |count| count.parse().unwrap());
    let world = World::new();
    let contents: Vec<(String, Vec<u8>)> = (0..40_u64)
        .map(|number| {
            (format!("small/{number}"), bytes(4000 + usize::try_from(number).unwrap(), number))
        })
        .chain([("model.bin".to_owned(), bytes(LENGTH, 1))])
        .collect();
    for (name, content) in &contents {
        world.put(name, content);
    }
    let begun = Instant::now();
    world.copied(&[]);
    let whole = begun.elapsed();
    let mut chance = 88_172_645_463_325_252_u64;
    for turn in 0..kills {
        fs::remove_dir_all(&world.destination).unwrap();
        // Xorshift: each run of the test has the same moments, as far as the machine allows.
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let moment = whole.mul_f64(f64::from(u32::try_from(chance % 1000).unwrap()) / 1000.0);
        let load = world.flash(&[]).stderr(Stdio::null()).spawn().unwrap();
        let load = Standing { child: load };
        std::thread::sleep(moment);
        load.signal(Signal::KILL);
        load.end();
        for (name, content) in &contents {
            let there = fs::read(world.destination.join(name));
            assert!(there.is_err() || there.unwrap() == *content, "{name} in turn {turn}");
        }
        world.copied(&[]);
        for (name, content) in &contents {
            assert!(world.read(name) == *content, "{name} after turn {turn}");
        }
        assert_eq!(world.half_written(), 0, "turn {turn}");
    }
}
