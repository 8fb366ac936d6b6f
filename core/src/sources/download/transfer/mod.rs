//! Fetches one file: from the start or from where it broke off, checked before it is published.
//!
//! Every surprise of the other side ends in one of three ways: go on from what is there, start
//! again from nothing, or give up with a [`Failure`]. Starting again is bounded.

mod content;
mod letting_in;
mod step;

use std::time::Duration;

use url::Url;

use super::conversation::MOST_REDIRECTS;
use super::site::Site;
use super::verdict::{Asked, Verdict, judge};
use super::{Digest, Head, Patience, Purpose, RemoteFile, Request};
use crate::activation::{Failure, Reason};
use crate::sources::RelativePath;

pub use step::{Body, TransferStep};

/// The talk with a hub or a registry, and the storage behind it, about one file.
#[derive(Clone, Debug)]
pub struct Transfer {
    file: RemoteFile,
    repository: String,
    revision: String,
    site: Site,
    patience: Patience,
    /// Bytes of the file that are here, from its beginning.
    have: u64,
    /// The most that were ever here since the last start from nothing: more is progress.
    best: u64,
    /// The whole length, once anybody has said it.
    length: Option<u64>,
    /// The strong entity tag of what is here.
    tag: Option<String>,
    failures: u32,
    redirects: u32,
    /// Starts from nothing; unlike failures they are never forgiven, or this would never end.
    restarts: u32,
    mismatches: u32,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    At(Url),
    /// A token is asked for there, with which the file is asked for once more.
    LettingIn(Url),
    Pause(Duration, String),
    Verify,
    Publish,
    Failed(Failure),
}

/// A file that is not what its digest says is fetched this often in all (LOAD-05).
const MOST_MISMATCHES: u32 = 2;

impl Transfer {
    /// The transfer of `file` of `repository`, of which the first `have` bytes are here already.
    pub(super) fn new(
        file: RemoteFile,
        (repository, revision): (String, String),
        site: Site,
        patience: &Patience,
        have: u64,
    ) -> Self {
        let tag = match &file.digest {
            // The hub tags small files with their git name; large ones come from elsewhere.
            Some(Digest::GitBlob(hex)) if have > 0 => Some(format!("\"{hex}\"")),
            _ => None,
        };
        let mut transfer = Self {
            repository,
            revision,
            site,
            patience: patience.clone(),
            have,
            best: have,
            length: file.size,
            tag,
            failures: 0,
            redirects: 0,
            restarts: 0,
            mismatches: 0,
            state: State::At(file.url.clone()),
            file,
        };
        transfer.begin();
        transfer
    }

    /// The path of the file that this is about.
    pub fn path(&self) -> &RelativePath {
        &self.file.path
    }

    /// The bytes that are here.
    pub fn have(&self) -> u64 {
        self.have
    }

    /// What to do now.
    #[expect(clippy::should_implement_trait, reason = "it is a step of a talk, not an iterator")]
    pub fn next(&mut self) -> TransferStep {
        match &self.state {
            State::At(url) => TransferStep::Ask(self.request(url)),
            State::LettingIn(url) => TransferStep::Ask(Request::for_token(url)),
            State::Pause(wait, why) => {
                let step = TransferStep::Wait(*wait, why.clone());
                self.begin();
                step
            }
            State::Verify => TransferStep::Verify,
            State::Publish => TransferStep::Publish,
            State::Failed(failure) => TransferStep::Failed(failure.clone()),
        }
    }

    /// An attempt begins at the hub again, since signed addresses expire.
    fn begin(&mut self) {
        self.redirects = 0;
        match self.length {
            Some(length) if self.have == length => self.state = State::Verify,
            Some(length) if self.have > length => {
                self.forget();
                self.begin();
            }
            _ => self.state = State::At(self.file.url.clone()),
        }
    }

    /// What is here is worth nothing.
    fn forget(&mut self) {
        self.have = 0;
        self.best = 0;
        self.length = self.file.size;
        self.tag = None;
    }

