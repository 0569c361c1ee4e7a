//! How are wanted packets read from a file whose places are known?
//!
//! Each of n threads reads every n-th piece and collects the wanted packets. The calling thread
//! receives them in the order of the file, and treats them like packets that it reads itself: so
//! the result is the same with any number of threads.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use tcpwhy_wire::capture::{Event, LinkType, RawPacket, Reader};
use tcpwhy_wire::{Decoded, Instant, Skip, decode_usual};

use super::buffer::Buffer;
use super::index::Run;
use super::places::{Piece, Wanted};
use super::reading::Reading;
use super::source::Source;
use super::tally::{Chosen, Tally};
use super::{Aside, Input, Inputs, Options};
use crate::threads::USEFUL_MAX;

/// How many loads a thread may be ahead of the calling one, and the bytes of a load, plus the
/// packet that exceeds them.
const LOADS_AHEAD: usize = 2;
const LOAD_LEN: usize = 128 << 10;

/// Consecutive wanted packets.
#[derive(Default)]
struct Load {
    bytes: Vec<u8>,
    packets: Vec<Found>,
    /// This was the last load of the piece.
    is_last: bool,
}

/// A packet without its bytes, which end at `end` in the load.
struct Found {
    number: u64,
    link: LinkType,
    interface: u32,
    at: Instant,
    original_len: u32,
    dropped: u32,
    end: usize,
}

/// The receiver is gone.
struct Gone;

