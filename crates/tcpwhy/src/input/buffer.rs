//! Which bytes have been read from the source and not yet consumed?
//!
//! One large buffer and `read` serve files, pipes and decompressors alike, and are faster than a
//! memory map when packets are large: with a map, each header would be the first touch of a page or
//! cache line.

use std::io::{self, Read};

use super::room::Held;
use super::source::Source;

/// Large enough that a system call per fill does not matter, small enough for the second-level
/// cache.
const LEN: usize = 512 << 10;
/// With many inputs, which may all be open at the same time.
const LEN_OF_MANY: usize = 64 << 10;
const MANY: usize = 8;

pub(super) struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    at_eof: bool,
    len: usize,
    /// Room taken beyond `len` for a large block.
    held: Option<Held>,
}

impl Buffer {
    /// For one of `inputs` inputs. Takes no memory until it is filled.
    pub(super) fn one_of(inputs: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0, at_eof: false, len: Self::len(inputs), held: None }
    }

    /// For a look at the beginning of a file.
    pub(super) fn small() -> Self {
        Self { len: LEN_OF_MANY, ..Self::one_of(1) }
    }

    /// Bytes that one of `inputs` inputs takes.
    pub(super) const fn len(inputs: usize) -> usize {
        if inputs > MANY { LEN_OF_MANY } else { LEN }
    }

    /// Resets to the initial state and frees the memory.
    pub(super) fn reset(&mut self) {
        *self = Self { bytes: Vec::new(), start: 0, end: 0, at_eof: false, len: self.len, held: None };
    }

    /// Drops what was read: the next bytes come from elsewhere.
    pub(super) fn empty(&mut self) {
        (self.start, self.end, self.at_eof) = (0, 0, false);
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
    /// Those of `source`, or lack of room. Bytes read before stay, and no more will come.
    pub(super) fn fill(&mut self, source: &mut Source, at_least: usize) -> io::Result<()> {
        let filled = self.make_room(source, at_least);
        self.at_eof |= filled.is_err();
        filled?;
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

    /// Reads exactly `len` bytes, if there are that many, in place of the previous content.
    ///
    /// # Errors
    /// Those of `source`, or lack of room.
    pub(super) fn fill_anew(&mut self, source: &mut Source, len: usize) -> io::Result<()> {
        self.empty();
        self.make_room(source, len)?;
        while self.end < len {
            match source.read(&mut self.bytes[self.end..len]) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Makes room for this many unread bytes.
    fn make_room(&mut self, source: &Source, at_least: usize) -> io::Result<()> {
        if self.bytes.len() - self.start < at_least || self.start == self.end {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            // Twice what is needed: otherwise a reader that asks for a few bytes more each time
            // would move all of them each time.
            let mut len = self.len.max(2 * at_least);
            if self.bytes.len() < len {
                if self.held.as_ref().is_none_or(|held| held.bytes() < len - self.len) && len > self.len {
                    self.held = None;
                    self.held = source.take_room(len - self.len).ok();
                    if self.held.is_none() {
                        len = self.len.max(at_least);
                        self.held = Some(source.take_room(len - self.len)?);
                    }
                }
                self.bytes.resize(len, 0);
            } else if self.held.is_some() && self.end <= self.len && at_least <= self.len / 2 {
                // The large block has been read.
                self.bytes.truncate(self.len);
                self.bytes.shrink_to_fit();
                self.held = None;
            }
        }
        Ok(())
    }
}
