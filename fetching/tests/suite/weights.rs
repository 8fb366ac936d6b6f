//! LOAD-04: weights that are cut, too long or incomplete are told, with the file's name.

use std::fs;

use flexinfer_core::activation::Reason;
use flexinfer_fetching::check_weights;

use crate::hub::File;
use crate::world::World;

fn safetensors(tensor: usize) -> Vec<u8> {
    let header =
        format!(r#"{{"a":{{"dtype":"U8","shape":[{tensor}],"data_offsets":[0,{tensor}]}}}}"#);
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + tensor, 7);
    file
}

#[tokio::test(flavor = "multi_thread")]
async fn load_04_a_repository_that_holds_damaged_weights_is_told() {
    let whole = safetensors(100);
    let mut long = whole.clone();
    long.push(0);
    let mut header = whole.clone();
    header[..8].copy_from_slice(&(1_u64 << 63).to_le_bytes());
    for (damage, content) in [
        ("cut by one byte", whole[..whole.len() - 1].to_vec()),
        ("cut in the header", whole[..20].to_vec()),
        ("one byte too many", long),
        ("a header of 2^63 bytes", header),
        ("empty", Vec::new()),
    ] {
        let world = World::with(vec![File::with("model.safetensors", content)]).await;
        let failure = world.fetch().await.unwrap_err();
        assert_eq!(failure.reason, Reason::BadSource, "{damage}: {failure}");
        assert!(failure.message.contains("model.safetensors"), "{damage}: {failure}");
        assert_eq!(world.files(), [] as [&str; 0], "{damage}");
    }
    let world = World::with(vec![File::with("model.safetensors", whole)]).await;
    world.fetch().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn load_04_an_index_that_names_a_missing_shard_is_told() {
    let index = r#"{"weight_map":{"a":"m-1.safetensors","b":"m-2.safetensors"}}"#;
    let index = File::small("model.safetensors.index.json", index);
    let first = File::with("m-1.safetensors", safetensors(10));
    let world = World::with(vec![index.clone(), first.clone()]).await;
    let failure = world.fetch().await.unwrap_err();
    assert_eq!(failure.reason, Reason::BadSource);
    assert!(failure.message.contains("m-2.safetensors"), "{failure}");

    let second = File::with("m-2.safetensors", safetensors(20));
    let world = World::with(vec![index, first, second]).await;
    world.fetch().await.unwrap();
}

#[test]
fn load_04_weights_that_somebody_else_put_there_are_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("model.safetensors"), safetensors(10)).unwrap();
    fs::write(path("notes.txt"), "anything").unwrap();
    assert_eq!(check_weights(folder.path()), Ok(()));
    fs::write(path("model.gguf"), "<html>").unwrap();
    let failure = check_weights(folder.path()).unwrap_err();
    assert!(failure.message.contains("model.gguf"), "{failure}");
    assert_eq!(check_weights(&path("model.safetensors")), Ok(()));
    let failure = check_weights(&path("missing.gguf")).unwrap_err();
    assert_eq!(failure.reason, Reason::BadSource);
    assert!(failure.message.contains("does not exist"), "{failure}");
}
