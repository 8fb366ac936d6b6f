//! What can keep a pass from being finished.

use std::time::Duration;

use flexinfer_core::planning::writing::Why;
use flexinfer_crds::keys::FIELD_MANAGER;

use super::apply::SCALER;

/// Refusals that say nothing about what was written: who asks is not known, or what is asked for is not there, it
/// took too long, somebody else wrote meanwhile, or too much is asked for.
const PASSING: [u16; 5] = [401, 404, 408, 409, 429];

/// What was not done in a pass. The next one begins where it stopped.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// This process may not write any more.
    #[error("another controller may lead now")]
    LeadLost,
    /// The server refused or did not answer.
    #[error("cannot {act}: {source}")]
    Refused {
        /// What was tried.
        act: String,
        /// What came back.
        source: Box<kube::Error>,
    },
    /// Something that is not the model's has the name.
    #[error("{0}")]
    Taken(String),
    /// An object of a deleted Model of the same name is still there.
    #[error("{0} of the Model before is still being removed")]
    Outlived(String),
    /// The server did not answer.
    #[error("cannot {act}: no answer within {limit:?}")]
    Silent {
        /// What was tried.
        act: String,
        /// How long was waited.
        limit: Duration,
    },
}

impl Error {
    /// Why the server does not take what was written, if waiting a moment does not help; and what it said.
    pub(super) fn trouble(&self) -> Option<(Why, String)> {
        let (act, status) = match self {
            Self::Taken(said) => return Some((Why::NameTaken, said.clone())),
            Self::Refused { act, source } => match &**source {
                kube::Error::Api(status) => (act, status),
                _ => return None,
            },
            Self::LeadLost | Self::Outlived(_) | Self::Silent { .. } => return None,
        };
        let about_the_object = (400..500).contains(&status.code) && !PASSING.contains(&status.code);
        // A webhook that must be asked and does not answer refuses as long as that lasts.
        let unasked = status.code == 500 && status.message.contains("failed calling webhook");
        (about_the_object || unasked).then(|| (Why::of(&status.message), said(act, status)))
    }

    /// What went wrong, in the server's words where there are any.
    pub(super) fn said(&self) -> String {
        match self {
            Self::Refused { act, source } => match &**source {
                kube::Error::Api(status) => said(act, status),
                _ => self.to_string(),
            },
            _ => self.to_string(),
        }
    }

    /// Who else wrote which of the fields that were applied, where that is why they were not taken; this controller
    /// itself, which writes some in another way, is no one else.
    pub(super) fn field_conflict(&self) -> Option<Vec<(String, String)>> {
        let Self::Refused { source, .. } = self else { return None };
        let kube::Error::Api(status) = &**source else { return None };
        let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
        let mut conflicts =
            causes.iter().filter(|cause| cause.reason == "FieldManagerConflict").peekable();
        conflicts.peek()?;
        let all = conflicts.map(|cause| {
            // conflict with "kubectl-edit" using apps/v1
            let who = cause.message.split('"').nth(1).unwrap_or("somebody");
            (who.to_owned(), cause.field.clone())
        });
        Some(all.filter(|(who, _)| ![FIELD_MANAGER, SCALER].contains(&who.as_str())).collect())
    }

    /// Whether a trial could not be made: a webhook that has effects of its own cannot be asked without them.
    pub(super) fn is_untried(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status)
            if status.code == 400 && status.message.contains("does not support dry run"))
    }

    /// Whether the server was asked and did not do it: to ask for the same at once would cost others their turn. After
    /// a conflict nothing is wrong, and a server that cannot be reached does nothing at all.
    pub(super) fn was_asked(&self) -> bool {
        match self {
            Self::Refused { source, .. } => {
                matches!(&**source, kube::Error::Api(_)) && !self.is_conflict()
            }
            Self::Taken(_) | Self::Outlived(_) | Self::Silent { .. } => true,
            Self::LeadLost => false,
        }
    }

    /// Whether somebody else wrote the object meanwhile.
    pub(super) fn is_conflict(&self) -> bool {
        self.has_code(409)
    }

    /// Whether the object is not there any more.
    pub(super) fn is_absence(&self) -> bool {
        self.has_code(404)
    }

    fn has_code(&self, code: u16) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status) if status.code == code)
    }
}

fn said(act: &str, status: &kube::core::Status) -> String {
    format!("cannot {act}: {}", status.message)
}
