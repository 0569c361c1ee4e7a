//! How would a network card with TSO split this super-segment? Into the packets that it stands for,
//! so that a path can queue, lose and delay each of them while the sending host (and a capture on
//! it) sees the whole.

use tcpwhy_twin::path::Offload;

/// The single packets of a super-segment, in order, each with its headers. Their TCP checksums are
/// left to the receiver, as they came. `None` if the packet does not match its offload header.
pub(crate) fn split(packet: &[u8], offload: Offload) -> Option<impl Iterator<Item = Vec<u8>> + '_> {
    let tcp_at = usize::from(offload.csum_start);
    let data_at = tcp_at + usize::from(packet.get(tcp_at + 12)? >> 4) * 4;
    let (headers, payload) = packet.split_at_checked(data_at)?;
    let size = usize::from(offload.gso_size);
    let version = headers.first()? >> 4;
    let ip_len_fits = if version == 4 { tcp_at >= 20 } else { version == 6 && tcp_at >= 40 };
    if size == 0 || payload.is_empty() || !ip_len_fits || headers.len() < tcp_at + 20 {
        return None;
    }
    let last = payload.len().div_ceil(size) - 1;
    Some(payload.chunks(size).enumerate().map(move |(n, data)| {
        let mut packet = Vec::with_capacity(headers.len() + data.len());
        packet.extend_from_slice(headers);
        packet.extend_from_slice(data);
        fix_ip(&mut packet, n as u16);
        fix_tcp(&mut packet, tcp_at, (n * size) as u32, n == 0, n == last);
        packet
    }))
}

/// The offload of a single packet of a super-segment with `offload`.
pub(crate) const fn offload_of_single(offload: Offload) -> Offload {
    Offload { gso_type: 0, header_len: 0, gso_size: 0, ..offload }
}

/// Fixes the length and, for IPv4, the identification, which counts up (`inet_gso_segment`), and
/// the header checksum.
pub(crate) fn fix_ip(packet: &mut [u8], n: u16) {
    if packet[0] >> 4 == 4 {
        let len = (packet.len() as u16).to_be_bytes();
        packet[2..4].copy_from_slice(&len);
        let id = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(n).to_be_bytes();
        packet[4..6].copy_from_slice(&id);
        packet[10..12].fill(0);
        let header_len = usize::from(packet[0] & 0x0f) * 4;
        let sum = !fold(sum(&packet[..header_len]));
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    } else {
        let len = ((packet.len() - 40) as u16).to_be_bytes();
        packet[4..6].copy_from_slice(&len);
    }
}

/// Fixes the sequence number, the flags, and the sender's part of the checksum: that of the pseudo
/// header.
pub(crate) fn fix_tcp(packet: &mut [u8], tcp_at: usize, offset: u32, is_first: bool, is_last: bool) {
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    let len = (packet.len() - tcp_at) as u32;
    let pseudo = fold(sum(&packet[addresses]) + PROTOCOL_TCP + len);
    let tcp = &mut packet[tcp_at..];
    let seq = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(offset);
    tcp[4..8].copy_from_slice(&seq.to_be_bytes());
    // `tcp_gso_segment`: FIN and PSH belong to the last, CWR to the first.
    if !is_last {
        tcp[13] &= !(FIN | PSH);
    }
    if !is_first {
        tcp[13] &= !CWR;
    }
    tcp[16..18].copy_from_slice(&pseudo.to_be_bytes());
}

/// The sum of 16-bit words of RFC 1071, not folded.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]))).sum()
}

const fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

const PROTOCOL_TCP: u32 = 6;
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use tcpwhy_twin::path::TcpHead;

    /// A super-segment as the kernel hands it over: headers, and `payload` bytes that count up.
    pub(crate) fn super_segment(v6: bool, payload: u16) -> (Vec<u8>, Offload) {
        let mut packet = Vec::new();
        if v6 {
            packet.extend([0x60, 0, 0, 0, 0, 0, 6, 64]);
            packet.extend([0xfd; 16]);
            packet.extend([0xfe; 16]);
        } else {
            packet.extend([0x45, 0, 0, 0, 0xff, 0xff, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
        }
        let csum_start = packet.len() as u16;
        // Ports, sequence number just below the wrap, acknowledgement, 20 bytes, CWR ACK PSH FIN, window.
        packet.extend([0x9c, 0x40, 0, 80, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x50, 0x99, 1, 0, 0, 0, 0, 0]);
        packet.extend((0..payload).map(|n| n as u8));
        let offload =
            Offload { flags: 1, gso_type: 1, header_len: 40, gso_size: 1000, csum_start, csum_offset: 16 };
        (packet, offload)
    }

    #[test]
    fn a_super_segment_becomes_the_packets_that_a_card_would_send() {
        for v6 in [false, true] {
            let (packet, offload) = super_segment(v6, 2500);
            let parts: Vec<_> = split(&packet, offload).expect("a super-segment").collect();
            let heads: Vec<_> = parts.iter().map(|part| TcpHead::parse(part).expect("a header")).collect();
            assert_eq!(heads.iter().map(|head| head.payload_len).collect::<Vec<_>>(), [1000, 1000, 500]);
            let start = heads[0].seq;
            assert_eq!(heads.iter().map(|head| head.seq - start).collect::<Vec<_>>(), [0, 1000, 2000]);
            assert_eq!(heads.iter().map(|head| head.flags.0).collect::<Vec<_>>(), [0x90, 0x10, 0x19]);
            let data_at = usize::from(offload.csum_start) + 20;
            let joined: Vec<u8> = parts.iter().flat_map(|part| part[data_at..].to_vec()).collect();
            assert_eq!(joined, packet[data_at..]);
            if !v6 {
                let ids: Vec<_> = parts.iter().map(|part| u16::from_be_bytes([part[4], part[5]])).collect();
                assert_eq!(ids, [0xffff, 0, 1]);
                // A header including its checksum sums to all ones (RFC 1071).
                assert!(parts.iter().all(|part| fold(sum(&part[..20])) == 0xffff));
            }
        }
    }

    #[test]
    fn what_is_no_super_segment_is_not_split() {
        let (packet, offload) = super_segment(false, 2500);
        for cut in 0..=40 {
            assert!(split(&packet[..cut], offload).is_none(), "cut at {cut}");
        }
        assert!(split(&packet, Offload { gso_size: 0, ..offload }).is_none());
        assert!(split(&packet, Offload { csum_start: 3000, ..offload }).is_none());
    }
}
