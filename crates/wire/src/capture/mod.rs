//! Which packets does this capture contain?
//!
//! [`Reader`] takes the bytes of a pcap or pcapng capture as they arrive and gives packets that
//! borrow from them. It does no I/O and no allocation per packet:
//!
//! ```
//! use tcpwhy_wire::capture::{Event, Reader};
//!
//! fn count(capture: &[u8]) -> u64 {
//!     let (mut reader, mut rest, mut packets) = (Reader::new(), capture, 0);
//!     loop {
//!         let step = reader.next(rest, true);
//!         rest = &rest[step.consumed..];
//!         match step.event {
//!             Event::Packet(_) => packets += 1,
//!             Event::Skipped | Event::Damaged(_) => {}
//!             Event::NeedMore(_) => unreachable!("all of the capture is there"),
//!             Event::End => return packets,
//!         }
//!     }
//! }
//! assert_eq!(count(b""), 0);
//! ```

mod bytes;
mod comment;
mod damage;
mod headers;
mod pcap;
mod pcapng;
mod resync;
mod stamps;
pub mod writer;

use std::fmt;

use crate::Instant;
pub use comment::with_comment;
pub use damage::{Damage, DamageKind};
pub use headers::headers;
pub use resync::RESYNC_LEN;
use stamps::{NEXT_LEN, Stamps};

/// Packets are not longer than this: Linux builds super-segments of up to 512 KiB (`GSO_MAX_SIZE`),
/// tcpdump captures 256 KiB.
pub const MAX_PACKET_LEN: u32 = 1 << 20;

/// A longer pcapng block is treated as damage. This limits what a caller must buffer.
pub const MAX_BLOCK_LEN: u32 = 16 << 20;

/// More interfaces in one section are treated as damage. This limits memory.
pub const MAX_INTERFACES: usize = 1 << 16;

/// The link-layer header type that packets start with (the LINKTYPE_ registry of tcpdump.org).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: the address family in the capturing machine's byte order.
    pub const NULL: Self = Self(0);
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without HDLC-like framing.
    pub const PPP: Self = Self(9);
    /// Raw IP, as some BSDs number it.
    pub const RAW_BSD: Self = Self(12);
    /// Raw IP, as OpenBSD numbers it.
    pub const RAW_OPENBSD: Self = Self(14);
    /// PPP in HDLC-like framing (RFC 1662).
    pub const PPP_HDLC: Self = Self(50);
    /// Raw IP; the version field says which.
    pub const RAW: Self = Self(101);
    /// IEEE 802.11.
    pub const IEEE802_11: Self = Self(105);
    /// OpenBSD loopback: the address family in network byte order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture (`tcpdump -i any`).
    pub const LINUX_SLL: Self = Self(113);
    /// IEEE 802.11 with a radiotap header before it.
    pub const IEEE802_11_RADIOTAP: Self = Self(127);
    /// A link header preceded by per-packet information (PPI).
    pub const PPI: Self = Self(192);
    /// PPP with the direction of each packet before it.
    pub const PPP_WITH_DIR: Self = Self(204);
    /// Raw IPv4.
    pub const IPV4: Self = Self(228);
    /// Raw IPv6.
    pub const IPV6: Self = Self(229);
    /// What a rule of a Linux firewall has logged (`tcpdump -i nflog`).
    pub const NFLOG: Self = Self(239);
    /// Packets of a Mac's interfaces, each with the type of its own (`tcpdump -i pktap`).
    pub const PKTAP: Self = Self(258);
    /// Linux "cooked" capture, version 2.
    pub const LINUX_SLL2: Self = Self(276);
}

/// One packet as it is in the capture.
///
/// The fields are in this order, with number and time apart: adjacent, they would be copied into a
/// segment in one piece of 16 bytes, which defeats a processor's store forwarding if they have just
/// been written in two (see [`crate::Usual`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RawPacket<'a> {
    /// Packet number, counted from 1 as Wireshark does.
    pub number: u64,
    /// The type of the header with which `data` begins.
    pub link: LinkType,
    /// The interface within its pcapng section; 0 in pcap.
    pub interface: u32,
    /// Capture time. A pcapng simple packet block has none and gets that of the previous packet, as does a
    /// packet whose stamp is wrong ([`DamageKind::WrongTime`]).
    pub at: Instant,
    /// The captured bytes.
    pub data: &'a [u8],
    /// Bytes on the wire; at least the length of `data`.
    pub original_len: u32,
    /// Packets that the capture lost since the previous packet, if this packet says so.
    pub dropped: u32,
}

/// The bytes at this distance after a packet are prefetched while it is processed: they are the
/// headers of long packets, whose turn comes a few packets later.
const AHEAD: usize = 2048;

/// What [`Reader::next`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Bytes consumed at the front of the buffer: the next call gets the bytes after them.
    pub consumed: usize,
    /// What they were.
    pub event: Event<'a>,
}

