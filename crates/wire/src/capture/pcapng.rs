//! Which packets do the blocks of a pcapng file contain, and when were they captured?
//!
//! The format (draft-ietf-opsawg-pcapng): blocks of type, total length, body, and the total length
//! again. The second length makes it possible to find the next block after a damaged one. Each
//! section has its own byte order and interfaces; each interface has its own unit of time.

use super::bytes::Order;
use super::{
    Damage, DamageKind, Drops, Event, LinkType, MAX_BLOCK_LEN, MAX_INTERFACES, MAX_PACKET_LEN, RawPacket,
    Step,
};
use crate::Instant;

pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
/// Obsolete, but found in old captures.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const NAME_RESOLUTION: u32 = 4;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const DECRYPTION_SECRETS: u32 = 10;
const CUSTOM: u32 = 0x0bad;

/// The type, and the length fields before and after the body.
const FRAME_LEN: usize = 12;
/// Body bytes before the packet: interface, time (two words), captured and original length.
const ENHANCED_FIELDS_LEN: usize = 20;

/// Conversion from an interface's ticks to nanoseconds (option if_tsresol).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ticks {
    /// Nanoseconds per tick.
    Times(u64),
    /// Ticks per nanosecond.
    Over(u64),
    /// 2^-n seconds per tick.
    Binary(u8),
}

impl Ticks {
    fn from_resolution(byte: u8) -> Self {
        if byte & 0x80 != 0 {
            return Self::Binary(byte & 0x7f);
        }
        match byte {
            0..=9 => Self::Times(10u64.pow(9 - u32::from(byte))),
            // Below 10^-28 s no 64-bit count of ticks reaches a nanosecond, and neither does it in
            // units of 2^-127 s.
            _ => 10u64.checked_pow(u32::from(byte) - 9).map_or(Self::Binary(127), Self::Over),
        }
    }

    #[inline]
    fn nanos(self, ticks: u64) -> i64 {
        let wide: u128 = match self {
            Self::Times(ns) => return i64::try_from(ticks.saturating_mul(ns)).unwrap_or(i64::MAX),
            Self::Over(per_ns) => return i64::try_from(ticks / per_ns).unwrap_or(i64::MAX),
            Self::Binary(exponent) => (u128::from(ticks) * 1_000_000_000) >> exponent,
        };
        i64::try_from(wide).unwrap_or(i64::MAX)
    }
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// 0 for no limit.
    snaplen: u32,
    ticks: Ticks,
    offset_ns: i64,
    /// The last value of the interface statistics' counter: it is cumulative, so only its growth is
    /// new.
    drops: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
    /// Time of the last packet, for simple packet blocks.
    last: Instant,
    drops: Drops,
    /// Searching for the next block after damage.
    lost: bool,
    /// Damage in a packet that was given anyway; reported once.
    lie: Option<Damage>,
    lied: bool,
}

/// The fields of any of the three kinds of packet block.
struct Fields {
    interface: u32,
    ticks: Option<u64>,
    captured: u32,
    original: u32,
    /// Offset of the packet in the body.
    data: usize,
    dropped: u32,
}

impl Pcapng {
    pub(super) const fn interfaces(&self) -> usize {
        self.interfaces.len()
    }

    pub(super) fn drops(&self) -> Drops {
        self.drops
    }

    /// The packet comes again: the time that it set stays, its drop count is subtracted.
    pub(super) fn put_back(&mut self, packet: &RawPacket<'_>) {
        self.drops.by_packets = self.drops.by_packets.saturating_sub(u64::from(packet.dropped));
    }

    pub(super) fn lies(&self) -> bool {
        self.lie.is_some()
    }

    /// The time of the packet whose block begins with these bytes, if it is an enhanced packet block.
    pub(super) fn time_of_next(&self, bytes: &[u8]) -> Option<Instant> {
        let [kind, _, interface, high, low] = [0, 4, 8, 12, 16].map(|at| self.order.u32_at(bytes, at));
        let interface = self.interfaces.get(interface? as usize).filter(|_| kind == Some(ENHANCED_PACKET))?;
        let ticks = u64::from(high?) << 32 | u64::from(low?);
        Some(Instant::from_nanos(interface.ticks.nanos(ticks).saturating_add(interface.offset_ns)))
    }

