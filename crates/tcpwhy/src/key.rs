//! Which key decides how addresses are replaced, where a file gives it?

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use tcpwhy_wire::anonymize;

/// No real secret is longer; a device never ends.
const LEN_MAX: u64 = 1 << 20;

/// The key derived from a file's bytes.
///
/// # Errors
/// The file cannot be read, or is too long.
pub(crate) fn of(file: &Path) -> io::Result<[u8; 16]> {
    let mut secret = Vec::new();
    File::open(file)?.take(LEN_MAX + 1).read_to_end(&mut secret)?;
    if secret.len() as u64 > LEN_MAX {
        return Err(io::Error::other("it is longer than 1 MiB"));
    }
    Ok(anonymize::key_of(&secret))
}
