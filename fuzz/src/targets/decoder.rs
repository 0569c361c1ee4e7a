//! Does the decoder say the same about a packet however much of it was captured?

use tcpwhy_wire::capture::{LinkType, RawPacket};
use tcpwhy_wire::decode::checksum;
use tcpwhy_wire::{Instant, Segment, Skip, decode};

const LINKS: [u16; 14] = [0, 1, 9, 12, 14, 50, 101, 108, 113, 228, 229, 276, 147, u16::MAX];

pub(super) fn packet(data: &[u8]) {
    let [link, longer, cut, data @ ..] = data else { return };
    let packet = RawPacket {
        number: 1,
        at: Instant::from_nanos(1),
        link: LinkType(LINKS[usize::from(*link) % LINKS.len()]),
        data,
        original_len: data.len() as u32 + u32::from(*longer) * 64,
        interface: 0,
        dropped: 0,
    };
    let whole = decode(&packet);
    assert!(checksum(&packet).is_none() || whole.is_ok(), "a checksum of no segment");
    if let Ok(segment) = &whole {
        assert!(segment.options.sack().len() <= 4);
        assert!(segment.seq_len() <= segment.payload_len + 2);
        assert_eq!((segment.packet, segment.at), (1, packet.at));
        let _ = (segment.src.to_string(), segment.dst.to_string());
    }
    let shorter = data.len().saturating_sub(usize::from(*cut));
    let cut = decode(&RawPacket { data: &data[..shorter], ..packet });
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => {
            // Only the options that were cut off are missing.
            assert_eq!(Segment { options: cut.options, ..whole }, cut, "cut off at {shorter}");
        }
        (_, Err(Skip::TruncatedHeader)) => {}
        (whole, cut) => assert_eq!(whole, cut, "cut off at {shorter}"),
    }
}
