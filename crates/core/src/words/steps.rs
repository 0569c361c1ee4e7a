//! How are ladders kept of a hundred thousand packets, most of which nobody will look at?
//!
//! A segment of a burst and a bare acknowledgement go on from the packet before them of the same end. What is left to say takes a third of
//! the room, and memory that is touched for the first time costs more than to say it.

use tcpwhy_wire::{Duration, Flags};

use crate::words::cause::{Cause, Side};
use crate::words::rung::{Billed, Kept, Kind, NONE, Rung};

/// The rungs of a ladder, in little room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// In pieces, which stay where they are: all but the last are full.
    pieces: Vec<Vec<Step>>,
    /// Those that do not go on from the one before.
    whole: Vec<Rung>,
    /// The last one of client and server.
    last: [Option<Rung>; 2],
}

/// What a packet adds to the one before it of the same end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    packets: u32,
    ns: u32,
    acknowledged: u32,
    len: u32,
    /// What of the time was billed to bandwidth, in so many lines.
    billed: [u32; 2],
    lines: u8,
    window: u16,
    flags: Flags,
    from: Side,
    /// None where the packet is kept whole.
    trigger: Option<Kind>,
}

/// A short connection takes little, and a piece of a long one about a page of memory.
const FIRST_LEN: usize = 12;
const PIECE_LEN: usize = 4_080 / size_of::<Step>();

/// What a packet takes at most.
pub(crate) const STEP: usize = size_of::<Step>() + size_of::<Rung>();

impl Steps {
    /// One more. It stands out of the way of packets that have no ladder.
    #[cold]
    #[inline(never)]
    pub(crate) fn push(&mut self, rung: Rung) {
        let last = &mut self.last[place(rung.from)];
        let step = last.as_ref().and_then(|last| Step::between(last, &rung));
        let step = step.unwrap_or_else(|| {
            self.whole.push(rung.clone());
            Step::whole(&rung)
        });
        *last = Some(rung);
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
            let last = &mut last[place(step.from)];
            *last = match step.trigger {
                Some(_) => *last + u64::from(step.packets),
                None => whole.next().map_or(*last, |rung| rung.packet),
            };
            *last
        })
    }

    /// Writes them into `rungs`, in place of what is there.
    pub fn unpack(&self, rungs: &mut Vec<Rung>) {
        rungs.clear();
        rungs.reserve(self.pieces.iter().map(Vec::len).sum());
        let (mut whole, mut last) = (self.whole.iter(), [0; 2]);
        for step in self.pieces.iter().flatten() {
            let last = &mut last[place(step.from)];
            let next = match step.trigger {
                Some(trigger) => rungs.get(*last).map(|last| step.behind(last, trigger)),
                None => whole.next().cloned(),
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
    /// Of a packet that is kept whole.
    fn whole(rung: &Rung) -> Self {
        Self {
            packets: 0,
            ns: 0,
            acknowledged: 0,
            len: 0,
            billed: [0; 2],
            lines: 0,
            window: 0,
            flags: rung.flags,
            from: rung.from,
            trigger: None,
        }
    }

    /// What a packet adds to the last one; nothing where more is to be said of it.
    #[inline]
    fn between(last: &Rung, rung: &Rung) -> Option<Self> {
        let acknowledged = rung.ack_offset()?.checked_sub(last.ack_offset()?)?;
        let acknowledged = u32::try_from(acknowledged).ok()?;
        let Kept::Few { ns: billed, causes, count } = rung.billed.0 else { return None };
        let step = Self {
            packets: u32::try_from(rung.packet.checked_sub(last.packet)?).ok()?,
            ns: u32::try_from((rung.at - last.at).as_nanos()).ok()?,
            acknowledged,
            len: rung.len,
            billed,
            lines: count,
            window: rung.window_field,
            flags: rung.flags,
            from: rung.from,
            trigger: Some(rung.trigger),
        };
        let goes_on = rung.offset == last.offset + u64::from(last.len)
            && rung.seq == last.seq.wrapping_add(last.len)
            && rung.ack == last.ack.wrapping_add(acknowledged)
            && rung.exchange == last.exchange
            && rung.window_scale == last.window_scale
            && rung.window == step.window_behind(last)
            && rung.released_by == NONE
            && rung.since == if count > 0 { last.packet } else { NONE }
            && causes.iter().take(usize::from(count)).all(|cause| *cause == Cause::Bandwidth);
        goes_on.then_some(step)
    }

    fn window_behind(&self, last: &Rung) -> u32 {
        match last.window_scale {
            Some(scale) => u32::from(self.window) << scale,
            None if self.window == last.window_field => last.window,
            None => u32::MAX,
        }
    }

    #[inline]
    fn behind(&self, last: &Rung, trigger: Kind) -> Rung {
        let billed = self.billed.iter().take(usize::from(self.lines));
        let billed: Billed =
            billed.map(|&ns| (Cause::Bandwidth, Duration::from_nanos(i64::from(ns)))).collect();
        Rung {
            packet: last.packet + u64::from(self.packets),
            at: last.at + Duration::from_nanos(i64::from(self.ns)),
            offset: last.offset + u64::from(last.len),
            ack_offset: last.ack_offset + u64::from(self.acknowledged),
            exchange: last.exchange,
            since: if self.lines > 0 { last.packet } else { NONE },
            released_by: NONE,
            billed,
            seq: last.seq.wrapping_add(last.len),
            ack: last.ack.wrapping_add(self.acknowledged),
            len: self.len,
            window: self.window_behind(last),
            window_field: self.window,
            window_scale: last.window_scale,
            flags: self.flags,
            from: self.from,
            trigger,
        }
    }
}

#[cfg(test)]
mod tests {
    use tcpwhy_wire::Instant;

    use super::*;
    use crate::words::rung::Trigger;

    /// Packets of an upload, with something to be said of some of them.
    fn ladder() -> Vec<Rung> {
        let (mut rungs, mut sent) = (Vec::new(), 0_u64);
        for i in 0..300_u64 {
            let (from, len) = if i % 3 == 2 { (Side::Server, 0) } else { (Side::Client, 1_448) };
            let at = Instant::from_nanos(i as i64 * 12_300 + if i > 200 { 9_000_000_000 } else { 0 });
            let mut rung = Rung::new(2 * i + 1, at, from, Flags(Flags::ACK));
            let numbers = if len > 0 { (sent, 0) } else { (0, sent) };
            rung.offset = if i == 100 { 5 } else { numbers.0 };
            (rung.seq, rung.len) = ((numbers.0 as u32).wrapping_add(1), len);
            (rung.window_field, rung.window_scale, rung.window) = (500 + (i / 50) as u16, Some(7), 0);
            rung.window = u32::from(rung.window_field) << if i == 150 { 6 } else { 7 };
            let cause = if i % 7 == 0 { Cause::Queueing } else { Cause::Bandwidth };
            let line = |line: u64| (cause, Duration::from_nanos(line as i64 * 100 + 5));
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
    fn rungs_come_back_as_they_were() {
        let ladder = ladder();
        let (mut steps, mut back) = (Steps::default(), vec![ladder[0].clone()]);
        assert!(steps.packets().next().is_none());
        ladder.iter().cloned().for_each(|rung| steps.push(rung));
        steps.unpack(&mut back);
        assert!(back == ladder);
        assert!(steps.packets().eq(ladder.iter().map(|rung| rung.packet)));
        assert!((50..250).contains(&steps.whole.len()), "{}", steps.whole.len());
        assert!(size_of::<Step>() <= 32);
    }
}
