//! Which segments do these inputs contain, in order of time?
//!
//! An input is a path or `-` for standard input; pcap or pcapng, plain, gzip, zstd, xz or lz4, recognised by
//! their bytes. Several inputs are merged by time: the files of a rotated ring follow each other, captures of
//! several interfaces interleave. Packet numbers are those that Wireshark shows for a single input, also if
//! only a part of it is read, or for the file that `mergecap` makes of several inputs in the order of their
//! first packets.
//!
//! Nothing is dropped silently: unreadable parts are counted in the [`FileSummary`] with their place.

mod aside;
mod buffer;
mod damaged;
mod distances;
mod index;
mod lz4;
mod moment;
mod openings;
mod placed;
mod places;
mod reading;
mod room;
mod search;
mod short;
mod sought;
mod source;
pub mod stop;
mod streams;
mod tally;
mod trouble;
mod zone;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::File;
#[cfg(unix)]
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use tcpwhy_wire::capture::{Format, RawPacket};
use tcpwhy_wire::{Decoded, Instant, Segment};

pub use aside::Aside;
use buffer::Buffer;
pub use index::{Sums, ports_of};
pub use moment::{Moment, Window};
pub use places::Places;
use reading::{Reading, Run};
use room::Room;
pub use source::Compression;
pub use streams::Streams;
use tally::{All, EQUAL_DISTANCES, Take, WHOLE_SECONDS, WRONG_CLOCK};
pub use trouble::{Failure, Trouble, WindowError};
pub use zone::Zone;

/// Limits on reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// A compressed input may always unpack to this many bytes...
    pub unpacked_bytes_free: u64,
    /// ...and beyond that to this many times its compressed size. Real captures reach 10 to 30.
    pub unpacked_ratio_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { unpacked_bytes_free: 1 << 30, unpacked_ratio_max: 200 }
    }
}

/// How far reading has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Stored (compressed) bytes read over all inputs.
    pub bytes: u64,
    /// Stored bytes of all inputs; `None` while one of them is a pipe.
    pub total_bytes: Option<u64>,
    /// Packets read over all inputs.
    pub packets: u64,
}

/// The content of one input.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a remark of its own")]
pub struct FileSummary {
    /// The path as given.
    pub path: PathBuf,
    /// The format, if it was recognised.
    pub format: Option<Format>,
    /// What it was compressed with: `gzip`, `zstd`, `xz`, `lz4` or nothing.
    pub compression: &'static str,
    /// Packets read, of any protocol.
    pub packets: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// Number of its first packet among those of all inputs; 0 if it has none.
    pub first_number: u64,
    /// The earliest capture time.
    pub first: Option<Instant>,
    /// The latest capture time.
    pub last: Option<Instant>,
    /// Its end is missing.
    pub truncated: bool,
    /// Packets without a segment, by reason; `outside-window`: read, but not in the requested window;
    /// `damaged`: places that could not be read; `wrong-checksum`: segments that their receiver dropped;
    /// `wrong-time`: read, with another time; `wrong-clock`, `whole-seconds` and
    /// `equal-distances`: all are read, and no time is relied on.
    pub skipped: BTreeMap<&'static str, u64>,
    /// The first places where something was wrong, at most [`MAX_TROUBLES`]; `skipped["damaged"]` counts all.
    pub troubles: Vec<Trouble>,
    /// How many ICMP errors say that a segment was too large for a link, and the number of the first one.
    pub too_large: Option<(u64, u64)>,
    /// Packets that the capture says it lost.
    pub drops: u64,
    /// Stored bytes that were skipped because they are outside the window.
    pub unread_bytes: u64,
    /// Reading stopped after the window; for a pipe, what else would have come is unknown.
    pub stopped: bool,
    /// Packets are numbered from the first one of the window, because too many precede it.
    pub is_renumbered: bool,
    /// The user interrupted reading: this is what had been read.
    pub interrupted: bool,
    /// With several inputs: which of its packets have which numbers among those of all inputs.
    pub turns: Vec<Turn>,
    /// Why nothing could be read at all.
    pub failure: Option<Failure>,
}

/// Consecutive packets of one input among those of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Number of the first one among those of all inputs.
    pub first: u64,
    /// Its number in its own file.
    pub frame: u64,
}

/// With more turns than this, packets only have their number among all inputs.
const MAX_TURNS: usize = 1 << 20;

/// More troubles of one input are counted, not kept.
pub const MAX_TROUBLES: usize = 16;

/// The content of all inputs, in the order of their first packets.
#[derive(Debug, Default)]
pub struct InputSummary {
    /// One entry for each input.
    pub files: Vec<FileSummary>,
    /// What was collected while reading, if requested.
    pub aside: Aside,
}

