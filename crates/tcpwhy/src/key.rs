//! What decides which addresses stand for those of a capture, where a file says it?

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use tcpwhy_wire::anonymize;

/// Nobody keeps a secret of more bytes; a device has no end.
const LEN_MAX: u64 = 1 << 20;

/// The key that a file's bytes make.
///
/// # Errors
/// It cannot be read, or is too long.
pub(crate) fn of(file: &Path) -> io::Result<[u8; 16]> {
    let mut secret = Vec::new();
    File::open(file)?.take(LEN_MAX + 1).read_to_end(&mut secret)?;
    if secret.len() as u64 > LEN_MAX {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(anonymize::key_of(&secret))
}
