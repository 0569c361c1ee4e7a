//! How does the data get into the page?
//!
//! Deflated and in base64, in an element that no browser runs: nothing of a capture is ever markup. The page itself is what `page/`
//! builds, with its script and its style allowed by their hashes and everything else forbidden.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::data::Page;

/// The built page.
pub const BUILT: &str = include_str!("../built/page.html");
/// Where the data goes.
const PLACE: &str = "@DATA@";

/// Writes the page with its data.
///
/// # Errors
///
/// Those of `to`.
pub fn write(page: &Page<'_>, mut to: impl Write) -> io::Result<()> {
    let (before, behind) =
        BUILT.split_once(PLACE).unwrap_or_else(|| unreachable!("the built page has a place for the data"));
    to.write_all(before.as_bytes())?;
    let mut base64 = EncoderWriter::new(&mut to, &STANDARD);
    let mut gzip = GzEncoder::new(io::BufWriter::with_capacity(1 << 16, &mut base64), Compression::new(5));
    serde_json::to_writer(io::BufWriter::with_capacity(1 << 16, &mut gzip), page)?;
    gzip.finish()?.flush()?;
    base64.finish()?;
    drop(base64);
    to.write_all(behind.as_bytes())?;
    to.flush()
}
