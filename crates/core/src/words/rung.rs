//! How is a packet shown on the ladder? In compact form: a short capture has a rung for each
//! packet.

use tcpwhy_wire::{Duration, Flags, Instant};

use crate::words::cause::{Cause, Side};

/// Stands for an absent number.
pub(crate) const NONE: u64 = u64::MAX;

/// One segment on the packet ladder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Packet number.
    pub packet: u64,
    /// Capture time.
    pub at: Instant,
    /// Offset of the first byte from the direction's first sequence number.
    pub offset: u64,
    pub(super) ack_offset: u64,
    pub(super) exchange: u64,
    pub(super) since: u64,
    pub(super) released_by: u64,
    /// What the time before it was billed to.
    pub billed: Billed,
    /// The sequence number relative to the direction's first, as Wireshark and tcpdump count it: a
    /// SYN is 0.
    pub seq: u32,
    pub(super) ack: u32,
    /// Payload bytes.
    pub len: u32,
    /// The window in bytes: scaled if the scale is known, otherwise estimated from its use.
    pub window: u32,
    /// The window field of the packet.
    pub window_field: u16,
    /// The window scale, if the handshake gives it; no SYN's window is scaled.
    pub window_scale: Option<u8>,
    /// Control bits.
    pub flags: Flags,
    /// Which end sent it.
    pub from: Side,
    pub(super) trigger: Kind,
}

/// What allowed a segment to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The application wrote (or connected, or closed).
    Write,
    /// The peer's packet with this number arrived: an acknowledgement that opened a window, or a request.
    Packet(u64),
    /// A timer expired.
    Timer,
    /// It follows the segment before it in the same burst.
    Burst,
    /// A pure acknowledgement or control segment: nothing had to release it.
    Control,
}

/// A trigger without the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Write,
    Packet,
    Timer,
    Burst,
    Control,
}

impl Rung {
    /// An empty packet that nothing waited for and that belongs to no exchange.
    #[inline]
    pub const fn new(packet: u64, at: Instant, from: Side, flags: Flags) -> Self {
        Self {
            packet,
            at,
            offset: 0,
            ack_offset: NONE,
            exchange: NONE,
            since: NONE,
            released_by: NONE,
            billed: Billed::NOTHING,
            seq: 0,
            ack: 0,
            len: 0,
            window: 0,
            window_field: 0,
            window_scale: None,
            flags,
            from,
            trigger: Kind::Control,
        }
    }

    /// Sets what it acknowledges: an offset in the other direction, and its relative number.
    #[inline]
    #[must_use]
    pub fn acknowledging(self, ack_offset: u64, ack: u32) -> Self {
        Self { ack_offset, ack, ..self }
    }

    /// Sets the exchange it belongs to, if any.
    #[inline]
    #[must_use]
    pub fn of_exchange(self, exchange: Option<u64>) -> Self {
        Self { exchange: exchange.unwrap_or(NONE), ..self }
    }

    /// Sets what allowed it to leave.
    #[inline]
    #[must_use]
    pub fn left_by(self, trigger: Trigger) -> Self {
        let (trigger, released_by) = match trigger {
            Trigger::Write => (Kind::Write, NONE),
            Trigger::Packet(packet) => (Kind::Packet, packet),
            Trigger::Timer => (Kind::Timer, NONE),
            Trigger::Burst => (Kind::Burst, NONE),
            Trigger::Control => (Kind::Control, NONE),
        };
        Self { released_by, trigger, ..self }
    }

    /// Sets what it waited for, and since which packet.
    #[inline]
    #[must_use]
    pub fn having_waited(self, billed: Billed, since: Option<u64>) -> Self {
        Self { billed, since: since.unwrap_or(NONE), ..self }
    }

    /// Acknowledged bytes, as an offset into the other direction; `None` without ACK.
    #[inline]
    pub fn ack_offset(&self) -> Option<u64> {
        known(self.ack_offset)
    }

    /// The acknowledgement number, relative in the same way as the sequence number; `None` without ACK.
    pub fn ack(&self) -> Option<u32> {
        self.ack_offset().map(|_| self.ack)
    }

    /// Moves the origin of its numbers.
    pub(crate) fn shift(&mut self, seq: u32, ack: u32) {
        self.seq = self.seq.wrapping_add(seq);
        self.ack = self.ack.wrapping_add(ack);
    }

    /// The exchange it belongs to, if any.
    #[inline]
    pub fn exchange(&self) -> Option<u64> {
        known(self.exchange)
    }

