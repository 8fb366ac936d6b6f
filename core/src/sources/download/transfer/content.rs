//! What an answer brings of the file: all of it, the part that is missing, or nothing that goes with what is here.

use super::{Body, State, Transfer};
use crate::sources::download::Head;

impl Transfer {
    pub(super) fn content(&mut self, head: &Head) -> Body {
        if head.header("content-encoding").is_some_and(|encoding| encoding != "identity") {
            return self.restart("the server compresses the file although it was asked not to");
        }
        match head.status {
            206 => self.part(head),
            416 => self.no_such_range(head),
            _ => self.whole(head),
        }
    }

    /// 200: the whole file, whether or not a range was asked for.
    fn whole(&mut self, head: &Head) -> Body {
        let length = head.number("content-length");
        if let (Some(said), Some(wanted)) = (length, self.file.size)
            && said != wanted
        {
            // Likely a page that tells of an error: what is here already is kept.
            self.again(&format!("the server sends {said} bytes, not {wanted}"), None);
            return Body::Drop;
        }
        self.length = self.file.size.or(length);
        self.have = 0;
        self.tag = strong_tag(head);
        Body::Keep { at: 0 }
    }

    /// 206: must be the range that was asked for, of the same thing.
    fn part(&mut self, head: &Head) -> Body {
        let Some((first, length)) = head.header("content-range").and_then(content_range) else {
            return self.restart("the server sends a part without saying which");
        };
        if self.have == 0 || first != self.have {
            return self.restart("the server sends another part than it was asked for");
        }
        if let (Some(said), Some(wanted)) = (length, self.length)
            && said != wanted
        {
            return self.restart(&format!("the file has {said} bytes now, not {wanted}"));
        }
        let tag = strong_tag(head);
        if let (Some(before), Some(now)) = (&self.tag, &tag)
            && before != now
        {
            return self.restart("the file has changed between two parts");
        }
        self.length = self.length.or(length);
        self.tag = tag.or(self.tag.take());
        Body::Keep { at: self.have }
    }

    /// 416: what is here may be all of a file whose length nobody had said.
    fn no_such_range(&mut self, head: &Head) -> Body {
        let said = head.header("content-range").and_then(|range| range.strip_prefix("bytes */"));
        match said.and_then(|length| length.parse::<u64>().ok()) {
            Some(length) if self.file.size.is_none() && length == self.have && length > 0 => {
                self.length = Some(length);
                self.state = State::Verify;
                Body::Drop
            }
            _ => self.restart("the server does not have the part that is missing"),
        }
    }
}

/// The entity tag, unless it is weak: weak ones do not promise the same bytes.
fn strong_tag(head: &Head) -> Option<String> {
    head.header("etag").filter(|tag| tag.starts_with('"')).map(ToOwned::to_owned)
}

/// The first byte and, if said, the whole length of `bytes 5-9/10`.
fn content_range(value: &str) -> Option<(u64, Option<u64>)> {
    let (range, length) = value.strip_prefix("bytes ")?.split_once('/')?;
    let first = range.split_once('-')?.0.trim().parse().ok()?;
    Some((first, length.trim().parse().ok()))
}
