//! Models that a group has no more.

use super::*;

#[tokio::test]
async fn nothing_is_told_of_a_model_that_went_without_being_let_go() {
    let gpu = json!({ "vendor": "nvidia", "shared": "desk" });
    let scene = Scene::of(&[("m", json!({ "backend": "simulator", "gpu": gpu }))]);
    scene.pass().await;
    assert_eq!(scene.series("flexinfer_model_phase{").len(), 6);
    assert_eq!(scene.series("flexinfer_sharedgroup_state{").len(), 4);
    scene.world.lost_model(&ModelId::new("default", "m"));
    scene.pass().await;
    for name in [
        "flexinfer_model_phase{",
        "flexinfer_model_preload_active{",
        "flexinfer_sharedgroup_state{",
    ] {
        assert_eq!(scene.series(name), [""; 0]);
    }
    let counted = scene.series("flexinfer_models_total{");
    assert!(counted.iter().all(|line| line.ends_with(" 0")), "{counted:?}");
}

#[tokio::test]
async fn a_model_that_leaves_its_group_has_no_place_there() {
    let spec = |group: &str| {
        let gpu = json!({ "vendor": "nvidia", "shared": group });
        json!({ "backend": "simulator", "gpu": gpu })
    };
    let scene = Scene::of(&[("m", spec("desk"))]);
    scene.pass().await;
    let mut edited = model("m", &spec("shelf"));
    (edited.metadata.generation, edited.metadata.resource_version) = (Some(2), Some("99".into()));
    scene.world.saw_model(edited);
    scene.pass().await;
    assert_eq!(scene.series("flexinfer_sharedgroup_state{"), [""; 0]);
    assert_eq!(scene.series("flexinfer_model_phase{").len(), 6, "it is there still");
}
