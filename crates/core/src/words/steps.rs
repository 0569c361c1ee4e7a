//! How are the ladders of a hundred thousand packets kept, most of which nobody will look at?
//!
//! A segment of a burst and a pure acknowledgement continue from the packet before them of the same
//! end. The difference takes a seventh of the space, and computing it costs less than touching new
//! memory.

use tcpwhy_wire::{Duration, Flags, Instant};

use crate::words::cause::{Cause, Side};
use crate::words::rung::{Billed, Kept, Kind, NONE, Rung};

/// The rungs of a ladder, in compact form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// In chunks, which never move: all but the last are full.
    pieces: Vec<Vec<Step>>,
    /// Rungs that do not continue from the one before.
    whole: Vec<Rung>,
    /// The last packet of client and server.
    last: [Option<Place>; 2],
}

/// The state that the next packet of the same end continues from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub packet: u64,
    pub at: Instant,
    pub exchange: Option<u64>,
    /// Offset and relative sequence number of its first byte.
    pub offset: u64,
    pub seq: u32,
    pub len: u32,
    /// Offset and relative number of what it acknowledges; 0 if nothing.
    pub ack_offset: Option<u64>,
    pub ack: u32,
    pub window: u32,
    pub window_field: u16,
    pub window_scale: Option<u8>,
}

/// A packet released only by its turn in a burst, or a pure acknowledgement: its part of a rung.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    pub place: Place,
    pub from: Side,
    pub flags: Flags,
    /// The time billed to bandwidth, in `lines` lines, and since which packet.
    pub billed: [u32; 2],
    pub lines: u8,
    pub since: u64,
}

/// The difference between a packet and the one before it of the same end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    ns: u32,
    /// Payload bytes; for a packet without payload, the bytes it acknowledges.
    amount: u32,
    /// The first of two billed times; the last one is the remainder.
    first: u32,
    window: u16,
    /// The difference of the packet numbers; 0 if the packet is kept as a whole rung.
    packets: u8,
    /// `SERVER`, `PSH`, `BARE`, and `LINE` once per line.
    marks: u8,
}

const SERVER: u8 = 1;
const PSH: u8 = 2;
const BARE: u8 = 4;
/// Counts the lines.
const LINE: u8 = 8;

/// A short connection takes little memory, and a chunk of a long one about a page.
const FIRST_LEN: usize = 12;
const PIECE_LEN: usize = 4_080 / size_of::<Step>();

/// The most memory that a packet takes.
pub(crate) const STEP: usize = size_of::<Step>() + size_of::<Rung>();

impl Steps {
    /// Adds one packet. Out of line: most packets have no ladder.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, rung: Rung) {
        let last = &mut self.last[place(rung.from)];
        let next = Next::of(&rung);
        let step = last
            .as_ref()
            .zip(next)
            .and_then(|(last, next)| next.step(last))
            .filter(|step| step.trigger() == rung.trigger);
        *last = Some(Place::of(&rung));
        let step = step.unwrap_or_else(|| {
            let step = Step::whole(&rung);
            self.whole.push(rung);
            step
        });
        self.add(step);
    }

    /// The same for a packet without its rung, in two thirds of the time. Returns false if it does
    /// not fit and has to be pushed as a rung.
    #[inline]
    pub(crate) fn go_on(&mut self, next: &Next) -> bool {
        let Some(last) = &mut self.last[place(next.from)] else { return false };
        let Some(step) = next.step(last) else { return false };
        *last = next.place;
        self.add(step);
        true
    }

    #[inline]
    fn add(&mut self, step: Step) {
        let full = if self.pieces.len() == 1 { FIRST_LEN } else { PIECE_LEN };
        match self.pieces.last_mut() {
            Some(piece) if piece.len() < full => piece.push(step),
            _ => self.add_piece(step),
        }
    }

    #[cold]
    fn add_piece(&mut self, step: Step) {
        let mut piece = Vec::with_capacity(if self.pieces.is_empty() { FIRST_LEN } else { PIECE_LEN });
        piece.push(step);
        self.pieces.push(piece);
    }

    /// The numbers of the packets.
    pub fn packets(&self) -> impl Iterator<Item = u64> {
        let (mut whole, mut last) = (self.whole.iter(), [0; 2]);
        self.pieces.iter().flatten().map(move |step| {
            let last = &mut last[step.place()];
            *last = if step.packets > 0 {
                *last + u64::from(step.packets)
            } else {
                whole.next().map_or(*last, |rung| rung.packet)
            };
            *last
        })
    }

    /// Writes all rungs into `rungs`, replacing its contents.
    pub fn unpack(&self, rungs: &mut Vec<Rung>) {
        rungs.clear();
        rungs.reserve(self.pieces.iter().map(Vec::len).sum());
        let (mut whole, mut last) = (self.whole.iter(), [0; 2]);
        for step in self.pieces.iter().flatten() {
            let last = &mut last[step.place()];
            let next = if step.packets > 0 {
                rungs.get(*last).map(|last| step.behind(last))
            } else {
                whole.next().cloned()
            };
            *last = rungs.len();
            rungs.extend(next);
        }
    }
}