    #[inline]
    pub(super) fn next<'a>(&mut self, buf: &'a [u8], at_eof: bool, offset: u64, number: u64) -> Step<'a> {
        if self.lost || self.lie.is_some() {
            return self.odd(buf, at_eof);
        }
        let Some(&head) = buf.first_chunk::<FRAME_LEN>() else {
            return self.short(buf, at_eof, offset, FRAME_LEN);
        };
        let [t0, t1, t2, t3, l0, l1, l2, l3, magic @ ..] = head;
        let kind = self.order.u32([t0, t1, t2, t3]);
        if kind == SECTION_HEADER {
            // The type reads the same in both orders; the magic gives the order of the length
            // before it.
            let Some(order) = section_order(magic) else {
                return self.lose(buf, Damage { offset, what: DamageKind::ByteOrderMagic });
            };
            self.order = order;
        }
        let len = self.order.u32([l0, l1, l2, l3]);
        if !plausible(len) {
            return self.lose(buf, Damage { offset, what: DamageKind::BlockLength(len) });
        }
        let Some(block) = buf.get(..len as usize) else {
            return self.short(buf, at_eof, offset, len as usize);
        };
        let [.., a, b, c, d] = *block else { unreachable!("twelve bytes at least") };
        let again = self.order.u32([a, b, c, d]);
        if again != len {
            return self.lose(buf, Damage { offset, what: DamageKind::BlockLengthsDiffer(len, again) });
        }
        let body = &block[8..block.len() - 4];
        let event = match kind {
            ENHANCED_PACKET => self.enhanced(body).map(|fields| self.packet(body, &fields, number, offset)),
            SIMPLE_PACKET => self.simple(body).map(|fields| self.packet(body, &fields, number, offset)),
            PACKET => self.obsolete(body).map(|fields| self.packet(body, &fields, number, offset)),
            _ => self.other(kind, body).map(|()| Ok(Event::Skipped)),
        };
        let event = event.unwrap_or(Err(DamageKind::BlockBody(kind)));
        let event = event.unwrap_or_else(|what| Event::Damaged(Damage { offset, what }));
        Step { consumed: block.len(), event }
    }

    #[inline]
    fn packet<'a>(
        &mut self,
        body: &'a [u8],
        fields: &Fields,
        number: u64,
        offset: u64,
    ) -> Result<Event<'a>, DamageKind> {
        let Some(interface) = self.interfaces.get(fields.interface as usize) else {
            return Err(DamageKind::NoSuchInterface(fields.interface));
        };
        let Fields { captured, original, .. } = *fields;
        if captured > MAX_PACKET_LEN {
            return Err(DamageKind::RecordTooLong(captured));
        }
        let Some(data) = body.get(fields.data..fields.data + captured as usize) else {
            return Err(DamageKind::BlockBody(ENHANCED_PACKET));
        };
        if let Some(ticks) = fields.ticks {
            let ns = interface.ticks.nanos(ticks).saturating_add(interface.offset_ns);
            self.last = Instant::from_nanos(ns);
        }
        if captured > original && !self.lied {
            self.lied = true;
            self.lie = Some(Damage { offset, what: DamageKind::MoreCapturedThanSent { captured, original } });
        }
        self.drops.by_packets = self.drops.by_packets.saturating_add(u64::from(fields.dropped));
        Ok(Event::Packet(RawPacket {
            number,
            at: self.last,
            link: interface.link,
            data,
            original_len: original.max(captured),
            interface: fields.interface,
            dropped: fields.dropped,
        }))
    }

    #[inline]
    fn enhanced(&self, body: &[u8]) -> Option<Fields> {
        let fixed = body.first_chunk::<ENHANCED_FIELDS_LEN>()?;
        let field = |i: usize| self.order.u32([fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]]);
        let captured = field(12);
        let options = ENHANCED_FIELDS_LEN + padded(captured);
        let dropped = if options < body.len() { self.drop_count(&body[options..]) } else { 0 };
        Some(Fields {
            interface: field(0),
            ticks: Some(u64::from(field(4)) << 32 | u64::from(field(8))),
            captured,
            original: field(16),
            data: ENHANCED_FIELDS_LEN,
            dropped,
        })
    }

    fn obsolete(&self, body: &[u8]) -> Option<Fields> {
        let interface = self.order.u16_at(body, 0)?;
        let dropped = self.order.u16_at(body, 2)?;
        let (high, low) = (self.order.u32_at(body, 4)?, self.order.u32_at(body, 8)?);
        Some(Fields {
            interface: u32::from(interface),
            ticks: Some(u64::from(high) << 32 | u64::from(low)),
            captured: self.order.u32_at(body, 12)?,
            original: self.order.u32_at(body, 16)?,
            data: ENHANCED_FIELDS_LEN,
            // All ones mean "unknown".
            dropped: if dropped == u16::MAX { 0 } else { u32::from(dropped) },
        })
    }

    fn simple(&self, body: &[u8]) -> Option<Fields> {
        let original = self.order.u32_at(body, 0)?;
        let snaplen = match self.interfaces.first() {
            Some(Interface { snaplen: limit @ 1.., .. }) => *limit,
            _ => u32::MAX,
        };
        // The captured length is not stored; padding may hide up to three bytes of a truncated
        // packet.
        let captured = original.min(snaplen).min(body.len() as u32 - 4);
        Some(Fields { interface: 0, ticks: None, captured, original, data: 4, dropped: 0 })
    }

    /// epb_dropcount (option 4).
    #[cold]
    fn drop_count(&self, options: &[u8]) -> u32 {
        self.options(options)
            .find(|(code, _)| *code == 4)
            .and_then(|(_, value)| value.first_chunk::<8>())
            .map_or(0, |count| u32::try_from(self.order.u64(*count)).unwrap_or(u32::MAX))
    }

    /// A block other than a packet. `None` if it is too short for its type.
    #[cold]
    fn other(&mut self, kind: u32, body: &[u8]) -> Option<()> {
        match kind {
            SECTION_HEADER => {
                self.interfaces.clear();
                body.get(..16).map(|_| ())
            }
            INTERFACE_DESCRIPTION => {
                // An unreadable one keeps its number, or all later ones would have wrong numbers.
                let interface = self.interface(body);
                if self.interfaces.len() < MAX_INTERFACES {
                    self.interfaces.push(interface.unwrap_or(Interface {
                        link: LinkType(u16::MAX),
                        snaplen: 0,
                        ticks: Ticks::Times(1_000),
                        offset_ns: 0,
                        drops: 0,
                    }));
                }
                interface.map(|_| ())
            }
            INTERFACE_STATISTICS => self.statistics(body),
            _ => Some(()),
        }
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let link = LinkType(self.order.u16_at(body, 0)?);
        let snaplen = self.order.u32_at(body, 4)?;
        let (mut ticks, mut offset_ns) = (Ticks::Times(1_000), 0);
        for (code, value) in self.options(&body[8..]) {
            match (code, value) {
                (9, [resolution, ..]) => ticks = Ticks::from_resolution(*resolution),
                (14, value) => {
                    if let Some(seconds) = value.first_chunk::<8>() {
                        offset_ns = (self.order.u64(*seconds) as i64).saturating_mul(1_000_000_000);
                    }
                }
                _ => {}
            }
        }
        Some(Interface { link, snaplen, ticks, offset_ns, drops: 0 })
    }

    fn statistics(&mut self, body: &[u8]) -> Option<()> {
        let id = self.order.u32_at(body, 0)?;
        // isb_ifdrop: no room in the interface; isb_osdrop: no room in the operating system.
        let drops = self
            .options(body.get(12..)?)
            .filter(|(code, _)| matches!(code, 5 | 7))
            .filter_map(|(_, value)| value.first_chunk::<8>())
            .fold(0u64, |sum, count| sum.saturating_add(self.order.u64(*count)));
        let interface = self.interfaces.get_mut(id as usize)?;
        let new = drops.saturating_sub(interface.drops);
        interface.drops = interface.drops.max(drops);
        self.drops.by_statistics = self.drops.by_statistics.saturating_add(new);
        Some(())
    }

    /// Code and value of each option, up to the first that does not fit.
    fn options<'a>(&self, mut rest: &'a [u8]) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        let order = self.order;
        std::iter::from_fn(move || {
            let code = order.u16_at(rest, 0)?;
            let len = order.u16_at(rest, 2)?;
            let value = rest.get(4..4 + len as usize)?;
            rest = rest.get(4 + padded(u32::from(len))..).unwrap_or(&[]);
            (code != 0).then_some((code, value))
        })
    }

    #[cold]
    fn short<'a>(&mut self, buf: &'a [u8], at_eof: bool, offset: u64, needs: usize) -> Step<'a> {
        if !at_eof {
            return Step { consumed: 0, event: Event::NeedMore(needs) };
        }
        if buf.is_empty() {
            return Step { consumed: 0, event: Event::End };
        }
        let what = DamageKind::CutShort { needs: needs as u64, has: buf.len() as u64 };
        // Either the capture ends here, or the length is wrong and blocks follow.
        self.lose(buf, Damage { offset, what })
    }

    #[cold]
    fn lose<'a>(&mut self, buf: &'a [u8], damage: Damage) -> Step<'a> {
        self.lost = true;
        Step { consumed: buf.len().min(4), event: Event::Damaged(damage) }
    }

    #[cold]
    fn odd<'a>(&mut self, buf: &'a [u8], at_eof: bool) -> Step<'a> {
        if let Some(damage) = self.lie.take() {
            return Step { consumed: 0, event: Event::Damaged(damage) };
        }
        // Blocks are multiples of four bytes long; damaged ones too, unless bytes are missing.
        let mut at = 0;
        while let Some(candidate) = buf.get(at..).filter(|rest| rest.len() >= FRAME_LEN) {
            match self.looks_like_block(candidate) {
                Some(len) if candidate.len() >= len => {
                    self.lost = false;
                    return Step { consumed: at, event: Event::Skipped };
                }
                Some(len) if !at_eof && at == 0 => {
                    return Step { consumed: 0, event: Event::NeedMore(len) };
                }
                Some(_) if !at_eof => return Step { consumed: at, event: Event::Skipped },
                _ => at += 4,
            }
        }
        let event = match (at_eof, at) {
            (true, _) => {
                self.lost = false;
                at = buf.len();
                Event::End
            }
            (false, 0) => Event::NeedMore(FRAME_LEN),
            (false, _) => Event::Skipped,
        };
        Step { consumed: at, event }
    }

    /// Length of the block that starts here, if one does: of a known type, and with two equal
    /// lengths as far as they are visible.
    pub(super) fn looks_like_block(&self, bytes: &[u8]) -> Option<usize> {
        let [t0, t1, t2, t3, l0, l1, l2, l3, magic @ ..] = *bytes.first_chunk::<FRAME_LEN>()?;
        let kind = self.order.u32([t0, t1, t2, t3]);
        let order = if kind == SECTION_HEADER { section_order(magic)? } else { self.order };
        let len = order.u32([l0, l1, l2, l3]);
        let known = matches!(
            kind,
            SECTION_HEADER
                | INTERFACE_DESCRIPTION
                | PACKET
                | SIMPLE_PACKET
                | NAME_RESOLUTION
                | INTERFACE_STATISTICS
                | ENHANCED_PACKET
                | DECRYPTION_SECRETS
                | CUSTOM
        );
        let again = order.u32_at(bytes, (len as usize).saturating_sub(4));
        // The maximum packet length limits how much a search may need to buffer.
        (known && plausible(len) && len <= MAX_PACKET_LEN + 4096 && again.is_none_or(|again| again == len))
            .then_some(len as usize)
    }
}

