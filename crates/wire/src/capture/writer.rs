//! How are packets written so that every tool can read them?
//!
//! Sans-I/O: the writers append to a buffer, which the caller writes out and clears.

use super::LinkType;
use crate::Instant;

/// Description of a pcapng section.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section<'a> {
    /// The application that writes it (shb_userappl).
    pub application: Option<&'a str>,
    /// The operating system (shb_os).
    pub os: Option<&'a str>,
    /// Free text (opt_comment).
    pub comment: Option<&'a str>,
}

/// Information about a packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketNote<'a> {
    /// Free text that Wireshark shows beside the packet (opt_comment).
    pub comment: Option<&'a str>,
    /// Packets lost since the previous packet (epb_dropcount); 0 is left out.
    pub dropped: u64,
}

/// Writes pcapng: nanoseconds, little-endian.
///
/// Call [`PcapngWriter::section`] first, [`PcapngWriter::interface`] for each interface (numbered from 0), then packets.
/// The bytes gather in [`PcapngWriter::bytes`] until [`PcapngWriter::clear`].
#[derive(Clone, Debug, Default)]
pub struct PcapngWriter {
    out: Vec<u8>,
}

/// Longer text is cut: an option's length field has 16 bits.
const MAX_OPTION_LEN: usize = 65_532;

impl PcapngWriter {
    /// Starts with nothing written.
    pub const fn new() -> Self {
        Self { out: Vec::new() }
    }

    /// The bytes written since the last [`PcapngWriter::clear`]: whole blocks.
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Drops the bytes, which the caller has stored; keeps the memory.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Begins a section. Its interfaces are numbered from 0 again.
    pub fn section(&mut self, section: &Section<'_>) {
        self.block(super::pcapng::SECTION_HEADER, |out| {
            out.extend(0x1a2b_3c4d_u32.to_le_bytes());
            out.extend(1_u16.to_le_bytes()); // version 1.0
            out.extend(0_u16.to_le_bytes());
            out.extend(u64::MAX.to_le_bytes()); // length unknown
            let options = [(1, section.comment), (3, section.os), (4, section.application)];
            let options = options.map(|(code, text)| (code, text.map(text_value)));
            write_options(out, &options);
        });
    }

    /// Describes an interface. `snaplen` 0 means no limit.
    pub fn interface(&mut self, link: LinkType, snaplen: u32, name: Option<&str>) {
        self.block(1, |out| {
            out.extend(link.0.to_le_bytes());
            out.extend(0_u16.to_le_bytes());
            out.extend(snaplen.to_le_bytes());
            // if_name, if_tsresol: 10^-9 s.
            write_options(out, &[(2, name.map(text_value)), (9, Some(&[9]))]);
        });
    }

    /// Writes a packet. A time before 1970, which the format cannot express, becomes 1970.
    pub fn packet(
        &mut self,
        interface: u32,
        at: Instant,
        original_len: u32,
        data: &[u8],
        note: &PacketNote<'_>,
    ) {
        let ticks = at.as_nanos().max(0) as u64;
        self.block(6, |out| {
            out.extend(interface.to_le_bytes());
            out.extend(((ticks >> 32) as u32).to_le_bytes());
            out.extend((ticks as u32).to_le_bytes());
            out.extend((data.len() as u32).to_le_bytes());
            out.extend(original_len.to_le_bytes());
            out.extend_from_slice(data);
            pad(out);
            let dropped = note.dropped.to_le_bytes();
            let dropped = (note.dropped != 0).then_some(dropped.as_slice());
            write_options(out, &[(1, note.comment.map(text_value)), (4, dropped)]);
        });
    }

    /// Writes how many packets an interface has received and lost since the capture began.
    pub fn statistics(&mut self, interface: u32, at: Instant, received: u64, dropped: u64) {
        let ticks = at.as_nanos().max(0) as u64;
        self.block(5, |out| {
            out.extend(interface.to_le_bytes());
            out.extend(((ticks >> 32) as u32).to_le_bytes());
            out.extend((ticks as u32).to_le_bytes());
            write_options(out, &[(4, Some(&received.to_le_bytes())), (5, Some(&dropped.to_le_bytes()))]);
        });
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend(kind.to_le_bytes());
        self.out.extend([0; 4]);
        body(&mut self.out);
        pad(&mut self.out);
        let len = ((self.out.len() - start + 4) as u32).to_le_bytes();
        self.out[start + 4..start + 8].copy_from_slice(&len);
        self.out.extend(len);
    }
}

fn text_value(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(MAX_OPTION_LEN)]
}

fn write_options(out: &mut Vec<u8>, options: &[(u16, Option<&[u8]>)]) {
    let mut any = false;
    for (code, value) in options {
        if let Some(value) = value {
            out.extend(code.to_le_bytes());
            out.extend((value.len() as u16).to_le_bytes());
            out.extend_from_slice(value);
            pad(out);
            any = true;
        }
    }
    if any {
        out.extend([0; 4]); // opt_endofopt
    }
}

/// Every block starts at a multiple of four, so the buffer's length gives the padding.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Writes classic pcap: nanoseconds, little-endian. For the many tools that do not read pcapng.
#[derive(Clone, Debug, Default)]
pub struct PcapWriter {
    out: Vec<u8>,
}

impl PcapWriter {
    /// A file that starts with its header.
    pub fn new(link: LinkType, snaplen: u32) -> Self {
        let mut out = Vec::new();
        out.extend(0xa1b2_3c4d_u32.to_le_bytes());
        out.extend(2_u16.to_le_bytes()); // version 2.4
        out.extend(4_u16.to_le_bytes());
        out.extend([0; 8]); // time zone and accuracy, always 0
        out.extend(snaplen.to_le_bytes());
        out.extend(u32::from(link.0).to_le_bytes());
        Self { out }
    }

    /// The bytes written since the last [`PcapWriter::clear`].
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Drops the bytes, which the caller has stored; keeps the memory.
    pub fn clear(&mut self) {
        self.out.clear();
    }

    /// Writes a packet. Its time is clamped to what 32 bits of seconds can express.
    pub fn packet(&mut self, at: Instant, original_len: u32, data: &[u8]) {
        let ns = at.as_nanos().clamp(0, i64::from(u32::MAX) * 1_000_000_000);
        self.out.extend(((ns / 1_000_000_000) as u32).to_le_bytes());
        self.out.extend(((ns % 1_000_000_000) as u32).to_le_bytes());
        self.out.extend((data.len() as u32).to_le_bytes());
        self.out.extend(original_len.to_le_bytes());
        self.out.extend_from_slice(data);
    }
}
