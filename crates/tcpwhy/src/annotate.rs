//! `--annotate`: how are the packets written again with comments for Wireshark's packet list?
//!
//! A pcapng capture is copied block by block, so that its interfaces, names, statistics and
//! comments are kept; pcap, and several captures at once, become pcapng.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use anyhow::{Context as _, ensure};
use tcpwhy::input::{Block, Inputs};
use tcpwhy_core::Report;
use tcpwhy_report::annotate::comments;
use tcpwhy_wire::capture::writer::{PacketNote, PcapngWriter, Section};
use tcpwhy_wire::capture::{Format, LinkType, RawPacket, headers, with_comment};
use tcpwhy_wire::{Anonymizer, decode};

use crate::cli::InputArgs;
use crate::out::OutFile;

/// Writes the capture with comments on the packets of the report; `drawn` has some of its
/// connections with their packets.
pub(crate) fn write(
    out: &OutFile,
    args: &InputArgs,
    inputs: Inputs,
    report: &Report,
    drawn: &Report,
) -> anyhow::Result<()> {
    let cannot = || format!("cannot write {}", out.path().display());
    let file = out.emptied().with_context(cannot)?;
    let comments = comments(report, drawn);
    let mut copy = Copy {
        to: BufWriter::with_capacity(1 << 16, file),
        comments: &comments,
        is_single: args.files.len() == 1,
        writer: PcapngWriter::new(),
        interfaces: BTreeMap::new(),
        packets: 0,
        names: args.anonymizer()?,
        error: None,
    };
    inputs.for_each_block(&args.options(), &mut |block| copy.on_block(&block));
    copy.finish().with_context(cannot)?;
    let last = comments.keys().next_back().copied().unwrap_or(0);
    ensure!(
        last <= copy.packets,
        "the input changed between two passes; {} is incomplete",
        out.path().display()
    );
    Ok(())
}

struct Copy<'a, W: Write> {
    to: W,
    comments: &'a BTreeMap<u64, String>,
    is_single: bool,
    writer: PcapngWriter,
    /// For inputs that are written as new blocks: by input, interface number and link type there.
    interfaces: BTreeMap<(usize, u32, LinkType), u32>,
    packets: u64,
    /// Replaces addresses, with `--anonymize`.
    names: Option<Anonymizer>,
    error: Option<io::Error>,
}

impl<W: Write> Copy<'_, W> {
    fn on_block(&mut self, block: &Block<'_>) {
        if self.error.is_some() {
            return;
        }
        let number = block.packet.map(|packet| packet.number);
        self.packets = self.packets.max(number.unwrap_or(0));
        let comment = number.and_then(|number| self.comments.get(&number)).map(String::as_str);
        let written = if self.names.is_none() && self.is_single && block.format == Some(Format::Pcapng) {
            match comment.and_then(|comment| with_comment(block.bytes, comment)) {
                Some(longer) => self.to.write_all(&longer),
                None => self.to.write_all(block.bytes),
            }
        } else if let Some(packet) = block.packet {
            match self.names {
                Some(_) => self.nameless(&packet, comment),
                None => self.anew(&packet, block.input, comment),
            }
        } else {
            Ok(())
        };
        self.error = written.err();
    }

    /// A packet's headers with replaced addresses; of a packet that is not TCP, only its time and
    /// length.
    fn nameless(&mut self, packet: &RawPacket<'_>, comment: Option<&str>) -> io::Result<()> {
        let Some(names) = &mut self.names else { return Ok(()) };
        let raw = RawPacket { link: LinkType::RAW, interface: 0, data: &[], ..*packet };
        match decode(packet) {
            Ok(segment) => {
                let (data, original_len) = headers(&names.segment(&segment));
                self.anew(&RawPacket { data: &data, original_len, ..raw }, 0, comment)
            }
            Err(_) => self.anew(&raw, 0, comment),
        }
    }

    /// Writes a packet in a block of our own.
    fn anew(&mut self, packet: &RawPacket<'_>, input: usize, comment: Option<&str>) -> io::Result<()> {
        if self.interfaces.is_empty() {
            let comment = self.names.as_ref().map(|_| "anonymized: addresses replaced, payload removed");
            self.writer.section(&Section { application: Some("tcpwhy"), comment, ..Section::default() });
        }
        let next = self.interfaces.len() as u32;
        let key = (input, packet.interface, packet.link);
        let interface = *self.interfaces.entry(key).or_insert_with(|| {
            self.writer.interface(packet.link, 0, None);
            next
        });
        let note = PacketNote { comment, dropped: u64::from(packet.dropped) };
        self.writer.packet(interface, packet.at, packet.original_len, packet.data, &note);
        self.to.write_all(self.writer.bytes())?;
        self.writer.clear();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)?;
        self.to.flush()
    }
}