    fn request(&self, url: &Url) -> Request {
        // A compressed body has neither the length nor the ranges of the file.
        let mut headers = vec![("accept-encoding", "identity".to_owned())];
        if self.have > 0 {
            let last = self.length.filter(|_| self.site.closes_ranges());
            let last = last.map(|length| length.saturating_sub(1).to_string()).unwrap_or_default();
            headers.push(("range", format!("bytes={}-{last}", self.have)));
            if let Some(tag) = &self.tag {
                headers.push(("if-range", tag.clone()));
            }
        }
        let authorization = self.site.authorization(url);
        Request { url: url.clone(), headers, authorization, purpose: Purpose::File }
    }

    /// The answer to the last request; its body has not been read.
    pub fn head(&mut self, head: &Head) -> Body {
        let url = match &self.state {
            State::At(url) => url,
            State::LettingIn(_) => return self.let_in(head),
            _ => return Body::Drop,
        };
        let asked =
            Asked { site: &self.site, repository: &self.repository, revision: &self.revision, url };
        match judge(head, &asked) {
            Verdict::Answer => {
                self.site.anew();
                self.content(head)
            }
            Verdict::Challenged => {
                self.challenged(head);
                Body::Drop
            }
            Verdict::Moved(_) if self.redirects >= MOST_REDIRECTS => {
                self.again("it redirects in a circle", None);
                Body::Drop
            }
            Verdict::Moved(target) => {
                self.redirects += 1;
                self.state = State::At(target);
                Body::Drop
            }
            Verdict::Later { why, after } => {
                self.again(&why, after);
                Body::Drop
            }
            Verdict::Never(failure) => {
                self.state = State::Failed(failure);
                Body::Drop
            }
        }
    }

    fn restart(&mut self, why: &str) -> Body {
        self.forget();
        self.restarts += 1;
        self.again(why, None);
        Body::Drop
    }

    /// `bytes` more were written. False if that is too much: then drop the body and call `next`.
    #[must_use]
    pub fn received(&mut self, bytes: u64) -> bool {
        self.have = self.have.saturating_add(bytes);
        if let Some(length) = self.length
            && self.have > length
        {
            self.restart(&format!("the server sends more than the {length} bytes of the file"));
            return false;
        }
        if self.have > self.best {
            self.best = self.have;
            self.failures = 0;
        }
        true
    }

    /// The body came to its end.
    pub fn ended(&mut self) {
        match self.length {
            Some(length) if self.have < length => self.broken("the server stopped in the middle"),
            _ => self.state = State::Verify,
        }
    }

    /// No answer came, or its body broke off. What was received stays.
    pub fn broken(&mut self, why: &str) {
        self.again(why, None);
    }

    /// Whether the bytes are what the digest says. If not, the caller removes them.
    pub fn verified(&mut self, matching: bool) {
        if matching {
            self.state = State::Publish;
            return;
        }
        self.forget();
        self.mismatches += 1;
        if self.mismatches < MOST_MISMATCHES {
            self.begin();
            return;
        }
        self.state = State::Failed(Failure::new(
            Reason::DigestMismatch,
            format!(
                "{} of {} is not what its digest says, after {} downloads; where it comes from, a mirror or \
                 a proxy on the way damages it",
                self.file.path, self.repository, self.mismatches
            ),
        ));
    }

    fn again(&mut self, why: &str, after: Option<Duration>) {
        self.failures += 1;
        self.site.anew();
        self.state = match self.patience.wait(self.failures.max(self.restarts), after) {
            Some(wait) => State::Pause(wait, why.to_owned()),
            None => State::Failed(Failure::new(
                Reason::DownloadFailed,
                format!(
                    "{} of {} cannot be downloaded: {why} ({} bytes are kept for the next try); \
                     check the network and try again",
                    self.file.path, self.repository, self.have
                ),
            )),
        };
    }
}
