//! SEC-07: the token is for the hub alone. And what a gated repository answers.

use flexinfer_core::activation::Reason;
use flexinfer_fetching::Token;

use crate::hub::{Asked, Fault, File};
use crate::world::{LENGTH, World};

fn with_token(asked: &[Asked]) -> Vec<(&'static str, bool)> {
    asked.iter().map(|asked| (asked.server, asked.authorization.is_some())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_07_the_token_does_not_follow_a_redirect_to_the_storage() {
    let world = World::with(vec![File::large("model.bin", LENGTH)]).await;
    world.hub.need_token("secret");
    world.hub.fail_with([Fault::Cut(75_000)]);
    world.fetch().await.unwrap();
    let asked = world.hub.asked();
    assert_eq!(
        with_token(&asked),
        [("hub", true), ("hub", true), ("storage", false), ("hub", true), ("storage", false)]
    );
    let resumed = asked.last().unwrap();
    assert_eq!(resumed.range.as_deref(), Some("bytes=75000-"), "resuming works without it");
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_07_the_token_stays_on_a_redirect_within_the_hub() {
    let world = World::with(vec![File::large("model.bin", LENGTH)]).await;
    let absolute = format!("{}/elsewhere/model.bin", world.hub.endpoint);
    for target in ["/elsewhere/model.bin".to_owned(), absolute] {
        world.hub.fail_with([Fault::Redirect(target)]);
        world.fetch().await.unwrap();
        std::fs::remove_dir_all(world.destination()).unwrap();
    }
    let asked = world.hub.asked();
    assert_eq!(with_token(&asked), [("hub", true); 6]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_07_another_port_of_the_same_host_is_another_origin() {
    let world = World::with(vec![File::large("model.bin", LENGTH)]).await;
    let other = format!("{}/blob/model.bin", world.hub.storage);
    world.hub.fail_with([Fault::Redirect(other)]);
    world.fetch().await.unwrap();
    assert_eq!(with_token(&world.hub.asked()).last(), Some(&("storage", false)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gated_repository_says_what_to_do() {
    let mut world = World::with(vec![File::small("config.json", "{}")]).await;
    world.hub.need_token("another");
    for token in [None, Token::new("wrong")] {
        world.settings.token = token;
        let failure = world.fetch().await.unwrap_err();
        assert_eq!(failure.reason, Reason::GatedRepository);
        assert!(failure.message.contains("accept its terms"), "{failure}");
        assert!(failure.message.contains("/Org/Name"), "{failure}");
    }
    world.settings.token = Token::new(" another\n");
    world.fetch().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_never_shown() {
    let token = Token::new("hf_abc").unwrap();
    assert!(!format!("{token:?}").contains("abc"));
    assert_eq!(Token::new(" \n"), None);
    let mut world = World::with(Vec::new()).await;
    world.settings.token = Token::new("hf_ä\u{1}bc");
    let failure = world.fetch().await.unwrap_err();
    assert_eq!(failure.reason, Reason::InvalidConfig);
    assert!(!failure.message.contains("bc"), "{failure}");
}
