//! What does one input contain, piece by piece?

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
    /// Number of the last packet given.
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
    /// The error that ended the input early.
    error: Option<io::Error>,
    tally: Tally,
    /// Stored bytes already counted in the progress.
    reported: u64,
    /// Bytes before the window that were skipped.
    passed_over: u64,
    /// Packets in them.
    pub(super) packets_before: u64,
    /// They were too many to be counted.
    pub(super) is_uncounted: bool,
    /// A packet was so late that none of the window can follow.
    stopped: bool,
    /// The user asked to stop before its end.
    interrupted: bool,
}

/// Time stamps of a capture step back by at most this: several queues of an interface, clocks that
/// are set.
const DISORDER_MAX: Duration = Duration::from_secs(1);

/// Packets are counted within this many bytes before a window; that takes about a second.
const COUNTED_LEN: u64 = 2 << 30;

/// A first packet farther in than this is not searched for.
const MAX_LOOK_AHEAD: usize = 1 << 20;

impl Reading {
    /// One of `inputs` inputs.
    pub(super) fn open(path: &Path, inputs: usize, room: &Room) -> Result<Self, Failure> {
        Ok(Self::new(Source::open(path, room)?, Buffer::one_of(inputs)))
    }

    /// The only input, already opened under this name.
    pub(super) fn of(path: &Path, file: File, room: &Room) -> Result<Self, Failure> {
        Ok(Self::new(Source::of(path, file, room)?, Buffer::one_of(1)))
    }

    /// The most that decompression needs, as far as that is known in advance, and how much of that
    /// is already held. A file is rewound afterwards.
    pub(super) fn unpacking_needs(&mut self) -> [usize; 2] {
        let needs = self.source.unpacking_needs();
        self.rewind();
        [needs, self.source.held_bytes()]
    }

    /// Its source once more, for another thread.
    pub(super) fn source_again(&self) -> Option<Source> {
        self.source.duplicate()
    }

    /// The same input from its beginning; `None` if it can be read only once.
    pub(super) fn duplicate(&self, inputs: usize) -> Option<Self> {
        Some(Self::new(self.source.duplicate()?, Buffer::one_of(inputs)))
    }

    /// Rewinds to the beginning of the file, if possible; if not, reading will report it.
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
                    // If this fails, the input ends here.
                    self.error = self.buffer.fill(&mut self.source, at + n).err();
                }
                _ => break None,
            }
        };
        // Files are read again from the start, so that a thousand of them do not hold a thousand
        // buffers and decompressors.
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
    /// It is known only after the whole input has been read, or reading fails.
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

    /// Seeks to shortly before a time, if the input can be searched.
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

    /// Counts the packets that are skipped, so that the others keep their numbers of the file. If
    /// the window is too far in, they are not counted.
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

    /// Reads up to the first packet, from which the file can be searched.
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

    /// Restarts a file as if nothing had been read.
    fn start_again(&mut self) -> io::Result<()> {
        self.source.rewind()?;
        self.buffer.reset();
        self.reader = Reader::new();
        Ok(())
    }

    /// Gives packets up to the limit, a time and the number of the input that has a packet then;
    /// `number` is this input's own. Returns the time of the next packet, whose turn has not come,
    /// or `None` at the end.
    pub(super) fn advance<P: FnMut(Progress), T: Take>(
        &mut self,
        limit: Option<(Instant, usize)>,
        number: usize,
        run: &mut Run<'_, P, T>,
    ) -> Option<Instant> {
        // At equal times, the packets of the earlier input come first.
        let limit = match limit {
            None => Instant::MAX,
            Some((at, other)) if number < other => at,
            Some((at, _)) => Instant::from_nanos(at.as_nanos().saturating_sub(1)),
        };
        // Saturates if there is no limit.
        let stop = run.span.to + DISORDER_MAX;
        loop {
            let (unread, at_eof) = (self.buffer.unread(), self.buffer.at_eof());
            let mut at = 0;
            let mut next = None;
            let before = self.tally.all();
            let wanted = loop {
                let mut step = self.reader.next(&unread[at..], at_eof);
                at += step.consumed;
                // The packet is not copied: the copy would wait for pending stores to complete
                // (`wire/decode/usual.rs`).
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

    /// Remembers this place, or checks whether anything more is wanted.
    fn goes_on<P, T>(&mut self, run: &mut Run<'_, P, T>) -> bool {
        match &run.aside.wanted {
            None => run.aside.places.learn(&self.reader, run.number),
            Some(wanted) => self.stopped = wanted.is_over(run.number),
        }
        !self.stopped
    }

    /// Reads on, unless the input is a decompression bomb.
    fn refill<P: FnMut(Progress), T>(&mut self, wanted: usize, run: &mut Run<'_, P, T>) -> bool {
        if !self.source.is_stopped() {
            self.error = self.buffer.fill(&mut self.source, wanted).err();
            self.report(run);
        }
        // If the user's interruption cuts a packet in two, that is no damage.
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

    /// Bytes read, after decompression.
    fn unpacked(&self) -> u64 {
        self.reader.offset() + self.buffer.unread().len() as u64
    }

    /// Stored bytes that were skipped or not read. Of compressed input that was not analysed, only
    /// whole buffers count.
    fn unread_bytes(&self) -> u64 {
        let behind = match (self.stopped, self.source.compression(), self.source.stored_len) {
            (true, Compression::None, Some(len)) => len.saturating_sub(self.reader.offset()),
            (true, _, Some(len)) => len.saturating_sub(self.source.stored_read()),
            _ => 0,
        };
        self.passed_over + behind
    }

    /// Whether the input ended before the length that the file had when it was opened.
    fn has_shrunk(&self) -> bool {
        !self.stopped
            && !self.interrupted
            && self.buffer.at_eof()
            && self.source.stored_len.is_some_and(|had| self.source.stored_read() < had)
    }

    /// At the end: writes the summary of the input.
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
