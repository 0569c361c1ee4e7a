//! Is this packet like nearly every packet of a capture, so that it can be read in one piece?
//!
//! Ethernet, IPv4 without options, not a fragment, TCP with time stamps and nothing else, in the
//! order of Linux and of other stacks that follow RFC 7323, appendix A; or a SYN with the options
//! of Linux in their order (tcp_options_write, net/ipv4/tcp_output.c). Every field then has its
//! fixed place: one length check serves all of them, and a handful of comparisons recognizes the
//! form. Any other packet is decoded step by step; the test below checks that both agree.

use super::tcp::MAX_WINDOW_SCALE;
use crate::capture::{LinkType, RawPacket};
use crate::segment::{Flags, TcpOptions, Timestamps};
use crate::{Endpoint, Instant, Segment, Seq};

const ETHERNET_LEN: usize = 14;
const IP_ID: usize = ETHERNET_LEN + 4;
const TTL: usize = ETHERNET_LEN + 8;
const SRC_ADDR: usize = ETHERNET_LEN + 12;
const DST_ADDR: usize = ETHERNET_LEN + 16;
const TCP: usize = ETHERNET_LEN + 20;
const OPTIONS: usize = TCP + 20;
/// Frame type, and version and length of the IP header.
const IPV4_WITHOUT_OPTIONS: u32 = 0x0800_4500;
/// No more fragments and no offset, and the protocol; the time to live is between them.
const TCP_IN_ONE_PIECE: u32 = 6;
/// Up to the end of a TCP header with time stamps.
const STAMPED: usize = OPTIONS + 12;
/// Two bytes of padding, then kind and length of the time stamps.
const STAMPS_ALONE: u32 = 0x0101_080a;
/// Up to the end of a SYN's header with MSS, SACK permitted, time stamps, padding and window scale.
const OPENING: usize = OPTIONS + 20;
const MSS: u16 = 0x0204;
const SACK_PERMITTED_AND_STAMPS: u32 = 0x0402_080a;
const SCALE: [u8; 3] = [1, 3, 3];

/// Such a packet: its segment field by field, each read in place. See [`Segment`] for their
/// meaning.
///
/// The packet is borrowed and not copied. A copy would be read in pieces of 16 bytes that were
/// written in pieces of 8 a moment before: the processor cannot forward such stores, and the read
/// waits until they, and all stores before them, are in its cache. That took longer than all of
/// decoding.
#[derive(Clone, Copy, Debug)]
pub struct Usual<'a> {
    frame: &'a [u8; STAMPED],
    packet: &'a RawPacket<'a>,
    payload_len: u32,
}

#[expect(clippy::inline_always, reason = "a field is read where it is needed, and its length is known there")]
#[expect(missing_docs, reason = "they are those of a segment")]
impl<'a> Usual<'a> {
    #[inline(always)]
    pub(super) fn recognise(packet: &'a RawPacket<'a>) -> Option<Self> {
        let (frame, payload_len) = stamped(packet)?;
        Some(Self { frame, packet, payload_len })
    }

    /// The captured part of the payload, without Ethernet padding.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        captured(self.packet, self.payload_len)
    }

    #[inline(always)]
    pub fn packet(&self) -> u64 {
        self.packet.number
    }

    #[inline(always)]
    pub fn at(&self) -> Instant {
        self.packet.at
    }

    /// The IPv4 addresses of source and destination.
    #[inline(always)]
    pub fn addrs(&self) -> [u32; 2] {
        [word(self.frame, SRC_ADDR), word(self.frame, DST_ADDR)]
    }

    #[inline(always)]
    pub fn ports(&self) -> [u16; 2] {
        [half(self.frame, TCP), half(self.frame, TCP + 2)]
    }

    /// Source and destination.
    #[inline(always)]
    pub fn ends(&self) -> [Endpoint; 2] {
        [(SRC_ADDR, TCP), (DST_ADDR, TCP + 2)].map(|(addr, port)| end(self.frame, addr, port))
    }

    #[inline(always)]
    pub fn src(&self) -> Endpoint {
        end(self.frame, SRC_ADDR, TCP)
    }

    #[inline(always)]
    pub fn seq(&self) -> Seq {
        Seq(word(self.frame, TCP + 4))
    }

    #[inline(always)]
    pub fn ack(&self) -> Seq {
        Seq(word(self.frame, TCP + 8))
    }

    #[inline(always)]
    pub fn flags(&self) -> Flags {
        Flags(self.frame[TCP + 13])
    }

    #[inline(always)]
    pub fn window(&self) -> u16 {
        half(self.frame, TCP + 14)
    }

    #[inline(always)]
    pub fn stamps(&self) -> Timestamps {
        stamps(self.frame, OPTIONS + 4)
    }

    #[inline(always)]
    pub fn payload_len(&self) -> u32 {
        self.payload_len
    }

    #[inline(always)]
    pub fn ip_id(&self) -> u16 {
        half(self.frame, IP_ID)
    }

    #[inline(always)]
    pub fn ttl(&self) -> u8 {
        self.frame[TTL]
    }

    /// The whole segment.
    #[inline(always)]
    pub fn segment(&self) -> Segment {
        let options = TcpOptions { timestamps: Some(self.stamps()), ..TcpOptions::default() };
        segment(self.packet, self.frame, self.payload_len, options)
    }
}

