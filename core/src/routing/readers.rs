//! Finds in answers what later requests name.

/// As much of an answer as is looked through for an id.
const WHERE_IDS_STAND: usize = 8 * 1024;

/// The longest value that is waited for, in bytes.
const LONGEST_VALUE: usize = 4 * 1024;

/// Finds in an answer, piece by piece, the first string that a field of one name has.
#[derive(Clone, Debug)]
pub struct IdReader {
    field: &'static str,
    /// The beginning of the answer, while the id may still be in it.
    seen: Option<Vec<u8>>,
}

impl IdReader {
    /// Looks for `field`.
    pub fn new(field: &'static str) -> Self {
        Self { field, seen: Some(Vec::new()) }
    }

    /// Looks at the next piece; the id, once.
    pub fn look(&mut self, piece: &[u8]) -> Option<String> {
        let seen = self.seen.as_mut()?;
        seen.extend(piece.iter().take(WHERE_IDS_STAND.saturating_sub(seen.len())));
        let full = seen.len() >= WHERE_IDS_STAND;
        let found = first_string(seen, self.field);
        if full || found.is_some() {
            self.seen = None;
        }
        found
    }
}

/// The first whole string that is the value of `field`; ids need no escapes.
fn first_string(json: &[u8], field: &str) -> Option<String> {
    let quoted = format!("\"{field}\"");
    memchr::memmem::find_iter(json, quoted.as_bytes()).find_map(|at| {
        let id = string_behind(json.get(at + quoted.len()..)?).whole()?;
        (!id.is_empty()).then_some(id)
    })
}

/// Finds in an answer, piece by piece, all strings that fields of one name have. Whatever stands around them: the
/// messages of a socket are looked through as they come, too.
#[derive(Clone, Debug)]
pub struct StringsReader {
    quoted: String,
    /// What may be the beginning of a field and its string.
    pending: Vec<u8>,
}

impl StringsReader {
    /// Looks for `field`.
    pub fn new(field: &str) -> Self {
        Self { quoted: format!("\"{field}\""), pending: Vec::new() }
    }

    /// Looks at the next piece.
    pub fn look(&mut self, piece: &[u8]) -> Vec<String> {
        self.pending.extend_from_slice(piece);
        let (mut found, mut done, mut begun) = (Vec::new(), 0, None);
        for at in memchr::memmem::find_iter(&self.pending, self.quoted.as_bytes()) {
            let behind = self.pending.get(at + self.quoted.len()..).unwrap_or_default();
            match string_behind(behind) {
                Behind::Begun if behind.len() < LONGEST_VALUE => {
                    begun = Some(at);
                    break;
                }
                Behind::String(text) => found.push(text),
                Behind::Begun | Behind::Other => {}
            }
            done = at + self.quoted.len();
        }
        // A field may have begun at the very end.
        let end = self.pending.len().saturating_sub(self.quoted.len()).max(done);
        self.pending.drain(..begun.unwrap_or(end));
        found
    }
}

/// What stands behind the name of a field.
enum Behind {
    String(String),
    /// What may become a string.
    Begun,
    Other,
}

impl Behind {
    fn whole(self) -> Option<String> {
        match self {
            Self::String(text) => Some(text),
            Self::Begun | Self::Other => None,
        }
    }
}

fn string_behind(bytes: &[u8]) -> Behind {
    let value = match bytes.trim_ascii_start().split_first() {
        Some((b':', value)) => value.trim_ascii_start(),
        Some(_) => return Behind::Other,
        None => return Behind::Begun,
    };
    match value.first() {
        Some(b'"') => {}
        Some(_) => return Behind::Other,
        None => return Behind::Begun,
    }
    let mut strings = serde_json::Deserializer::from_slice(value).into_iter::<String>();
    match strings.next() {
        Some(Ok(text)) => Behind::String(text),
        Some(Err(error)) if error.is_eof() => Behind::Begun,
        _ => Behind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_however_the_answer_is_cut() {
        let answer = br#"event: response.created
data: {"type":"response.created","response":{"object":"response", "id" : "resp_1","item_id":"x"}}"#;
        for size in [1, 7, 1000] {
            let mut reader = IdReader::new("id");
            let found: Vec<_> =
                answer.chunks(size).filter_map(|piece| reader.look(piece)).collect();
            assert_eq!(found, ["resp_1"], "in pieces of {size}");
        }
        assert_eq!(
            IdReader::new("prompt_id").look(br#"{"prompt_id": "p1", "number": 2}"#).as_deref(),
            Some("p1")
        );
        let mut reader = IdReader::new("id");
        assert_eq!(reader.look(&[b' '; 2 * WHERE_IDS_STAND]), None);
        assert_eq!(reader.look(br#"{"id":"late"}"#), None, "only the beginning is looked through");
    }

    #[test]
    fn all_strings_of_an_answer_are_found_however_it_is_cut() {
        let answer = br#"{"p1":{"prompt":[1,"filename","filename_prefix"],"outputs":{"9":{"images":[
            {"filename": "a_00001_.png","subfolder":""},{"filename":"b\u00e9\".png"},{"filename":7}]}}}}"#;
        for size in 1..answer.len() {
            let mut reader = StringsReader::new("filename");
            let found: Vec<_> = answer.chunks(size).flat_map(|piece| reader.look(piece)).collect();
            assert_eq!(found, ["a_00001_.png", "bé\".png"], "in pieces of {size}");
        }
        let mut reader = StringsReader::new("filename");
        for _ in 0..1000 {
            assert!(reader.look(br#""filename":"#).is_empty());
            assert!(reader.look(&[b'x'; 100]).is_empty());
        }
        assert!(reader.pending.len() <= 2 * LONGEST_VALUE, "{}", reader.pending.len());
        let mut reader = StringsReader::new("filename");
        for _ in 0..1000 {
            assert!(reader.look(br#""filename":"xxxxxxxxxxxxxxxxxxx"#).len() <= 1);
        }
        assert!(reader.pending.len() <= 2 * LONGEST_VALUE, "{}", reader.pending.len());
    }
}
