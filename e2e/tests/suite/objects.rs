//! What core draws of a Model, shown to a real API server: every object of its snapshots is one that the server
//! would take.

use std::fs;

use crate::crds::checkout;
use crate::shared::World;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_takes_every_object_that_is_drawn() {
    let world = World::new().await;
    let folder = checkout().join("core/src/planning/objects/tests/snapshots");
    let mut shown = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        // The snapshot's own header stands before the first objects.
        let drawn = text.splitn(3, "---\n").nth(2).unwrap();
        let drawn = drawn.replace("namespace: models", &format!("namespace: {}", world.namespace));
        let arguments =
            ["apply", "--server-side", "--dry-run=server", "--validate=strict", "--filename", "-"];
        let printed = world.cluster.kubectl().run_with_input(&arguments, &drawn).await.unwrap();
        assert!(printed.success, "{}: {}", path.display(), printed.stderr);
        shown += 1;
    }
    assert!(shown >= 10, "only {shown} snapshots were found");
}
