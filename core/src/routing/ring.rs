//! A ring of points, 150 for each member, on which a key belongs to the first point at or after its
//! own place. When a member goes, only its keys move, and they spread over all others.

use std::fmt::{Display, Write as _};

use crc32fast::hash;

/// Points of one member.
const POINTS: u32 = 150;

#[derive(Clone, Debug)]
pub(super) struct Ring<Id> {
    /// Sorted; of two members at the same place the smaller comes first, whoever joined earlier, so
    /// that several gateways agree.
    points: Vec<(u32, Id)>,
}

impl<Id: Clone + Ord + Display> Ring<Id> {
    pub(super) fn new<'a>(members: impl IntoIterator<Item = &'a Id>) -> Self
    where
        Id: 'a,
    {
        let mut ring = Self { points: Vec::new() };
        ring.add(members);
        ring
    }

    pub(super) fn add<'a>(&mut self, members: impl IntoIterator<Item = &'a Id>)
    where
        Id: 'a,
    {
        let mut text = String::new();
        for member in members {
            for point in 0..POINTS {
                text.clear();
                // Writing to a String cannot fail.
                let _ = write!(text, "{point}:{member}");
                self.points.push((hash(text.as_bytes()), member.clone()));
            }
        }
        self.points.sort();
    }

    pub(super) fn remove(&mut self, gone: impl Fn(&Id) -> bool) {
        self.points.retain(|(_, member)| !gone(member));
    }

    /// The members from the place of `key` on, once around; each comes up at every point it has.
    pub(super) fn from(&self, key: &str) -> impl Iterator<Item = &Id> {
        let place = hash(key.as_bytes());
        let first = self.points.partition_point(|(point, _)| *point < place);
        let (before, after) = self.points.split_at_checked(first).unwrap_or_default();
        after.iter().chain(before).map(|(_, member)| member)
    }
}
