//! How does a receiving network card treat packets that come faster than its host takes them? It
//! merges them into a super-segment, as GRO does (`tcp_gro_receive`, net/ipv4/tcp_offload.c): so a
//! late link catches up instead of falling further behind.

use tcpwhy_twin::path::{Offload, Packet};
use tcpwhy_wire::Flags;

use crate::gso::{fix_ip, fix_tcp};

/// Consecutive packets of one connection that are handed to the host at once.
#[derive(Debug, Default)]
pub(crate) struct Burst {
    packets: Vec<Packet>,
    joined: Vec<u8>,
}

impl Burst {
    /// Whether a card would append this packet to the others.
    pub(crate) fn goes_on_with(&self, packet: &Packet) -> bool {
        let (Some(first), Some(last)) = (self.packets.first(), self.packets.last()) else { return true };
        // All but the last have the same length as the first.
        let payload = first.payload_len() as usize * self.packets.len();
        let fits = |data_at| data_at + payload + packet.payload_len() as usize <= LEN_MAX;
        continuation(first, last, packet).is_some_and(fits)
    }

    pub(crate) fn push(&mut self, packet: Packet) {
        self.packets.push(packet);
    }

    /// The packet handed to the host. `None` if there is nothing.
    pub(crate) fn as_one(&mut self) -> Option<(&[u8], Offload)> {
        let [first, .., last] = self.packets.as_slice() else {
            return self.packets.first().map(|only| (only.bytes.as_slice(), only.offload));
        };
        let data_at = data_at(first)?;
        self.joined.clear();
        self.joined.extend_from_slice(&first.bytes[..data_at]);
        for packet in &self.packets {
            self.joined.extend_from_slice(&packet.bytes[data_at..]);
        }
        let tcp_at = usize::from(first.offload.csum_start);
        self.joined[tcp_at + FLAGS_AT] |= last.bytes[tcp_at + FLAGS_AT] & Flags::PSH;
        fix_ip(&mut self.joined, 0);
        fix_tcp(&mut self.joined, tcp_at, 0, true, true);
        let offload = Offload {
            gso_type: if first.bytes[0] >> 4 == 4 { GSO_TCPV4 } else { GSO_TCPV6 },
            header_len: data_at as u16,
            gso_size: (first.bytes.len() - data_at) as u16,
            ..first.offload
        };
        Some((&self.joined, offload))
    }

    /// Takes the packets out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.packets.drain(..)
    }
}

/// Where the payload of `next` begins, if a card would append it to `last` in the super-segment
/// that `first` began.
fn continuation(first: &Packet, last: &Packet, next: &Packet) -> Option<usize> {
    let data_at = data_at(first).filter(|at| data_at(next) == Some(*at))?;
    let (last_tcp, next_tcp) = (last.tcp.as_ref()?, next.tcp.as_ref()?);
    // A shorter packet or PSH ends the super-segment, and only these may differ.
    let open = last.bytes.len() == first.bytes.len() && last_tcp.flags.0 == Flags::ACK;
    let plain = next_tcp.flags.0 & !Flags::PSH == Flags::ACK && next.bytes.len() <= first.bytes.len();
    let follows = last_tcp.seq + last_tcp.payload_len == next_tcp.seq && next_tcp.payload_len > 0;
    (open && plain && follows && same_headers(&first.bytes, &next.bytes, data_at)).then_some(data_at)
}

/// Whether all is equal except for lengths, identification, sequence number, flags and checksums.
fn same_headers(first: &[u8], next: &[u8], data_at: usize) -> bool {
    let tcp_at = if first[0] >> 4 == 4 { usize::from(first[0] & 0x0f) * 4 } else { 40 };
    let ip = if first[0] >> 4 == 4 { [0..2, 6..10, 12..tcp_at] } else { [0..4, 6..tcp_at, 0..0] };
    // Ports; ACK number and header length; window; urgent pointer and options.
    let tcp =
        [0..4, 8..FLAGS_AT, 14..16, 18..data_at - tcp_at].map(|part| tcp_at + part.start..tcp_at + part.end);
    ip.into_iter().chain(tcp).all(|part| first[part.clone()] == next[part])
}

