//! Which segments do these inputs hold, in the order of time?
//!
//! An input is a path or `-` for standard input; pcap or pcapng, plain, gzip or zstd, recognised by their bytes. Several
//! inputs are the pieces of one recording (a rotated ring): they are read one after the other in the order of their
//! first packets, and packet numbers run on from one to the next, as in the file that `mergecap -a` makes of them in
//! that order. With one input, numbers are those that Wireshark shows.
//!
//! Nothing is dropped silently: what cannot be read is counted in the [`FileSummary`] with its place.

mod buffer;
mod source;
mod trouble;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tcpwhy_wire::capture::{Damage, DamageKind, Event, Format, RawPacket, Reader};
use tcpwhy_wire::{Instant, Segment, Skip, decode};

use buffer::Buffer;
pub use source::Compression;
use source::Source;
pub use trouble::{Failure, Trouble};

/// Bounds on reading.
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

/// What one input held.
#[derive(Debug, Default)]
pub struct FileSummary {
    /// The path as given.
    pub path: PathBuf,
    /// The format, where it was recognised.
    pub format: Option<Format>,
    /// What it was compressed with: `gzip`, `zstd` or nothing.
    pub compression: &'static str,
    /// Packets read, of whatever protocol.
    pub packets: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// Number of its first packet over all inputs; 0 where it has none.
    pub first_number: u64,
    /// The earliest capture time.
    pub first: Option<Instant>,
    /// The latest capture time.
    pub last: Option<Instant>,
    /// Its end is missing.
    pub truncated: bool,
    /// Packets that gave no segment, by reason, and `damaged`: places that could not be read.
    pub skipped: BTreeMap<&'static str, u64>,
    /// The first places where something was wrong, at most [`MAX_TROUBLES`]; `skipped["damaged"]` counts all.
    pub troubles: Vec<Trouble>,
    /// Packets that the capture says it lost.
    pub drops: u64,
    /// Why nothing could be read at all.
    pub failure: Option<Failure>,
}

/// More troubles of one input are counted, not kept.
pub const MAX_TROUBLES: usize = 16;

/// What all inputs held, in the order in which they were read.
#[derive(Debug, Default)]
pub struct InputSummary {
    /// One entry for each input.
    pub files: Vec<FileSummary>,
}

