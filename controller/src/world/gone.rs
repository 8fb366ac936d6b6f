//! What is gone, told from what is not known yet: the server's answer to a write may come after a watch has told of
//! the object's end, and would bring it back.

use std::collections::{BTreeSet, VecDeque};

use kube::Resource;

use super::news::Named as _;

/// How many are remembered. An answer is waited for for seconds; nobody deletes so many of our objects meanwhile.
const REMEMBERED: usize = 4096;

/// The uids of what went last.
#[derive(Default)]
pub(super) struct Gone {
    uids: BTreeSet<String>,
    /// The oldest comes first.
    order: VecDeque<String>,
}

impl Gone {
    /// `object` is no more.
    pub(super) fn note(&mut self, object: &impl Resource) {
        let Some(uid) = object.meta().uid.clone().filter(|uid| !self.uids.contains(uid)) else {
            return;
        };
        self.uids.insert(uid.clone());
        self.order.push_back(uid);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.uids.remove(&oldest);
        }
    }

    /// `object` is there all the same: it was not listed yet, or only lost a label for a while.
    pub(super) fn is_there(&mut self, object: &impl Resource) {
        if let Some(uid) = object.meta().uid.as_ref().filter(|uid| self.uids.remove(*uid)) {
            self.order.retain(|known| known != uid);
        }
    }

    /// Whether `object` is `listed` under its namespace and name; it is gone otherwise.
    pub(super) fn unless(
        &mut self,
        object: &impl Resource,
        listed: &BTreeSet<(String, String)>,
    ) -> bool {
        let there = listed.contains(&object.place());
        if !there {
            self.note(object);
        }
        there
    }

    pub(super) fn holds(&self, object: &impl Resource) -> bool {
        object.meta().uid.as_ref().is_some_and(|uid| self.uids.contains(uid))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Service;

    use super::*;

    fn service(uid: usize) -> Service {
        let mut service = Service::default();
        service.metadata.uid = Some(uid.to_string());
        service
    }

    #[test]
    fn what_went_last_is_remembered_and_no_more_than_that() {
        let mut gone = Gone::default();
        for uid in 0..3 * REMEMBERED {
            gone.note(&service(uid));
            gone.note(&service(uid));
        }
        assert_eq!((gone.uids.len(), gone.order.len()), (REMEMBERED, REMEMBERED));
        assert!(gone.holds(&service(2 * REMEMBERED)) && !gone.holds(&service(0)));
        gone.is_there(&service(2 * REMEMBERED));
        assert!(!gone.holds(&service(2 * REMEMBERED)));
        assert_eq!(gone.order.len(), REMEMBERED - 1);
        gone.note(&Service::default());
        assert!(!gone.holds(&Service::default()), "without a uid nothing can be told");
    }
}
