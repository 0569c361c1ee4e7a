//! What does one input hold, piece by piece?

use std::fs::File;
use std::io;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::path::Path;

use tcpwhy_wire::capture::{Event, Format, RawPacket, Reader};
use tcpwhy_wire::{Duration, Instant};

use super::aside::Aside;
use super::buffer::Buffer;
use super::index::Index;
use super::room::Room;
use super::search::Search;
use super::source::{Compression, Source};
use super::tally::{Take, Tally};
use super::trouble::{Failure, Trouble};
use super::{Block, FileSummary, Options, Progress, Span};

/// What all inputs of a run share.
pub(super) struct Run<'a, P, T> {
    pub(super) options: Options,
    pub(super) span: Span,
    /// Of the last packet given.
    pub(super) number: u64,
    pub(super) progress: Progress,
    pub(super) on_progress: P,
    pub(super) segments: T,
    pub(super) on_block: Option<&'a mut dyn FnMut(Block<'_>)>,
    pub(super) aside: Aside,
}

impl<P, T> Run<'_, P, T> {
    #[inline]
    fn block(&mut self, bytes: &[u8], packet: Option<&RawPacket<'_>>, input: usize, format: Option<Format>) {
        if let Some(on_block) = &mut self.on_block {
            on_block(Block { bytes, packet: packet.copied(), input, format });
        }
    }
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
    /// Bytes in front of the window that were passed over.
    passed_over: u64,
    /// Packets in them.
    pub(super) packets_before: u64,
    /// They were too many to be counted.
    pub(super) is_uncounted: bool,
    /// A packet was so late that none of the window can follow.
    stopped: bool,
    /// Somebody asked to stop before its end.
    interrupted: bool,
}

/// Time stamps of a capture step back by this at most: several queues of an interface, clocks that are set.
const DISORDER_MAX: Duration = Duration::from_secs(1);

/// Packets within so many bytes in front of a window are counted; that takes a second or so.
const COUNTED_LEN: u64 = 2 << 30;

/// A first packet further in than this is not looked for.
const MAX_LOOK_AHEAD: usize = 1 << 20;

impl Reading {
    /// One of `inputs` inputs.
    pub(super) fn open(path: &Path, inputs: usize, room: &Room) -> Result<Self, Failure> {
        Ok(Self::new(Source::open(path, room)?, Buffer::one_of(inputs)))
    }

    /// The one input, which was opened under this name.
    pub(super) fn of(path: &Path, file: File, room: &Room) -> Result<Self, Failure> {
        Ok(Self::new(Source::of(path, file, room)?, Buffer::one_of(1)))
    }

    /// What unpacking it needs at most, as far as that is known before, and what it has of that already. A file is then as if nobody had
    /// looked.
    pub(super) fn unpacking_needs(&mut self) -> [usize; 2] {
        let needs = self.source.unpacking_needs();
        self.rewind();
        [needs, self.source.held_bytes()]
    }

    /// Where its bytes come from, once more, for a thread of its own.
    pub(super) fn source_again(&self) -> Option<Source> {
        self.source.duplicate()
    }

    /// The same from its beginning; none of what can be read only once.
    pub(super) fn duplicate(&self, inputs: usize) -> Option<Self> {
        Some(Self::new(self.source.duplicate()?, Buffer::one_of(inputs)))
    }

    /// Back to the beginning of the file, where that can be; what cannot is said when it is read.
    pub(super) fn rewind(&mut self) {
        let _ = self.source.rewind();
    }

