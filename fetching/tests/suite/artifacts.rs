//! Artifacts of a registry: fetched whole, resumed, compared with their digests, and logged in for.

use std::num::NonZeroUsize;

use flexinfer_core::activation::Reason;
use flexinfer_fetching::LoginFiles;
use serde_json::json;

use crate::hub::{Fault, File};
use crate::registry::{FakeRegistry, LOGIN, layer};
use crate::world::{LENGTH, World};

/// A registry with one large file and a small one, and where they are fetched to.
async fn shelf() -> (FakeRegistry, World, Vec<File>) {
    let files =
        vec![File::large("model.bin", LENGTH), File::with("sub/config.json", b"{}".to_vec())];
    (FakeRegistry::start(files.clone()).await, World::with(Vec::new()).await, files)
}

/// The file with the login that the registry takes, for a registry called `host`.
fn login(world: &World, host: &str) -> LoginFiles {
    let file = world.scratch().join("config.json");
    let text = json!({ "auths": { host: { "auth": "bWU6c2VjcmV0" } } });
    std::fs::write(&file, text.to_string()).unwrap();
    LoginFiles::at(vec![file])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_becomes_a_folder_of_its_files_and_is_not_asked_for_again() {
    let (registry, world, files) = shelf().await;
    let by_digest = format!("oci://{}/org/name@{}", registry.host, registry.digest());
    for source in [registry.source(), by_digest] {
        assert_eq!(world.fetch_from(&source).await, Ok(world.destination()), "{source}");
        world.assert_holds_all(&files);
        registry.asked();
        world.fetch_from(&source).await.unwrap();
        assert_eq!(registry.asked(), [], "{source} is here");
    }
    assert_eq!(world.files(), ["model.bin", "sub/config.json"]);
    let hub_token = world.hub.asked();
    assert_eq!(hub_token, [], "the hub has nothing to do with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_is_cut_is_resumed_at_the_storage() {
    let (registry, mut world, files) = shelf().await;
    // One after another: the faults are the large file's.
    world.settings.concurrency = NonZeroUsize::MIN;
    registry.fail_with([Fault::Cut(75_000), Fault::Cut(50_000), Fault::Status(503)]);
    world.fetch_from(&registry.source()).await.unwrap();
    world.assert_holds_all(&files);
    let resumed = registry.asked().into_iter().filter(|asked| asked.range.is_some()).count();
    assert!(resumed > 0, "nothing was gone on with");
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_06_a_flipped_byte_of_a_blob_is_fetched_again() {
    let (registry, world, files) = shelf().await;
    registry.fail_with([Fault::Flip, Fault::Flip]);
    // Both answers may be of one file, which is then given up: what is wrong is not kept in any case.
    match world.fetch_from(&registry.source()).await {
        Ok(_) => files.iter().for_each(|file| world.assert_holds(file)),
        Err(failure) => {
            assert_eq!(failure.reason, Reason::DigestMismatch, "{failure}");
            world.fetch_from(&registry.source()).await.unwrap();
            world.assert_holds_all(&files);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_06_a_blob_of_another_length_than_the_manifest_says_is_never_published() {
    let file = File::large("model.bin", LENGTH);
    let said = File { listed_size: Some(LENGTH as u64 - 1), ..file.clone() };
    let registry = FakeRegistry::start(vec![file]).await;
    registry.answer_with(&json!([layer(&said)]));
    let world = World::with(Vec::new()).await;
    let failure = world.fetch_from(&registry.source()).await.unwrap_err();
    assert_eq!(failure.reason, Reason::DownloadFailed, "{failure}");
    assert_eq!(world.files(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_06_another_manifest_than_the_digest_names_leaves_nothing_behind() {
    let (registry, world, files) = shelf().await;
    let source = format!("oci://{}/org/name@{}", registry.host, registry.digest());
    registry.answer_with(&json!([layer(&files[0])]));
    let failure = world.fetch_from(&source).await.unwrap_err();
    assert_eq!(failure.reason, Reason::DigestMismatch, "{failure}");
    assert_eq!(world.files(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn sec_07_the_login_goes_to_the_token_service_and_nothing_to_the_storage() {
    let (registry, mut world, files) = shelf().await;
    registry.close(3);
    world.settings.concurrency = NonZeroUsize::MIN;
    world.settings.logins = login(&world, &registry.host);
    registry.fail_with([Fault::Cut(75_000)]);
    world.fetch_from(&registry.source()).await.unwrap();
    world.assert_holds_all(&files);
    for asked in registry.asked() {
        let shown = asked.authorization.as_deref();
        match asked.server {
            "token" => assert_eq!(shown, Some(LOGIN)),
            "storage" => assert_eq!(shown, None, "{}", asked.path),
            _ => assert!(matches!(shown, None | Some("Bearer token")), "{shown:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_login_it_is_said_what_to_do() {
    let (registry, mut world, _) = shelf().await;
    registry.close(usize::MAX);
    let failure = world.fetch_from(&registry.source()).await.unwrap_err();
    assert_eq!(failure.reason, Reason::GatedRepository);
    assert!(failure.message.contains("docker login"), "{failure}");
    world.settings.logins = login(&world, "other.test");
    let other = world.fetch_from(&registry.source()).await.unwrap_err();
    assert_eq!(other, failure, "a login for another registry is none");
    assert_eq!(world.files(), [] as [&str; 0]);
    world.settings.logins = login(&world, &registry.host);
    world.fetch_from(&registry.source()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tag_that_is_not_there_is_a_bad_source() {
    let (registry, world, _) = shelf().await;
    let source = format!("oci://{}/org/name:v2", registry.host);
    let failure = world.fetch_from(&source).await.unwrap_err();
    assert_eq!(failure.reason, Reason::BadSource);
    assert!(failure.message.contains("there is no `v2`"), "{failure}");
}
