//! Where in a file are the packets of a given time?
//!
//! Captures are written in order of time, so bisection finds the place. Each probe reads a megabyte
//! and finds a packet there (`Reader::resynchronise`). If a probe finds none, or one that is older
//! than an earlier packet of the file, the file is not in order, and it is read from its start.

use std::io::{self, Read as _};

use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::{Event, RESYNC_LEN, Reader};

use super::source::Source;

/// A shorter file is read faster than searched.
const WORTH_IT_LEN: u64 = 4 * RESYNC_LEN as u64;

/// How a section of a pcapng file starts, in either byte order.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// A file, and what its start has shown.
pub(super) struct Search<'a> {
    pub(super) source: &'a mut Source,
    /// Its state before the first packet.
    pub(super) reader: &'a Reader,
    /// Time of the first packet.
    pub(super) first: Instant,
    pub(super) len: u64,
}

impl Search<'_> {
    /// Where the first packet is, and the offset of a later packet or block from which everything
    /// of this time or later is found.
    pub(super) fn before(&mut self, from: Instant) -> io::Result<Option<(u64, u64)>> {
        let first_offset = self.reader.offset();
        let (mut low, mut high, mut at_low) = (first_offset, self.len, self.first);
        if self.first >= from {
            return Ok(None);
        }
        while high - low > WORTH_IT_LEN {
            let middle = low + (high - low) / 2;
            match self.packet_behind(middle)? {
                Some((offset, at)) if at_low <= at && offset < high => {
                    if at < from {
                        (low, at_low) = (offset, at);
                    } else {
                        high = middle;
                    }
                }
                _ => return Ok(None),
            }
        }
        Ok((low > first_offset).then_some((first_offset, low)))
    }

    /// The time of the last packet: the latest among the last ones.
    pub(super) fn last(&mut self) -> io::Result<Option<Instant>> {
        let first_offset = self.reader.offset();
        let offset = self.len.saturating_sub(RESYNC_LEN as u64).max(first_offset);
        let bytes = self.bytes(offset, self.len - offset)?;
        let start = if offset == first_offset {
            0
        } else {
            let Some(start) = self.reader.resynchronise(&bytes, true, offset, self.first) else {
                return Err(io::Error::other(
                    "its end is damaged; give an absolute time, or one after the start",
                ));
            };
            start
        };
        let mut reader = self.reader.clone();
        let (mut rest, mut last) = (&bytes[start..], None);
        loop {
            let step = reader.next(rest, true);
            rest = &rest[step.consumed..];
            match step.event {
                Event::Packet(packet) => last = last.max(Some(packet.at)),
                Event::Skipped | Event::Damaged(_) => {}
                Event::NeedMore(_) | Event::End => return Ok(last),
            }
        }
    }

    /// The first packet after this offset, and its time.
    fn packet_behind(&mut self, offset: u64) -> io::Result<Option<(u64, Instant)>> {
        let bytes = self.bytes(offset, 2 * RESYNC_LEN as u64)?;
        let at_eof = offset + bytes.len() as u64 >= self.len;
        let Some(start) = self.reader.resynchronise(&bytes, at_eof, offset, self.first) else {
            return Ok(None);
        };
        let mut reader = self.reader.clone();
        reader.jump(offset + start as u64);
        let mut rest = &bytes[start..];
        loop {
            let step = reader.next(rest, at_eof);
            match step.event {
                Event::Packet(packet) => {
                    return Ok(Some((reader.offset() - step.consumed as u64, packet.at)));
                }
                // After this one, interfaces are different.
                Event::Skipped if rest.starts_with(&SECTION_HEADER) => return Ok(None),
                Event::Skipped => rest = &rest[step.consumed..],
                Event::Damaged(_) | Event::NeedMore(_) | Event::End => return Ok(None),
            }
        }
    }

    fn bytes(&mut self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        self.source.jump(offset);
        let mut bytes = Vec::new();
        self.source.by_ref().take(len).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}