/// The captured part of the payload of such a packet.
#[inline]
pub(super) fn payload<'a>(packet: &RawPacket<'a>) -> Option<&'a [u8]> {
    stamped(packet).map(|(_, payload_len)| captured(packet, payload_len))
}

#[inline]
fn captured<'a>(packet: &RawPacket<'a>, payload_len: u32) -> &'a [u8] {
    let captured = packet.data.get(STAMPED..).unwrap_or_default();
    &captured[..captured.len().min(payload_len as usize)]
}

#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
fn stamped<'a>(packet: &RawPacket<'a>) -> Option<(&'a [u8; STAMPED], u32)> {
    headers(packet).filter(|(frame, _)| word(*frame, OPTIONS) == STAMPS_ALONE)
}

/// The segment, if it is a SYN in Linux's form.
#[inline]
pub(super) fn opening(packet: &RawPacket<'_>) -> Option<Segment> {
    let (frame, payload_len) = headers::<OPENING>(packet)?;
    let usual = Flags(frame[TCP + 13]).syn()
        && half(frame, OPTIONS) == MSS
        && word(frame, OPTIONS + 4) == SACK_PERMITTED_AND_STAMPS
        && frame[OPTIONS + 16..OPTIONS + 19] == SCALE;
    let options = TcpOptions {
        mss: Some(half(frame, OPTIONS + 2)),
        sack_permitted: true,
        timestamps: Some(stamps(frame, OPTIONS + 8)),
        window_scale: Some(frame[OPTIONS + 19].min(MAX_WINDOW_SCALE)),
        ..TcpOptions::default()
    };
    usual.then(|| segment(packet, frame, payload_len, options))
}

/// The headers of a packet and the length of its payload, if they have their fixed places and this
/// length.
#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
fn headers<'a, const LEN: usize>(packet: &RawPacket<'a>) -> Option<(&'a [u8; LEN], u32)> {
    let frame: &[u8; LEN] = packet.data.first_chunk()?;
    let usual = packet.link == LinkType::ETHERNET
        && word(frame, 12) & 0xffff_ff00 == IPV4_WITHOUT_OPTIONS
        && word(frame, 20) & 0x3fff_00ff == TCP_IN_ONE_PIECE
        && usize::from(frame[TCP + 12] >> 4) * 4 == LEN - TCP;
    let payload_len = u32::from(half(frame, 16)).checked_sub((LEN - ETHERNET_LEN) as u32)?;
    usual.then_some((frame, payload_len))
}

#[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
#[inline(always)]
fn segment<const LEN: usize>(
    packet: &RawPacket<'_>,
    frame: &[u8; LEN],
    payload_len: u32,
    options: TcpOptions,
) -> Segment {
    Segment {
        packet: packet.number,
        at: packet.at,
        src: end(frame, SRC_ADDR, TCP),
        dst: end(frame, DST_ADDR, TCP + 2),
        seq: Seq(word(frame, TCP + 4)),
        ack: Seq(word(frame, TCP + 8)),
        window: half(frame, TCP + 14),
        flags: Flags(frame[TCP + 13]),
        payload_len,
        options,
        ip_id: Some(half(frame, IP_ID)),
        ttl: frame[TTL],
        damaged: false,
    }
}

#[inline]
fn end(frame: &[u8], addr: usize, port: usize) -> Endpoint {
    Endpoint { addr: 0xffff_0000_0000 | u128::from(word(frame, addr)), port: half(frame, port) }
}

#[inline]
fn stamps(frame: &[u8], i: usize) -> Timestamps {
    Timestamps { val: word(frame, i), ecr: word(frame, i + 4) }
}

#[inline]
fn half(frame: &[u8], i: usize) -> u16 {
    u16::from_be_bytes([frame[i], frame[i + 1]])
}