impl InputSummary {
    /// Whether no input could be read at all.
    pub fn is_failure(&self) -> bool {
        self.files.iter().all(|file| file.failure.is_some())
    }

    /// Whether an input could not be read at all.
    pub fn is_partial(&self) -> bool {
        self.files.iter().any(|file| file.failure.is_some())
    }

    /// Packets over all inputs.
    pub fn packets(&self) -> u64 {
        self.files.iter().map(|file| file.packets).sum()
    }

    /// Segments over all inputs.
    pub fn segments(&self) -> u64 {
        self.files.iter().map(|file| file.segments).sum()
    }

    /// The skipped packets over all inputs.
    pub fn skipped(&self) -> BTreeMap<&'static str, u64> {
        let mut sum = BTreeMap::new();
        for (reason, count) in self.files.iter().flat_map(|file| &file.skipped) {
            *sum.entry(*reason).or_default() += count;
        }
        sum
    }

    /// Whether an input's clock cannot be relied on.
    pub fn has_unreliable_clock(&self) -> bool {
        let wrong = |file: &FileSummary| {
            [WRONG_CLOCK, WHOLE_SECONDS, EQUAL_DISTANCES].iter().any(|why| file.skipped.contains_key(why))
        };
        self.files.iter().any(wrong)
    }

    /// How many ICMP errors say that a segment was too large for a link, and the number of the first one.
    pub fn too_large(&self) -> Option<(u64, u64)> {
        let told = self.files.iter().filter_map(|file| file.too_large);
        told.reduce(|(one, first), (more, later)| (one + more, first.min(later)))
    }

    /// Packets that the captures say they lost.
    pub fn drops(&self) -> u64 {
        self.files.iter().map(|file| file.drops).sum()
    }

    /// The earliest and the latest capture time.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        let first = self.files.iter().filter_map(|file| file.first).min()?;
        let last = self.files.iter().filter_map(|file| file.last).max()?;
        Some((first, last))
    }

    /// Whether the end of an input is missing.
    pub fn truncated(&self) -> bool {
        self.files.iter().any(|file| file.truncated)
    }
}

/// A piece of an input as stored: a packet, or a block between packets.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// The stored bytes, unpacked.
    pub bytes: &'a [u8],
    /// The packet in them, with its number among those of all inputs.
    pub packet: Option<RawPacket<'a>>,
    /// Which input, in the order of their first packets.
    pub input: usize,
    /// The input's format.
    pub format: Option<Format>,
}

/// Room for decompression and large blocks if no memory limit is set: the largest window, and its
/// surroundings.
const ROOM: usize = 160 << 20;
/// The least and the largest share of the memory limit for this room (as divisors).
const ROOM_LEAST: usize = 16;
const ROOM_MOST: usize = 3;
/// And the share for the turns of several inputs.
const TURNS_MOST: usize = 16;

/// Opened inputs. No path is opened after this, so that the process can give up that right; the files'
/// content is read only later.
#[expect(clippy::struct_field_names, reason = "inputs are what it has")]
pub struct Inputs {
    inputs: Vec<Input>,
    /// Shared by all inputs for decompression and large blocks.
    room: Room,
    /// The part to read, once it is known.
    span: Option<Span>,
    turns_max: usize,
    /// Collects what was requested; nothing by default.
    pub aside: Aside,
}

/// Packets from one time on and before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The earliest.
    pub from: Instant,
    /// The first that is too late.
    pub to: Instant,
}

impl Span {
    /// All of time.
    const ALL: Self = Self { from: Instant::MIN, to: Instant::MAX };

    #[inline]
    fn contains(self, at: Instant) -> bool {
        // The very last instant has none after it.
        self.from <= at && (at < self.to || self.to == Instant::MAX)
    }
}

struct Input {
    path: PathBuf,
    reading: Result<Reading, Failure>,
    /// Time of the first packet, if it was requested.
    first: Option<Instant>,
}

