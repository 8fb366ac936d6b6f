//! Which image is run.

use super::*;

fn image(sample: &Sample) -> String {
    sample.engine().image.unwrap()
}

fn vllm() -> Sample {
    let spec = json!({ "backend": "vllm", "source": "HF://a/b", "gpu": { "count": 1 } });
    Sample::new(spec)
}

#[test]
fn the_models_own_image_beats_every_variable() {
    let mut sample = vllm().on_nvidia().with_image("DEFAULT_VLLM_IMAGE", "ours/vllm:1");
    assert_eq!(image(&sample), "ours/vllm:1");
    sample.model.spec.image = Some("mine/vllm:2".to_owned());
    assert_eq!(image(&sample), "mine/vllm:2");
}

#[test]
fn a_variable_for_the_architecture_beats_the_one_for_the_vendor() {
    for (name, image_wanted) in [
        ("DEFAULT_VLLM_IMAGE_GFX1100", "ours"),
        ("DEFAULT_VLLM_IMAGE_AMD", "ours"),
        ("DEFAULT_VLLM_IMAGE_GFX906", "rocm/vllm:latest"),
        ("DEFAULT_VLLM_IMAGE", "rocm/vllm:latest"),
    ] {
        let sample = vllm().on(Vendor::Amd, "gfx1100", 1).with_image(name, "ours");
        assert_eq!(image(&sample), image_wanted, "{name}");
    }
}

#[test]
fn a_digest_replaces_tag_and_digest_but_not_the_registrys_port() {
    let digest = "ab".repeat(32);
    for (image, repository) in [
        ("vllm/vllm-openai", "vllm/vllm-openai"),
        ("vllm/vllm-openai:v1", "vllm/vllm-openai"),
        ("registry.example:5000/vllm", "registry.example:5000/vllm"),
        ("registry.example:5000/vllm:v1@sha256:00", "registry.example:5000/vllm"),
    ] {
        for written in [digest.clone(), format!("sha256:{digest}")] {
            assert_eq!(pinned(image, &written), format!("{repository}@sha256:{digest}"));
        }
    }
}

#[test]
fn an_engine_without_a_public_image_needs_one_to_be_named() {
    let diffusers = Sample::new(json!({
        "backend": "diffusers", "source": "HF://a/b", "gpu": { "count": 1 },
    }));
    insta::assert_snapshot!(diffusers.on(Vendor::Amd, "gfx1100", 1).refusal(), @"ImageNotConfigured: there is no public image of diffusers for amd GPUs of gfx1100; set spec.image, or DEFAULT_DIFFUSERS_IMAGE_AMD on the controller");
    let omni = Sample::new(json!({ "backend": "vllm-omni", "source": "HF://a/b" }));
    insta::assert_snapshot!(omni.refusal(), @"ImageNotConfigured: there is no public image of vllm-omni for the processor; set spec.image, or DEFAULT_VLLM_OMNI_IMAGE_CPU on the controller");
    let other = json!({ "backend": "x", "config": { "command": "serve" } });
    insta::assert_snapshot!(Sample::new(other).refusal(), @"ImageNotConfigured: there is no public image of this backend for the processor; set spec.image");
}

#[test]
fn fetching_needs_our_own_image() {
    let mut sample = Sample::new(json!({
        "backend": "vllm", "source": "HF://a/b", "gpu": { "count": 1 }, "cache": { "strategy": "None" },
    }))
    .on_nvidia();
    sample.settings.images = Images::default();
    insta::assert_snapshot!(sample.refusal(), @"ImageNotConfigured: fetching weights needs the image of flexinfer-node; set FLEXINFER_NODE_IMAGE on the controller");
}

#[test]
fn only_variables_that_name_images_are_taken() {
    let images = Images::of([
        variable("DEFAULT_VLLM_IMAGE", "  "),
        variable("DEFAULT_FLASH_LOADER_ENABLED", "true"),
        variable("PATH", "/bin"),
    ]);
    assert_eq!(images, Images::default());
}
