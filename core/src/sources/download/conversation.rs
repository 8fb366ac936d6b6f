//! Asks a hub what a repository holds, or a registry what an artifact is, until the list of files to save is
//! known.

use std::path::{Path, PathBuf};
use std::time::Duration;

use url::Url;

use super::site::Site;
use super::verdict::{Asked, Verdict, judge};
use super::wanted::{Heard, Wanted};
use super::{Head, Patience, Purpose, RemoteFile, Request, Selection, Terms, Transfer};
use crate::activation::{Failure, Reason};
use crate::sources::Source;
use crate::sources::oci::{Reply, Told};

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
    /// The commit that all of them are of, or the digest of an artifact; `None` if the hub does not say.
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

/// The talk with a hub about one repository, or with a registry about one artifact.
#[derive(Clone, Debug)]
pub struct Conversation {
    wanted: Wanted,
    selection: Selection,
    site: Site,
    patience: Patience,
    /// The revision as the Model says it, and the one that is asked for: a commit once pinned.
    configured: String,
    revision: String,
    failures: u32,
    redirects: u32,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    At(Url),
    /// A token is asked for there, with which is then asked here once more.
    LettingIn {
        service: Url,
        back: Url,
    },
    Pause(Duration, String),
    End(Result<Plan, Failure>),
}

impl Source {
    /// The talk that tells which files of this source there are, or `None` for a source that is
    /// not downloaded by us.
    pub fn conversation(
        &self,
        selection: &Selection,
        terms: &Terms,
    ) -> Result<Option<Conversation>, Failure> {
        let wanted = Wanted::of(self, terms).map_err(|error| bad_source(&error))?;
        let Some(mut wanted) = wanted else { return Ok(None) };
        let revision = wanted.revision(self, selection).map_err(|error| bad_source(&error))?;
        let first = wanted.begin(&revision).map_err(|error| bad_source(&error))?;
        let site = wanted.site();
        Ok(Some(Conversation {
            wanted,
            selection: selection.clone(),
            site,
            patience: terms.patience.clone(),
            configured: revision.clone(),
            revision,
            state: State::At(first),
            failures: 0,
            redirects: 0,
        }))
    }
}

pub(super) fn bad_source(error: &dyn std::error::Error) -> Failure {
    Failure::new(Reason::BadSource, error.to_string())
}

impl Conversation {
    /// What a folder of this source is known by: two talks with the same identity may share one.
    pub fn identity(&self) -> String {
        self.wanted.identity(&self.configured)
    }

    /// What is wanted of the source: equal for equal wishes.
    pub fn fingerprint(&self) -> String {
        self.selection.fingerprint(self.wanted.within())
    }

    /// What the engine is given once the files lie in `folder`.
    pub fn model_path(&self, folder: &Path) -> PathBuf {
        self.selection.model_path(self.wanted.file(), folder)
    }

    /// Whether all that is asked stays on this machine: no proxy may come between, which would see what goes
    /// along.
    pub fn is_local(&self) -> bool {
        self.site.is_local()
    }

    /// The same talk, where there is a login for the registry, or none.
    #[must_use]
    pub fn with_login(self, logged_in: bool) -> Self {
        let site = match self.site {
            Site::Registry(pass) => Site::Registry(pass.with_login(logged_in)),
            hub @ Site::Hub(_) => hub,
        };
        Self { site, ..self }
    }

    /// The same talk about the `commit` that an earlier, unfinished download began with.
    pub fn pinned_to(&self, commit: &str) -> Result<Self, Failure> {
        let mut pinned = self.clone();
        let first = pinned.wanted.begin(commit).map_err(|error| bad_source(&error))?;
        pinned.state = State::At(first);
        commit.clone_into(&mut pinned.revision);
        Ok(pinned)
    }

    /// The transfer of one `file` of the plan, of which the first `have` bytes are here already.
    pub fn transfer(&self, file: RemoteFile, have: u64) -> Transfer {
        let named = (self.wanted.id(), self.revision.clone());
        Transfer::new(file, named, self.site.clone(), &self.patience, have)
    }

