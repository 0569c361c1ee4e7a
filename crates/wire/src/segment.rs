//! One TCP segment as the capture saw it.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::{Instant, Seq};

/// An address and a port. IPv4 addresses are kept in IPv4-mapped form (RFC 4291, 2.5.5.2), so that
/// comparing and hashing endpoints is the same work for both families.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The address in network order as a number; IPv4 as `::ffff:a.b.c.d`.
    pub addr: u128,
    /// The TCP port.
    pub port: u16,
}

impl Endpoint {
    /// Whether only the host itself has this address (RFC 1122, 3.2.1.3, g; RFC 4291, 2.5.3).
    #[inline]
    pub const fn is_loopback(self) -> bool {
        self.addr == 1 || self.addr >> 24 == 0x00ff_ff7f
    }

    /// From the four bytes of an IPv4 address.
    #[inline]
    pub const fn v4(addr: [u8; 4], port: u16) -> Self {
        Self { addr: 0xffff_0000_0000 | u32::from_be_bytes(addr) as u128, port }
    }

    /// From the sixteen bytes of an IPv6 address.
    #[inline]
    pub const fn v6(addr: [u8; 16], port: u16) -> Self {
        Self { addr: u128::from_be_bytes(addr), port }
    }

    /// The address in the standard library's form; IPv4 if it is a mapped address.
    #[inline]
    pub fn ip(self) -> IpAddr {
        IpAddr::V6(Ipv6Addr::from(self.addr)).to_canonical()
    }
}

impl fmt::Display for Endpoint {
    /// `10.0.0.2:80` or `[2001:db8::1]:80`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.ip(), self.port).fmt(f)
    }
}

/// The control bits of the header (RFC 9293, 3.1), in the order of their bits on the wire.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push: this segment emptied the sender's buffer (this is how stacks use it).
    pub const PSH: u8 = 0x08;
    /// The acknowledgement field is valid.
    pub const ACK: u8 = 0x10;

    /// FIN is set.
    #[inline]
    pub const fn fin(self) -> bool {
        self.0 & Self::FIN != 0
    }

    /// SYN is set.
    #[inline]
    pub const fn syn(self) -> bool {
        self.0 & Self::SYN != 0
    }

    /// RST is set.
    #[inline]
    pub const fn rst(self) -> bool {
        self.0 & Self::RST != 0
    }

    /// PSH is set.
    #[inline]
    pub const fn psh(self) -> bool {
        self.0 & Self::PSH != 0
    }

    /// ACK is set.
    #[inline]
    pub const fn ack(self) -> bool {
        self.0 & Self::ACK != 0
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (bit, letter) in
            [(Self::SYN, 'S'), (Self::FIN, 'F'), (Self::RST, 'R'), (Self::PSH, 'P'), (Self::ACK, '.')]
        {
            if self.0 & bit != 0 {
                write!(f, "{letter}")?;
            }
        }
        Ok(())
    }
}

/// RFC 7323 time stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval: the sender's clock when it sent.
    pub val: u32,
    /// TSecr: the peer's clock value that this segment echoes.
    pub ecr: u32,
}

/// One selective acknowledgement (RFC 2018): bytes from `start` up to but not including `end` have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: Seq,
    /// The byte after the last.
    pub end: Seq,
}

/// The options relevant to timing. Unknown options are skipped; malformed ones end the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size in bytes (only on SYN).
    pub mss: Option<u16>,
    /// Window scale shift (only on SYN; RFC 7323 caps it at 14).
    pub window_scale: Option<u8>,
    /// SACK permitted (only on SYN).
    pub sack_permitted: bool,
    /// The captured bytes end within them: options missing here may have been sent.
    pub cut: bool,
    /// Time stamps.
    pub timestamps: Option<Timestamps>,
    /// Bytes of the header used by options other than the time stamps with their padding (not on
    /// SYN): they reduce the payload below the MSS (RFC 6691).
    pub beside_stamps: u8,
    pub(crate) sack: [SackBlock; 4],
    pub(crate) sack_blocks: u8,
}

impl TcpOptions {
    /// The SACK blocks in the order of the header; the first may be a D-SACK (RFC 2883).
    #[inline]
    pub fn sack(&self) -> &[SackBlock] {
        &self.sack[..self.sack_blocks as usize]
    }

    /// Adds a block; a fifth, which no header can hold, is ignored.
    #[inline]
    pub fn push_sack(&mut self, block: SackBlock) {
        if let Some(slot) = self.sack.get_mut(self.sack_blocks as usize) {
            *slot = block;
            self.sack_blocks += 1;
        }
    }
}

/// One TCP segment as the capture saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Packet number in the capture, counted from 1 as Wireshark does, across all inputs of one run.
    pub packet: u64,
    /// Capture time.
    pub at: Instant,
    /// Its source.
    pub src: Endpoint,
    /// Its destination.
    pub dst: Endpoint,
    /// Sequence number of the first byte (of the SYN itself on a SYN).
    pub seq: Seq,
    /// Acknowledgement number; meaningless without [`Flags::ack`].
    pub ack: Seq,
    /// The window field, not yet scaled.
    pub window: u16,
    /// Control bits.
    pub flags: Flags,
    /// Payload bytes, from the IP header and not from the captured length. More than an MSS if it
    /// was captured before the interface split it (TSO) or after it was merged (GRO).
    pub payload_len: u32,
    /// Options.
    pub options: TcpOptions,
    /// IPv4 identification. Linux counts it up per connection and packet, so that a gap is a packet
    /// that the capture did not see (`ip_select_ident_segs`, net/ipv4). IPv6 has none.
    pub ip_id: Option<u16>,
    /// Time to live (IPv4) or hop limit (IPv6): tells two sightings of one packet from two packets.
    pub ttl: u8,
    /// Its checksum is wrong: the receiver drops it. Not set by decoding.
    pub damaged: bool,
}

impl Segment {
    /// Bytes of sequence space: payload, SYN and FIN.
    #[inline]
    pub const fn seq_len(&self) -> u32 {
        self.payload_len + self.flags.syn() as u32 + self.flags.fin() as u32
    }

    /// The sequence number after this segment.
    #[inline]
    pub fn seq_end(&self) -> Seq {
        self.seq + self.seq_len()
    }
}
