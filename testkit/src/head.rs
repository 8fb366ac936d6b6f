//! The head of a message in HTTP/1.1's own bytes, left open for more headers.

/// Begins with `first`. `headers` come after Content-Type, which is JSON unless one of them says otherwise.
pub(crate) fn head(first: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut text = format!("{first}\r\n");
    if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
        text.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
        text.push_str("\r\n");
    }
    text.into_bytes()
}