/// A piece of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A packet.
    Packet(RawPacket<'a>),
    /// Another block, which was understood or skipped: call again.
    Skipped,
    /// Call again with a buffer of at least this many bytes, or with `at_eof`.
    NeedMore(usize),
    /// Something is wrong here: call again, there may be more after it.
    Damaged(Damage),
    /// End of the capture. Every later call returns this too.
    End,
}

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap with microseconds.
    Pcap,
    /// pcap with nanoseconds.
    PcapNanos,
    /// pcap with Kuznetsov's larger record header.
    PcapModified,
    /// pcapng.
    Pcapng,
}

impl Format {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapNanos => "pcap-ns",
            Self::PcapModified => "pcap-modified",
            Self::Pcapng => "pcapng",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a pcapng capture says about lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// By the interface statistics blocks: `isb_ifdrop` and `isb_osdrop` summed over interfaces and sections.
    pub by_statistics: u64,
    /// By the packets' own drop counts.
    pub by_packets: u64,
}

impl Drops {
    /// Both sources count the same losses, each as far as it knows them.
    pub fn total(self) -> u64 {
        self.by_statistics.max(self.by_packets)
    }
}

/// Reads a capture from bytes as they arrive.
///
/// Call [`Reader::next`] with all bytes that are available and not yet consumed, and with `at_eof`
/// once no more will come. Drop [`Step::consumed`] bytes from the front after each call. With a
/// buffer of 256 KiB or more, [`Event::NeedMore`] is rare; it never asks for more than
/// [`MAX_BLOCK_LEN`] bytes. To stay linear on hostile captures, make room for twice what is asked
/// for when moving bytes to the front.
#[derive(Clone, Debug)]
pub struct Reader {
    /// Offset of the buffer's first byte.
    offset: u64,
    /// Number of the last packet given.
    number: u64,
    format: Option<Format>,
    state: State,
    stamps: Stamps,
}

#[derive(Clone, Debug)]
enum State {
    Start,
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    Stopped,
}

impl State {
    /// Whether the last packet claimed too much, which has not been reported yet.
    fn lies(&self) -> bool {
        match self {
            Self::Pcap(pcap) => pcap.lies(),
            Self::Pcapng(pcapng) => pcapng.lies(),
            Self::Start | Self::Stopped => false,
        }
    }

    /// The time of the packet that begins with these bytes, if it is one.
    fn time_of_next(&self, next: &[u8]) -> Option<Instant> {
        match self {
            Self::Pcap(pcap) => pcap.time_of_next(next),
            Self::Pcapng(pcapng) => pcapng.time_of_next(next),
            Self::Start | Self::Stopped => None,
        }
    }

    /// The packet comes again.
    fn put_back(&mut self, packet: &RawPacket<'_>) {
        if let Self::Pcapng(pcapng) = self {
            pcapng.put_back(packet);
        }
    }
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

impl Reader {
    /// At the start of a capture.
    pub const fn new() -> Self {
        Self::numbered_after(0)
    }

    /// At the start of a capture whose first packet is number `last + 1`: numbers continue over
    /// several inputs.
    pub const fn numbered_after(last: u64) -> Self {
        Self { offset: 0, number: last, format: None, state: State::Start, stamps: Stamps::new() }
    }

    /// The format, once the first bytes have been seen.
    pub const fn format(&self) -> Option<Format> {
        self.format
    }

    /// Number of the last packet given.
    pub const fn last_number(&self) -> u64 {
        self.number
    }

    /// Bytes consumed so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// How many interfaces the capture has described so far; a pcap file describes none.
    pub fn interfaces(&self) -> usize {
        match &self.state {
            State::Pcapng(pcapng) => pcapng.interfaces(),
            State::Start | State::Pcap(_) | State::Stopped => 0,
        }
    }

    /// The losses that the capture has reported so far.
    pub fn drops(&self) -> Drops {
        match &self.state {
            State::Pcapng(pcapng) => pcapng.drops(),
            _ => Drops::default(),
        }
    }

