//! What does one input hold, piece by piece?

use std::io;
use std::path::Path;

use tcpwhy_wire::capture::{Damage, DamageKind, Event, RawPacket, Reader};
use tcpwhy_wire::{Instant, Segment, Skip, decode};

use super::buffer::Buffer;
use super::source::{Compression, Source};
use super::trouble::{Failure, Trouble};
use super::{FileSummary, MAX_TROUBLES, Options, Progress};

/// What all inputs of a run share.
pub(super) struct Run<P, S> {
    pub(super) options: Options,
    pub(super) progress: Progress,
    pub(super) on_progress: P,
    pub(super) on_segment: S,
}

/// An input that is being read.
pub(super) struct Reading {
    source: Source,
    buffer: Buffer,
    reader: Reader,
    /// What ended the input before its end.
    error: Option<io::Error>,
    tally: Tally,
    /// Stored bytes that progress knows of.
    reported: u64,
}

/// A first packet further in than this is not looked for.
const MAX_LOOK_AHEAD: usize = 1 << 20;

impl Reading {
    /// One of `inputs` inputs.
    pub(super) fn open(path: &Path, inputs: usize) -> Result<Self, Failure> {
        Ok(Self::new(Source::open(path)?, Buffer::one_of(inputs)))
    }

    fn new(source: Source, buffer: Buffer) -> Self {
        let (reader, tally) = (Reader::new(), Tally::default());
        Self { source, buffer, reader, error: None, tally, reported: 0 }
    }

    pub(super) fn stored_len(&self) -> Option<u64> {
        self.source.stored_len
    }

    /// Finds the time of the first packet without losing a byte.
    pub(super) fn look_ahead(&mut self) -> io::Result<Option<Instant>> {
        let mut reader = Reader::new();
        let mut at = 0;
        let first = loop {
            let step = reader.next(&self.buffer.unread()[at..], self.buffer.at_eof());
            at += step.consumed;
            match step.event {
                Event::Packet(packet) => break Some(packet.at),
                Event::Skipped | Event::Damaged(_) if at < MAX_LOOK_AHEAD => {}
                Event::NeedMore(n) if at < MAX_LOOK_AHEAD => {
                    // Where that fails, what there is ends here and now.
                    self.error = self.buffer.fill(&mut self.source, at + n).err();
                }
                _ => break None,
            }
        };
        // Files are read again, so that a thousand of them do not hold a thousand buffers and decompressors.
        if self.source.can_rewind() {
            self.source.rewind()?;
            self.buffer.reset();
            self.error = None;
        }
        Ok(first)
    }

    /// Gives packets up to the limit, a time and the number of the input that has a packet then; `number` is this one's own.
    /// Returns the time of the next packet, whose turn has not come, or `None` at the end.
    pub(super) fn advance<P: FnMut(Progress), S: FnMut(&Segment)>(
        &mut self,
        limit: Option<(Instant, usize)>,
        number: usize,
        run: &mut Run<P, S>,
    ) -> Option<Instant> {
        // Of packets at the same time, those of the earlier input come first.
        let limit = match limit {
            None => Instant::MAX,
            Some((at, other)) if number < other => at,
            Some((at, _)) => Instant::from_nanos(at.as_nanos().saturating_sub(1)),
        };
        loop {
            let (unread, at_eof) = (self.buffer.unread(), self.buffer.at_eof());
            let mut at = 0;
            let mut next = None;
            let wanted = loop {
                let step = self.reader.next(&unread[at..], at_eof);
                at += step.consumed;
                match step.event {
                    Event::Packet(mut packet) => {
                        if packet.at > limit {
                            at -= step.consumed;
                            self.reader.put_back(&packet, step.consumed);
                            next = Some(packet.at);
                            break None;
                        }
                        run.progress.packets += 1;
                        packet.number = run.progress.packets;
                        self.tally.on_packet(&packet, &mut run.on_segment);
                    }
                    Event::Skipped => {}
                    Event::Damaged(damage) => self.tally.on_damage(damage, self.error.is_some()),
                    Event::NeedMore(n) => break Some(n),
                    Event::End => break None,
                }
            };
            self.buffer.consume(at);
            match wanted {
                Some(wanted) if self.refill(wanted, run) => {}
                _ => return next,
            }
        }
    }

