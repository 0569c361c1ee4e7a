//! How is a segment kept until its turn comes?
//!
//! An epoch's segments are written once and read once, in another order and often by another thread. What nearly all of
//! them are fits a cache line; the others (selective acknowledgements, IPv6) are kept whole beside it.

use tcpwhy_wire::{Endpoint, Flags, Instant, Segment, Seq, TcpOptions, Timestamps};

/// The upper part of an IPv4 address in its mapped form.
const MAPPED: u128 = 0xffff;

/// What a segment has, in the bits of `Packed::has`.
const STAMPS: u8 = 1;
const IP_ID: u8 = 2;
const MSS: u8 = 4;
const WINDOW_SCALE: u8 = 8;
const SACK_PERMITTED: u8 = 16;

/// A segment in a cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Packed {
    at: Instant,
    packet: u64,
    seq: Seq,
    ack: Seq,
    stamps: Timestamps,
    /// IPv4 addresses.
    addrs: [u32; 2],
    ports: [u16; 2],
    window: u16,
    ip_id: u16,
    payload_len: u32,
    flags: Flags,
    ttl: u8,
    has: u8,
    window_scale: u8,
    mss: u16,
    /// Where the whole of it is, counted from 1, if this is not.
    whole: u32,
}

/// Segments in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PackedSegments {
    packed: Vec<Packed>,
    whole: Vec<Segment>,
}

impl PackedSegments {
    #[inline]
    pub(crate) fn push(&mut self, segment: &Segment) {
        let (src, dst) = (segment.src.addr, segment.dst.addr);
        let fits = src >> 32 == MAPPED && dst >> 32 == MAPPED && segment.options.sack().is_empty();
        let whole = if fits { 0 } else { self.push_whole(segment) };
        let options = &segment.options;
        let mut has =
            u8::from(options.timestamps.is_some()) * STAMPS + u8::from(segment.ip_id.is_some()) * IP_ID;
        let (mut mss, mut window_scale) = (0, 0);
        if segment.flags.syn() {
            has += u8::from(options.mss.is_some()) * MSS
                + u8::from(options.window_scale.is_some()) * WINDOW_SCALE
                + u8::from(options.sack_permitted) * SACK_PERMITTED;
            mss = options.mss.unwrap_or(0);
            window_scale = options.window_scale.unwrap_or(0);
        }
        self.packed.push(Packed {
            at: segment.at,
            packet: segment.packet,
            seq: segment.seq,
            ack: segment.ack,
            stamps: options.timestamps.unwrap_or_default(),
            addrs: [src as u32, dst as u32],
            ports: [segment.src.port, segment.dst.port],
            window: segment.window,
            ip_id: segment.ip_id.unwrap_or(0),
            payload_len: segment.payload_len,
            flags: segment.flags,
            ttl: segment.ttl,
            has,
            window_scale,
            mss,
            whole,
        });
    }

    #[cold]
    fn push_whole(&mut self, segment: &Segment) -> u32 {
        self.whole.push(*segment);
        self.whole.len() as u32
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Segment> {
        self.packed.iter().map(|packed| match self.whole.get((packed.whole as usize).wrapping_sub(1)) {
            None => packed.unpack(),
            Some(whole) => *whole,
        })
    }

    /// Forgets them and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.packed.clear();
        self.whole.clear();
    }

    /// Segments that there is memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.packed.capacity() + self.whole.capacity()
    }
}

impl Packed {
    #[inline]
    fn unpack(&self) -> Segment {
        let end = |i: usize| Endpoint { addr: MAPPED << 32 | u128::from(self.addrs[i]), port: self.ports[i] };
        let mut options = TcpOptions::default();
        options.timestamps = (self.has & STAMPS != 0).then_some(self.stamps);
        if self.has >= MSS {
            options.mss = (self.has & MSS != 0).then_some(self.mss);
            options.window_scale = (self.has & WINDOW_SCALE != 0).then_some(self.window_scale);
            options.sack_permitted = self.has & SACK_PERMITTED != 0;
        }
        Segment {
            packet: self.packet,
            at: self.at,
            src: end(0),
            dst: end(1),
            seq: self.seq,
            ack: self.ack,
            window: self.window,
            flags: self.flags,
            payload_len: self.payload_len,
            options,
            ip_id: (self.has & IP_ID != 0).then_some(self.ip_id),
            ttl: self.ttl,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_was() {
        let plain = Segment {
            packet: u64::MAX,
            at: Instant::from_nanos(-5),
            src: Endpoint::v4([10, 0, 0, 1], 5000),
            dst: Endpoint::v4([255, 0, 0, 2], 80),
            seq: Seq(u32::MAX),
            ack: Seq(7),
            window: 65_535,
            flags: Flags(Flags::PSH | Flags::ACK),
            payload_len: 70_000,
            options: TcpOptions::default(),
            ip_id: Some(0),
            ttl: 64,
        };
        let mut stamped = TcpOptions::default();
        stamped.timestamps = Some(Timestamps { val: 0, ecr: 9 });
        let syn = Segment { flags: Flags(Flags::SYN), ..plain };
        let mut mss = stamped;
        mss.mss = Some(1460);
        let mut scaled = stamped;
        scaled.window_scale = Some(0);
        let mut permitted = stamped;
        permitted.sack_permitted = true;
        let mut sacked = stamped;
        sacked.push_sack(tcpwhy_wire::SackBlock { start: Seq(1), end: Seq(2) });
        let v6 = Endpoint::v6([0xfd; 16], 80);
        let mut segments = vec![plain, Segment { src: v6, ..plain }, Segment { dst: v6, ..plain }];
        segments.extend([stamped, sacked].map(|options| Segment { options, ..plain }));
        segments.extend([stamped, mss, scaled, permitted, sacked].map(|options| Segment { options, ..syn }));
        segments.push(Segment { ip_id: None, ..plain });
        let mut packed = PackedSegments::default();
        for _ in 0..2 {
            for segment in &segments {
                packed.push(segment);
            }
            assert!(packed.iter().eq(segments.iter().copied()));
            packed.clear();
        }
        assert_eq!(size_of::<Packed>(), 64);
    }
}
