//! Vocabulary of the tests of capture formats.

use tcpwhy_wire::capture::{Damage, Event, LinkType, RawPacket, Reader};

/// A packet that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) number: u64,
    pub(crate) ns: i64,
    pub(crate) link: LinkType,
    pub(crate) data: Vec<u8>,
    pub(crate) original_len: u32,
    pub(crate) interface: u32,
    pub(crate) dropped: u32,
}

impl From<RawPacket<'_>> for Packet {
    fn from(packet: RawPacket<'_>) -> Self {
        Self {
            number: packet.number,
            ns: packet.at.as_nanos(),
            link: packet.link,
            data: packet.data.to_vec(),
            original_len: packet.original_len,
            interface: packet.interface,
            dropped: packet.dropped,
        }
    }
}

/// Everything that a reader reports about a capture.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) packets: Vec<Packet>,
    pub(crate) damages: Vec<Damage>,
    pub(crate) drops: u64,
}

/// Reads a capture that arrives `chunk` bytes at a time.
pub(crate) fn read_in_chunks(capture: &[u8], chunk: usize) -> Read {
    let mut reader = Reader::new();
    let mut read = Read::default();
    let (mut start, mut end) = (0, 0);
    let (mut again, mut before) = (false, None);
    // Each call consumes, asks for more or ends; damage that consumes nothing is followed by one of them.
    for _ in 0..capture.len() * 5 + 64 {
        let step = reader.next(&capture[start..end], end == capture.len());
        start += step.consumed;
        assert!(start <= end, "more consumed than given");
        assert_eq!(reader.offset(), start as u64);
        match step.event {
            // Every packet is put back once, and must come again as it was.
            Event::Packet(packet) if !again => {
                reader.put_back(&packet, step.consumed);
                start -= step.consumed;
                (again, before) = (true, Some(packet.into()));
            }
            Event::Packet(packet) => {
                read.packets.push(packet.into());
                assert_eq!(read.packets.last(), before.as_ref());
                again = false;
            }
            Event::Skipped => {}
            Event::Damaged(damage) => {
                assert!(damage.offset <= capture.len() as u64);
                read.damages.push(damage);
            }
            Event::NeedMore(at_least) => {
                assert!(end < capture.len(), "all bytes were given");
                assert!(at_least > end - start, "as many bytes were given");
                end = (end + chunk).min(capture.len());
            }
            Event::End => {
                read.drops = reader.drops().total();
                assert_eq!(reader.next(&capture[start..end], true).event, Event::End);
                return read;
            }
        }
    }
    panic!("the reader makes no progress");
}

/// Reads a capture that is all there.
pub(crate) fn read(capture: &[u8]) -> Read {
    read_in_chunks(capture, capture.len().max(1))
}

/// Writes numbers in one of the two byte orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, n: u16) -> [u8; 2] {
        if self == Self::Little { n.to_le_bytes() } else { n.to_be_bytes() }
    }

    pub(crate) fn u32(self, n: u32) -> [u8; 4] {
        if self == Self::Little { n.to_le_bytes() } else { n.to_be_bytes() }
    }

    pub(crate) fn u64(self, n: u64) -> [u8; 8] {
        if self == Self::Little { n.to_le_bytes() } else { n.to_be_bytes() }
    }
}

/// A pcap file by the letter of the draft, in any variant.
pub(crate) fn pcap(order: Order, magic: u32, link: u16, records: &[(u32, u32, u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend(order.u32(magic));
    out.extend(order.u16(2));
    out.extend(order.u16(4));
    out.extend([0; 8]);
    out.extend(order.u32(262_144));
    out.extend(order.u32(u32::from(link)));
    for (seconds, ticks, original_len, data) in records {
        out.extend(order.u32(*seconds));
        out.extend(order.u32(*ticks));
        out.extend(order.u32(data.len() as u32));
        out.extend(order.u32(*original_len));
        if magic == 0xa1b2_cd34 {
            out.extend([0; 8]); // interface index, protocol, packet type, padding
        }
        out.extend(*data);
    }
    out
}

/// A pcapng block.
pub(crate) fn block(order: Order, kind: u32, body: &[&[u8]]) -> Vec<u8> {
    let mut body = body.concat();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = order.u32(body.len() as u32 + 12);
    [&order.u32(kind)[..], &len, &body, &len].concat()
}

/// A pcapng option.
pub(crate) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut out = [order.u16(code), order.u16(value.len() as u16)].concat();
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A section header block.
pub(crate) fn section(order: Order) -> Vec<u8> {
    block(order, 0x0a0d_0d0a, &[&order.u32(0x1a2b_3c4d), &order.u16(1), &order.u16(0), &order.u64(u64::MAX)])
}

/// An interface description block.
pub(crate) fn interface(order: Order, link: u16, snaplen: u32, options: &[Vec<u8>]) -> Vec<u8> {
    block(order, 1, &[&order.u16(link), &[0, 0], &order.u32(snaplen), &options.concat()])
}

/// An enhanced packet block.
pub(crate) fn enhanced(
    order: Order,
    interface: u32,
    ticks: u64,
    original_len: u32,
    data: &[u8],
    options: &[Vec<u8>],
) -> Vec<u8> {
    let mut padded = data.to_vec();
    padded.resize(data.len().next_multiple_of(4), 0);
    let fields = [interface, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original_len]
        .map(|n| order.u32(n));
    block(order, 6, &[&fields.concat(), &padded, &options.concat()])
}
