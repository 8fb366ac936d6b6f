//! LOAD-02: several downloads into one folder, with locks and without.

use std::sync::Arc;

use crate::hub::{Fault, File};
use crate::world::{LENGTH, World, until};

fn fetching(world: &Arc<World>) -> tokio::task::JoinHandle<Result<std::path::PathBuf, String>> {
    let world = world.clone();
    tokio::spawn(async move { world.fetch().await.map_err(|failure| failure.to_string()) })
}

#[tokio::test(flavor = "multi_thread")]
async fn load_02_the_second_waits_for_the_first_and_uses_what_it_got() {
    let files = vec![File::large("a.bin", LENGTH), File::large("b.bin", LENGTH)];
    let world = Arc::new(World::with(files.clone()).await);
    let tasks = (0..4).map(|_| fetching(&world)).collect::<Vec<_>>();
    for task in tasks {
        assert_eq!(task.await.unwrap(), Ok(world.destination()));
    }
    assert_eq!(world.hub.contents_asked().len(), 4, "two files, at the hub and at the storage");
    for file in &files {
        world.assert_holds(file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn load_02_without_locks_two_never_write_the_same_file() {
    for round in 0..25 {
        let file = File::large("model.bin", LENGTH);
        let mut world = World::with(vec![file.clone()]).await;
        world.settings.exclusive = false;
        let world = Arc::new(world);
        world.hub.fail_with([Fault::Cut(100_000), Fault::Flip, Fault::Cut(25_000)]);
        let (first, second) = (fetching(&world), fetching(&world));
        assert!(first.await.unwrap().is_ok(), "round {round}");
        assert!(second.await.unwrap().is_ok(), "round {round}");
        world.assert_holds(&file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn load_02_one_that_dies_half_way_harms_nobody() {
    let file = File::large("model.bin", LENGTH);
    let mut world = World::with(vec![file.clone()]).await;
    world.settings.exclusive = false;
    let world = Arc::new(world);
    world.hub.fail_with([Fault::Stall(LENGTH / 2)]);
    let half = (LENGTH / 2) as u64;
    let dying = fetching(&world);
    until("half of it is written", || world.partials().iter().any(|(_, size)| *size == half)).await;
    let living = fetching(&world);
    dying.abort();
    assert_eq!(living.await.unwrap(), Ok(world.destination()));
    world.assert_holds(&file);
}
