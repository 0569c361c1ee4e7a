//! What is wrong with this capture, and where? Damage is a value: everything readable around it is
//! kept.

use std::fmt;

use crate::Duration;

/// One place in a capture that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset from the start of the (decompressed) capture, bytes.
    pub offset: u64,
    /// What is wrong there.
    pub what: DamageKind,
}

/// What is wrong at a place in a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamageKind {
    /// Not a single byte.
    Empty,
    /// The first four bytes are of no supported capture format.
    NotACapture([u8; 4]),
    /// The capture ends inside a header, record or block.
    CutShort {
        /// Bytes that the piece needs from `offset` on.
        needs: u64,
        /// Bytes available.
        has: u64,
    },
    /// A pcap record claims to be longer than any packet.
    RecordTooLong(u32),
    /// A packet claims more captured bytes than it had on the wire. It is read anyway; this is
    /// reported once.
    MoreCapturedThanSent {
        /// Bytes captured.
        captured: u32,
        /// Bytes on the wire.
        original: u32,
    },
    /// A record's time has a fraction of a second of this many ticks, which are a second or more: whatever
    /// wrote it did not know what the field means (draft-ietf-opsawg-pcap, 5), and within a second no time of
    /// the capture can be relied on. The packet is read anyway; this is reported once.
    BeyondItsSecond {
        /// The fraction, in the file's unit.
        ticks: u32,
    },
    /// A packet is dated long after the one before it, and the next one is back at that one's time. It
    /// comes after this, with the time of the packet before it.
    WrongTime {
        /// How long after that packet.
        ahead: Duration,
    },
    /// A pcapng block with an impossible length: below 12, not a multiple of 4, or above
    /// [`super::MAX_BLOCK_LEN`].
    BlockLength(u32),
    /// The two length fields of a pcapng block differ.
    BlockLengthsDiffer(u32, u32),
    /// A pcapng section without the byte-order magic.
    ByteOrderMagic,
    /// A pcapng block too short for its fixed fields or for the packet that it claims to hold.
    BlockBody(u32),
    /// A packet of an interface that its section has not described.
    NoSuchInterface(u32),
    /// More interfaces than a section may describe ([`super::MAX_INTERFACES`]).
    TooManyInterfaces,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.offset, self.what)
    }
}

impl fmt::Display for DamageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty => f.write_str("the capture is empty"),
            Self::NotACapture(bytes) => {
                let magic = u32::from_be_bytes(bytes);
                write!(f, "not a pcap or pcapng capture (it starts with the bytes {magic:08x})")
            }
            Self::CutShort { needs, has } => {
                write!(f, "the capture is truncated: {needs} bytes announced, {has} found")
            }
            Self::RecordTooLong(len) => write!(f, "a packet record claims {len} bytes; reading stops here"),
            Self::MoreCapturedThanSent { captured, original } => {
                write!(f, "a packet claims {captured} captured bytes of {original} on the wire")
            }
            Self::BeyondItsSecond { ticks } => write!(
                f,
                "a packet's time has {ticks} units in its fraction of a second, which are a second or more: the capture's times are wrong"
            ),
            Self::WrongTime { ahead } => write!(
                f,
                "a packet is dated {} s after the packet before it, but the next one is not; its time is taken to be that of the packet before",
                ahead.as_nanos() / 1_000_000_000
            ),
            Self::BlockLength(len) => write!(f, "a block claims the impossible length of {len} bytes"),
            Self::BlockLengthsDiffer(first, last) => {
                write!(f, "a block's two lengths differ: {first} and {last} bytes")
            }
            Self::ByteOrderMagic => f.write_str("a section header without the byte-order magic"),
            Self::BlockBody(kind) => write!(f, "a block of type {kind:#x} is too short for what it claims"),
            Self::NoSuchInterface(id) => write!(f, "a packet of interface {id}, which is not described"),
            Self::TooManyInterfaces => f.write_str("too many interfaces"),
        }
    }
}