    /// The packet at the start of the time that was billed; `None` if no time was billed, or if it
    /// started before the capture saw anything of it.
    pub fn since(&self) -> Option<u64> {
        known(self.since)
    }

    /// What allowed it to leave.
    #[inline]
    pub const fn trigger(&self) -> Trigger {
        match self.trigger {
            Kind::Write => Trigger::Write,
            Kind::Packet => Trigger::Packet(self.released_by),
            Kind::Timer => Trigger::Timer,
            Kind::Burst => Trigger::Burst,
            Kind::Control => Trigger::Control,
        }
    }
}

#[inline]
fn known(number: u64) -> Option<u64> {
    Some(number).filter(|&number| number != NONE)
}

/// Times by cause: nearly always one or two of less than four seconds each, stored without an
/// allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Billed(pub(super) Kept);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// The first `count` entries are valid.
    Few { ns: [u32; 2], causes: [Cause; 2], count: u8 },
    #[expect(clippy::box_collection, reason = "a word instead of three in every rung")]
    Any(Box<Vec<(Cause, Duration)>>),
}

impl Default for Billed {
    fn default() -> Self {
        Self::NOTHING
    }
}

impl Billed {
    /// There was no wait.
    pub const NOTHING: Self = Self(Kept::Few { ns: [0; 2], causes: [Cause::Unexplained; 2], count: 0 });

    /// Adds one time.
    #[inline]
    pub fn push(&mut self, cause: Cause, span: Duration) {
        if let Kept::Few { ns, causes, count } = &mut self.0
            && let Ok(short) = u32::try_from(span.as_nanos())
            && let at @ 0..2 = usize::from(*count)
        {
            (ns[at], causes[at], *count) = (short, cause, *count + 1);
        } else {
            self.push_any(cause, span);
        }
    }

    #[cold]
    fn push_any(&mut self, cause: Cause, span: Duration) {
        let mut all: Vec<_> = self.lines().collect();
        all.push((cause, span));
        self.0 = Kept::Any(Box::new(all));
    }

    /// All of them, in order.
    #[inline]
    pub fn lines(&self) -> impl Iterator<Item = (Cause, Duration)> {
        let (few, any) = match &self.0 {
            Kept::Few { ns, causes, count } => {
                let few = ns.iter().zip(causes).take(usize::from(*count));
                (Some(few.map(|(&ns, &cause)| (cause, Duration::from_nanos(i64::from(ns))))), &[][..])
            }
            Kept::Any(all) => (None, all.as_slice()),
        };
        few.into_iter().flatten().chain(any.iter().copied())
    }

    /// Whether there was no wait.
    pub fn is_empty(&self) -> bool {
        self.lines().next().is_none()
    }
}

impl FromIterator<(Cause, Duration)> for Billed {
    fn from_iter<T: IntoIterator<Item = (Cause, Duration)>>(all: T) -> Self {
        let mut billed = Self::NOTHING;
        all.into_iter().for_each(|(cause, span)| billed.push(cause, span));
        billed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_billed_comes_back_in_its_order() {
        let spans = [0, 7, -3, 4_294_967_295, 4_294_967_296, i64::MAX].map(Duration::from_nanos);
        for many in 0..5 {
            for first in 0..spans.len() {
                let all: Vec<_> =
                    (0..many).map(|i| (Cause::ALL[i], spans[(first + i) % spans.len()])).collect();
                let billed: Billed = all.iter().copied().collect();
                assert_eq!(billed.lines().collect::<Vec<_>>(), all);
                assert_eq!(billed.is_empty(), many == 0);
            }
        }
    }

    #[test]
    fn a_rung_is_small_and_says_what_it_was_told() {
        assert!(size_of::<Rung>() <= 96 && size_of::<Billed>() == 16);
        let rung = Rung::new(1, Instant::from_nanos(2), Side::Server, Flags(Flags::ACK));
        assert_eq!((rung.ack(), rung.ack_offset(), rung.exchange(), rung.since()), (None, None, None, None));
        let told = rung.acknowledging(0, 1).of_exchange(Some(0)).having_waited(Billed::NOTHING, Some(1));
        let numbers = (told.ack(), told.ack_offset(), told.exchange(), told.since());
        assert_eq!(numbers, (Some(1), Some(0), Some(0), Some(1)));
        for trigger in [Trigger::Write, Trigger::Packet(3), Trigger::Timer, Trigger::Burst, Trigger::Control]
        {
            assert_eq!(told.clone().left_by(trigger).trigger(), trigger);
        }
    }
}
