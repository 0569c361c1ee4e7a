//! How does a capture become a self-describing file that every tool can read?

use std::io::{self, Write};

use tcpwhy_wire::capture::writer::{PacketNote, PcapngWriter, Section};

use super::{Description, Packet, Sink, Stats};

/// Written out at this size, and whenever no packet is waiting.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes one section with one interface.
pub(super) struct Pcapng<W> {
    out: W,
    writer: PcapngWriter,
}

impl<W: Write + Send + 'static> Pcapng<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out, writer: PcapngWriter::new() }
    }

    fn write_out(&mut self) -> io::Result<()> {
        self.out.write_all(self.writer.bytes())?;
        self.writer.clear();
        Ok(())
    }
}

impl<W: Write + Send + 'static> Sink for Pcapng<W> {
    fn begin(&mut self, of: &Description) -> io::Result<()> {
        let os = format!("{}, {}", of.os, of.hardware);
        let mut comment = format!("{} on {}, {} bytes of each packet", of.filter, of.interface, of.snaplen);
        if !of.comment.is_empty() {
            comment = format!("{}\n{comment}", of.comment);
        }
        let section = Section { application: Some(&of.application), os: Some(&os), comment: Some(&comment) };
        self.writer.section(&section);
        self.writer.interface(of.link, of.snaplen, Some(&of.interface));
        self.idle()
    }

    fn packet(&mut self, packet: Packet<'_>) -> io::Result<()> {
        self.writer.packet(0, packet.at, packet.len, packet.data, &PacketNote::default());
        if self.writer.bytes().len() >= BUFFER_BYTES { self.write_out() } else { Ok(()) }
    }

    fn idle(&mut self) -> io::Result<()> {
        self.write_out()?;
        self.out.flush()
    }

    fn end(&mut self, stats: &Stats) -> io::Result<()> {
        let received = stats.packets + stats.dropped + stats.unread;
        self.writer.statistics(0, stats.stopped, received, stats.dropped + stats.unread);
        self.idle()
    }
}
