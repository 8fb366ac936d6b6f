//! What is mounted where, as the kernel tells this process.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// All mount points. Where the system has no such list, none is known.
pub(super) fn all() -> io::Result<Vec<PathBuf>> {
    match fs::read("/proc/self/mountinfo") {
        Ok(table) => Ok(points(&table)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !cfg!(target_os = "linux") => {
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The fifth word of each line.
fn points(table: &[u8]) -> Vec<PathBuf> {
    let lines = table.split(|byte| *byte == b'\n');
    let points = lines.filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    points.map(|point| PathBuf::from(OsString::from_vec(plain(point)))).collect()
}

/// A blank and its like are written as a backslash and three octal digits.
fn plain(written: &[u8]) -> Vec<u8> {
    let (mut plain, mut rest) = (Vec::with_capacity(written.len()), written);
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        let (byte, length) = match escaped.filter(|_| *first == b'\\') {
            Some(byte) => (byte, 4),
            None => (*first, 1),
        };
        plain.push(byte);
        rest = rest.get(length..).unwrap_or_default();
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_blanks() {
        let table = b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\n\
            37 35 0:5 / /my\\040models rw - tmpfs tmpfs rw\n";
        assert_eq!(points(table), ["/mnt2", "/my models"].map(PathBuf::from));
    }
}
