//! How does the data get into the page?
//!
//! Deflated and in base64, in an element that no browser runs: nothing from a capture is ever
//! markup. The page itself is built in `page/`, with its script and its style allowed by their
//! hashes and everything else forbidden.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use serde::Serialize;

use crate::columns::Columns;
use crate::compared::Compared;
use crate::data::Page;
use crate::deflated::{Deflater, Gzip, PIECE_LEN};

/// The built page.
pub const BUILT: &str = include_str!("../built/page.html");
/// The placeholder for the data.
const PLACE: &str = "@DATA@";
/// What the page may load: nothing or, if it is served, data from its own server.
const LOADS: [&str; 2] = ["default-src 'none';", "default-src 'none'; connect-src 'self';"];

/// Writes the page with its data.
///
/// # Errors
///
/// Those of `to`.
pub fn write(page: &Page<'_>, to: impl Write) -> io::Result<()> {
    around(page.is_served(), to, |gzip| write_plain(page, &mut Deflating::into(gzip)))
}

/// Writes the page of a comparison.
///
/// # Errors
///
/// Those of `to`.
pub fn write_compared(compared: &Compared<'_>, to: impl Write) -> io::Result<()> {
    around(false, to, |gzip| write_plain(compared, &mut Deflating::into(gzip)))
}

/// Writes the page around the data that `put_data` writes, the pieces of `write_plain`.
///
/// # Errors
///
/// Those of `to` and of `put_data`.
pub fn around(
    is_served: bool,
    to: impl Write,
    put_data: impl FnOnce(&mut Gzip<'_>) -> io::Result<()>,
) -> io::Result<()> {
    // Encoded data comes in pieces of a kilobyte.
    let mut to = io::BufWriter::with_capacity(1 << 16, to);
    let (before, behind) =
        BUILT.split_once(PLACE).unwrap_or_else(|| unreachable!("the built page has a place for the data"));
    if is_served {
        to.write_all(before.replacen(LOADS[0], LOADS[1], 1).as_bytes())?;
    } else {
        to.write_all(before.as_bytes())?;
    }
    let mut base64 = EncoderWriter::new(&mut to, &STANDARD);
    pack(&mut base64, put_data)?;
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
pub fn write_data(data: &impl Serialize, mut to: impl Write) -> io::Result<()> {
    pack(&mut to, |gzip| write_plain(data, &mut Deflating::into(gzip)))?;
    to.flush()
}

/// Writes the data uncompressed. Each call of `write` is a piece to be deflated separately.
///
/// # Errors
///
/// Those of `to`.
pub fn write_plain(data: &impl Serialize, to: &mut dyn Write) -> io::Result<()> {
    let mut to = io::BufWriter::with_capacity(PIECE_LEN, to);
    data.serialize(&mut serde_json::Serializer::with_formatter(&mut to, Columns))?;
    to.flush()
}

fn pack(to: &mut dyn Write, put_data: impl FnOnce(&mut Gzip<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut gzip = Gzip::begin(to)?;
    put_data(&mut gzip)?;
    gzip.finish()
}

/// Deflates pieces as they come.
struct Deflating<'a, 'b>(&'a mut Gzip<'b>, Deflater);

impl<'a, 'b> Deflating<'a, 'b> {
    fn into(gzip: &'a mut Gzip<'b>) -> Self {
        Self(gzip, Deflater::default())
    }
}

impl Write for Deflating<'_, '_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.put(&self.1.deflate(piece))?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
