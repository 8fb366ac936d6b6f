//! Lists that are written in one line, with commas between their entries.

/// Reads each entry of `text` by `read`: without the spaces around it, and not where nothing stands. The first that
/// cannot be read is told.
pub(crate) fn listed<'t, T, E, C: FromIterator<T>>(
    text: &'t str,
    read: impl Fn(&'t str) -> Result<T, E>,
) -> Result<C, E> {
    text.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_without_what_stands_around_them() {
        let read = |text: &'static str| listed::<_, _, Vec<u8>>(text, str::parse::<u8>);
        assert_eq!(read(" 1,2 ,,3,"), Ok(vec![1, 2, 3]));
        assert_eq!(read(" , "), Ok(Vec::new()));
        assert!(read("1,x,2").is_err());
    }
}