impl Inputs {
    /// Gives the segments that are `wanted`, in order of time. Others are skipped undecoded, and
    /// their checksums are not checked. If it is known which parts of a file contain the wanted
    /// ones, `threads` threads search them.
    pub fn for_each_wanted(
        self,
        options: &Options,
        threads: usize,
        wanted: impl Fn(&Decoded<'_>) -> bool + Sync,
        on_segment: impl FnMut(usize, &Decoded<'_>, &[u8]),
    ) -> Aside {
        let mut segments = Chosen(wanted, on_segment);
        if let ([Input { reading: Ok(reading), .. }], Some(wanted)) = (&*self.inputs, &self.aside.wanted)
            && by_places(reading, wanted, threads, &mut segments)
        {
            return self.aside;
        }
        self.read(options, |_| {}, segments, None).aside
    }
}

/// Gives the wanted packets, searched by `threads` threads. Returns false, and gives nothing, if
/// the input cannot be read from its middle.
fn by_places<W, S>(reading: &Reading, wanted: &Wanted, threads: usize, segments: &mut Chosen<W, S>) -> bool
where
    W: Fn(&Decoded<'_>) -> bool + Sync,
    S: FnMut(usize, &Decoded<'_>, &[u8]),
{
    let Chosen(wants, on_segment) = segments;
    let (pieces, wants) = (wanted.pieces(), &*wants);
    let (mut segments, mut tally) = (Chosen(wants, on_segment), Tally::default());
    let mut take = |load: &Load| {
        load.for_each(|packet| {
            tally.on_packet(packet, 0, &mut segments);
        });
    };
    let look = || Look::new(reading.source_again()?, wants);
    let Some(mut first) = look() else { return false };
    let workers = threads.min(USEFUL_MAX).min(pieces.len());
    thread::scope(|scope| {
        let start = |worker: usize| -> Option<Receiver<Load>> {
            let mut look = look()?;
            let (out, loads) = sync_channel(LOADS_AHEAD);
            let mut own = pieces.iter().skip(worker).step_by(workers);
            let mut out = move |load| out.send(load).map_err(|_| Gone);
            let mut work = move || own.try_for_each(|piece| look.at(piece, &mut out));
            thread::Builder::new().spawn_scoped(scope, move || work().is_ok()).ok()?;
            Some(loads)
        };
        // If the system gives no threads, one does it all.
        let several = if workers > 1 { (0..workers).map(start).collect::<Option<Vec<_>>>() } else { None };
        let Some(loads) = several else {
            let mut out = |load: Load| {
                take(&load);
                Ok(())
            };
            return pieces.iter().all(|piece| first.at(piece, &mut out).is_ok());
        };
        for piece in 0..pieces.len() {
            while let Ok(load) = loads[piece % workers].recv() {
                take(&load);
                if load.is_last {
                    break;
                }
            }
        }
        true
    })
}

/// Searches pieces. A read error shows as missing packets, which the caller notices when it
/// compares.
struct Look<'a, W> {
    source: Source,
    buffer: Buffer,
    wants: &'a W,
    load: Load,
}

/// The state of a search: a reader right after packet `number`, and the last packet of the piece.
struct Through {
    reader: Reader,
    number: u64,
    last: u64,
}

impl<'a, W: Fn(&Decoded<'_>) -> bool> Look<'a, W> {
    /// `None` if the input is compressed and cannot be read from its middle.
    fn new(mut source: Source, wants: &'a W) -> Option<Self> {
        source.searchable_len().ok()??;
        Some(Self { source, buffer: Buffer::one_of(1), wants, load: Load::default() })
    }

    /// Hands over the wanted packets of a piece.
    fn at(&mut self, piece: &Piece, out: &mut impl FnMut(Load) -> Result<(), Gone>) -> Result<(), Gone> {
        let mut through =
            Through { reader: piece.from.reader.clone(), number: piece.from.number, last: piece.last };
        match &piece.runs {
            None => self.at_all(&mut through, out)?,
            Some(runs) => {
                for run in runs {
                    self.at_run(*run, &mut through, out)?;
                }
            }
        }
        self.load.is_last = true;
        out(std::mem::take(&mut self.load))
    }

    /// Reads every packet.
    fn at_all(
        &mut self,
        through: &mut Through,
        out: &mut impl FnMut(Load) -> Result<(), Gone>,
    ) -> Result<(), Gone> {
        self.source.jump(through.reader.offset());
        self.buffer.empty();
        while let Some(more) = self.at_buffer(through, out)? {
            if self.source.is_stopped() || self.buffer.fill(&mut self.source, more).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Reads a run of adjacent packets.
    fn at_run(
        &mut self,
        run: Run,
        through: &mut Through,
        out: &mut impl FnMut(Load) -> Result<(), Gone>,
    ) -> Result<(), Gone> {
        self.source.jump(run.offset);
        through.reader.jump(run.offset);
        (through.number, through.last) = (run.number, run.number + run.packets);
        if !self.source.is_stopped() && self.buffer.fill_anew(&mut self.source, run.len as usize).is_ok() {
            self.at_buffer(through, out)?;
        }
        Ok(())
    }

    /// Searches the buffer. Returns how many bytes are needed to go on, if there may be more.
    fn at_buffer(
        &mut self,
        through: &mut Through,
        out: &mut impl FnMut(Load) -> Result<(), Gone>,
    ) -> Result<Option<usize>, Gone> {
        let (unread, at_eof) = (self.buffer.unread(), self.buffer.at_eof());
        let mut at = 0;
        let more = loop {
            if through.number >= through.last {
                break None;
            }
            let mut step = through.reader.next(&unread[at..], at_eof);
            at += step.consumed;
            match &mut step.event {
                Event::Packet(packet) => {
                    through.number += 1;
                    packet.number = through.number;
                    if may_matter(packet, self.wants) {
                        self.load.put(packet);
                    }
                    if self.load.bytes.len() >= LOAD_LEN {
                        out(std::mem::take(&mut self.load))?;
                    }
                }
                Event::Skipped | Event::Damaged(_) => {}
                Event::NeedMore(n) => break Some(*n),
                Event::End => break None,
            }
        };
        self.buffer.consume(at);
        Ok(more)
    }
}

/// Whether it is wanted, or may be a fragment of a wanted packet.
#[inline]
fn may_matter(packet: &RawPacket<'_>, wants: &impl Fn(&Decoded<'_>) -> bool) -> bool {
    match &decode_usual(packet) {
        Ok(decoded) => wants(decoded),
        Err(skip) => matches!(skip, Skip::Fragment | Skip::NotTcp),
    }
}

impl Load {
    fn put(&mut self, packet: &RawPacket<'_>) {
        let RawPacket { number, link, interface, at, data, original_len, dropped } = *packet;
        self.bytes.extend_from_slice(data);
        let end = self.bytes.len();
        self.packets.push(Found { number, link, interface, at, original_len, dropped, end });
    }

    fn for_each(&self, mut on_packet: impl FnMut(&RawPacket<'_>)) {
        let mut start = 0;
        for &Found { number, link, interface, at, original_len, dropped, end } in &self.packets {
            let data = &self.bytes[start..end];
            on_packet(&RawPacket { number, link, interface, at, data, original_len, dropped });
            start = end;
        }
    }
}
