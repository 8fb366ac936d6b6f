//! Dropping a download keeps what has come.

use std::sync::Arc;

use crate::hub::{Fault, File};
use crate::world::{LENGTH, World, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_download_is_resumed_by_the_next() {
    let file = File::large("model.bin", LENGTH);
    let world = Arc::new(World::with(vec![file.clone()]).await);
    world.hub.fail_with([Fault::Stall(75_000)]);
    let fetching = tokio::spawn({
        let world = world.clone();
        async move { world.fetch().await }
    });
    until("the part is written", || world.partials().iter().any(|(_, size)| *size == 75_000)).await;
    fetching.abort();
    let free = format!("{}.partial", file.digest());
    until("the part is given back", || world.partials() == [(free.clone(), 75_000)]).await;
    world.hub.asked();
    world.fetch().await.unwrap();
    world.assert_holds(&file);
    let last = world.hub.contents_asked().pop().unwrap();
    assert_eq!(last.1.as_deref(), Some("bytes=75000-"));
}
