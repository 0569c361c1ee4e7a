//! How is a long text deflated in pieces, by several threads?
//!
//! Each piece is deflated separately and ends at a byte boundary, as in pigz: concatenated, they
//! are one gzip stream (RFC 1952), which does not depend on the threads.

use std::io::{self, Write};

use flate2::{Compress, Compression, Crc, FlushCompress};

use crate::chance::{self, Code};

/// A piece does not refer to earlier ones, which costs a hundredth of the file.
pub(crate) const PIECE_LEN: usize = 1 << 18;
/// The unit in which text is checked for randomness.
const BLOCK_LEN: usize = 1 << 11;
/// Level 1 is a little faster than level 2, for a file that is a tenth to a fifth larger.
const LEVEL: Compression = Compression::new(1);
/// Deflate, no name, no time, unknown system.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
/// The last block of a stream, which is empty (RFC 1951, 3.2.6).
const LAST: [u8; 2] = [3, 0];

/// Deflates pieces one after the other, reusing memory.
pub struct Deflater {
    others: Compress,
    chance: Code,
}

/// A deflated piece.
pub struct Deflated {
    bytes: Vec<u8>,
    crc: Crc,
}

impl Default for Deflater {
    fn default() -> Self {
        Self { others: Compress::new(LEVEL, false), chance: Code::default() }
    }
}

impl Deflater {
    /// Deflates a piece.
    pub fn deflate(&mut self, piece: &[u8]) -> Deflated {
        let mut crc = Crc::new();
        crc.update(piece);
        let mut bytes = Vec::with_capacity(piece.len() / 4 + 64);
        let blocks: Vec<_> =
            piece.chunks(BLOCK_LEN).map(|block| (block.len(), chance::wrote(block))).collect();
        let mut rest = piece;
        for alike in blocks.chunk_by(|one, next| one.1 == next.1) {
            let text;
            (text, rest) = rest.split_at(alike.iter().map(|(len, _)| len).sum());
            if alike.iter().any(|(_, is_chance)| *is_chance) {
                self.chance.write(text, &mut bytes);
            } else {
                self.deflate_others(text, &mut bytes);
            }
        }
        Deflated { bytes, crc }
    }

    fn deflate_others(&mut self, text: &[u8], bytes: &mut Vec<u8>) {
        self.others.reset();
        loop {
            let done = self.others.total_in() as usize;
            let state = self.others.compress_vec(&text[done..], bytes, FlushCompress::Sync);
            debug_assert!(state.is_ok(), "deflate takes all: {state:?}");
            // If there is room left, everything has been written.
            if bytes.len() < bytes.capacity() {
                return;
            }
            bytes.reserve(text.len());
        }
    }
}

/// A gzip stream.
pub struct Gzip<'a> {
    to: &'a mut dyn Write,
    crc: Crc,
}

impl<'a> Gzip<'a> {
    pub(crate) fn begin(to: &'a mut dyn Write) -> io::Result<Self> {
        to.write_all(&HEAD)?;
        Ok(Self { to, crc: Crc::new() })
    }

    /// The next piece.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn put(&mut self, piece: &Deflated) -> io::Result<()> {
        self.crc.combine(&piece.crc);
        self.to.write_all(&piece.bytes)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.to.write_all(&LAST)?;
        self.to.write_all(&self.crc.sum().to_le_bytes())?;
        self.to.write_all(&self.crc.amount().to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn pieces_are_one_stream() {
        let mut x = 1_u32;
        // Text, and bytes that cannot be compressed.
        let mut noise = || {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x as u8
        };
        let mut pieces: Vec<Vec<u8>> =
            vec![b"0,1,".repeat(9_000), Vec::new(), (0..100_000).map(|_| noise()).collect(), vec![7]];
        let mut number = || u32::from_le_bytes([(); 4].map(|()| noise())).to_string() + ",";
        let numbers: Vec<u8> = (0..9_000).flat_map(|_| number().into_bytes()).collect();
        pieces.extend([numbers.clone(), [&numbers, pieces[0].as_slice(), &numbers].concat()]);
        let (mut file, mut deflater) = (Vec::new(), Deflater::default());
        let mut gzip = Gzip::begin(&mut file).expect("room");
        for piece in &pieces {
            gzip.put(&deflater.deflate(piece)).expect("room");
        }
        gzip.finish().expect("room");
        let mut read = Vec::new();
        GzDecoder::new(file.as_slice()).read_to_end(&mut read).expect("a stream");
        assert!(read == pieces.concat());
    }
}
