//! Does a reader make progress on any bytes, return only what is there, and the same however the
//! bytes arrive?

use tcpwhy_wire::Instant;
use tcpwhy_wire::capture::{Event, MAX_BLOCK_LEN, Reader};

const PCAP_MAGICS: [u32; 3] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];

/// The first byte chooses magic number and byte order.
pub(super) fn pcap(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let magic = PCAP_MAGICS[choice as usize % PCAP_MAGICS.len()];
    let magic = if choice & 0x80 == 0 { magic.to_le_bytes() } else { magic.to_be_bytes() };
    both_ways(&[&magic, rest].concat(), choice);
}

/// The first byte chooses the byte order.
pub(super) fn pcapng(data: &[u8]) {
    let Some((&choice, rest)) = data.split_first() else { return };
    let words: [u32; 7] = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
    let header: Vec<u8> = words
        .iter()
        .flat_map(|word| if choice & 0x80 == 0 { word.to_le_bytes() } else { word.to_be_bytes() })
        .collect();
    both_ways(&[&header, rest].concat(), choice);
}

fn both_ways(capture: &[u8], choice: u8) {
    let whole = whole(capture);
    let piecewise = piecewise(capture, usize::from(choice) + 1);
    assert_eq!(whole, piecewise, "the pieces in which the bytes arrive make a difference");
}

/// What distinguishes events: kind, time, length on the wire, and the packet's bytes or the words
/// for the damage.
#[derive(Debug, PartialEq)]
struct Seen(u64, i64, u32, Vec<u8>);

fn seen(event: &Event<'_>) -> Option<Seen> {
    match event {
        Event::Packet(packet) => {
            assert!(packet.original_len as usize >= packet.data.len(), "captured more than there was");
            Some(Seen(packet.number, packet.at.as_nanos(), packet.original_len, packet.data.to_vec()))
        }
        Event::Damaged(damage) => Some(Seen(0, 0, 0, damage.to_string().into_bytes())),
        _ => None,
    }
}

fn whole(capture: &[u8]) -> Vec<Seen> {
    let (mut reader, mut rest, mut all, mut still) = (Reader::new(), capture, Vec::new(), 0);
    loop {
        let step = reader.next(rest, true);
        assert!(step.consumed <= rest.len(), "consumed what is not there");
        if matches!(step.event, Event::End) {
            return all;
        }
        still = if step.consumed == 0 { still + 1 } else { 0 };
        assert!(still <= 2, "no progress: {:?}", step.event); // the format, then damage, without a byte
        assert!(!matches!(step.event, Event::NeedMore(_)), "wants more than all");
        all.extend(seen(&step.event));
        assert!(all.len() <= 2 * capture.len() + 8, "more events than bytes");
        rest = &rest[step.consumed..];
        if let (Event::Packet(packet), 1) = (step.event, all.len()) {
            search(&reader, rest, packet.at);
        }
    }
}

/// Where a search says that records continue, something can be read.
fn search(reader: &Reader, bytes: &[u8], first: Instant) {
    for skip in [0, 1, 5] {
        let Some(bytes) = bytes.get(skip..) else { return };
        let offset = reader.offset() + skip as u64;
        let Some(found) = reader.resynchronise(bytes, true, offset, first) else { continue };
        assert!(found < bytes.len(), "found behind the end");
        let mut there = reader.clone();
        there.jump(offset + found as u64);
        let step = there.next(&bytes[found..], true);
        assert!(!matches!(step.event, Event::End | Event::NeedMore(_)), "nothing where something was found");
        assert_eq!(there.offset(), offset + (found + step.consumed) as u64);
    }
}

fn piecewise(capture: &[u8], piece: usize) -> Vec<Seen> {
    let (mut reader, mut start, mut end, mut all) = (Reader::new(), 0, 0, Vec::new());
    loop {
        let step = reader.next(&capture[start..end], end == capture.len());
        start += step.consumed;
        assert!(start <= end, "consumed what is not there");
        match step.event {
            Event::End => return all,
            Event::NeedMore(wanted) => {
                assert!(wanted > end - start, "wants what it has");
                assert!(wanted <= MAX_BLOCK_LEN as usize, "wants {wanted} bytes");
                assert!(end < capture.len(), "wants more than all");
                end = (start + wanted.max(end - start + piece)).min(capture.len());
            }
            event => all.extend(seen(&event)),
        }
    }
}
