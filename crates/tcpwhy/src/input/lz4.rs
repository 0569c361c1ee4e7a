//! Do LZ4 frames end where their format says?
//!
//! The decompressor takes the end of its input for the end of a frame, so that a file truncated
//! between two blocks would look complete. A frame ends with an empty block, and a checksum if its
//! header promised one.

use std::io::{self, BufRead as _, BufReader, Read};

use lz4_flex::frame::FrameDecoder;

/// The bytes that consecutive frames unpack to.
pub(super) struct Lz4<R: Read>(FrameDecoder<Watched<R>>);

/// The bytes given to the decompressor, and where in a frame they end.
struct Watched<R> {
    stored: BufReader<R>,
    place: Place,
}

/// A position in a frame (LZ4 Frame Format 1.6).
#[derive(Default)]
struct Place {
    /// Bytes to skip before the next word.
    skip: u64,
    /// The part of the word that has been read.
    word: [u8; 5],
    have: usize,
    /// Flags of the frame whose blocks are being read; none between two frames.
    flags: Option<u8>,
}

impl<R: Read> Lz4<R> {
    pub(super) fn new(stored: BufReader<R>) -> Self {
        Self(FrameDecoder::new(Watched { stored, place: Place::default() }))
    }

    pub(super) fn get_ref(&self) -> &R {
        self.0.get_ref().stored.get_ref()
    }
}

impl<R: Read> Read for Lz4<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        loop {
            let n = self.0.read(buf)?;
            if n > 0 || buf.is_empty() {
                return Ok(n);
            }
            let watched = self.0.get_mut();
            let is_all = watched.stored.fill_buf()?.is_empty();
            match (is_all, watched.place.is_between_frames()) {
                // The next frame.
                (false, _) => {}
                (true, true) => return Ok(0),
                (true, false) => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.stored.read(buf)?;
        self.place.advance(&buf[..n]);
        Ok(n)
    }
}

impl Place {
    fn is_between_frames(&self) -> bool {
        (self.skip, self.have, self.flags) == (0, 0, None)
    }

    fn advance(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(data.len() as u64);
                self.skip -= skipped;
                data = &data[skipped as usize..];
                continue;
            }
            self.word[self.have] = data[0];
            (self.have, data) = (self.have + 1, &data[1..]);
            let [a, b, c, d, fifth] = self.word;
            let has = |flags: u8, bit: u8, len: u64| if flags & bit != 0 { len } else { 0 };
            match self.flags {
                // Magic number and flags; they determine the length of the rest of the header.
                None if self.have == 5 => {
                    self.skip = 2 + has(fifth, 0x08, 8) + has(fifth, 0x01, 4);
                    (self.flags, self.have) = (Some(fifth), 0);
                }
                // A block's length; the high bit says that it is not compressed. The last block is
                // empty.
                Some(flags) if self.have == 4 => {
                    let len = u64::from(u32::from_le_bytes([a, b, c, d]) & 0x7fff_ffff);
                    self.skip = if len > 0 { len + has(flags, 0x10, 4) } else { has(flags, 0x04, 4) };
                    (self.flags, self.have) = (self.flags.filter(|_| len > 0), 0);
                }
                _ => {}
            }
        }
    }
}
