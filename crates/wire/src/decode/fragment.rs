//! Which fragment of which IP packet is this, and was it the last one missing?
//!
//! A host reassembles fragments before TCP sees them (RFC 791, 3.2; RFC 8200, 4.5), and so does
//! this: the result is one packet, at the time of the fragment that completed it. Fragments wait as
//! long as on Linux, in as much memory (`ipfrag_time`, `ipfrag_high_thresh`,
//! Documentation/networking/ip-sysctl.rst); a packet with overlapping fragments is dropped (RFC
//! 5722, 3; `ip_frag_queue`, net/ipv4/ip_fragment.c).

use std::collections::BTreeMap;

use super::link::{self, Version};
use super::{Skip, ip};
use crate::capture::{LinkType, RawPacket};
use crate::{Duration, Instant};

/// How long a fragment waits for the others.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Memory for all fragments.
const BYTES_MAX: usize = 4 << 20;
/// Packets with waiting fragments.
const PACKETS_MAX: usize = 1 << 10;
/// Ranges of one packet that do not touch each other; 64 KB take 44 fragments of 1,500 bytes.
const SPANS_MAX: usize = 64;
/// Memory for an incomplete packet besides its bytes.
const PENDING: usize = size_of::<Pending>() + size_of::<Key>() + 96;
/// The longest IP packet, with its header.
const PACKET_MAX: u32 = 65_535;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
/// The fragment header of IPv6 (RFC 8200, 4.5).
const FRAGMENT: u8 = 44;

/// The key shared by all fragments of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    src: u128,
    dst: u128,
    id: u32,
    protocol: u8,
    version: u8,
}

impl Key {
    const fn header_len(&self) -> u32 {
        (if self.version == 4 { IPV4_HEADER } else { IPV6_HEADER }) as u32
    }
}

/// A fragment of a packet.
struct Piece<'a> {
    key: Key,
    ttl: u8,
    /// Its range in the packet, after the IP header.
    begin: u32,
    end: u32,
    is_last: bool,
    captured: &'a [u8],
}

/// A packet of which some fragments have arrived.
#[derive(Clone, Debug)]
struct Pending {
    since: Instant,
    serial: u64,
    ttl: u8,
    /// Ranges that have arrived, in order; none touches the next.
    spans: Vec<(u32, u32)>,
    bytes: Vec<u8>,
    /// Beyond this byte, not all was captured.
    captured: u32,
    len: Option<u32>,
    pieces: u64,
}

/// The result of adding a fragment.
#[derive(Debug, PartialEq, Eq)]
pub enum Put<'a> {
    /// It waits for the others.
    Waits,
    /// It cannot be reassembled.
    Refused,
    /// It was the last of this many: here is their packet.
    Whole(RawPacket<'a>, u64),
}

/// Fragments that wait for others.
#[derive(Clone, Debug, Default)]
pub struct Fragments {
    pending: BTreeMap<Key, Pending>,
    /// In the order in which their first fragments came.
    oldest: BTreeMap<u64, Key>,
    serial: u64,
    held: usize,
    whole: Vec<u8>,
}

impl Fragments {
    /// Whether no fragment waits.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Bytes held, approximately.
    pub fn memory(&self) -> usize {
        self.held + self.whole.capacity()
    }