impl InputSummary {
    /// Whether no input could be read at all.
    pub fn is_failure(&self) -> bool {
        self.files.iter().all(|file| file.failure.is_some())
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

/// Inputs, opened and put in order. After this no path is opened any more, so that the process can give up that right.
pub struct Inputs {
    inputs: Vec<Input>,
}

struct Input {
    path: PathBuf,
    open: Result<Open, Failure>,
    first: Option<Instant>,
}

struct Open {
    source: Source,
    buffer: Buffer,
    /// What ended the input before its end.
    error: Option<std::io::Error>,
}

impl Inputs {
    /// Opens all inputs and, of several, looks at the time of each one's first packet.
    pub fn open<P: AsRef<Path>>(paths: &[P]) -> Self {
        let mut inputs: Vec<_> = paths.iter().map(|path| Input::open(path.as_ref())).collect();
        if inputs.len() > 1 {
            for input in &mut inputs {
                input.look_ahead();
            }
            // Stable: inputs without a packet and those that begin at the same time stay in the order given.
            inputs.sort_by_key(|input| input.first);
        }
        Self { inputs }
    }

    /// Reads all inputs and gives each segment to `on_segment`.
    pub fn for_each_segment(
        self,
        options: &Options,
        mut on_progress: impl FnMut(Progress),
        mut on_segment: impl FnMut(&Segment),
    ) -> InputSummary {
        let mut summary = InputSummary::default();
        let total = self.inputs.iter().map(|input| match &input.open {
            Ok(open) => open.source.stored_len,
            Err(_) => Some(0),
        });
        let mut progress = Progress { total_bytes: total.sum(), ..Progress::default() };
        for input in self.inputs {
            let mut file = FileSummary { path: input.path, ..FileSummary::default() };
            match input.open {
                Err(failure) => file.failure = Some(failure),
                Ok(open) => open.read(options, &mut file, &mut progress, &mut on_progress, &mut on_segment),
            }
            summary.files.push(file);
        }
        summary
    }
}

impl Input {
    fn open(path: &Path) -> Self {
        let open = Source::open(path).map(|source| Open { source, buffer: Buffer::new(), error: None });
        Self { path: path.to_owned(), open, first: None }
    }

    /// Finds the time of the first packet without losing a byte.
    fn look_ahead(&mut self) {
        let Ok(open) = &mut self.open else { return };
        let mut reader = Reader::new();
        let mut at = 0;
        loop {
            let step = reader.next(&open.buffer.unread()[at..], open.buffer.at_eof());
            at += step.consumed;
            match step.event {
                Event::Packet(packet) => {
                    self.first = Some(packet.at);
                    break;
                }
                Event::Skipped | Event::Damaged(_) if at < MAX_LOOK_AHEAD => {}
                Event::NeedMore(n) if at < MAX_LOOK_AHEAD => {
                    if let Err(error) = open.buffer.fill(&mut open.source, at + n) {
                        open.error = Some(error);
                        break;
                    }
                }
                _ => break,
            }
        }
        // Files are read again, so that a thousand of them do not hold a thousand buffers and decompressors.
        if open.source.can_rewind()
            && let Ok(open) = std::mem::replace(&mut self.open, Err(Failure::Empty))
        {
            self.open = match open.source.rewound() {
                Ok(source) => Ok(Open { source, buffer: Buffer::new(), error: None }),
                Err(error) => Err(Failure::Io(error)),
            };
        }
    }
}

/// A first packet further in than this is not looked for.
const MAX_LOOK_AHEAD: usize = 1 << 20;

impl Open {
    fn read(
        mut self,
        options: &Options,
        file: &mut FileSummary,
        progress: &mut Progress,
        on_progress: &mut impl FnMut(Progress),
        on_segment: &mut impl FnMut(&Segment),
    ) {
        let mut reader = Reader::numbered_after(progress.packets);
        let mut tally = Tally::default();
        let (first_number, read_before) = (progress.packets + 1, progress.bytes);
        loop {
            let (unread, at_eof) = (self.buffer.unread(), self.buffer.at_eof());
            let mut at = 0;
            let wanted = loop {
                let step = reader.next(&unread[at..], at_eof);
                at += step.consumed;
                match step.event {
                    Event::Packet(packet) => tally.on_packet(&packet, on_segment),
                    Event::Skipped => {}
                    Event::Damaged(damage) => tally.on_damage(damage, self.error.is_some()),
                    Event::NeedMore(n) => break Some(n),
                    Event::End => break None,
                }
            };
            self.buffer.consume(at);
            let Some(wanted) = wanted else { break };
            self.error = self.buffer.fill(&mut self.source, wanted).err();
            progress.bytes = read_before + self.source.stored_read();
            progress.packets = reader.last_number();
            on_progress(*progress);
            if let Some(bomb) = self.bomb(&reader, options) {
                tally.on_trouble(bomb);
                break;
            }
        }
        let offset = reader.offset() + self.buffer.unread().len() as u64;
        match self.error.take() {
            Some(error) if offset == 0 => tally.failure = Some(Failure::Io(error)),
            Some(error) => tally.on_trouble(Trouble::from_read(&error, offset)),
            None if self.has_shrunk() => {
                let had = self.source.stored_len.unwrap_or(0);
                tally.on_trouble(Trouble::Shrunk { had, has: self.source.stored_read() });
            }
            None => {}
        }
        file.compression = self.source.compression().name();
        file.format = reader.format();
        file.first_number = if tally.packets > 0 { first_number } else { 0 };
        file.drops = reader.drops().total();
        progress.packets = reader.last_number();
        on_progress(*progress);
        tally.put_into(file);
    }

    /// Whether more has been unpacked than the bound allows.
    fn bomb(&self, reader: &Reader, options: &Options) -> Option<Trouble> {
        let offset = reader.offset() + self.buffer.unread().len() as u64;
        let compressed = self.source.stored_read();
        let bound = options.unpacked_bytes_free.max(compressed.saturating_mul(options.unpacked_ratio_max));
        let is_bomb = self.source.compression() != Compression::None && offset > bound;
        is_bomb.then_some(Trouble::Bomb { offset, compressed })
    }

    /// Whether the end came before the length that the file had when it was opened.
    fn has_shrunk(&self) -> bool {
        self.buffer.at_eof() && self.source.stored_len.is_some_and(|had| self.source.stored_read() < had)
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
    span: Option<(Instant, Instant)>,
}

impl Tally {
    #[inline]
    fn on_packet(&mut self, packet: &RawPacket<'_>, on_segment: &mut impl FnMut(&Segment)) {
        self.packets += 1;
        let (first, last) = self.span.unwrap_or((packet.at, packet.at));
        self.span = Some((first.min(packet.at), last.max(packet.at)));
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
        file.first = self.span.map(|(first, _)| first);
        file.last = self.span.map(|(_, last)| last);
        let reasons = Skip::ALL.map(Skip::name).into_iter().zip(self.skipped);
        file.skipped = reasons.chain([("damaged", self.damaged)]).filter(|(_, count)| *count > 0).collect();
        file.truncated = self.troubles.iter().any(Trouble::is_truncation);
        file.troubles = self.troubles;
        file.failure = self.failure;
    }
}