    fn new(source: Source, buffer: Buffer) -> Self {
        let (reader, tally) = (Reader::new(), Tally::default());
        Self {
            source,
            buffer,
            reader,
            error: None,
            tally,
            reported: 0,
            passed_over: 0,
            packets_before: 0,
            is_uncounted: false,
            stopped: false,
            interrupted: false,
        }
    }

    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.source.descriptor()
    }

    /// The number of its next packet, as Wireshark shows it.
    pub(super) fn next_frame(&self) -> u64 {
        self.packets_before + self.tally.all() + 1
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

    /// The time of the last packet.
    ///
    /// # Errors
    /// Where that is known only after all has been read, or where reading fails.
    pub(super) fn last_time(&mut self) -> io::Result<Option<Instant>> {
        let Some(len) = self.source.searchable_len()? else {
            let why = "a time before the end needs an uncompressed file, not a pipe or a compressed one; give an absolute time, \
                       or one after the start (+90s)";
            return Err(io::Error::other(why));
        };
        let last = match self.search(len)? {
            Some(mut search) => search.last()?,
            None => None,
        };
        self.start_again()?;
        Ok(last)
    }

    /// Goes to shortly before a time, where the input can be searched for it.
    pub(super) fn seek(&mut self, from: Instant, aside: &mut Aside) -> io::Result<()> {
        let Some(len) = self.source.searchable_len()? else { return Ok(()) };
        let found = match self.search(len)? {
            Some(mut search) => search.before(from + -DISORDER_MAX)?,
            None => None,
        };
        match found {
            Some((first, offset)) => {
                self.count_to(first, offset, aside)?;
                self.source.jump(offset);
                self.reader.jump(offset);
                self.buffer.reset();
                self.passed_over = offset - first;
                Ok(())
            }
            None => self.start_again(),
        }
    }

    /// Counts the packets that are passed over, so that the others have the numbers that they have in the file. What lies too far in
    /// is not counted.
    fn count_to(&mut self, first: u64, offset: u64, aside: &mut Aside) -> io::Result<()> {
        if offset - first > COUNTED_LEN {
            self.is_uncounted = true;
            return Ok(());
        }
        let mut reader = self.reader.clone();
        self.source.jump(first);
        reader.jump(first);
        self.buffer.reset();
        while reader.offset() < offset {
            let step = reader.next(self.buffer.unread(), self.buffer.at_eof());
            let consumed = step.consumed;
            let wanted = match step.event {
                Event::Packet(packet) => {
                    self.packets_before += 1;
                    aside.on_earlier(&packet);
                    0
                }
                Event::Skipped | Event::Damaged(_) => 0,
                Event::NeedMore(n) => n,
                Event::End => break,
            };
            self.buffer.consume(consumed);
            if wanted > 0 {
                self.buffer.fill(&mut self.source, wanted)?;
            }
        }
        Ok(())
    }

    /// Reads up to the first packet, from which on the file can be searched.
    fn search(&mut self, len: u64) -> io::Result<Option<Search<'_>>> {
        loop {
            let (unread, at_eof) = (self.buffer.unread(), self.buffer.at_eof());
            let step = self.reader.next(unread, at_eof);
            let consumed = step.consumed;
            match step.event {
                Event::Packet(packet) => {
                    let first = packet.at;
                    self.reader.put_back(&packet, consumed);
                    let reader = &self.reader;
                    return Ok(Some(Search { source: &mut self.source, reader, first, len }));
                }
                Event::NeedMore(n) => self.buffer.fill(&mut self.source, n)?,
                Event::Skipped => self.buffer.consume(consumed),
                Event::Damaged(_) | Event::End => return Ok(None),
            }
        }
    }

    /// As if nothing had been read, of a file.
    fn start_again(&mut self) -> io::Result<()> {
        self.source.rewind()?;
        self.buffer.reset();
        self.reader = Reader::new();
        Ok(())
    }

    /// Gives packets up to the limit, a time and the number of the input that has a packet then; `number` is this one's own.
    /// Returns the time of the next packet, whose turn has not come, or `None` at the end.
    pub(super) fn advance<P: FnMut(Progress), T: Take>(
        &mut self,
        limit: Option<(Instant, usize)>,
        number: usize,
        run: &mut Run<'_, P, T>,
    ) -> Option<Instant> {
        // Of packets at the same time, those of the earlier input come first.
        let limit = match limit {
            None => Instant::MAX,
            Some((at, other)) if number < other => at,
            Some((at, _)) => Instant::from_nanos(at.as_nanos().saturating_sub(1)),
        };
        // Saturates where all of time is wanted.
        let stop = run.span.to + DISORDER_MAX;
        loop {
            let (unread, at_eof) = (self.buffer.unread(), self.buffer.at_eof());
            let mut at = 0;
            let mut next = None;
            let before = self.tally.all();
            let wanted = loop {
                let mut step = self.reader.next(&unread[at..], at_eof);
                at += step.consumed;
                // A packet is not copied: the copy would wait for all that is on its way to memory (`wire/decode/usual.rs`).
                match &mut step.event {
                    Event::Packet(packet) if packet.at > limit => {
                        at -= step.consumed;
                        self.reader.put_back(packet, step.consumed);
                        next = Some(packet.at);
                        break None;
                    }
                    Event::Packet(packet) if !run.span.contains(packet.at) => {
                        run.number += 1;
                        self.tally.outside += 1;
                        if packet.at < run.span.from {
                            run.aside.on_earlier(packet);
                        }
                        if packet.at >= stop {
                            self.stopped = true;
                            break None;
                        }
                    }
                    Event::Packet(packet) => {
                        run.number += 1;
                        packet.number = run.number;
                        run.aside.on_wanted(packet);
                        let bytes = &unread[at - step.consumed..at];
                        run.block(bytes, Some(packet), number, self.reader.format());
                        let ports = self.tally.on_packet(packet, number, &mut run.segments);
                        if let Some(index) = run.aside.places.index() {
                            index.put(step.consumed, ports);
                        }
                    }
                    Event::Skipped => {
                        run.aside.places.index().into_iter().for_each(|index| index.pass(step.consumed));
                        run.block(&unread[at - step.consumed..at], None, number, self.reader.format());
                    }
                    Event::Damaged(damage) => {
                        run.aside.places.index().into_iter().for_each(Index::end);
                        self.tally.on_damage(*damage, self.error.is_some());
                    }
                    Event::NeedMore(n) => break Some(*n),
                    Event::End => break None,
                }
            };
            self.buffer.consume(at);
            run.progress.packets += self.tally.all() - before;
            match wanted {
                Some(wanted) if self.goes_on(run) && self.refill(wanted, run) => {}
                _ => return next,
            }
        }
    }

    /// Remembers where this is, or sees whether anything more is wanted.
    fn goes_on<P, T>(&mut self, run: &mut Run<'_, P, T>) -> bool {
        match &run.aside.wanted {
            None => run.aside.places.learn(&self.reader, run.number),
            Some(wanted) => self.stopped = wanted.is_over(run.number),
        }
        !self.stopped
    }

    /// Reads on, unless that is a bomb.
    fn refill<P: FnMut(Progress), T>(&mut self, wanted: usize, run: &mut Run<'_, P, T>) -> bool {
        if !self.source.is_stopped() {
            self.error = self.buffer.fill(&mut self.source, wanted).err();
            self.report(run);
        }
        // What an end that somebody asked for cuts in two is no damage.
        if self.source.is_stopped() {
            (self.interrupted, self.error) = (true, None);
            return false;
        }
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

    fn report<P: FnMut(Progress), T>(&mut self, run: &mut Run<'_, P, T>) {
        let stored = self.source.stored_read();
        run.progress.bytes += stored - self.reported;
        self.reported = stored;
        (run.on_progress)(run.progress);
    }

    /// Bytes read, decompressed.
    fn unpacked(&self) -> u64 {
        self.reader.offset() + self.buffer.unread().len() as u64
    }

    /// Stored bytes that were passed over or not read. Of what was unpacked and not looked at, only whole buffers count.
    fn unread_bytes(&self) -> u64 {
        let behind = match (self.stopped, self.source.compression(), self.source.stored_len) {
            (true, Compression::None, Some(len)) => len.saturating_sub(self.reader.offset()),
            (true, _, Some(len)) => len.saturating_sub(self.source.stored_read()),
            _ => 0,
        };
        self.passed_over + behind
    }

    /// Whether the end came before the length that the file had when it was opened.
    fn has_shrunk(&self) -> bool {
        !self.stopped
            && !self.interrupted
            && self.buffer.at_eof()
            && self.source.stored_len.is_some_and(|had| self.source.stored_read() < had)
    }

    /// After the end: says what there was.
    pub(super) fn finish<P: FnMut(Progress), T>(mut self, file: &mut FileSummary, run: &mut Run<'_, P, T>) {
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
        file.unread_bytes = self.unread_bytes();
        file.stopped = self.stopped;
        file.interrupted = self.interrupted;
        self.tally.put_into(file);
    }
}
