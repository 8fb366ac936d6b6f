//! Asks a hub what a repository holds, until the list of files to save is known.

use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::listing::Listing;
use super::verdict::{Asked, Verdict, judge};
use super::{Head, Hub, Patience, Purpose, RemoteFile, Request, Selection, Transfer};
use crate::activation::{Failure, Reason};
use crate::sources::Source;
use crate::sources::huggingface::Repository;

/// Digits of a whole commit's name. A shorter one may be a branch too.
const COMMIT_LENGTH: usize = 40;

/// More redirects in a row than any hub needs.
pub(super) const MOST_REDIRECTS: u32 = 8;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Send this, then call `answered` or `broken`.
    Ask(Request),
    /// Wait this long, then call `next` again. The text says what went wrong, for people.
    Wait(Duration, String),
    /// Save these files, each by a [`super::Transfer`].
    Save(Plan),
    /// It cannot be had.
    Failed(Failure),
}

/// The files of a source, at one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The commit that all of them are of; `None` if the hub does not say.
    pub commit: Option<String>,
    /// What to save.
    pub files: Vec<RemoteFile>,
}

impl Plan {
    /// The bytes of all files, as far as the hub says.
    pub fn size(&self) -> u64 {
        self.files.iter().filter_map(|file| file.size).fold(0, u64::saturating_add)
    }
}

/// The talk with a hub about one repository.
#[derive(Clone, Debug)]
pub struct Conversation {
    repository: Repository,
    selection: Selection,
    hub: Hub,
    patience: Patience,
    /// The revision as the Model says it, and the one that is asked for: a commit once pinned.
    configured: String,
    revision: String,
    /// Where each attempt begins.
    first: Url,
    failures: u32,
    redirects: u32,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    At(Url),
    Pause(Duration, String),
    End(Result<Plan, Failure>),
}

impl Source {
    /// The talk that tells which files of this source there are, or `None` for a source that is
    /// not downloaded by us.
    pub fn conversation(
        &self,
        selection: &Selection,
        hub: &Hub,
        patience: &Patience,
    ) -> Result<Option<Conversation>, Failure> {
        let Self::HuggingFace(repository) = self else { return Ok(None) };
        let revision = selection.revision_of(repository).map_err(|error| bad_source(&error))?;
        let first =
            hub.list_url(&repository.id(), &revision).map_err(|error| bad_source(&error))?;
        Ok(Some(Conversation {
            repository: repository.clone(),
            selection: selection.clone(),
            hub: hub.clone(),
            patience: patience.clone(),
            configured: revision.clone(),
            revision,
            state: State::At(first.clone()),
            first,
            failures: 0,
            redirects: 0,
        }))
    }
}

fn bad_source(error: &dyn std::error::Error) -> Failure {
    Failure::new(Reason::BadSource, error.to_string())
}

impl Conversation {
    /// What a folder of this source is known by: two talks with the same identity may share one.
    pub fn identity(&self) -> String {
        format!("HF://{}@{}", self.repository.id(), self.configured)
    }

    /// What is wanted of the source: equal for equal wishes.
    pub fn fingerprint(&self) -> String {
        self.selection.fingerprint(&self.repository)
    }

    /// What the engine is given once the files lie in `folder`.
    pub fn model_path(&self, folder: &Path) -> PathBuf {
        self.selection.model_path(&self.repository, folder)
    }

    /// The same talk about the `commit` that an earlier, unfinished download began with.
    pub fn pinned_to(&self, commit: &str) -> Result<Self, Failure> {
        let first =
            self.hub.list_url(&self.repository.id(), commit).map_err(|error| bad_source(&error))?;
        let state = State::At(first.clone());
        Ok(Self { revision: commit.to_owned(), first, state, ..self.clone() })
    }

