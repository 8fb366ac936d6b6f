//! The download talks, by tables: what is asked, and what every answer leads to.

mod conversation;
mod selection;
mod transfer;

use super::{Head, Hub, Patience, Terms};
use crate::sources::Source;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn head(status: u16, headers: &[(&str, &str)]) -> Head {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Head { status, headers: headers.iter().map(owned).collect() }
}

fn hub() -> Hub {
    Hub::at("https://hub.test").unwrap()
}

fn patience() -> Patience {
    Patience { attempts: 3, ..Patience::default() }
}

fn terms() -> Terms {
    terms_with(hub())
}

fn terms_with(hub: Hub) -> Terms {
    Terms { patience: patience(), ..Terms::with(hub) }
}

fn source(text: &str) -> Source {
    text.parse().unwrap()
}
