//! A site that wants to know who asks, perhaps by a token that is got elsewhere.

use super::{Body, State, Transfer};
use crate::sources::download::Head;
use crate::sources::oci::{Reply, Told};

impl Transfer {
    /// The site wants to know who asks: the same is asked for again, perhaps after a token was got.
    pub(super) fn challenged(&mut self, head: &Head) {
        self.state = match self.site.challenged(head) {
            Reply::Again => State::At(self.file.url.clone()),
            Reply::Token(url) => State::LettingIn(url),
            Reply::Never(failure) => State::Failed(failure),
        };
    }

    pub(super) fn let_in(&mut self, head: &Head) -> Body {
        match self.site.told(head) {
            Told::Read => return Body::Read,
            Told::Later { why, after } => self.again(&why, after),
            Told::Never(failure) => self.state = State::Failed(failure),
        }
        Body::Drop
    }

    /// The body that was to be read whole.
    pub fn told(&mut self, body: &[u8]) {
        match self.site.take(body) {
            Ok(()) => self.state = State::At(self.file.url.clone()),
            Err(why) => self.again(&why, None),
        }
    }
}