#[inline]
fn word(frame: &[u8], i: usize) -> u32 {
    u32::from_be_bytes([frame[i], frame[i + 1], frame[i + 2], frame[i + 3]])
}

#[cfg(test)]
mod tests {
    use crate::Instant;
    use crate::capture::{LinkType, RawPacket};
    use crate::decode::step_by_step;

    /// An ACK with time stamps and ten bytes of payload, two of which were captured.
    const FRAME: [u8; 68] = [
        0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 62, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 255, // IPv4
        0x13, 0x88, 0, 80, 1, 2, 3, 4, 5, 6, 7, 8, 0x80, 0x18, 2, 1, 0, 0, 0, 0, // TCP
        1, 1, 8, 10, 9, 10, 11, 12, 13, 14, 15, 16, b'h', b'i',
    ];

    /// A SYN of Linux.
    const SYN: [u8; 74] = [
        0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0x00, // Ethernet
        0x45, 0, 0, 60, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 192, 0, 2, 255, // IPv4
        0x13, 0x88, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, // TCP
        2, 4, 5, 180, 4, 2, 8, 10, 9, 10, 11, 12, 0, 0, 0, 0, 1, 3, 3, 7,
    ];

    fn packet(data: &[u8], link: LinkType) -> RawPacket<'_> {
        let at = Instant::from_nanos(7);
        RawPacket { number: 3, at, link, data, original_len: 76, interface: 0, dropped: 0 }
    }

    fn opens(data: &[u8], link: LinkType) -> bool {
        let packet = packet(data, link);
        let opening = super::opening(&packet);
        assert!(opening.is_none_or(|segment| Ok(segment) == step_by_step(&packet)), "{data:02x?}");
        opening.is_some()
    }

    fn agrees(data: &[u8], link: LinkType) -> bool {
        let packet = packet(data, link);
        let usual = super::Usual::recognise(&packet);
        let payload = usual.as_ref().map(super::Usual::payload);
        let same = |bytes| crate::decode::headers(&packet).is_ok_and(|(_, tcp)| tcp.payload == bytes);
        assert!(payload.is_none_or(same), "{data:02x?}");
        let fields = |usual: &super::Usual<'_>| {
            let segment = usual.segment();
            let ends = [segment.src, segment.dst];
            assert_eq!(usual.addrs().map(u128::from), ends.map(|end| end.addr ^ 0xffff << 32));
            assert_eq!(usual.ends(), ends);
            let told = (usual.packet(), usual.at(), usual.ports());
            assert_eq!(told, (segment.packet, segment.at, ends.map(|end| end.port)));
            let told = (usual.seq(), usual.ack(), usual.window());
            assert_eq!(told, (segment.seq, segment.ack, segment.window));
            assert_eq!((usual.flags(), usual.payload_len()), (segment.flags, segment.payload_len));
            let told = (Some(usual.stamps()), Some(usual.ip_id()), usual.ttl());
            assert_eq!(told, (segment.options.timestamps, segment.ip_id, segment.ttl));
            segment
        };
        let usual = usual.as_ref().map(fields);
        assert!(usual.is_none_or(|usual| Ok(usual) == step_by_step(&packet)), "{data:02x?}");
        usual.is_some()
    }

    #[test]
    fn says_what_reading_step_by_step_says() {
        assert!(agrees(&FRAME, LinkType::ETHERNET));
        assert!(!agrees(&FRAME, LinkType::RAW));
        for len in 0..FRAME.len() {
            assert_eq!(agrees(&FRAME[..len], LinkType::ETHERNET), len >= 66);
        }
        for (i, byte) in (0..FRAME.len()).flat_map(|i| (0..=255).map(move |byte| (i, byte))) {
            let mut frame = FRAME;
            frame[i] = byte;
            agrees(&frame, LinkType::ETHERNET);
        }
    }

    #[test]
    fn says_of_a_handshake_what_reading_step_by_step_says() {
        assert!(opens(&SYN, LinkType::ETHERNET));
        assert!(!opens(&SYN, LinkType::RAW) && !opens(&FRAME, LinkType::ETHERNET));
        for len in 0..SYN.len() {
            assert!(!opens(&SYN[..len], LinkType::ETHERNET));
        }
        for (i, byte) in (0..SYN.len()).flat_map(|i| (0..=255).map(move |byte| (i, byte))) {
            let mut frame = SYN;
            frame[i] = byte;
            opens(&frame, LinkType::ETHERNET);
        }
    }
}