impl Inputs {
    /// Opens all inputs.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Self {
        let room = Room::new(ROOM);
        let open = |path: &P| {
            let path = path.as_ref().to_owned();
            Input { reading: Reading::open(&path, paths.len(), &room), path, first: None }
        };
        Self::of(paths.iter().map(open).collect(), room)
    }

    /// One input, already opened under this name.
    pub fn opened(path: &Path, file: File) -> Self {
        let room = Room::new(ROOM);
        let reading = Reading::of(path, file, &room);
        Self::of(vec![Input { path: path.to_owned(), reading, first: None }], room)
    }

    fn of(inputs: Vec<Input>, room: Room) -> Self {
        Self { inputs, room, span: None, turns_max: MAX_TURNS, aside: Aside::default() }
    }

    /// Limits decompression and large blocks to a third of `memory`, and the lists of several inputs to a
    /// further part. Returns how much of it these inputs may take: the rest is for the analysis.
    pub fn set_memory(&mut self, memory: usize) -> usize {
        let readings = self.inputs.iter_mut().filter_map(|input| input.reading.as_mut().ok());
        let (mut needs, mut usual, mut held) = (0usize, 0usize, 0);
        for [more, has] in readings.map(Reading::unpacking_needs) {
            needs = needs.saturating_add(more);
            usual = usual.saturating_add(if more > 0 { more.max(source::UNPACKING_USUAL) } else { 0 });
            held += has;
        }
        let (least, most) = (memory / ROOM_LEAST, memory / ROOM_MOST);
        // What some inputs reserve for larger later frames must not be missing when others begin.
        let is_tight = usual > most;
        let room = if is_tight { needs } else { usual }.clamp(least, most);
        self.room.set(room.saturating_sub(held), is_tight);
        let count = self.inputs.len();
        self.turns_max = (memory / TURNS_MOST / size_of::<Turn>()).min(MAX_TURNS);
        let turns = if count > 1 { self.turns_max * size_of::<Turn>() } else { 0 };
        // With less, so many inputs cannot all be open.
        (room + turns + count * (Buffer::len(count) + source::STORED_BUFFER_LEN)).min(memory / 2)
    }

    /// The files that are open.
    #[cfg(unix)]
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.inputs.iter().filter_map(|input| input.reading.as_ref().ok()?.descriptor())
    }

    /// Opens the same inputs once more; `None` if one of them can be read only once.
    pub fn open_again(&self) -> Option<Self> {
        let rewindable =
            |input: &Input| input.reading.as_ref().map_or(true, |reading| reading.stored_len().is_some());
        let paths: Vec<_> = self.inputs.iter().map(|input| &input.path).collect();
        self.inputs.iter().all(rewindable).then(|| Self::open(&paths))
    }

    /// The same inputs from their beginning, without opening a file: only for regular files.
    pub fn duplicate(&self) -> Option<Self> {
        let one = |input: &Input| {
            let reading = match &input.reading {
                Ok(reading) => Ok(reading.duplicate(self.inputs.len())?),
                // The real reason is reported when the original is read.
                Err(_) => Err(Failure::NotFound),
            };
            Some(Input { path: input.path.clone(), reading, first: None })
        };
        let inputs = self.inputs.iter().map(one).collect::<Option<_>>()?;
        let (aside, turns_max) = (Aside::default(), self.turns_max);
        Some(Self { inputs, room: self.room.clone(), span: None, turns_max, aside })
    }

    /// Rewinds the inputs after their duplicates were read; the inputs themselves must not have been read
    /// yet.
    pub fn rewind(&mut self) {
        for reading in self.inputs.iter_mut().filter_map(|input| input.reading.as_mut().ok()) {
            reading.rewind();
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.inputs.len()
    }

    /// Restricts reading to a part of the captures, and returns which part. Files that can be searched are
    /// not read outside of it.
    ///
    /// # Errors
    /// The window is empty, or is given relative to the end of an input whose end is not known.
    pub fn limit(&mut self, window: &Window) -> Result<Span, WindowError> {
        self.put_in_order(window.needs_start());
        let first = self.inputs.iter().filter_map(|input| input.first).min();
        let mut last = None;
        if window.needs_end() {
            for input in &mut self.inputs {
                if let Ok(reading) = &mut input.reading {
                    match reading.last_time() {
                        Ok(Some(at)) => last = last.max(Some(at)),
                        Ok(None) => {}
                        Err(why) => return Err(WindowError::NoEnd { path: input.path.clone(), why }),
                    }
                }
            }
        }
        let at = |moment: &Option<Moment>| {
            moment.as_ref().map(|moment| moment.in_capture(first, last, &window.zone))
        };
        let span = Span {
            from: at(&window.from).unwrap_or(Span::ALL.from),
            to: at(&window.to).unwrap_or(Span::ALL.to),
        };
        if span.from >= span.to {
            return Err(WindowError::Empty);
        }
        if window.from.is_some() {
            for input in &mut self.inputs {
                if let Ok(reading) = &mut input.reading
                    && let Err(error) = reading.seek(span.from, &mut self.aside)
                {
                    input.reading = Err(Failure::Io(error));
                }
            }
        }
        self.span = Some(span);
        Ok(span)
    }

    /// Reads the time of each input's first packet, if there are several inputs or the time is needed.
    fn put_in_order(&mut self, always: bool) {
        if self.inputs.len() > 1 || always {
            for input in &mut self.inputs {
                if let Ok(reading) = input.reading.as_mut() {
                    match reading.look_ahead() {
                        Ok(first) => input.first = first,
                        Err(error) => input.reading = Err(Failure::Io(error)),
                    }
                }
            }
        }
        // Stable: inputs without packets, and those that begin at the same time, keep their order.
        self.inputs.sort_by_key(|input| input.first);
    }

    /// Reads all inputs and passes each segment to `on_segment`, in order of time as far as each input is in
    /// order.
    pub fn for_each_segment(
        self,
        options: &Options,
        on_progress: impl FnMut(Progress),
        mut on_segment: impl FnMut(&Segment),
    ) -> InputSummary {
        self.for_each_captured(options, on_progress, |segment, _| on_segment(segment))
    }

    /// The same, with as much of each segment's payload as was captured.
    pub fn for_each_captured(
        self,
        options: &Options,
        on_progress: impl FnMut(Progress),
        mut on_segment: impl FnMut(&Segment, &[u8]),
    ) -> InputSummary {
        self.for_each_of_inputs(options, on_progress, |_, segment, captured| on_segment(segment, captured))
    }

    /// The same, with the input's index in the summary.
    pub fn for_each_of_inputs(
        self,
        options: &Options,
        on_progress: impl FnMut(Progress),
        mut on_segment: impl FnMut(usize, &Segment, &[u8]),
    ) -> InputSummary {
        let on_decoded =
            |input, decoded: &Decoded<'_>, captured: &[u8]| on_segment(input, &decoded.segment(), captured);
        self.for_each_decoded(options, on_progress, on_decoded)
    }

    /// The same, with each segment as it was decoded.
    pub fn for_each_decoded(
        self,
        options: &Options,
        on_progress: impl FnMut(Progress),
        on_segment: impl FnMut(usize, &Decoded<'_>, &[u8]),
    ) -> InputSummary {
        self.read(options, on_progress, All(on_segment), None)
    }

    /// Reads all inputs as stored: every readable block, in the same order and with the same numbers.
    pub fn for_each_block(self, options: &Options, on_block: &mut dyn FnMut(Block<'_>)) -> InputSummary {
        self.read(options, |_| {}, All(|_, _: &Decoded<'_>, _: &[u8]| {}), Some(on_block))
    }

    fn read(
        mut self,
        options: &Options,
        on_progress: impl FnMut(Progress),
        segments: impl Take,
        on_block: Option<&mut dyn FnMut(Block<'_>)>,
    ) -> InputSummary {
        if self.span.is_none() {
            self.put_in_order(false);
        }
        let total =
            self.inputs.iter().map(|input| input.reading.as_ref().map_or(Some(0), Reading::stored_len));
        let progress = Progress { total_bytes: total.sum(), ..Progress::default() };
        let span = self.span.unwrap_or(Span::ALL);
        // Packets have the numbers of their file, or, if too many precede the window, are numbered from
        // there.
        let readings = || self.inputs.iter().filter_map(|input| input.reading.as_ref().ok());
        let is_counted = readings().all(|reading| !reading.is_uncounted);
        let before = readings().map(|reading| reading.packets_before).sum();
        let number = if is_counted { before } else { 0 };
        let aside = if is_counted { self.aside } else { Aside::default() };
        let mut run =
            Run { options: *options, span, number, progress, on_progress, segments, on_block, aside };
        let mut turns_taken = 0;
        let (mut files, mut readings, mut turns) = (Vec::new(), Vec::new(), BinaryHeap::new());
        for (number, input) in self.inputs.into_iter().enumerate() {
            let mut file = FileSummary { path: input.path, ..FileSummary::default() };
            match input.reading {
                Ok(reading) => {
                    turns.push(Reverse((input.first.unwrap_or(Instant::MIN), number)));
                    readings.push(Some(reading));
                }
                Err(failure) => {
                    file.failure = Some(failure);
                    readings.push(None);
                }
            }
            files.push(file);
        }
        while let Some(Reverse((_, number))) = turns.pop() {
            // Its turn lasts until another input has an earlier packet: in a ring, until its end.
            let limit = turns.peek().map(|Reverse(next)| *next);
            let Some(mut reading) = readings[number].take() else { continue };
            if files.len() > 1 && turns_taken <= self.turns_max {
                turns_taken += 1;
                files[number].turns.push(Turn { first: run.number + 1, frame: reading.next_frame() });
            }
            if let Some(at) = reading.advance(limit, number, &mut run) {
                readings[number] = Some(reading);
                turns.push(Reverse((at, number)));
            } else {
                reading.finish(&mut files[number], &mut run);
            }
        }
        for file in &mut files {
            file.is_renumbered = !is_counted;
            if turns_taken > self.turns_max || !is_counted {
                file.turns.clear();
            }
        }
        InputSummary { files, aside: run.aside }
    }
}
