//! Who is asked: the hub or a registry. What may go along to it, what is its own, and how it refuses.

use url::Url;

use super::verdict::{self, Asked};
use super::{Authorization, Head, Hub};
use crate::activation::{Failure, Reason};
use crate::sources::oci::{Pass, Reply, Told};

/// The other side of a download.
#[derive(Clone, Debug)]
pub(super) enum Site {
    /// The Hugging Face hub or a mirror of it.
    Hub(Hub),
    /// A registry, and how we stand with it.
    Registry(Pass),
}

impl Site {
    /// Whether `url` is on the site itself, and not on the storage it redirects to.
    pub(super) fn owns(&self, url: &Url) -> bool {
        match self {
            Self::Hub(hub) => hub.owns(url),
            Self::Registry(pass) => pass.registry().owns(url),
        }
    }

    /// Whether it is on this very machine.
    pub(super) fn is_local(&self) -> bool {
        match self {
            Self::Hub(hub) => hub.is_local(),
            Self::Registry(pass) => pass.registry().is_local(),
        }
    }

    /// What goes along with a request to `url` (SEC-07).
    pub(super) fn authorization(&self, url: &Url) -> Authorization {
        match self {
            Self::Hub(hub) if hub.may_see_token(url) => Authorization::HubToken,
            Self::Hub(_) => Authorization::Nothing,
            Self::Registry(pass) => pass.authorization(url),
        }
    }

    /// Whether an answer 401 is a question that can be answered.
    pub(super) const fn asks_back(&self) -> bool {
        matches!(self, Self::Registry(_))
    }

    /// It answered with what was asked for, or it is asked once more for another reason than a challenge.
    pub(super) fn anew(&mut self) {
        if let Self::Registry(pass) = self {
            pass.anew();
        }
    }

    /// It answered 401.
    pub(super) fn challenged(&mut self, head: &Head) -> Reply {
        match self {
            Self::Registry(pass) => pass.challenged(head),
            Self::Hub(hub) => Reply::Never(no_questions(hub.as_str())),
        }
    }

    /// What the answer to a request for a registry's token means.
    pub(super) fn told(&self, head: &Head) -> Told {
        match self {
            Self::Registry(pass) => pass.told(head),
            Self::Hub(hub) => Told::Never(no_questions(hub.as_str())),
        }
    }

    /// Takes a registry's token out of that answer.
    pub(super) fn take(&mut self, body: &[u8]) -> Result<(), String> {
        match self {
            Self::Registry(pass) => pass.take(body),
            Self::Hub(hub) => Err(no_questions(hub.as_str()).message),
        }
    }

    /// Whether the end of a range is said to it as well: some registries understand no other.
    pub(super) const fn closes_ranges(&self) -> bool {
        matches!(self, Self::Registry(_))
    }

    /// What can be done about an address that does not work.
    pub(super) const fn advice(&self) -> &'static str {
        match self {
            Self::Hub(_) => "check the network and HF_ENDPOINT",
            Self::Registry(_) => "check the network and the registry's name",
        }
    }

    /// It answered 401 or 403, and that is its last word.
    pub(super) fn refused(&self, head: &Head, asked: &Asked<'_>) -> Failure {
        match self {
            Self::Hub(hub) => verdict::refused_by(hub, head, asked),
            Self::Registry(pass) => pass.refused(),
        }
    }

    /// It answered 404 or 410.
    pub(super) fn not_found(&self, head: &Head, asked: &Asked<'_>) -> Failure {
        let Asked { repository, revision, .. } = asked;
        match self {
            Self::Hub(hub) => verdict::not_found_by(hub, head, asked),
            Self::Registry(_) => Failure::new(
                Reason::BadSource,
                format!(
                    "there is no `{revision}` of {repository} in its registry; check the source"
                ),
            ),
        }
    }
}

fn no_questions(hub: &str) -> Failure {
    Failure::new(Reason::DownloadFailed, format!("{hub} asks for what no hub asks for"))
}
