//! A part of a whole, from 0 to 1.

/// 1 when there is nothing to have a part of.
#[expect(clippy::cast_precision_loss, reason = "a share is shown with a few digits")]
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { (part as f64 / whole as f64).min(1.0) }
}
