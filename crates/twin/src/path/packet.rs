//! What is a packet to the path? Its bytes, its length on the wire, and the few TCP fields that
//! elements use.

use tcpwhy_wire::{Endpoint, Flags, Instant, Seq};

use super::record::{DropReason, Waits};

/// One IP packet on its way through a path.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Number in the order of entry into its direction of the path, from 1. Set by the pipe.
    pub id: u64,
    /// The packet that a duplicating element copied this one from.
    pub copy_of: Option<u64>,
    /// When it entered the path.
    pub entered: Instant,
    /// When it reached its current element, by the path's own clock. An element that releases a packet later than it
    /// was due (a real clock can only be late) writes the due time, so that lateness does not add up.
    pub at: Instant,
    /// The packet from the IP header on; a model may leave it empty.
    pub bytes: Vec<u8>,
    /// Length on the wire in bytes, from the IP header on.
    pub len: u32,
    /// Work that the sending host left to the interface.
    pub offload: Offload,
    /// The TCP header, if the packet has a readable one.
    pub tcp: Option<TcpHead>,
    /// The effects of the elements so far.
    pub waits: Waits,
    /// Which element dropped it, counted from 0 at the sending host, and why. Set by the pipe.
    pub dropped: Option<(usize, DropReason)>,
    /// When it reached its current element. Set by the pipe.
    pub(super) arrived: Instant,
}

impl Packet {
    /// A packet from its bytes, IP header first.
    pub fn from_ip(bytes: Vec<u8>, offload: Offload, now: Instant) -> Self {
        let tcp = TcpHead::parse(&bytes);
        let len = bytes.len() as u32;
        Self { bytes, offload, ..Self::model(len, tcp, now) }
    }

    /// A packet of a model: no bytes, only a length on the wire and a TCP header.
    pub fn model(len: u32, tcp: Option<TcpHead>, now: Instant) -> Self {
        Self {
            id: 0,
            copy_of: None,
            entered: now,
            at: now,
            bytes: Vec::new(),
            len,
            offload: Offload::default(),
            tcp,
            waits: Waits::default(),
            dropped: None,
            arrived: now,
        }
    }

    /// Payload bytes of TCP; zero for anything else.
    pub fn payload_len(&self) -> u32 {
        self.tcp.as_ref().map_or(0, |tcp| tcp.payload_len)
    }
}

/// Work left undone by a host with checksum and segmentation offload: the fields of the virtio
/// network header (virtio 1.2, 5.1.6), which TUN passes along with `IFF_VNET_HDR`. The path passes
/// them on unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// `VIRTIO_NET_HDR_F_*`: 1 means that the checksum from `csum_start` on is still to be
    /// computed.
    pub flags: u8,
    /// `VIRTIO_NET_HDR_GSO_*`: 0 for one packet, otherwise a super-segment of that protocol.
    pub gso_type: u8,
    /// Length of all headers.
    pub header_len: u16,
    /// Payload bytes of each segment in the super-segment.
    pub gso_size: u16,
    /// Where the checksummed region starts.
    pub csum_start: u16,
    /// Offset of the checksum field in that region.
    pub csum_offset: u16,
}

impl Offload {
    /// Whether the packet stands for several.
    pub const fn is_super_segment(self) -> bool {
        self.gso_type != 0
    }
}

/// The TCP fields that elements use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpHead {
    /// Source.
    pub src: Endpoint,
    /// Destination.
    pub dst: Endpoint,
    /// Sequence number.
    pub seq: Seq,
    /// Acknowledgement number.
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Payload bytes.
    pub payload_len: u32,
    /// The MSS option (only on SYN).
    pub mss: Option<u16>,
    /// The header carries time stamps, which take 12 bytes of every segment (RFC 7323, appendix A).
    pub timestamps: bool,
    /// The header carries selective acknowledgements.
    pub sack: bool,
}