fn place(side: Side) -> usize {
    usize::from(side == Side::Server)
}

impl Step {
    /// For a packet that is kept as a whole rung.
    fn whole(rung: &Rung) -> Self {
        Self { ns: 0, amount: 0, first: 0, window: 0, packets: 0, marks: place(rung.from) as u8 }
    }

    fn place(&self) -> usize {
        usize::from(self.marks & SERVER)
    }

    /// A pure acknowledgement; a packet with payload is one of a burst.
    fn is_bare(&self) -> bool {
        self.marks & BARE != 0
    }

    fn trigger(&self) -> Kind {
        if self.is_bare() { Kind::Control } else { Kind::Burst }
    }

    /// The times billed, all to bandwidth.
    fn billed(&self) -> Billed {
        let left = self.ns - self.first;
        let (lines, count) = match self.marks / LINE {
            0 => ([0, 0], 0),
            1 => ([left, 0], 1),
            _ => ([self.first, left], 2),
        };
        let causes = std::array::from_fn(|at| if at < count { Cause::Bandwidth } else { Cause::Unexplained });
        Billed(Kept::Few { ns: lines, causes, count: count as u8 })
    }

    #[inline]
    fn behind(&self, last: &Rung) -> Rung {
        let (len, acknowledged) = if self.is_bare() { (0, self.amount) } else { (self.amount, 0) };
        Rung {
            packet: last.packet + u64::from(self.packets),
            at: last.at + Duration::from_nanos(i64::from(self.ns)),
            offset: last.offset + u64::from(last.len),
            ack_offset: last.ack_offset + u64::from(acknowledged),
            exchange: last.exchange,
            since: if self.marks / LINE > 0 { last.packet } else { NONE },
            released_by: NONE,
            billed: self.billed(),
            seq: last.seq.wrapping_add(last.len),
            ack: last.ack.wrapping_add(acknowledged),
            len,
            window: window_behind(self.window, (last.window_scale, last.window, last.window_field)),
            window_field: self.window,
            window_scale: last.window_scale,
            flags: Flags(if self.marks & PSH == 0 { Flags::ACK } else { Flags::ACK | Flags::PSH }),
            from: if self.place() == 0 { Side::Client } else { Side::Server },
            trigger: self.trigger(),
        }
    }
}

/// The window for this field, after a packet with this scale, window in bytes and field.
#[inline]
fn window_behind(field: u16, (scale, bytes, before): (Option<u8>, u32, u16)) -> u32 {
    match scale {
        Some(scale) => u32::from(field) << scale,
        None if field == before => bytes,
        None => u32::MAX,
    }
}

impl Place {
    fn of(rung: &Rung) -> Self {
        Self {
            packet: rung.packet,
            at: rung.at,
            exchange: rung.exchange(),
            offset: rung.offset,
            seq: rung.seq,
            len: rung.len,
            ack_offset: rung.ack_offset(),
            ack: rung.ack,
            window: rung.window,
            window_field: rung.window_field,
            window_scale: rung.window_scale,
        }
    }
}

impl Next {
    /// A rung's data in this form; nothing if it does not fit.
    fn of(rung: &Rung) -> Option<Self> {
        let Kept::Few { ns: billed, causes, count: lines } = rung.billed.0 else { return None };
        let is_plain = rung.released_by == NONE
            && causes.iter().take(usize::from(lines)).all(|cause| *cause == Cause::Bandwidth);
        is_plain.then_some(Self {
            place: Place::of(rung),
            from: rung.from,
            flags: rung.flags,
            billed,
            lines,
            since: rung.since,
        })
    }

