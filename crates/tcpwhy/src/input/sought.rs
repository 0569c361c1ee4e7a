//! Where are the packets that are wanted, of a file in which places are known?
//!
//! Each thread looks at every so manieth piece, and takes along what is wanted. The calling thread gets it in the order of the file, and
//! does with it what it does with packets that it reads itself: so all is the same with any number of threads.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use tcpwhy_wire::capture::{Event, LinkType, RawPacket};
use tcpwhy_wire::{Decoded, Instant, Skip, decode_usual};

use super::buffer::Buffer;
use super::places::{Piece, Wanted};
use super::reading::{Chosen, Reading, Tally};
use super::source::Source;
use super::{Aside, Input, Inputs, Options};
use crate::threads::USEFUL_MAX;

/// A thread is ahead of what was taken by so many loads, each of so many bytes and the packet that exceeds them.
const LOADS_AHEAD: usize = 2;
const LOAD_LEN: usize = 128 << 10;

/// Wanted packets that follow each other.
#[derive(Default)]
struct Load {
    bytes: Vec<u8>,
    packets: Vec<Found>,
    /// Nothing more of the piece will come.
    is_last: bool,
}

/// A packet without its bytes, which end there in the load.
struct Found {
    number: u64,
    link: LinkType,
    interface: u32,
    at: Instant,
    original_len: u32,
    dropped: u32,
    end: usize,
}

/// Nobody waits for more.
struct Gone;

impl Inputs {
    /// Gives the segments that are `wanted`, in the order of time. Others are passed over where they lie, and nobody looks at their
    /// checksums. Where it is known in which parts of a file the wanted ones are, so many threads look for them.
    pub fn for_each_wanted(
        self,
        options: &Options,
        threads: usize,
        wanted: impl Fn(&Decoded<'_>) -> bool + Sync,
        on_segment: impl FnMut(usize, &Decoded<'_>, &[u8]),
    ) -> Aside {
        let mut segments = Chosen(wanted, on_segment);
        if let ([Input { reading: Ok(reading), .. }], Some(wanted)) = (&*self.inputs, &self.aside.wanted)
            && by_several(reading, wanted, threads, &mut segments)
        {
            return self.aside;
        }
        self.read(options, |_| {}, segments, None).aside
    }
}

/// Gives what is wanted, with so many threads that look for it. Where that cannot be, nothing is given and the answer is no.
fn by_several<W, S>(reading: &Reading, wanted: &Wanted, threads: usize, segments: &mut Chosen<W, S>) -> bool
where
    W: Fn(&Decoded<'_>) -> bool + Sync,
    S: FnMut(usize, &Decoded<'_>, &[u8]),
{
    let pieces = wanted.pieces();
    let workers = threads.min(USEFUL_MAX).min(pieces.len());
    if workers < 2 {
        return false;
    }
    let Chosen(wants, on_segment) = segments;
    let (pieces, wants) = (&pieces, &*wants);
    thread::scope(|scope| {
        let start = |worker: usize| -> Option<Receiver<Load>> {
            let mut source = reading.source_again()?;
            // What is packed cannot be read from its middle.
            source.searchable_len().ok()??;
            let (out, loads) = sync_channel(LOADS_AHEAD);
            let mut own = pieces.iter().skip(worker).step_by(workers);
            let mut buffer = Buffer::one_of(1);
            let mut work =
                move || own.try_for_each(|piece| look(piece, &mut source, &mut buffer, wants, &out));
            thread::Builder::new().spawn_scoped(scope, move || work().is_ok()).ok()?;
            Some(loads)
        };
        let Some(loads) = (0..workers).map(start).collect::<Option<Vec<_>>>() else { return false };
        let mut segments = Chosen(wants, on_segment);
        let mut tally = Tally::default();
        for piece in 0..pieces.len() {
            while let Ok(load) = loads[piece % workers].recv() {
                load.for_each(|packet| tally.on_packet(packet, 0, &mut segments));
                if load.is_last {
                    break;
                }
            }
        }
        true
    })
}

/// Looks at one piece. What cannot be read is missed by whoever compares what was found.
fn look(
    piece: &Piece,
    source: &mut Source,
    buffer: &mut Buffer,
    wants: &impl Fn(&Decoded<'_>) -> bool,
    out: &SyncSender<Load>,
) -> Result<(), Gone> {
    let (mut reader, mut number) = (piece.from.reader.clone(), piece.from.number);
    source.jump(reader.offset());
    buffer.empty();
    let mut load = Load::default();
    loop {
        let (unread, at_eof) = (buffer.unread(), buffer.at_eof());
        let mut at = 0;
        let more = loop {
            if number >= piece.last {
                break None;
            }
            let mut step = reader.next(&unread[at..], at_eof);
            at += step.consumed;
            match &mut step.event {
                Event::Packet(packet) => {
                    number += 1;
                    packet.number = number;
                    if may_matter(packet, wants) {
                        load.put(packet);
                    }
                    if load.bytes.len() >= LOAD_LEN {
                        out.send(std::mem::take(&mut load)).map_err(|_| Gone)?;
                    }
                }
                Event::Skipped | Event::Damaged(_) => {}
                Event::NeedMore(n) => break Some(*n),
                Event::End => break None,
            }
        };
        buffer.consume(at);
        let goes_on = more.is_some_and(|more| !source.is_stopped() && buffer.fill(source, more).is_ok());
        if !goes_on {
            load.is_last = true;
            return out.send(load).map_err(|_| Gone);
        }
    }
}

/// Whether it is wanted, or may be a piece of what is.
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