    /// The next piece of the capture, at the front of `buf`.
    #[expect(clippy::inline_always, reason = "a segment is not copied from step to step")]
    #[inline(always)]
    pub fn next<'a>(&mut self, buf: &'a [u8], at_eof: bool) -> Step<'a> {
        let mut step = if let State::Pcap(pcap) = &mut self.state {
            pcap.next(buf, at_eof, self.offset, self.number + 1)
        } else {
            self.next_of_others(buf, at_eof)
        };
        if let Event::Packet(packet) = &mut step.event {
            if packet.at > self.stamps.until {
                // A copy is weighed: what a function is lent lies in memory, also where it is not called.
                let mut weighed = *packet;
                if let Some(first) = self.weigh_time(&mut weighed, buf, step.consumed, at_eof) {
                    return Step { consumed: 0, event: first };
                }
                *packet = weighed;
            }
            self.stamps.last = packet.at;
        }
        self.offset += step.consumed as u64;
        self.number += u64::from(matches!(step.event, Event::Packet(_)));
        tcpwhy_ahead::fetch_bytes(buf, step.consumed + AHEAD, step.consumed);
        step
    }

    /// The same for anything but a pcap file.
    #[inline(never)]
    fn next_of_others<'a>(&mut self, buf: &'a [u8], at_eof: bool) -> Step<'a> {
        match &mut self.state {
            State::Pcapng(pcapng) => pcapng.next(buf, at_eof, self.offset, self.number + 1),
            State::Start => self.start(buf, at_eof),
            State::Pcap(_) | State::Stopped => Step { consumed: 0, event: Event::End },
        }
    }

    /// Takes a packet that is dated long after the previous ones, with its predecessor's time if its own is
    /// wrong. Or returns what has to come before it.
    #[cold]
    #[inline(never)]
    fn weigh_time<'a>(
        &mut self,
        packet: &mut RawPacket<'a>,
        buf: &'a [u8],
        consumed: usize,
        at_eof: bool,
    ) -> Option<Event<'a>> {
        let number = self.number + 1;
        if self.stamps.wrong == number {
            packet.at = self.stamps.last;
            return None;
        }
        let wanted = consumed + NEXT_LEN;
        // Of a packet that claims too much, this is reported first.
        if !self.stamps.is_first() && !self.state.lies() && wanted <= MAX_BLOCK_LEN as usize {
            let next = buf.get(consumed..wanted).and_then(|next| self.state.time_of_next(next));
            let first = match next {
                None if !at_eof && buf.len() < wanted => Some(Event::NeedMore(wanted)),
                Some(next) if self.stamps.is_wrong(packet.at, next) => {
                    self.stamps.wrong = number;
                    let (stamp, previous) = (packet.at, self.stamps.last);
                    let what = DamageKind::WrongTime { ahead: stamp - previous };
                    Some(Event::Damaged(Damage { offset: self.offset, what }))
                }
                _ => None,
            };
            if first.is_some() {
                self.state.put_back(packet);
                return first;
            }
        }
        self.stamps.pass(packet.at);
        None
    }

    /// Undoes the last [`Reader::next`], which gave this packet and consumed this many bytes: the
    /// packet comes again.
    #[cold]
    pub fn put_back(&mut self, packet: &RawPacket<'_>, consumed: usize) {
        self.offset -= consumed as u64;
        self.number -= 1;
        self.state.put_back(packet);
    }

    /// Finds the first place in bytes from the middle of this capture, from `offset` on, where a
    /// packet or block certainly begins. The reader must have given the capture's first packet,
    /// which shows what to look for. [`RESYNC_LEN`] bytes are enough; with fewer, or damaged ones,
    /// no place may be found.
    pub fn resynchronise(&self, buf: &[u8], at_eof: bool, offset: u64, first: Instant) -> Option<usize> {
        match &self.state {
            State::Pcap(pcap) => resync::find(buf, at_eof, 1, |bytes| pcap.plausible_record(bytes, first)),
            State::Pcapng(pcapng) => {
                // Blocks are multiples of four bytes long.
                let skip = (offset.next_multiple_of(4) - offset) as usize;
                let found = resync::find(buf.get(skip..)?, at_eof, 4, |bytes| pcapng.looks_like_block(bytes));
                found.map(|at| at + skip)
            }
            State::Start | State::Stopped => None,
        }
    }

    /// Continues at another offset of the capture, where a packet or block begins: the next call
    /// gets the bytes there. Packet numbers continue from the last one given; times are those of the stamps.
    pub fn jump(&mut self, offset: u64) {
        self.offset = offset;
        self.stamps.end();
    }

    #[cold]
    fn start<'a>(&mut self, buf: &'a [u8], at_eof: bool) -> Step<'a> {
        let Some(&magic) = buf.first_chunk::<4>() else {
            if !at_eof {
                return Step { consumed: 0, event: Event::NeedMore(4) };
            }
            let what = match buf.len() {
                0 => DamageKind::Empty,
                has => DamageKind::CutShort { needs: 24, has: has as u64 },
            };
            return self.stop(what);
        };
        if magic == pcapng::SECTION_HEADER.to_be_bytes() {
            self.format = Some(Format::Pcapng);
            self.state = State::Pcapng(pcapng::Pcapng::default());
            return Step { consumed: 0, event: Event::Skipped };
        }
        let Some((format, order)) = pcap::recognise(magic) else {
            return self.stop(DamageKind::NotACapture(magic));
        };
        let Some(header) = buf.first_chunk::<{ pcap::FILE_HEADER_LEN }>() else {
            if !at_eof {
                return Step { consumed: 0, event: Event::NeedMore(pcap::FILE_HEADER_LEN) };
            }
            self.format = Some(format);
            let needs = pcap::FILE_HEADER_LEN as u64;
            return self.stop(DamageKind::CutShort { needs, has: buf.len() as u64 });
        };
        self.format = Some(format);
        self.state = State::Pcap(pcap::Pcap::new(format, order, header));
        Step { consumed: pcap::FILE_HEADER_LEN, event: Event::Skipped }
    }

    fn stop<'a>(&mut self, what: DamageKind) -> Step<'a> {
        self.state = State::Stopped;
        Step { consumed: 0, event: Event::Damaged(Damage { offset: self.offset, what }) }
    }
}