    /// Takes a fragment; `skip` is the result of decoding it. Later fragments of UDP, which do not
    /// show that they belong to a tunnel, are taken if an earlier one waits.
    #[cold]
    pub fn put(&mut self, packet: &RawPacket<'_>, skip: Skip) -> Put<'_> {
        let Ok(piece) = piece(packet) else { return Put::Refused };
        let known = self.pending.contains_key(&piece.key);
        if skip != Skip::Fragment && !known || piece.end > PACKET_MAX - IPV4_HEADER as u32 {
            return Put::Refused;
        }
        if !known {
            self.make_room(packet.at);
            self.begin(&piece, packet.at);
        }
        let Some(pending) = self.pending.get_mut(&piece.key) else { return Put::Refused };
        let held = pending.held();
        let fits = pending.add(&piece);
        self.held = self.held - held + pending.held();
        if !fits {
            self.give_up(piece.key);
            return Put::Refused;
        }
        if !pending.is_whole() {
            return Put::Waits;
        }
        let Some(pending) = self.give_up(piece.key) else { return Put::Refused };
        self.build(&piece.key, &pending);
        let len = pending.len.unwrap_or(0) + piece.key.header_len();
        let data = &self.whole[..];
        Put::Whole(RawPacket { link: LinkType::RAW, data, original_len: len, ..*packet }, pending.pieces)
    }

    fn begin(&mut self, piece: &Piece<'_>, at: Instant) {
        self.serial += 1;
        let pending = Pending {
            since: at,
            serial: self.serial,
            ttl: piece.ttl,
            spans: Vec::new(),
            bytes: Vec::new(),
            captured: PACKET_MAX,
            len: None,
            pieces: 0,
        };
        self.held += pending.held();
        self.oldest.insert(self.serial, piece.key);
        self.pending.insert(piece.key, pending);
    }

    /// Drops packets that have waited too long, and the oldest if there are too many.
    fn make_room(&mut self, now: Instant) {
        while let Some((_, key)) = self.oldest.first_key_value() {
            let over = self.pending.len() >= PACKETS_MAX || self.held >= BYTES_MAX;
            let late = self.pending.get(key).is_none_or(|pending| now - pending.since > WAIT_MAX);
            if !over && !late {
                return;
            }
            let key = *key;
            if self.give_up(key).is_none() {
                self.oldest.pop_first();
            }
        }
    }

    fn give_up(&mut self, key: Key) -> Option<Pending> {
        let pending = self.pending.remove(&key)?;
        self.oldest.remove(&pending.serial);
        self.held -= pending.held();
        Some(pending)
    }

    /// Builds the packet as it would have passed unfragmented.
    fn build(&mut self, key: &Key, pending: &Pending) {
        let len = pending.len.unwrap_or(0);
        let whole = &mut self.whole;
        whole.clear();
        if key.version == 4 {
            let total = (len + IPV4_HEADER as u32) as u16;
            whole.extend([0x45, 0]);
            whole.extend(total.to_be_bytes());
            whole.extend((key.id as u16).to_be_bytes());
            whole.extend([0, 0, pending.ttl, key.protocol, 0, 0]);
            whole.extend((key.src as u32).to_be_bytes());
            whole.extend((key.dst as u32).to_be_bytes());
        } else {
            whole.extend([0x60, 0, 0, 0]);
            whole.extend((len as u16).to_be_bytes());
            whole.extend([key.protocol, pending.ttl]);
            whole.extend(key.src.to_be_bytes());
            whole.extend(key.dst.to_be_bytes());
        }
        let there = (len.min(pending.captured) as usize).min(pending.bytes.len());
        whole.extend(&pending.bytes[..there]);
    }
}

impl Pending {
    fn held(&self) -> usize {
        PENDING + self.bytes.capacity() + self.spans.capacity() * size_of::<(u32, u32)>()
    }

    /// Adds a fragment; false if it contradicts the others. A duplicate changes nothing.
    fn add(&mut self, piece: &Piece<'_>) -> bool {
        let ends = piece.is_last.then_some(piece.end);
        let beyond = self.len.is_some_and(|len| piece.end > len);
        let further = ends.is_some_and(|end| self.spans.last().is_some_and(|(_, last)| *last > end));
        if beyond || further || self.len.is_some_and(|len| ends.is_some_and(|end| end != len)) {
            return false;
        }
        self.len = self.len.or(ends);
        self.pieces += 1;
        // The first span that ends where this one begins, or later.
        let place = self.spans.partition_point(|(_, end)| *end < piece.begin);
        let (mut begin, mut end) = (piece.begin, piece.end);
        match self.spans.get(place) {
            Some((from, to)) if *from <= begin && end <= *to => return true,
            Some((from, to)) if *from < end && begin < *to => return false,
            _ => {}
        }
        if self.spans.get(place + 1).is_some_and(|(from, _)| *from < end) {
            return false;
        }
        let behind = self.spans.get(place).is_some_and(|(_, to)| *to == begin);
        let mut replaced = place..place;
        if behind {
            begin = self.spans[place].0;
            replaced.end += 1;
        }
        if self.spans.get(replaced.end).is_some_and(|(from, _)| *from == end) {
            end = self.spans[replaced.end].1;
            replaced.end += 1;
        }
        self.spans.splice(replaced, [(begin, end)]);
        let captured = &piece.captured[..piece.captured.len().min((piece.end - piece.begin) as usize)];
        let until = piece.begin + captured.len() as u32;
        if until < piece.end {
            self.captured = self.captured.min(until);
        }
        if self.bytes.len() < until as usize {
            self.bytes.resize(until as usize, 0);
        }
        self.bytes[piece.begin as usize..until as usize].copy_from_slice(captured);
        self.spans.len() <= SPANS_MAX
    }