    /// The transfer of one `file` of the plan, of which the first `have` bytes are here already.
    pub fn transfer(&self, file: RemoteFile, have: u64) -> Transfer {
        let named = (self.repository.id(), self.revision.clone());
        Transfer::new(file, named, &self.hub, &self.patience, have)
    }

    /// What to do now.
    #[expect(clippy::should_implement_trait, reason = "it is a step of a talk, not an iterator")]
    pub fn next(&mut self) -> Step {
        match &self.state {
            State::At(url) => Step::Ask(Request {
                with_token: self.hub.may_see_token(url),
                url: url.clone(),
                headers: vec![("accept", "application/json".to_owned())],
                purpose: Purpose::List,
            }),
            State::Pause(wait, why) => {
                let step = Step::Wait(*wait, why.clone());
                self.redirects = 0;
                self.state = State::At(self.first.clone());
                step
            }
            State::End(Ok(plan)) => Step::Save(plan.clone()),
            State::End(Err(failure)) => Step::Failed(failure.clone()),
        }
    }

    /// The answer to the last request, read whole.
    pub fn answered(&mut self, head: &Head, body: &[u8]) {
        let State::At(url) = &self.state else { return };
        let asked = Asked {
            hub: &self.hub,
            repository: &self.repository.id(),
            revision: &self.revision,
            url,
        };
        match judge(head, &asked) {
            Verdict::Answer => match Listing::parse(body) {
                Ok(listing) => self.state = State::End(self.of_commit(&listing)),
                Err(error) => self.broken(&format!("the hub's list of files is wrong: {error}")),
            },
            Verdict::Moved(_) if self.redirects >= MOST_REDIRECTS => {
                self.broken("the hub redirects in a circle");
            }
            Verdict::Moved(target) => {
                self.redirects += 1;
                self.state = State::At(target);
            }
            Verdict::Later { why, after } => self.again(&why, after),
            Verdict::Never(failure) => self.state = State::End(Err(failure)),
        }
    }

    /// No answer came, or not all of it.
    pub fn broken(&mut self, why: &str) {
        self.again(why, None);
    }

    fn again(&mut self, why: &str, after: Option<Duration>) {
        self.failures += 1;
        self.state = match self.patience.wait(self.failures, after) {
            Some(wait) => State::Pause(wait, why.to_owned()),
            None => State::End(Err(Failure::new(
                Reason::DownloadFailed,
                format!(
                    "the files of {} cannot be listed: {why} ({} times); check the network and \
                     HF_ENDPOINT",
                    self.repository.id(),
                    self.failures
                ),
            ))),
        };
    }

    /// The plan, unless the hub was asked for one commit and answers with another: what is asked for by its
    /// digest is not to be taken on trust.
    fn of_commit(&self, listing: &Listing) -> Result<Plan, Failure> {
        let asked = &self.revision;
        let whole =
            asked.len() == COMMIT_LENGTH && asked.bytes().all(|byte| byte.is_ascii_hexdigit());
        match &listing.commit {
            Some(commit) if whole && !commit.eq_ignore_ascii_case(asked) => {
                let id = self.repository.id();
                let message = format!(
                    "the hub was asked for commit {asked} of {id} and answered with {commit}; ask \
                     the hub itself instead of a mirror (HF_ENDPOINT)"
                );
                Err(Failure::new(Reason::DigestMismatch, message))
            }
            _ => self.plan(listing),
        }
    }

    fn plan(&self, listing: &Listing) -> Result<Plan, Failure> {
        let id = self.repository.id();
        let revision = listing.commit.as_deref().unwrap_or(&self.revision);
        let mut files = Vec::new();
        for listed in self.selection.choose(&self.repository, &listing.files)? {
            let url = self
                .hub
                .file_url(&id, revision, &listed.path)
                .map_err(|error| bad_source(&error))?;
            files.push(RemoteFile {
                path: listed.path,
                size: listed.size,
                digest: listed.digest,
                url,
            });
        }
        Ok(Plan { commit: listing.commit.clone(), files })
    }
}
