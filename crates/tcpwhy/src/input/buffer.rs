//! Which bytes are there and not yet read?
//!
//! One large buffer and `read` serve files, pipes and decompressors alike, and are faster than a map of the file when packets
//! are large: each header would be a page's or a cache line's first touch.

use std::io::{self, Read};

/// Large enough that a system call per filling does not matter, small enough for the second-level cache.
const LEN: usize = 512 << 10;
/// Of many inputs, which may all be open at a time.
const LEN_OF_MANY: usize = 64 << 10;
const MANY: usize = 8;

pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    at_eof: bool,
    len: usize,
}

impl Buffer {
    /// For one of `inputs` inputs. It takes no memory before it is filled.
    pub(super) fn one_of(inputs: usize) -> Self {
        let len = if inputs > MANY { LEN_OF_MANY } else { LEN };
        Self { bytes: Vec::new(), start: 0, end: 0, at_eof: false, len }
    }

    /// As if nothing had been read; gives the memory back.
    pub(super) fn reset(&mut self) {
        *self = Self { bytes: Vec::new(), start: 0, end: 0, at_eof: false, len: self.len };
    }

    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn at_eof(&self) -> bool {
        self.at_eof
    }

    pub(super) fn consume(&mut self, n: usize) {
        self.start += n;
        debug_assert!(self.start <= self.end, "no more is consumed than was there");
    }

    /// Reads until `at_least` bytes are unread, or to the end.
    ///
    /// # Errors
    /// Those of `source`. What was read before stays, and no more will come.
    pub(super) fn fill(&mut self, source: &mut impl Read, at_least: usize) -> io::Result<()> {
        if self.bytes.len() - self.start < at_least || self.start == self.end {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            // Twice of what is needed: otherwise one that asks for a few bytes more each time would have all moved each time.
            let len = self.len.max(2 * at_least);
            if self.bytes.len() < len {
                self.bytes.resize(len, 0);
            }
        }
        while !self.at_eof && self.end - self.start < at_least {
            match source.read(&mut self.bytes[self.end..]) {
                Ok(0) => self.at_eof = true,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.at_eof = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}
