//! The endpoint with the fewest requests in flight. Ties take turns, so that of two idle endpoints the
//! first does not get everything while nothing has been answered yet (ROUTE-05).

use super::choice::Choice;

pub(super) struct LeastLoaded;

impl Choice for LeastLoaded {}