impl TcpHead {
    /// Parses the header of an IPv4 or IPv6 packet; `None` for other protocols, later fragments and
    /// truncated headers.
    pub fn parse(ip: &[u8]) -> Option<Self> {
        let (src, dst, tcp_at) = match ip.first()? >> 4 {
            4 => {
                let later_fragment = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x1fff != 0;
                if *ip.get(9)? != PROTOCOL_TCP || later_fragment {
                    return None;
                }
                let src: [u8; 4] = ip.get(12..16)?.try_into().ok()?;
                let dst: [u8; 4] = ip.get(16..20)?.try_into().ok()?;
                (Endpoint::v4(src, 0), Endpoint::v4(dst, 0), usize::from(ip[0] & 0x0f) * 4)
            }
            // Extension headers do not occur between the laboratory's own hosts.
            6 if *ip.get(6)? == PROTOCOL_TCP => {
                let src: [u8; 16] = ip.get(8..24)?.try_into().ok()?;
                let dst: [u8; 16] = ip.get(24..40)?.try_into().ok()?;
                (Endpoint::v6(src, 0), Endpoint::v6(dst, 0), 40)
            }
            _ => return None,
        };
        let tcp = ip.get(tcp_at..)?;
        let fixed: &[u8; 20] = tcp.first_chunk()?;
        let word = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let header_len = usize::from(fixed[12] >> 4) * 4;
        let mut head = Self {
            src: Endpoint { port: half(0), ..src },
            dst: Endpoint { port: half(2), ..dst },
            seq: Seq(word(4)),
            ack: Seq(word(8)),
            flags: Flags(fixed[13]),
            window: half(14),
            payload_len: tcp.len().checked_sub(header_len)? as u32,
            mss: None,
            timestamps: false,
            sack: false,
        };
        head.read_options(tcp.get(20..header_len)?);
        Some(head)
    }

    /// Bytes of sequence space: payload, SYN and FIN.
    pub const fn seq_len(&self) -> u32 {
        self.payload_len + self.flags.syn() as u32 + self.flags.fin() as u32
    }

    /// An ACK without payload, SYN, FIN or RST.
    pub const fn is_pure_ack(&self) -> bool {
        self.payload_len == 0
            && self.flags.ack()
            && !self.flags.syn()
            && !self.flags.fin()
            && !self.flags.rst()
    }

    /// RFC 9293, 3.1: kind, length, value; 0 ends the list, 1 is padding. A malformed option ends
    /// it too.
    fn read_options(&mut self, mut options: &[u8]) {
        loop {
            match *options {
                [1, ref rest @ ..] => options = rest,
                [kind, len, ..] if kind != 0 && len >= 2 && usize::from(len) <= options.len() => {
                    let (option, rest) = options.split_at(usize::from(len));
                    match *option {
                        [2, 4, high, low] => self.mss = Some(u16::from_be_bytes([high, low])),
                        [5, ..] => self.sack = true,
                        [8, 10, ..] => self.timestamps = true,
                        _ => {}
                    }
                    options = rest;
                }
                _ => return,
            }
        }
    }
}

const PROTOCOL_TCP: u8 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[rustfmt::skip]
    const SYN: [u8; 60] = [
        0x45, 0, 0, 60, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2, // IPv4, don't fragment, TCP
        0x9c, 0x40, 0, 80,                                                      // 40000 -> 80
        0x12, 0x34, 0x56, 0x78, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0, 0, // seq, ack, 40 bytes, SYN, 64240
        2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 10,     // MSS 1460, SACK permitted, TS, WS
    ];

    #[test]
    fn a_syn_is_read_with_its_options() {
        let head = TcpHead::parse(&SYN).expect("a whole header");
        assert_eq!(head.src, Endpoint::v4([10, 77, 0, 1], 40_000));
        assert_eq!(head.dst, Endpoint::v4([10, 77, 0, 2], 80));
        assert_eq!((head.seq, head.window, head.payload_len), (Seq(0x1234_5678), 64_240, 0));
        assert!(head.flags.syn() && head.timestamps && !head.sack);
        assert_eq!(head.mss, Some(1460));
        assert_eq!(head.seq_len(), 1);
    }

    #[test]
    fn a_cut_header_is_no_tcp_and_no_panic() {
        for cut in 0..SYN.len() {
            assert_eq!(TcpHead::parse(&SYN[..cut]), None, "cut at {cut}");
        }
    }
}
