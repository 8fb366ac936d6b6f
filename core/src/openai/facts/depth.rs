//! How deep a JSON text is nested. The parser skips values without recursion, so depth costs it
//! nothing and it does not look; the engine behind us may recurse.

use memchr::memchr2;

/// Whether arrays and objects in `json`, which must be valid JSON, are nested deeper than `limit`.
pub(super) fn exceeds(json: &[u8], limit: usize) -> bool {
    // 1. Most bodies have fewer brackets in all than may be nested; counting them is vectorised.
    // 2. Otherwise strings are skipped and the brackets outside of them followed.
    openings(json) > limit && deepest(json, limit) > limit
}

/// How many `{` and `[` there are, in strings too. The two differ in one bit only.
fn openings(json: &[u8]) -> usize {
    let in_chunk =
        |chunk: &[u8]| chunk.iter().map(|byte| u8::from(byte | 0x20 == b'{')).sum::<u8>();
    // No chunk has more bytes than its sum can count.
    json.chunks(255).map(|chunk| usize::from(in_chunk(chunk))).sum()
}

/// The deepest level, or the first one beyond `limit`.
fn deepest(json: &[u8], limit: usize) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut rest = json;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(after),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
                if depth > limit {
                    break;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// What follows the string whose content `rest` begins with.
fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        let escaped = rest.get(at) == Some(&b'\\');
        rest = rest.get(at + 1 + usize::from(escaped)..).unwrap_or_default();
        if !escaped {
            break;
        }
    }
    rest
}
