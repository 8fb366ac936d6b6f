//! Under which owner each object is kept, by its uid: it may say another one of itself by now.

use std::collections::HashMap;

use kube::Resource;

use super::owner::Owner;

/// Of each object that is kept, and of no other.
#[derive(Default)]
pub(super) struct Homes(HashMap<String, Owner>);

impl Homes {
    pub(super) fn of(&self, object: &impl Resource) -> Option<&Owner> {
        self.0.get(object.meta().uid.as_ref()?)
    }

    /// `object` is kept under `owner` from now on.
    pub(super) fn enter(&mut self, object: &impl Resource, owner: &Owner) {
        if let Some(uid) = &object.meta().uid {
            self.0.insert(uid.clone(), owner.clone());
        }
    }

    /// `object` is not kept any more.
    pub(super) fn leave(&mut self, object: &impl Resource) {
        if let Some(uid) = &object.meta().uid {
            self.0.remove(uid);
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
