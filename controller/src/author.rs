//! Who this controller is to the API server: all that it writes of Models and their objects is signed alike, or it would
//! take its own fields for somebody else's.

use flexinfer_crds::keys;
use kube::api::PatchParams;

/// A write in its name, whatever kind of patch.
pub(crate) fn signed() -> PatchParams {
    PatchParams { field_manager: Some(keys::FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}
