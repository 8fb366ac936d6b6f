//! One line of what a started engine streams about its progress.

use crate::activation::{Failure, Progress};

/// What a line says.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgressLine {
    /// How far it has come.
    Progress(Progress),
    /// It has failed and will say nothing more.
    Failed(Failure),
    /// Nothing of interest.
    Nothing,
}