/// Where the payload of a TCP packet begins, if it is a single packet whose checksum is still to be
/// computed.
fn data_at(packet: &Packet) -> Option<usize> {
    let Offload { flags, csum_start, csum_offset, .. } = packet.offload;
    let undone = flags & NEEDS_CSUM != 0 && csum_offset == CHECKSUM_AT && !packet.offload.is_super_segment();
    let tcp = packet.tcp.as_ref().filter(|_| undone)?;
    let at = packet.bytes.len().checked_sub(tcp.payload_len as usize)?;
    (at >= usize::from(csum_start) + 20).then_some(at)
}

/// The maximum of IP's length field.
const LEN_MAX: usize = 65_535;
/// Virtio 1.2, 5.1.6.
const NEEDS_CSUM: u8 = 1;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// RFC 9293, 3.1.
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: u16 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gso::{offload_of_single, split, tests::super_segment};
    use tcpwhy_wire::Instant;

    /// The packets of a super-segment whose first flags are only ACK.
    fn singles(v6: bool, payload: u16) -> (Vec<u8>, Offload, Vec<Packet>) {
        let (mut whole, offload) = super_segment(v6, payload);
        whole[usize::from(offload.csum_start) + FLAGS_AT] = Flags::ACK | Flags::PSH;
        let single = offload_of_single(offload);
        let parts = split(&whole, offload).expect("a super-segment");
        let packets = parts.map(|part| Packet::from_ip(part, single, Instant::from_nanos(0))).collect();
        (whole, offload, packets)
    }

    #[test]
    fn what_was_split_is_joined_to_what_it_was() {
        for v6 in [false, true] {
            let (whole, offload, packets) = singles(v6, 2500);
            let mut burst = Burst::default();
            for packet in packets {
                assert!(burst.goes_on_with(&packet));
                burst.push(packet);
            }
            let (joined, with) = burst.as_one().expect("a burst");
            let data_at = usize::from(offload.csum_start) + 20;
            assert_eq!(joined[data_at..], whole[data_at..]);
            assert_eq!(joined[data_at - 7], Flags::ACK | Flags::PSH);
            assert_eq!((with.gso_size, with.gso_type), (1000, if v6 { GSO_TCPV6 } else { GSO_TCPV4 }));
            // Splitting it again gives the same packets: lengths and checksums are right.
            let again: Vec<_> = split(joined, with).expect("a super-segment").collect();
            assert_eq!(again, burst.drain().map(|packet| packet.bytes).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_a_card_keeps_apart_stays_apart() {
        let differs = |change: fn(&mut Vec<u8>)| {
            let (_, _, packets) = singles(false, 2500);
            let mut burst = Burst::default();
            burst.push(packets[0].clone());
            let mut bytes = packets[1].bytes.clone();
            change(&mut bytes);
            !burst.goes_on_with(&Packet::from_ip(bytes, packets[1].offload, Instant::from_nanos(0)))
        };
        assert!(!differs(|_| {}));
        assert!(differs(|bytes| bytes[1] = 3), "congestion experienced");
        assert!(differs(|bytes| bytes[15] = 9), "another host");
        assert!(differs(|bytes| bytes[21] = 9), "another port");
        assert!(differs(|bytes| bytes[27] ^= 1), "a gap");
        assert!(differs(|bytes| bytes[31] ^= 1), "another acknowledgement");
        assert!(differs(|bytes| bytes[33] |= Flags::FIN), "the end");
        assert!(differs(|bytes| bytes[35] ^= 1), "another window");

        let (_, _, packets) = singles(false, 1500);
        let mut burst = Burst::default();
        packets.iter().cloned().for_each(|packet| burst.push(packet));
        assert!(!burst.goes_on_with(&packets[0]), "behind PSH");
    }
}
