//! Which files are copied, in which pieces, and whether they fit.

use std::num::NonZeroU64;
use std::path::Path;

use proptest::prelude::*;

use super::*;

const THEN: Modified = Modified { seconds: 1_700_000_000, nanoseconds: 5 };

fn file(path: &str, length: u64) -> Found {
    Found { path: RelativePath::parse(path).unwrap(), length, stored: length, modified: THEN }
}

fn paths(files: &[Found]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn only_what_is_named_is_copied_where_anything_is() {
    let only = ["writer-*-of-00002.gguf", "eyes.gguf"].map(str::to_owned).to_vec();
    let wishes = Wishes { only, ..Wishes::default() };
    for (path, left_out) in [
        ("writer-00001-of-00002.gguf", false),
        ("writer-00002-of-00002.gguf", false),
        ("eyes.gguf", false),
        ("other.gguf", true),
        (".cache/eyes.gguf", true),
    ] {
        assert_eq!(wishes.leaves_out(&RelativePath::parse(path).unwrap()), left_out, "{path}");
    }
}

#[test]
fn a_file_is_left_out_by_folder_by_pattern_and_by_its_beginning() {
    for (exclude, path, left_out) in [
        ("", "model.safetensors", false),
        ("", ".cache/x", true),
        ("", "sub/.git/config", true),
        ("", "git/config", false),
        ("", "x.1.flash-tmp", true),
        ("original", "original/consolidated.pth", true),
        ("original", "sub/original.bin", true),
        ("original", "sub/my-original.bin", false),
        ("original/", "original.bin", false),
        ("original/", "a/original/b.bin", true),
        ("a/original/", "a/original/b.bin", true),
        ("*.bin", "a/pytorch_model.bin", true),
        ("*.bin", "a/pytorch_model.bin.index.json", false),
        ("a/*.bin", "b/x.bin", false),
        ("x?.bin", "deep/x1.bin", true),
    ] {
        let wishes = Wishes { exclude: vec![exclude.to_owned()], ..Wishes::default() };
        let path = RelativePath::parse(path).unwrap();
        assert_eq!(wishes.leaves_out(&path), left_out, "{exclude} and {path}");
    }
}

#[test]
fn a_folder_is_left_out_as_a_whole() {
    let wishes =
        Wishes { exclude: vec!["onnx/".to_owned(), "*.bin".to_owned()], ..Wishes::default() };
    for (folder, left_out) in
        [("onnx", true), ("text/onnx", true), ("xonnx", false), (".cache", true), ("unet", false)]
    {
        let folder = RelativePath::parse(folder).unwrap();
        assert_eq!(wishes.leaves_out_folder(&folder), left_out, "{folder}");
    }
}

#[test]
fn a_variant_replaces_what_it_is_a_variant_of() {
    let names = [
        "unet/model.safetensors",
        "unet/model.fp16.safetensors",
        "vae/model.safetensors",
        "text/m-00001-of-00002.safetensors",
        "text/m.fp16-00001-of-00002.safetensors",
        "x.safetensors.index.json",
        "x.fp16.safetensors.index.json",
        "y.fp16",
        "y",
    ];
    let found = names.map(|name| file(name, 1)).to_vec();
    let wishes = Wishes { variant: Some("fp16".to_owned()), ..Wishes::default() };
    let chosen = wishes.choose(found);
    assert_eq!(
        paths(&chosen),
        [
            "unet/model.fp16.safetensors",
            "vae/model.safetensors",
            "text/m.fp16-00001-of-00002.safetensors",
            "x.fp16.safetensors.index.json",
            "y.fp16",
            "y",
        ]
    );
}

#[test]
fn what_has_the_length_and_the_time_of_the_source_is_whole() {
    let found = vec![file("a", 1), file("b", 2), file("c", 3), file("d", 4)];
    let plan = Plan::new(found, |file| match file.path.as_str() {
        "a" | "b" => Some(Present { length: 1, modified: THEN }),
        "c" => Some(Present { length: 3, modified: Modified { nanoseconds: 0, ..THEN } }),
        _ => None,
    });
    assert_eq!(paths(&plan.whole), ["a"]);
    assert_eq!(paths(&plan.copies), ["b", "c", "d"]);
    assert_eq!(plan.length(), 9);
}

#[test]
fn the_largest_files_come_first_and_short_ones_stay_with_their_neighbours() {
    let found =
        [("y", 2), ("b", 1 << 20), ("x", 64 << 10), ("a", 1 << 30), ("z", 0), ("c", 1 << 20)];
    let plan = Plan::new(found.map(|(path, length)| file(path, length)).to_vec(), |_| None);
    assert_eq!(paths(&plan.copies), ["a", "b", "c", "y", "x", "z"]);
}

#[test]
fn load_07_holes_take_no_room_and_what_is_there_takes_none_again() {
    let sparse = Found { stored: 1 << 20, ..file("sparse", 10 << 30) };
    let plan = Plan::new(vec![sparse], |_| None);
    let room = plan.room();
    assert_eq!((room.copies, room.margin), (1 << 20, 10 << 20));
    assert!(room.check(11 << 20).is_ok());
    let shortage = room.check((11 << 20) - 1).unwrap_err();
    assert_eq!(
        shortage.to_string(),
        "11 MiB are needed (1 to copy, 10 to stay free) and 10 MiB are free"
    );
    let whole =
        Plan::new(vec![file("a", 1 << 40)], |_| Some(Present { length: 1 << 40, modified: THEN }));
    assert!(whole.room().check(0).is_ok());
}

#[test]
fn small_files_take_whole_pages_and_large_ones_a_margin_of_a_twentieth() {
    assert_eq!(Plan::new(vec![file("a", 1), file("b", 0)], |_| None).room().copies, 4096);
    let large = Plan::new(vec![file("a", 100 << 30)], |_| None).room();
    assert_eq!(large.margin, 5 << 30);
    let absurd = Plan::new(vec![file("a", u64::MAX), file("b", u64::MAX)], |_| None);
    assert!(absurd.room().check(u64::MAX - 1).is_err());
}

#[test]
fn blobs_bear_their_digest_as_a_name() {
    let digest = "ab".repeat(32);
    for (path, wanted) in [
        (format!("/c/blobs/{digest}"), true),
        (format!("/c/blobs/sha256-{digest}"), true),
        (format!("/c/other/{digest}"), false),
        (format!("/c/blobs/{}", "AB".repeat(32)), false),
        (format!("/c/blobs/{}", "ab".repeat(20)), false),
        ("/".to_owned(), false),
    ] {
        let found = named_digest(Path::new(&path));
        assert_eq!(found, wanted.then_some(digest.as_str()), "{path}");
    }
}

proptest! {
    #[test]
    fn pieces_cover_each_file_once_and_in_order(
        lengths in proptest::collection::vec(0_u64..1000, 0..20),
        longest in 1_u64..300,
    ) {
        let found = lengths.iter().enumerate().map(|(at, length)| file(&at.to_string(), *length));
        let plan = Plan::new(found.collect(), |_| None);
        let pieces = plan.pieces(NonZeroU64::new(longest).unwrap());
        for (at, copy) in plan.copies.iter().enumerate() {
            let mut end = 0;
            let of_file = pieces.iter().filter(|piece| piece.file == at).collect::<Vec<_>>();
            prop_assert!(!of_file.is_empty());
            for piece in of_file {
                prop_assert_eq!(piece.from, end);
                prop_assert!(piece.length <= longest);
                end += piece.length;
            }
            prop_assert_eq!(end, copy.length);
        }
    }
}
