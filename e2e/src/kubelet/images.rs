//! What an image is here: a program of this machine with its first arguments.

use std::collections::BTreeMap;

use crate::{images, programs};

/// Which program stands for which image. An image that is not in the table is missing in the registry.
#[derive(Clone, Debug, Default)]
pub struct Images {
    entry_points: BTreeMap<String, Vec<String>>,
}

impl Images {
    pub fn new() -> Self {
        Self::default()
    }

    /// This workspace's programs under the names in [`images`], as far as they are built.
    pub fn of_this_workspace() -> Self {
        let ours = |name| {
            let program = programs::built(name).filter(|program| program.exists())?;
            Some(vec![program.display().to_string()])
        };
        let entry_points = [
            (images::GATEWAY, ours("flexinfer-gateway")),
            (images::CONTROLLER, ours("flexinfer-controller")),
            (images::NODE, ours("flexinfer-node")),
        ];
        let known =
            |(image, entry_point): (&str, Option<_>)| Some((image.to_owned(), entry_point?));
        Self { entry_points: entry_points.into_iter().filter_map(known).collect() }
    }

    /// Adds an image whose entry point is `entry_point`: a program and the arguments before a container's own.
    /// A container's `command` replaces all of it, as it does for a real image.
    #[must_use]
    pub fn with<const N: usize>(mut self, image: &str, entry_point: [&str; N]) -> Self {
        self.entry_points.insert(image.to_owned(), entry_point.map(str::to_owned).to_vec());
        self
    }

    /// Adds an image that is what `of` is, if that is in the table.
    #[must_use]
    pub fn alias(mut self, image: &str, of: &str) -> Self {
        let entry_point = self.entry_points.get(of).cloned();
        self.entry_points.extend(entry_point.map(|words| (image.to_owned(), words)));
        self
    }

    pub(super) fn entry_point(&self, image: &str) -> Option<&[String]> {
        self.entry_points.get(image).map(Vec::as_slice)
    }
}
