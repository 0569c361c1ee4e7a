//! What else is learnt from packets, besides what is analysed? Collected on request while reading,
//! also before the window.

use tcpwhy_wire::capture::RawPacket;

use super::index::Sums;
use super::openings::Openings;
use super::places::{Places, Wanted};
use super::streams::Streams;

/// What is collected while reading.
#[derive(Debug, Default)]
pub struct Aside {
    /// How connections began that are older than the window.
    pub openings: Openings,
    /// Wireshark's stream numbers.
    pub streams: Streams,
    /// Where packets are in the file.
    pub places: Places,
    /// The packets that are wanted, if not all.
    pub(super) wanted: Option<Wanted>,
}

impl Aside {
    /// Remembers how connections began before a window that will be set. Returns how many bytes of
    /// `memory` that takes at most.
    pub fn learn_openings(&mut self, memory: usize) -> usize {
        self.openings.begin(memory)
    }

    /// Counts streams as Wireshark does. Returns how many bytes of `memory` that takes at most.
    pub fn count_streams(&mut self, memory: usize) -> usize {
        self.streams.begin(memory)
    }

    /// Remembers where packets are, for a later pass over the same file that wants few of them.
    /// Returns how many bytes of `memory` that takes at most.
    pub fn learn_places(&mut self, memory: usize) -> usize {
        self.places.begin(memory)
    }

    /// Only packets in these ranges, between ports with these sums, are wanted; the others may be
    /// skipped.
    pub fn want(&mut self, places: &Places, ranges: Vec<[u64; 2]>, sums: &Sums) {
        self.wanted = Some(Wanted::new(places, ranges, sums));
    }

    /// A packet before the window.
    #[inline]
    pub(super) fn on_earlier(&mut self, packet: &RawPacket<'_>) {
        self.openings.on_earlier(packet);
        self.streams.on_packet(packet, false);
    }

    /// A packet of the window.
    #[inline]
    pub(super) fn on_wanted(&mut self, packet: &RawPacket<'_>) {
        self.openings.on_wanted(packet);
        self.streams.on_packet(packet, true);
    }
}