    /// The difference to the last packet; nothing if it does not fit.
    #[inline]
    fn step(&self, last: &Place) -> Option<Step> {
        let Self { place, from, flags, billed, lines, since } = self;
        let acknowledged = u32::try_from(place.ack_offset?.checked_sub(last.ack_offset?)?).ok()?;
        let ns = u32::try_from((place.at - last.at).as_nanos()).ok()?;
        let packets = u8::try_from(place.packet.checked_sub(last.packet)?).ok().filter(|ahead| *ahead > 0)?;
        let window = (last.window_scale, last.window, last.window_field);
        let [first, second] = billed.map(u64::from);
        let is_bare = place.len == 0;
        let goes_on = place.offset == last.offset + u64::from(last.len)
            && place.seq == last.seq.wrapping_add(last.len)
            && place.ack == last.ack.wrapping_add(acknowledged)
            && (is_bare || acknowledged == 0)
            && flags.0 & !Flags::PSH == Flags::ACK
            && place.exchange == last.exchange
            && place.window_scale == last.window_scale
            && place.window == window_behind(place.window_field, window)
            && *since == if *lines > 0 { last.packet } else { NONE }
            && (*lines == 0 || first + second == u64::from(ns));
        let marks = [(SERVER, *from == Side::Server), (PSH, flags.psh()), (BARE, is_bare)];
        let marks: u8 = marks.into_iter().map(|(mark, is_so)| if is_so { mark } else { 0 }).sum();
        goes_on.then_some(Step {
            ns,
            amount: if is_bare { acknowledged } else { place.len },
            first: if *lines == 2 { billed[0] } else { 0 },
            window: place.window_field,
            packets,
            marks: marks + LINE * lines,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::rung::Trigger;

    /// Packets of an upload, some of which need a whole rung.
    fn ladder() -> Vec<Rung> {
        let (mut rungs, mut sent) = (Vec::new(), 0_u64);
        for i in 0..300_u64 {
            let (from, len) = if i % 3 == 2 { (Side::Server, 0) } else { (Side::Client, 1_448) };
            let at = Instant::from_nanos(i as i64 * 12_300 + if i > 200 { 9_000_000_000 } else { 0 });
            let mut rung =
                Rung::new(2 * i + 1, at, from, Flags(Flags::ACK | if i % 5 == 0 { Flags::PSH } else { 0 }));
            let numbers = if len > 0 { (sent, 0) } else { (0, sent) };
            rung.offset = if i == 100 { 5 } else { numbers.0 };
            (rung.seq, rung.len) = ((numbers.0 as u32).wrapping_add(1), len);
            (rung.window_field, rung.window_scale, rung.window) = (500 + (i / 50) as u16, Some(7), 0);
            rung.window = u32::from(rung.window_field) << if i == 150 { 6 } else { 7 };
            let cause = if i % 7 == 0 { Cause::Queueing } else { Cause::Bandwidth };
            // One line or two cover all of the time since the packet before.
            let gap = if i % 3 == 0 { 24_600 } else { 12_300 };
            let spans = [if i % 4 == 1 { gap } else { 5 }, gap - 5, 7];
            let line = |line: u64| (cause, Duration::from_nanos(spans[line as usize]));
            let lines: Vec<_> = (0..if len > 0 { i % 4 } else { 0 }).map(line).collect();
            let before = rungs.iter().rev().find(|before: &&Rung| before.from == from);
            let since = before.filter(|_| !lines.is_empty()).map(|before| before.packet);
            let trigger = if i == 120 { Trigger::Packet(9) } else { Trigger::Burst };
            let rung = rung.acknowledging(numbers.1, numbers.1 as u32 + 1).of_exchange(Some(i / 90));
            rungs.push(rung.left_by(trigger).having_waited(lines.into_iter().collect(), since));
            sent += u64::from(len);
        }
        rungs
    }

    #[test]
    fn a_packet_that_goes_on_is_kept_as_its_rung_would_be() {
        let (mut rungs, mut steps, mut gone_on) = (Steps::default(), Steps::default(), 0);
        for rung in ladder() {
            rungs.push(rung.clone());
            let usual = if rung.len > 0 { Kind::Burst } else { Kind::Control };
            let next = Next::of(&rung).filter(|_| rung.trigger == usual);
            if next.is_some_and(|next| steps.go_on(&next)) {
                gone_on += 1;
            } else {
                steps.push(rung);
            }
            assert!(steps == rungs);
        }
        assert!((50..250).contains(&gone_on), "{gone_on}");
    }

    #[test]
    fn rungs_come_back_as_they_were() {
        let ladder = ladder();
        let (mut steps, mut back) = (Steps::default(), vec![ladder[0].clone()]);
        assert!(steps.packets().next().is_none());
        ladder.iter().cloned().for_each(|rung| steps.push(rung));
        steps.unpack(&mut back);
        assert!(back == ladder);
        assert!(steps.packets().eq(ladder.iter().map(|rung| rung.packet)));
        assert!((50..250).contains(&steps.whole.len()), "{}", steps.whole.len());
        assert_eq!(size_of::<Step>(), 16);
    }
}
