//! A hub and a network that break: what came is kept, what is wrong is not, and it ends.

use std::time::Duration;

use flexinfer_core::activation::Reason;

use crate::hub::{Fault, File};
use crate::world::{LENGTH, World};

/// A world with one large file, its faults to come, fetched.
async fn fetched_despite(faults: impl IntoIterator<Item = Fault>) -> (World, File) {
    let file = File::large("model.bin", LENGTH);
    let mut world = World::with(vec![file.clone()]).await;
    let faults = faults.into_iter().collect::<Vec<_>>();
    if faults.iter().any(|fault| matches!(fault, Fault::Stall(_))) {
        world.settings.silence_timeout = Duration::from_secs(2);
    }
    world.hub.fail_with(faults);
    let fetched = world.fetch().await;
    assert_eq!(fetched, Ok(world.destination()));
    world.assert_holds(&file);
    (world, file)
}

/// The ranges that the storage was asked for.
fn ranges(world: &World) -> Vec<Option<String>> {
    let asked = world.hub.asked().into_iter().filter(|asked| asked.server == "storage");
    asked.map(|asked| asked.range).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_cut_is_resumed_where_it_stopped() {
    let (world, file) = fetched_despite([Fault::Cut(75_000), Fault::Cut(50_000)]).await;
    let asked = world.hub.asked();
    let storage = asked.iter().filter(|asked| asked.server == "storage").collect::<Vec<_>>();
    let tag = format!("\"{}\"", file.digest());
    assert_eq!(storage[0].range, None);
    for resumed in &storage[1..] {
        assert_eq!(resumed.if_range.as_ref(), Some(&tag));
    }
    assert_eq!(storage[1].range.as_deref(), Some("bytes=75000-"));
    assert_eq!(storage[2].range.as_deref(), Some("bytes=125000-"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_file_that_is_cut_is_resumed_too() {
    let file = File { large: false, ..File::large("notes.txt", LENGTH) };
    let world = World::with(vec![file.clone()]).await;
    world.hub.fail_with([Fault::Cut(75_000)]);
    world.fetch().await.unwrap();
    world.assert_holds(&file);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_server_is_asked_again_for_the_rest() {
    let (world, _) = fetched_despite([Fault::Stall(75_000)]).await;
    assert_eq!(ranges(&world), [None, Some("bytes=75000-".to_owned())]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_busy_storage_is_asked_again() {
    fetched_despite([429, 503, 403].map(Fault::Status)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ignores_ranges_costs_only_time() {
    fetched_despite([Fault::Cut(75_000), Fault::IgnoreRange]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_lengths_and_pages_are_not_taken_for_the_file() {
    fetched_despite([Fault::Page, Fault::Empty, Fault::TooLong]).await;
    let (world, _) = fetched_despite([Fault::Cut(75_000), Fault::Page]).await;
    let kept = ranges(&world).last().cloned().flatten();
    assert_eq!(kept.as_deref(), Some("bytes=75000-"), "a page does not cost what has come");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_stays_broken_is_given_up_and_what_came_is_kept() {
    for fault in [Fault::Status(500), Fault::Page, Fault::Empty, Fault::TooLong] {
        let file = File::large("model.bin", LENGTH);
        let world = World::with(vec![file.clone()]).await;
        world.hub.fail_with([Fault::Cut(75_000)]);
        world.hub.always_fail_with(Some(fault.clone()));
        let failure = world.fetch().await.unwrap_err();
        assert_eq!(failure.reason, Reason::DownloadFailed, "{fault:?}: {failure}");
        assert_eq!(world.files(), [] as [&str; 0], "{fault:?}");
        world.hub.always_fail_with(None);
        world.fetch().await.unwrap();
        world.assert_holds(&file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_not_there_is_told_with_its_address() {
    let mut world = World::with(Vec::new()).await;
    // A port that was free a moment ago.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let hub = flexinfer_core::sources::download::Hub::at(&format!("http://{gone}")).unwrap();
    world.settings.terms.hub = hub;
    let failure = world.fetch().await.unwrap_err();
    assert_eq!(failure.reason, Reason::DownloadFailed);
    assert!(failure.message.contains(&gone.to_string()), "{failure}");
    assert!(failure.message.contains("HF_ENDPOINT"), "{failure}");
}
