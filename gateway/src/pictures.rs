//! Which engine told a client of which picture, as far as the client can be told from others at its address. ComfyUI's
//! engines count their pictures each for itself: once two have told of one name, somebody who asks for it may mean
//! either, unless he asks for the first time after he was told.

use std::time::{Duration, Instant};

use flexinfer_core::ids::EndpointId;
use flexinfer_core::routing::Pins;
use parking_lot::Mutex;

/// Pictures that are remembered.
const MOST: usize = 100_000;

/// A client asks for what it was told of within this time, if it does.
const SOON: Duration = Duration::from_secs(60);

/// Who told of which picture.
pub(crate) struct Pictures(Mutex<Pins<Told>>);

/// The last time that an engine told of a picture.
#[derive(Clone)]
struct Told {
    by: EndpointId,
    at: Instant,
    /// Whether no other engine has ever told of one of that name.
    alone: bool,
    /// Whether it was asked for since.
    shown: bool,
    /// Another engine had told of its own just before, and nobody had asked for that yet.
    doubtful: bool,
}

/// Who told of a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Teller {
    /// This engine told the client that asks.
    One(EndpointId),
    /// One of several: nobody knows which.
    Several,
}

impl Pictures {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Pins::new(MOST)))
    }

    /// The engine `by` has told of `picture`, which takes from `owner`'s share of what is remembered.
    pub(crate) fn told(&self, owner: &str, picture: &str, by: &EndpointId, now: Instant) {
        let mut pins = self.0.lock();
        let mut told = Told { by: by.clone(), at: now, alone: true, shown: false, doubtful: false };
        if let Some(before) = pins.holder(picture) {
            let other = before.by != *by;
            let waits = !before.shown && now.duration_since(before.at) < SOON;
            told.alone = before.alone && !other;
            told.doubtful = waits && (before.doubtful || other);
        }
        pins.pin_of(owner, picture, told);
    }

    /// Who told of `picture` last, where nobody else can be meant than the client that asks.
    pub(crate) fn last(&self, picture: &str) -> Option<EndpointId> {
        self.0.lock().holder(picture).map(|told| told.by)
    }

    /// Who has told whoever asks for `picture` now, as far as that is remembered.
    pub(crate) fn teller(&self, picture: &str, now: Instant) -> Option<Teller> {
        let told = self.0.lock().holder(picture)?;
        let first = !told.shown && !told.doubtful && now.duration_since(told.at) < SOON;
        Some(if told.alone || first { Teller::One(told.by) } else { Teller::Several })
    }

    /// The engine `by` shows `picture`.
    pub(crate) fn shown(&self, picture: &str, by: &EndpointId) {
        let mut pins = self.0.lock();
        if let Some(told) = pins.holder_mut(picture).filter(|told| told.by == *by) {
            told.shown = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engines() -> [EndpointId; 2] {
        ["a", "b"].map(|name| EndpointId(name.into()))
    }

    #[test]
    fn what_one_engine_alone_told_of_is_shown_as_often_as_it_is_asked_for() {
        let ([a, b], pictures, now) = (engines(), Pictures::new(), Instant::now());
        assert_eq!(pictures.teller("x.png", now), None);
        pictures.told("me", "x.png", &a, now);
        pictures.told("me", "x.png", &a, now);
        for _ in 0..2 {
            assert_eq!(pictures.teller("x.png", now + 9 * SOON), Some(Teller::One(a.clone())));
            pictures.shown("x.png", &a);
        }
        pictures.told("me", "y.png", &b, now);
        assert_eq!(pictures.teller("y.png", now), Some(Teller::One(b)));
    }

    #[test]
    fn clients_that_come_one_after_the_other_are_each_shown_their_own_once() {
        let ([a, b], pictures, now) = (engines(), Pictures::new(), Instant::now());
        for engine in [&a, &b, &a, &a, &b] {
            pictures.told("me", "x.png", engine, now);
            assert_eq!(pictures.teller("x.png", now), Some(Teller::One(engine.clone())));
            pictures.shown("x.png", engine);
        }
        assert_eq!(pictures.teller("x.png", now), Some(Teller::Several), "who asks again?");
        pictures.told("me", "x.png", &a, now);
        assert_eq!(pictures.teller("x.png", now + SOON), Some(Teller::Several), "so late?");
    }

    #[test]
    fn nobody_is_shown_what_two_clients_may_ask_for() {
        let ([a, b], pictures, now) = (engines(), Pictures::new(), Instant::now());
        pictures.told("me", "x.png", &a, now);
        pictures.told("me", "x.png", &b, now);
        assert_eq!(pictures.teller("x.png", now), Some(Teller::Several));
        pictures.told("me", "x.png", &b, now);
        assert_eq!(pictures.teller("x.png", now), Some(Teller::Several), "it is told again");
        // Nobody comes for it any more.
        pictures.told("me", "x.png", &b, now + SOON);
        assert_eq!(pictures.teller("x.png", now + SOON), Some(Teller::One(b)));
    }

    #[test]
    fn who_is_told_of_very_many_drives_out_nobody_elses() {
        let ([a, b], pictures, now) = (engines(), Pictures::new(), Instant::now());
        pictures.told("me", "x.png", &a, now);
        for number in 0..=MOST {
            pictures.told("another", &format!("{number}.png"), &b, now);
        }
        assert_eq!(pictures.teller("x.png", now), Some(Teller::One(a)));
        assert_eq!(pictures.last("0.png"), None);
        assert_eq!(pictures.last(&format!("{MOST}.png")), Some(b));
    }
}