    /// Reads on, unless that is a bomb.
    fn refill<P: FnMut(Progress), S>(&mut self, wanted: usize, run: &mut Run<P, S>) -> bool {
        self.error = self.buffer.fill(&mut self.source, wanted).err();
        self.report(run);
        let offset = self.unpacked();
        let compressed = self.source.stored_read();
        let bound = compressed.saturating_mul(run.options.unpacked_ratio_max);
        let bound = bound.max(run.options.unpacked_bytes_free);
        let is_bomb = self.source.compression() != Compression::None && offset > bound;
        if is_bomb {
            self.tally.on_trouble(Trouble::Bomb { offset, compressed });
        }
        !is_bomb
    }

    fn report<P: FnMut(Progress), S>(&mut self, run: &mut Run<P, S>) {
        let stored = self.source.stored_read();
        run.progress.bytes += stored - self.reported;
        self.reported = stored;
        (run.on_progress)(run.progress);
    }

    /// Bytes read, decompressed.
    fn unpacked(&self) -> u64 {
        self.reader.offset() + self.buffer.unread().len() as u64
    }

    /// Whether the end came before the length that the file had when it was opened.
    fn has_shrunk(&self) -> bool {
        self.buffer.at_eof() && self.source.stored_len.is_some_and(|had| self.source.stored_read() < had)
    }

    /// After the end: says what there was.
    pub(super) fn finish<P: FnMut(Progress), S>(mut self, file: &mut FileSummary, run: &mut Run<P, S>) {
        let offset = self.unpacked();
        match self.error.take() {
            Some(error) if offset == 0 => self.tally.failure = Some(Failure::Io(error)),
            Some(error) => self.tally.on_trouble(Trouble::from_read(&error, offset)),
            None if self.has_shrunk() => {
                let had = self.source.stored_len.unwrap_or(0);
                self.tally.on_trouble(Trouble::Shrunk { had, has: self.source.stored_read() });
            }
            None => {}
        }
        self.report(run);
        file.compression = self.source.compression().name();
        file.format = self.reader.format();
        file.drops = self.reader.drops().total();
        self.tally.put_into(file);
    }
}

/// What reading one input adds up to.
#[derive(Default)]
struct Tally {
    packets: u64,
    segments: u64,
    skipped: [u64; Skip::ALL.len()],
    damaged: u64,
    troubles: Vec<Trouble>,
    failure: Option<Failure>,
    first_number: u64,
    first: Instant,
    last: Instant,
}

impl Tally {
    #[inline]
    fn on_packet(&mut self, packet: &RawPacket<'_>, on_segment: &mut impl FnMut(&Segment)) {
        if self.packets == 0 {
            (self.first_number, self.first, self.last) = (packet.number, packet.at, packet.at);
        }
        self.packets += 1;
        self.first = self.first.min(packet.at);
        self.last = self.last.max(packet.at);
        match decode(packet) {
            Ok(segment) => {
                self.segments += 1;
                on_segment(&segment);
            }
            Err(skip) => self.skipped[skip as usize] += 1,
        }
    }

    fn on_damage(&mut self, damage: Damage, after_error: bool) {
        match damage.what {
            // The error that ended the input says it better.
            DamageKind::CutShort { .. } | DamageKind::Empty if after_error => {}
            DamageKind::Empty => self.failure = Some(Failure::Empty),
            DamageKind::NotACapture(magic) => self.failure = Some(Failure::from_magic(magic)),
            _ => self.on_trouble(Trouble::Damage(damage)),
        }
    }

    fn on_trouble(&mut self, trouble: Trouble) {
        self.damaged += 1;
        if self.troubles.len() < MAX_TROUBLES {
            self.troubles.push(trouble);
        }
    }

    fn put_into(self, file: &mut FileSummary) {
        file.packets = self.packets;
        file.segments = self.segments;
        file.first_number = self.first_number;
        file.first = (self.packets > 0).then_some(self.first);
        file.last = (self.packets > 0).then_some(self.last);
        let reasons = Skip::ALL.map(Skip::name).into_iter().zip(self.skipped);
        file.skipped = reasons.chain([("damaged", self.damaged)]).filter(|(_, count)| *count > 0).collect();
        file.truncated = self.troubles.iter().any(Trouble::is_truncation);
        file.troubles = self.troubles;
        file.failure = self.failure;
    }
}
