//! What runs before an engine: our own program, in init containers and in Jobs alike.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, EnvVar, SecurityContext, Volume, VolumeMount,
};

use super::environment::{literal, variable};
use super::volumes::{MODEL, claim, mounted};
use super::weights::{Held, MODELS, Work};
use super::{Blueprint, Refusal};
use crate::planning::progress;
use crate::sources::{RelativePath, Source};

/// What a container is called that fetches, and the beginning of further ones' names.
pub(in crate::planning) const FETCH: &str = "fetch";

/// Where a claim that is copied from is mounted.
const FROM: &str = "/from";

/// Steps, with the volumes that they need beside the weights' own.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) containers: Vec<Container>,
    pub(super) volumes: Vec<Volume>,
}

impl Blueprint<'_> {
    /// One container for each step of `works`; the weights' volume is called `model`.
    pub(super) fn steps(&self, works: &[Work]) -> Result<Steps, Refusal> {
        let image = self.settings.images.node()?;
        let mut steps = Steps::default();
        for (number, work) in works.iter().enumerate() {
            let numbered = |name: &str| match number {
                0 => name.to_owned(),
                number => format!("{name}-{number}"),
            };
            let mut mounts = vec![mounted(MODEL, MODELS, false)];
            let (name, args, variables) = match work {
                Work::Fetch { source, .. } => {
                    let variables = match source.parse() {
                        Ok(Source::HuggingFace(_)) => self.hub(),
                        _ => self.registries(&mut steps.volumes, &mut mounts)?,
                    };
                    (FETCH, fetch_arguments(work), variables)
                }
                Work::Copy { claim: from, folder, only } => {
                    let volume = numbered("from");
                    steps.volumes.push(claim(&volume, from, true));
                    mounts.push(mounted(&volume, FROM, true));
                    ("copy", copy_arguments(folder, only), Vec::new())
                }
            };
            let mut container = ours(&numbered(name), &image, &args, variables, mounts);
            tells_progress(&mut container);
            if matches!(self.weights.held, Held::HostFolder(_)) {
                as_root(&mut container);
            }
            steps.containers.push(container);
        }
        Ok(steps)
    }
}

fn fetch_arguments(work: &Work) -> Vec<String> {
    let Work::Fetch { source, selection, folder } = work else { return Vec::new() };
    let mut args = vec!["fetch".to_owned(), format!("--to={folder}")];
    args.extend(selection.revision.iter().map(|revision| format!("--revision={revision}")));
    args.extend(selection.allow.iter().map(|pattern| format!("--allow={pattern}")));
    args.extend(selection.ignore.iter().map(|pattern| format!("--ignore={pattern}")));
    args.extend(selection.file.iter().map(|file| format!("--file={file}")));
    args.extend(selection.beside.iter().map(|file: &RelativePath| format!("--beside={file}")));
    args.push(source.clone());
    args
}

/// The whole of a claim, or a folder of it.
fn copy_arguments(folder: &str, only: &[String]) -> Vec<String> {
    let below = |top: &str| match folder {
        "" => top.to_owned(),
        folder => format!("{top}/{folder}"),
    };
    let mut args = vec!["flash".to_owned(), "--verify".to_owned()];
    args.extend([format!("--src={}", below(FROM)), format!("--dst={}", below(MODELS))]);
    args.extend(only.iter().map(|pattern| format!("--only={pattern}")));
    args
}

/// A container of our own program: it needs no privilege at all.
pub(super) fn ours(
    name: &str,
    image: &str,
    args: &[String],
    variables: Vec<EnvVar>,
    mounts: Vec<VolumeMount>,
) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(args.iter().map(|argument| literal(argument)).collect()),
        env: Some(variables).filter(|variables| !variables.is_empty()),
        volume_mounts: Some(mounts),
        security_context: Some(unprivileged()),
        // The last lines say why it failed, where it says nothing of its own.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

/// A container of ours that says how far it is when it is asked.
pub(super) fn tells_progress(container: &mut Container) {
    let port = variable(progress::PORT_VARIABLE, &progress::port());
    container.env.get_or_insert_default().push(port);
    progress::can_be_asked(container);
}

fn unprivileged() -> SecurityContext {
    SecurityContext {
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }),
        ..SecurityContext::default()
    }
}

/// A folder of the node that had to be made is root's.
pub(super) fn as_root(container: &mut Container) {
    container.security_context.get_or_insert_default().run_as_user = Some(0);
}