    fn is_whole(&self) -> bool {
        self.len.is_some_and(|len| self.spans == [(0, len)])
    }
}

/// The fragment in a packet, outside of tunnels.
fn piece<'a>(packet: &RawPacket<'a>) -> Result<Piece<'a>, Skip> {
    let (data, version) = link::network_layer(packet.link, packet.data)?;
    let first = *data.first().ok_or(Skip::TruncatedHeader)?;
    match (first >> 4, version) {
        (4, Version::V4 | Version::Either) => v4(data),
        (6, Version::V6 | Version::Either) => v6(data),
        _ => Err(Skip::BadIpHeader),
    }
}

fn v4(data: &[u8]) -> Result<Piece<'_>, Skip> {
    let header = data.first_chunk::<20>().ok_or(Skip::TruncatedHeader)?;
    let header_len = usize::from(header[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_len < IPV4_HEADER || total_len <= header_len {
        return Err(Skip::BadIpHeader);
    }
    let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *header;
    let mapped = |bytes| 0xffff_0000_0000 | u128::from(u32::from_be_bytes(bytes));
    let key = Key {
        src: mapped([s0, s1, s2, s3]),
        dst: mapped([d0, d1, d2, d3]),
        id: u32::from(u16::from_be_bytes([header[4], header[5]])),
        protocol: header[9],
        version: 4,
    };
    let place = u16::from_be_bytes([header[6], header[7]]);
    let captured = data.get(header_len..data.len().min(total_len)).unwrap_or_default();
    let len = (total_len - header_len) as u32;
    place_of(key, header[8], u32::from(place & 0x1fff) * 8, place & 0x2000 != 0, len, captured)
}

fn v6(data: &[u8]) -> Result<Piece<'_>, Skip> {
    let (header, rest) = data.split_first_chunk::<40>().ok_or(Skip::TruncatedHeader)?;
    let mut len = u32::from(u16::from_be_bytes([header[4], header[5]]));
    let mut rest = &rest[..rest.len().min(len as usize)];
    let mut next = header[6];
    for _ in 0..=ip::MAX_EXTENSION_HEADERS {
        let words = *rest.get(1).ok_or(Skip::TruncatedHeader)?;
        let header_len = match next {
            FRAGMENT => 8,
            // The headers that may precede it: hop-by-hop, destination options, routing (RFC 8200,
            // 4.5).
            0 | 43 | 60 => (usize::from(words) + 1) * 8,
            _ => return Err(Skip::NotTcp),
        };
        len = len.checked_sub(header_len as u32).ok_or(Skip::BadIpHeader)?;
        let (extension, behind) = rest.split_at_checked(header_len).ok_or(Skip::TruncatedHeader)?;
        if next == FRAGMENT {
            let [protocol, _, a, b, id @ ..] = *extension.first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
            let [_, _, _, _, _, _, _, ttl, addresses @ ..] = header;
            let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u128::from(*byte));
            let (src, dst) = addresses.split_at(16);
            let id = u32::from_be_bytes(id);
            let key = Key { src: number(src), dst: number(dst), id, protocol, version: 6 };
            let place = u16::from_be_bytes([a, b]);
            return place_of(key, *ttl, u32::from(place & 0xfff8), place & 1 != 0, len, behind);
        }
        next = *extension.first().ok_or(Skip::TruncatedHeader)?;
        rest = behind;
    }
    Err(Skip::TooManyHeaders)
}

/// All fragments but the last are a multiple of eight bytes long (RFC 791, 3.2; RFC 8200, 4.5).
fn place_of(key: Key, ttl: u8, begin: u32, more: bool, len: u32, captured: &[u8]) -> Result<Piece<'_>, Skip> {
    if len == 0 || more && !len.is_multiple_of(8) {
        return Err(Skip::BadIpHeader);
    }
    Ok(Piece { key, ttl, begin, end: begin + len, is_last: !more, captured })
}
