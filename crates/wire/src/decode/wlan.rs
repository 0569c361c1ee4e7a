//! Where does the IP header start in a Wi-Fi frame captured in monitor mode?
//!
//! Radio information (radiotap or PPI) precedes the frame. After the frame's own header, of 24 to
//! 36 bytes, LLC and SNAP give an Ethernet type (IEEE 802.11-2020, 9.2 and 9.3.2; RFC 1042).
//! Encrypted frames cannot be read.

use super::Skip;
use crate::capture::LinkType;

/// Frame control, first byte: version 0, and the type of data frames.
const KIND: u8 = 0x0f;
const DATA: u8 = 0x08;
/// Subtypes of data frames: without data, and with QoS control.
const NO_DATA: u8 = 0x40;
const QOS: u8 = 0x80;
/// Frame control, second byte.
const BOTH_WAYS: u8 = 0x03;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const HT_CONTROL: u8 = 0x80;
/// QoS control: several frames follow, each with addresses and a length of its own (A-MSDU). The
/// first one is read; the others count as packets that the capture lost.
const AGGREGATED: u8 = 0x80;
/// Three addresses, duration and sequence.
const HEADER_LEN: usize = 24;
/// The last 12 bits number frames, the first four their fragments.
const FRAGMENT: u8 = 0x0f;
/// LLC's announcement of SNAP, for Ethernet types.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// ... or for the tunnel of Apple's and Novell's protocols (RFC 1042 has the first).
const SNAP_TUNNEL: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0xf8];

/// Radiotap: bitmap words of the fields present; this bit is clear in the last one. Clock and flags
/// come first.
const MORE_WORDS: u32 = 1 << 31;
const HAS_CLOCK: u32 = 1;
const HAS_FLAGS: u32 = 1 << 1;
/// The frame's header is padded to whole words.
const PADDED: u8 = 0x20;

/// The Ethernet type after a frame's header, and the bytes from there on.
#[cold]
pub(super) fn behind(link: LinkType, data: &[u8]) -> Result<(u16, &[u8]), Skip> {
    match link {
        LinkType::IEEE802_11_RADIOTAP => {
            let (padded, frame) = behind_radiotap(data)?;
            behind_header(frame, padded)
        }
        LinkType::PPI => {
            // Version, flags, length, and the type of the link header that follows.
            let [_, _, a, b, link @ ..] = data.first_chunk::<8>().ok_or(Skip::TruncatedHeader)?;
            if u32::from_le_bytes(*link) != u32::from(LinkType::IEEE802_11.0) {
                return Err(Skip::UnsupportedLink);
            }
            let len = usize::from(u16::from_le_bytes([*a, *b]));
            behind_header(data.get(len..).ok_or(Skip::TruncatedHeader)?, false)
        }
        _ => behind_header(data, false),
    }
}

/// Whether the frame's header is padded, and the frame.
fn behind_radiotap(data: &[u8]) -> Result<(bool, &[u8]), Skip> {
    let [_, _, a, b] = data.first_chunk::<4>().ok_or(Skip::TruncatedHeader)?;
    let len = usize::from(u16::from_le_bytes([*a, *b]));
    let (header, frame) = data.split_at_checked(len).ok_or(Skip::TruncatedHeader)?;
    let mut words = header[4.min(len)..]
        .chunks_exact(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let present = words.next().ok_or(Skip::NotIp)?;
    let mut at = 8_usize;
    let mut word = present;
    while word & MORE_WORDS != 0 {
        word = words.next().ok_or(Skip::NotIp)?;
        at += 4;
    }
    if present & HAS_CLOCK != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    let flags = if present & HAS_FLAGS != 0 { header.get(at).copied().unwrap_or(0) } else { 0 };
    Ok((flags & PADDED != 0, frame))
}

fn behind_header(frame: &[u8], padded: bool) -> Result<(u16, &[u8]), Skip> {
    let header = frame.first_chunk::<HEADER_LEN>().ok_or_else(|| too_short(frame))?;
    let [kind, flags, ..] = *header;
    if kind & KIND != DATA || kind & NO_DATA != 0 {
        return Err(Skip::NotIp);
    }
    if flags & MORE_FRAGMENTS != 0 || header[HEADER_LEN - 2] & FRAGMENT != 0 {
        return Err(Skip::Fragment);
    }
    let mut len = HEADER_LEN + if flags & BOTH_WAYS == BOTH_WAYS { 6 } else { 0 };
    let mut is_aggregated = false;
    if kind & QOS != 0 {
        is_aggregated = frame.get(len).ok_or(Skip::TruncatedHeader)? & AGGREGATED != 0;
        len += 2 + if flags & HT_CONTROL != 0 { 4 } else { 0 };
    }
    if padded {
        len = len.next_multiple_of(4);
    }
    if is_aggregated {
        len += 14;
    }
    let (llc, packet) =
        frame.get(len..).and_then(|llc| llc.split_first_chunk::<8>()).ok_or(Skip::TruncatedHeader)?;
    let [.., high, low] = *llc;
    if llc.starts_with(&SNAP) || llc.starts_with(&SNAP_TUNNEL) {
        return Ok((u16::from_be_bytes([high, low]), packet));
    }
    // A frame that another program has decrypted may still be marked as encrypted.
    Err(if flags & PROTECTED != 0 { Skip::Encrypted } else { Skip::NotIp })
}

/// Control frames are shorter than the header of a data frame.
fn too_short(frame: &[u8]) -> Skip {
    match frame.first() {
        Some(kind) if kind & KIND != DATA => Skip::NotIp,
        _ => Skip::TruncatedHeader,
    }
}
