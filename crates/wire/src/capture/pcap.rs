//! Where does the next record of a classic pcap file end?
//!
//! The format (draft-ietf-opsawg-pcap): a file header of 24 bytes, then records of a 16-byte header
//! and the packet. There is no mark between records, so nothing after a wrong length can be
//! trusted: reading stops there.

use super::bytes::Order;
use super::{Damage, DamageKind, Event, Format, LinkType, MAX_PACKET_LEN, RawPacket, Step};
use crate::Instant;

pub(super) const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
/// Kuznetsov's patch to libpcap 0.4 adds interface index, protocol and packet type.
const MODIFIED_RECORD_HEADER_LEN: usize = 24;

/// Format and byte order, from the first four bytes.
pub(super) fn recognise(magic: [u8; 4]) -> Option<(Format, Order)> {
    let format = |magic: u32| match magic {
        0xa1b2_c3d4 => Some(Format::Pcap),
        0xa1b2_3c4d => Some(Format::PcapNanos),
        0xa1b2_cd34 => Some(Format::PcapModified),
        _ => None,
    };
    [Order::Little, Order::Big]
        .into_iter()
        .find_map(|order| format(order.u32(magic)).map(|format| (format, order)))
}

#[derive(Clone, Debug)]
pub(super) struct Pcap {
    order: Order,
    record_header_len: usize,
    ns_per_tick: i64,
    link: LinkType,
    stopped: bool,
    /// Damage in a packet that was given anyway; each kind is reported once.
    lie: Option<Damage>,
    lied: Lied,
}

/// What the records have lied about so far: their lengths, their times.
#[derive(Clone, Copy, Debug, Default)]
struct Lied {
    lengths: bool,
    times: bool,
}

const SECOND_NS: i64 = 1_000_000_000;

/// In a search for records, their times are expected from this long before the first packet...
const BEFORE_FIRST_MAX_S: i64 = 86_400;
/// ...to this long after it.
const AFTER_FIRST_MAX_S: i64 = 10 * 366 * 86_400;

impl Pcap {
    pub(super) fn new(format: Format, order: Order, header: &[u8; FILE_HEADER_LEN]) -> Self {
        let [.., a, b, c, d] = *header;
        // The upper bits say whether a frame check sequence follows each packet; IP lengths exclude
        // it anyway.
        let link = LinkType(order.u32([a, b, c, d]) as u16);
        let modified = format == Format::PcapModified;
        Self {
            order,
            record_header_len: if modified { MODIFIED_RECORD_HEADER_LEN } else { RECORD_HEADER_LEN },
            ns_per_tick: if format == Format::PcapNanos { 1 } else { 1_000 },
            link,
            stopped: false,
            lie: None,
            lied: Lied::default(),
        }
    }

    #[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
    #[inline(always)]
    pub(super) fn next<'a>(&mut self, buf: &'a [u8], at_eof: bool, offset: u64, number: u64) -> Step<'a> {
        if self.stopped || self.lie.is_some() {
            return self.odd();
        }
        let Some(header) = buf.first_chunk::<RECORD_HEADER_LEN>() else {
            return self.short(buf, at_eof, offset, self.record_header_len);
        };
        let field = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        let mut fields = [field(0), field(4), field(8), field(12)];
        if self.order == Order::Big {
            fields = fields.map(u32::swap_bytes);
        }
        let [seconds, ticks, captured, original] = fields;
        if captured > MAX_PACKET_LEN {
            return self.stop(0, Damage { offset, what: DamageKind::RecordTooLong(captured) });
        }
        let end = self.record_header_len + captured as usize;
        let Some(data) = buf.get(self.record_header_len..end) else {
            return self.short(buf, at_eof, offset, end);
        };
        let in_second = i64::from(ticks) * self.ns_per_tick;
        if captured > original || in_second >= SECOND_NS {
            self.note_lie(offset, (captured, original), (in_second >= SECOND_NS).then_some(ticks));
        }
        // Seconds and ticks have 32 bits, so this cannot overflow.
        let ns = i64::from(seconds) * SECOND_NS + in_second;
        let packet = RawPacket {
            number,
            at: Instant::from_nanos(ns),
            link: self.link,
            data,
            original_len: original.max(captured),
            interface: 0,
            dropped: 0,
        };
        Step { consumed: end, event: Event::Packet(packet) }
    }

    pub(super) fn lies(&self) -> bool {
        self.lie.is_some()
    }

    /// The time of the record that begins with these bytes.
    pub(super) fn time_of_next(&self, bytes: &[u8]) -> Option<Instant> {
        let [seconds, ticks] = [0, 4].map(|at| self.order.u32_at(bytes, at));
        let ns = i64::from(seconds?) * 1_000_000_000 + i64::from(ticks?) * self.ns_per_tick;
        Some(Instant::from_nanos(ns))
    }

    /// Length of the record that may start here, in a capture whose first packet has this time.
    pub(super) fn plausible_record(&self, bytes: &[u8], first: Instant) -> Option<usize> {
        let header = bytes.first_chunk::<RECORD_HEADER_LEN>()?;
        let field = |i: usize| self.order.u32([header[i], header[i + 1], header[i + 2], header[i + 3]]);
        let (seconds, ticks, captured, original) = (field(0), field(4), field(8), field(12));
        let since_first = i64::from(seconds) - first.as_nanos() / 1_000_000_000;
        let plausible = (-BEFORE_FIRST_MAX_S..AFTER_FIRST_MAX_S).contains(&since_first)
            && i64::from(ticks) * self.ns_per_tick < SECOND_NS
            && captured > 0
            && captured <= original
            && original <= MAX_PACKET_LEN;
        plausible.then_some(self.record_header_len + captured as usize)
    }

    /// A packet is not what its record says, which is reported the first time.
    #[cold]
    #[inline(never)]
    fn note_lie(&mut self, offset: u64, (captured, original): (u32, u32), ticks: Option<u32>) {
        let what = if captured > original && !self.lied.lengths {
            self.lied.lengths = true;
            DamageKind::MoreCapturedThanSent { captured, original }
        } else if let Some(ticks) = ticks.filter(|_| !self.lied.times) {
            self.lied.times = true;
            DamageKind::BeyondItsSecond { ticks }
        } else {
            return;
        };
        self.lie = Some(Damage { offset, what });
    }

    #[cold]
    fn odd<'a>(&mut self) -> Step<'a> {
        let event = self.lie.take().map_or(Event::End, Event::Damaged);
        Step { consumed: 0, event }
    }

    #[cold]
    fn short<'a>(&mut self, buf: &[u8], at_eof: bool, offset: u64, needs: usize) -> Step<'a> {
        if !at_eof {
            return Step { consumed: 0, event: Event::NeedMore(needs) };
        }
        if buf.is_empty() {
            self.stopped = true;
            return Step { consumed: 0, event: Event::End };
        }
        let what = DamageKind::CutShort { needs: needs as u64, has: buf.len() as u64 };
        self.stop(buf.len(), Damage { offset, what })
    }

    #[cold]
    fn stop<'a>(&mut self, consumed: usize, damage: Damage) -> Step<'a> {
        self.stopped = true;
        Step { consumed, event: Event::Damaged(damage) }
    }
}
