//! LOAD-05, SEC-06: bytes that are not what they should be are never published and never kept.

use flexinfer_core::activation::Reason;

use crate::hub::{Fault, File};
use crate::world::{LENGTH, World};

#[tokio::test(flavor = "multi_thread")]
async fn load_05_sec_06_a_flipped_byte_is_fetched_again_from_the_start() {
    for large in [true, false] {
        let file = File { large, ..File::large("model.bin", LENGTH) };
        let world = World::with(vec![file.clone()]).await;
        world.hub.fail_with([Fault::Flip]);
        world.fetch().await.unwrap();
        world.assert_holds(&file);
        let ranges = world.hub.contents_asked().into_iter().map(|asked| asked.1);
        assert!(ranges.into_iter().all(|range| range.is_none()), "nothing of it was kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn load_05_sec_06_a_file_that_stays_wrong_leaves_nothing_behind() {
    let world = World::with(vec![File::large("model.bin", LENGTH)]).await;
    world.hub.always_fail_with(Some(Fault::Flip));
    let failure = world.fetch().await.unwrap_err();
    assert_eq!(failure.reason, Reason::DigestMismatch);
    assert!(failure.message.contains("model.bin"), "{failure}");
    assert_eq!(world.files(), [] as [&str; 0]);
    assert_eq!(world.partials(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn load_05_a_part_of_a_changed_file_is_not_joined_to_the_old_one() {
    let file = File::large("model.bin", LENGTH);
    let world = World::with(vec![file.clone()]).await;
    world.hub.fail_with([Fault::Cut(75_000), Fault::OtherTag]);
    world.fetch().await.unwrap();
    world.assert_holds(&file);
    let last = world.hub.contents_asked().pop().unwrap();
    assert_eq!(last.1, None, "it began anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn load_05_damage_in_a_kept_part_is_found() {
    let file = File::large("model.bin", LENGTH);
    let world = World::with(vec![file.clone()]).await;
    let partials = world.destination().join(".flexinfer/partial");
    std::fs::create_dir_all(&partials).unwrap();
    let partial = partials.join(format!("{}.partial", file.digest()));
    std::fs::write(partial, vec![0; LENGTH / 2]).unwrap();
    world.fetch().await.unwrap();
    world.assert_holds(&file);
}
