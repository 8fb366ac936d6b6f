//! The plain job: all of it arrives, is checked, and is not asked for again.

use std::fs;

use flexinfer_core::activation::{Reason, Substage};
use flexinfer_core::sources::RelativePath;
use flexinfer_core::sources::download::Selection;

use crate::hub::File;
use crate::world::{LENGTH, World};

fn repository() -> Vec<File> {
    vec![
        File::small("config.json", "{}"),
        File::small("empty.txt", ""),
        File::large("model.bin", LENGTH),
        File::large("sub dir/a+b%.bin", 1_000),
        File::small("sub dir/notes é.txt", "notes"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_becomes_a_plain_folder_of_whole_files() {
    let world = World::with(repository()).await;
    assert_eq!(world.fetch().await, Ok(world.destination()));
    for file in &repository() {
        world.assert_holds(file);
    }
    assert_eq!(world.files().len(), 5);
    assert_eq!(world.partials(), [], "nothing is left over");
    let progress = world.progress.lock().unwrap();
    let last = progress.last().unwrap();
    let all = repository().iter().map(|file| file.content.len() as u64).sum::<u64>();
    assert_eq!(last.done, Some((all, all)));
    assert_eq!(last.substage, Substage::Downloading);
    assert!(last.message.contains("HF://Org/Name@main"), "{}", last.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_asks_nobody_for_what_is_whole() {
    let mut world = World::with(repository()).await;
    world.fetch().await.unwrap();
    world.hub.asked();
    assert_eq!(world.fetch().await, Ok(world.destination()));
    assert_eq!(world.hub.asked(), []);
    let source = "HF://Org/Name".parse().unwrap();
    let whole =
        |world: &World| flexinfer_fetching::whole(&source, &world.selection, &world.destination());
    assert_eq!(whole(&world), Some(world.destination()));
    world.selection.allow.push("*.json".to_owned());
    assert_eq!(whole(&world), None, "another selection was never asked for");
    fs::write(world.destination().join("config.json"), "{ }").unwrap();
    world.selection.allow.clear();
    assert_eq!(whole(&world), None, "a file has another length now");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_missing_or_damaged_is_fetched_again() {
    let world = World::with(repository()).await;
    world.fetch().await.unwrap();
    fs::remove_file(world.destination().join("config.json")).unwrap();
    fs::write(world.destination().join("model.bin"), "short").unwrap();
    world.hub.asked();
    world.fetch().await.unwrap();
    let mut names = world.hub.contents_asked().into_iter().map(|asked| asked.0).collect::<Vec<_>>();
    names.sort();
    assert_eq!(names, ["config.json", "model.bin", "model.bin"], "once at each server");
    for file in &repository() {
        world.assert_holds(file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_lost_their_record_are_looked_at_and_not_fetched() {
    let world = World::with(repository()).await;
    world.fetch().await.unwrap();
    fs::remove_file(world.destination().join(".flexinfer/record.json")).unwrap();
    world.hub.asked();
    world.fetch().await.unwrap();
    assert_eq!(world.hub.contents_asked(), [("empty.txt".to_owned(), None)][..0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn patterns_and_a_named_file_select_what_is_fetched() {
    let mut world = World::with(repository()).await;
    world.selection.allow = vec!["*.json".to_owned(), "sub dir/".to_owned()];
    world.selection.ignore = vec!["*.txt".to_owned()];
    world.fetch().await.unwrap();
    assert_eq!(world.files(), ["config.json", "sub dir/a+b%.bin"]);
    world.selection =
        Selection { file: Some(RelativePath::parse("model.bin").unwrap()), ..Selection::default() };
    assert_eq!(world.fetch().await, Ok(world.destination().join("model.bin")));
    assert_eq!(world.files(), ["config.json", "model.bin", "sub dir/a+b%.bin"]);
    let place = world.destination().join("sub dir/a+b%.bin");
    world.selection = Selection::default();
    assert_eq!(world.fetch_from("hf://Org/Name:sub dir/a+b%.bin").await, Ok(place));
}

#[tokio::test(flavor = "multi_thread")]
async fn load_10_revisions_and_file_names_arrive_encoded() {
    let world = World::with(repository()).await;
    world.fetch_from("hf://Org/Name@refs/pr/1:sub dir/a+b%.bin").await.unwrap();
    let paths = world.hub.asked().into_iter().map(|asked| asked.path).collect::<Vec<_>>();
    let commit = "a".repeat(40);
    assert_eq!(paths[0], "/api/models/Org/Name/revision/refs%2Fpr%2F1");
    assert_eq!(paths[1], format!("/Org/Name/resolve/{commit}/sub%20dir/a%2Bb%25.bin"));
}

#[tokio::test(flavor = "multi_thread")]
async fn load_08_files_of_two_commits_never_mix() {
    let mut world = World::with(repository()).await;
    world.settings.terms.patience.attempts = 1;
    world.hub.always_fail_with(Some(crate::hub::Fault::Status(503)));
    world.fetch().await.unwrap_err();
    world.hub.always_fail_with(None);
    let next = vec![File::small("config.json", "new"), File::large("model.bin", LENGTH / 2)];
    world.hub.commit(&"c".repeat(40), next.clone());
    world.fetch().await.unwrap();
    let paths = world.hub.asked().into_iter().map(|asked| asked.path).collect::<Vec<_>>();
    assert!(paths.iter().any(|path| path.ends_with(&format!("/revision/{}", "a".repeat(40)))));
    for file in &next {
        world.assert_holds(file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_fit_is_told_before_it_begins() {
    let mut huge = File::large("model.bin", LENGTH);
    huge.listed_size = Some(1 << 60);
    let world = World::with(vec![huge]).await;
    let failure = world.fetch().await.unwrap_err();
    assert_eq!(failure.reason, Reason::DiskFull);
    assert!(failure.message.contains("1048576.0 TiB"), "{failure}");
    assert_eq!(world.hub.contents_asked(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_and_files_that_cannot_be_are_refused() {
    let world = World::with(vec![File::small(".flexinfer/record.json", "{}")]).await;
    for source in ["HF://Org/Name", "file:///x", "pvc://c/x", "hf://Org/Name:missing.bin"] {
        let failure = world.fetch_from(source).await.unwrap_err();
        assert_eq!(failure.reason, Reason::BadSource, "{source}: {failure}");
    }
    let nobody = world.fetch_from(&format!("hf://Org/Name@{}", "d".repeat(40))).await.unwrap_err();
    assert_eq!(nobody.reason, Reason::BadSource);
    assert!(nobody.message.contains("no revision"), "{nobody}");
}

#[tokio::test(flavor = "multi_thread")]
async fn partial_files_of_others_are_kept_until_nobody_came_back_for_a_week() {
    let world = World::with(repository()).await;
    let partials = world.destination().join(".flexinfer/partial");
    fs::create_dir_all(&partials).unwrap();
    fs::write(partials.join("new.partial"), "x").unwrap();
    fs::write(partials.join("old.partial"), "x").unwrap();
    let old = fs::File::options().write(true).open(partials.join("old.partial")).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(200)).unwrap();
    world.fetch().await.unwrap();
    assert_eq!(world.partials(), [("new.partial".to_owned(), 1)]);
}
