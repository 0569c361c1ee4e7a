//! How does the data get into the page?
//!
//! Deflated and in base64, in an element that no browser runs: nothing of a capture is ever markup. The page itself is what `page/`
//! builds, with its script and its style allowed by their hashes and everything else forbidden.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::compared::Compared;
use crate::data::Page;

/// The built page.
pub const BUILT: &str = include_str!("../built/page.html");
/// Where the data goes.
const PLACE: &str = "@DATA@";
/// The second level takes a quarter of the time of the fifth, for a file that is a tenth larger.
const LEVEL: Compression = Compression::new(2);
/// What the page may load: nothing, and where it is served, from there.
const LOADS: [&str; 2] = ["default-src 'none';", "default-src 'none'; connect-src 'self';"];

/// Writes the page with its data.
///
/// # Errors
///
/// Those of `to`.
pub fn write(page: &Page<'_>, to: impl Write) -> io::Result<()> {
    around(page, page.is_served(), to)
}

/// Writes the page of a comparison.
///
/// # Errors
///
/// Those of `to`.
pub fn write_compared(compared: &Compared<'_>, to: impl Write) -> io::Result<()> {
    around(compared, false, to)
}

fn around(data: &impl Serialize, is_served: bool, to: impl Write) -> io::Result<()> {
    // What is encoded comes in pieces of a kilobyte.
    let mut to = io::BufWriter::with_capacity(1 << 16, to);
    let (before, behind) =
        BUILT.split_once(PLACE).unwrap_or_else(|| unreachable!("the built page has a place for the data"));
    if is_served {
        to.write_all(before.replacen(LOADS[0], LOADS[1], 1).as_bytes())?;
    } else {
        to.write_all(before.as_bytes())?;
    }
    let mut base64 = EncoderWriter::new(&mut to, &STANDARD);
    write_data(data, io::BufWriter::with_capacity(1 << 16, &mut base64))?;
    base64.finish()?;
    drop(base64);
    to.write_all(behind.as_bytes())?;
    to.flush()
}

/// Writes the data alone, as gzip.
///
/// # Errors
///
/// Those of `to`.
pub fn write_data(data: &impl Serialize, to: impl Write) -> io::Result<()> {
    let mut gzip = GzEncoder::new(to, LEVEL);
    serde_json::to_writer(io::BufWriter::with_capacity(1 << 16, &mut gzip), data)?;
    gzip.finish()?.flush()
}
