//! What a label or an annotation says, with a text that cannot be read told from one that is not there.

/// Longer texts are not read: nothing that we know is half as long (GPU-14).
const LONGEST: usize = 4096;

/// What a label or an annotation says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Said<T> {
    /// It is not there.
    #[default]
    Nothing,
    /// It is there and cannot be read.
    Garbage,
    /// It says this.
    Known(T),
}

impl<T> Said<T> {
    /// What `text` says, as `read` understands it.
    pub fn of(text: Option<&str>, read: impl FnOnce(&str) -> Option<T>) -> Self {
        match text.map(str::trim) {
            None | Some("") => Self::Nothing,
            Some(text) if text.len() > LONGEST => Self::Garbage,
            Some(text) => read(text).map_or(Self::Garbage, Self::Known),
        }
    }

    /// What is known, if anything is.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Nothing | Self::Garbage => None,
        }
    }

    /// Whether something is there that cannot be read.
    pub const fn is_garbage(&self) -> bool {
        matches!(self, Self::Garbage)
    }
}

/// A number that an amount can be: finite, and not below zero.
pub(super) fn amount(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)
}
