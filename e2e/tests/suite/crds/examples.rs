//! What the checkout offers as examples is taken by a cluster as it lies there.

use super::{Models, checkout};

#[tokio::test]
async fn every_example_applies() {
    let models = Models::new().await;
    let mut folders = 0;
    for entry in std::fs::read_dir(checkout().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        let printed = models.succeed(&["apply", "--filename", folder.to_str().unwrap()], "").await;
        let files = std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(printed.stderr, "", "{}", folder.display());
        assert!(
            printed.stdout.lines().count() >= files,
            "{}: {}",
            folder.display(),
            printed.stdout
        );
        folders += 1;
    }
    assert!(folders > 0, "there are no examples");
}
