//! What must hold of everything that reads bytes of strangers, whatever they are: one function for each
//! target, which panics where it does not. `cargo xtask fuzz` looks for bytes that break one, guided by
//! what they reach; `cargo test` tries the inputs that are kept in `corpus/`, and neighbours of theirs.

mod facts;
mod form;
mod paths;
mod splicing;
#[cfg(test)]
mod tests;
mod usage;

/// Something that is fed with bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// As it is called on the command line; also the folder of its inputs.
    pub name: &'static str,
    check: fn(&[u8]),
}

/// Every target.
pub const TARGETS: [Target; 5] = [
    Target { name: "facts", check: facts::check },
    Target { name: "splicing", check: splicing::check },
    Target { name: "form", check: form::check },
    Target { name: "usage", check: usage::check },
    Target { name: "paths", check: paths::check },
];

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Self> {
        TARGETS.into_iter().find(|target| target.name == name)
    }

    /// Feeds it with `input`. Panics where something does not hold that must.
    pub fn check(self, input: &[u8]) {
        (self.check)(input);
    }
}

/// The first byte of an input says how the rest is cut: into pieces of so many bytes.
fn cut(input: &[u8]) -> (usize, &[u8]) {
    let (size, rest) = input.split_first().unwrap_or((&1, &[]));
    (usize::from(*size).max(1), rest)
}