#[inline]
fn plausible(len: u32) -> bool {
    len >= FRAME_LEN as u32 && len.is_multiple_of(4) && len <= MAX_BLOCK_LEN
}

/// The next multiple of four. A wrong length beyond any block stays beyond any block, without
/// overflow.
#[inline]
fn padded(len: u32) -> usize {
    (len.min(2 * MAX_BLOCK_LEN) as usize).next_multiple_of(4)
}

fn section_order(magic: [u8; 4]) -> Option<Order> {
    [Order::Little, Order::Big].into_iter().find(|order| order.u32(magic) == 0x1a2b_3c4d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_of_time_becomes_nanoseconds() {
        let cases = [
            (0x00, 3, 3_000_000_000),                 // seconds
            (0x03, 1_500, 1_500_000_000),             // milliseconds
            (0x06, 1_500_000, 1_500_000_000),         // microseconds
            (0x09, 1_500_000_001, 1_500_000_001),     // nanoseconds
            (0x0c, 1_500_000_001_999, 1_500_000_001), // picoseconds, rounded down
            (0x7f, u64::MAX, 0),                      // 10^-127 s
            (0x94, 3 << 19, 1_500_000_000),           // 2^-20 s
            (0xa0, 1, 0),                             // 2^-32 s (NTP): 0.23 ns
            (0xc0, u64::MAX, 999_999_999),            // 2^-64 s
            (0xff, u64::MAX, 0),                      // 2^-127 s
            (0x00, u64::MAX, i64::MAX),               // beyond the edge
            (0x80, u64::MAX, i64::MAX),
        ];
        for (resolution, ticks, ns) in cases {
            assert_eq!(Ticks::from_resolution(resolution).nanos(ticks), ns, "if_tsresol {resolution:#x}");
        }
    }
}
