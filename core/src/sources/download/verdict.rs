//! What an answer's status means for a download: go on, elsewhere, again later, or never.

use std::time::Duration;

use url::Url;

use super::site::Site;
use super::{Head, Hub};
use crate::activation::{Failure, Reason};

/// What to do about an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The body is what was asked for, or the range that was asked for does not exist (416).
    Answer,
    /// It is to be asked for there.
    Moved(Url),
    /// It may work later, after at least this long if the other side said so.
    Later { why: String, after: Option<Duration> },
    /// The site wants to know who asks.
    Challenged,
    /// It will not work until somebody changes something.
    Never(Failure),
}

/// Who is asked, for messages.
pub(super) struct Asked<'a> {
    pub(super) site: &'a Site,
    pub(super) repository: &'a str,
    pub(super) revision: &'a str,
    /// The URL that gave this answer.
    pub(super) url: &'a Url,
}

pub(super) fn judge(head: &Head, asked: &Asked<'_>) -> Verdict {
    match head.status {
        200 | 206 | 416 => Verdict::Answer,
        301 | 302 | 303 | 307 | 308 => moved(head, asked),
        // Storage refuses a signed address that has expired; the hub signs a new one.
        401 | 403 | 404 if !asked.site.owns(asked.url) => later(head, asked),
        401 if asked.site.asks_back() => Verdict::Challenged,
        401 | 403 => Verdict::Never(asked.site.refused(head, asked)),
        404 | 410 => Verdict::Never(asked.site.not_found(head, asked)),
        408 | 425 | 429 | 500..=599 => later(head, asked),
        status => Verdict::Never(Failure::new(
            Reason::DownloadFailed,
            format!("{} answered {status} for {}", host(asked.url), asked.repository),
        )),
    }
}

fn moved(head: &Head, asked: &Asked<'_>) -> Verdict {
    let target = head.header("location").and_then(|location| asked.url.join(location).ok());
    match target {
        Some(target) if !matches!(target.scheme(), "http" | "https") || !target.has_host() => {
            Verdict::Never(bad_redirect(asked, "to something that is not on the web"))
        }
        Some(target) if asked.url.scheme() == "https" && target.scheme() == "http" => {
            Verdict::Never(bad_redirect(asked, "from https to plain http, which is not followed"))
        }
        Some(target) => Verdict::Moved(target),
        None => Verdict::Never(bad_redirect(asked, "without saying where to")),
    }
}

fn bad_redirect(asked: &Asked<'_>, how: &str) -> Failure {
    Failure::new(
        Reason::DownloadFailed,
        format!("{} redirects {how}; {}", host(asked.url), asked.site.advice()),
    )
}

fn later(head: &Head, asked: &Asked<'_>) -> Verdict {
    // A date needs a clock, so only seconds are understood; else the wait doubles as usual.
    let after = head.number("retry-after").map(Duration::from_secs);
    Verdict::Later { why: format!("{} answered {}", host(asked.url), head.status), after }
}

/// What a hub means by 401 and 403.
pub(super) fn refused_by(hub: &Hub, head: &Head, asked: &Asked<'_>) -> Failure {
    let Asked { repository, url, .. } = asked;
    let page = format!("{}/{repository}", hub.as_str());
    if !hub.may_see_token(url) {
        return Failure::new(
            Reason::GatedRepository,
            format!(
                "{page} asks for a token, which is not sent over plain http; set HF_ENDPOINT to \
                 an https address"
            ),
        );
    }
    match head.header("x-error-code") {
        Some("RepoNotFound") => Failure::new(
            Reason::BadSource,
            format!(
                "{page} does not exist, or is private: check the name, or set HF_TOKEN to a token \
                 that may read it"
            ),
        ),
        _ => Failure::new(
            Reason::GatedRepository,
            format!(
                "{page} is gated: accept its terms on that page, then set HF_TOKEN to a token of \
                 the account that did"
            ),
        ),
    }
}

/// What a hub means by 404.
pub(super) fn not_found_by(hub: &Hub, head: &Head, asked: &Asked<'_>) -> Failure {
    let Asked { repository, revision, .. } = asked;
    let page = format!("{}/{repository}", hub.as_str());
    let message = match head.header("x-error-code") {
        Some("RevisionNotFound") => {
            format!("{page} has no revision `{revision}`; see {page}/branches")
        }
        Some("EntryNotFound") => format!("{page} lacks a file that it lists at `{revision}`"),
        _ => format!("{page} has no revision `{revision}`, or does not exist; check the source"),
    };
    Failure::new(Reason::BadSource, message)
}

/// Who answered, without the path or a signature.
fn host(url: &Url) -> String {
    url.origin().ascii_serialization()
}