    /// What to do now.
    #[expect(clippy::should_implement_trait, reason = "it is a step of a talk, not an iterator")]
    pub fn next(&mut self) -> Step {
        match &self.state {
            State::At(url) => Step::Ask(Request {
                authorization: self.site.authorization(url),
                url: url.clone(),
                headers: vec![("accept", self.wanted.accept().to_owned())],
                purpose: Purpose::List,
            }),
            State::LettingIn { service, .. } => Step::Ask(Request::for_token(service)),
            State::Pause(wait, why) => {
                let step = Step::Wait(*wait, why.clone());
                self.redirects = 0;
                self.state = match self.wanted.begin(&self.revision) {
                    Ok(first) => State::At(first),
                    Err(error) => State::End(Err(bad_source(&error))),
                };
                step
            }
            State::End(Ok(plan)) => Step::Save(plan.clone()),
            State::End(Err(failure)) => Step::Failed(failure.clone()),
        }
    }

    /// The answer to the last request, read whole.
    pub fn answered(&mut self, head: &Head, body: &[u8]) {
        let url = match &self.state {
            State::At(url) => url.clone(),
            State::LettingIn { back, .. } => {
                let back = back.clone();
                return self.let_in(head, body, back);
            }
            _ => return,
        };
        let asked = Asked {
            site: &self.site,
            repository: &self.wanted.id(),
            revision: &self.revision,
            url: &url,
        };
        match judge(head, &asked) {
            Verdict::Answer => self.heard(head, body),
            Verdict::Challenged => {
                self.state = match self.site.challenged(head) {
                    Reply::Again => State::At(url),
                    Reply::Token(service) => State::LettingIn { service, back: url },
                    Reply::Never(failure) => State::End(Err(failure)),
                };
            }
            Verdict::Moved(_) if self.redirects >= MOST_REDIRECTS => {
                self.broken("it redirects in a circle");
            }
            Verdict::Moved(target) => {
                self.redirects += 1;
                self.state = State::At(target);
            }
            Verdict::Later { why, after } => self.again(&why, after),
            Verdict::Never(failure) => self.state = State::End(Err(failure)),
        }
    }

    /// What was asked for has come.
    fn heard(&mut self, head: &Head, body: &[u8]) {
        self.site.anew();
        match self.wanted.hear(&self.revision, head, body) {
            Heard::Listed(listing) => {
                let plan = self.wanted.plan(&self.selection, &self.revision, listing);
                self.state = State::End(plan);
            }
            Heard::Next(url) => {
                self.redirects = 0;
                self.state = State::At(url);
            }
            Heard::Broken(why) => self.broken(&why),
            Heard::Never(failure) => self.state = State::End(Err(failure)),
        }
    }

    /// The answer to a request for a token.
    fn let_in(&mut self, head: &Head, body: &[u8], back: Url) {
        match self.site.told(head) {
            Told::Read => match self.site.take(body) {
                Ok(()) => self.state = State::At(back),
                Err(why) => self.again(&why, None),
            },
            Told::Later { why, after } => self.again(&why, after),
            Told::Never(failure) => self.state = State::End(Err(failure)),
        }
    }

    /// No answer came, or not all of it.
    pub fn broken(&mut self, why: &str) {
        self.again(why, None);
    }

    fn again(&mut self, why: &str, after: Option<Duration>) {
        self.failures += 1;
        self.site.anew();
        self.state = match self.patience.wait(self.failures, after) {
            Some(wait) => State::Pause(wait, why.to_owned()),
            None => State::End(Err(Failure::new(
                Reason::DownloadFailed,
                format!(
                    "the files of {} cannot be listed: {why} ({} times); {}",
                    self.wanted.id(),
                    self.failures,
                    self.site.advice()
                ),
            ))),
        };
    }
}
