//! What do packets say besides what is analysed? Looked at in passing, in front of the window as well, where somebody asked.

use tcpwhy_wire::capture::RawPacket;

use super::index::Sums;
use super::openings::Openings;
use super::places::{Places, Wanted};
use super::streams::Streams;

/// What is learnt in passing.
#[derive(Debug, Default)]
pub struct Aside {
    /// How connections began in front of the window.
    pub openings: Openings,
    /// What Wireshark counts.
    pub streams: Streams,
    /// Where packets lie.
    pub places: Places,
    /// All that is wanted, where it is not all.
    pub(super) wanted: Option<Wanted>,
}

impl Aside {
    /// Remembers how connections began in front of a window that will be set. Returns how much of so many bytes that takes at most.
    pub fn learn_openings(&mut self, memory: usize) -> usize {
        self.openings.begin(memory)
    }

    /// Counts streams as Wireshark does. Returns how much of so many bytes that takes at most.
    pub fn count_streams(&mut self, memory: usize) -> usize {
        self.streams.begin(memory)
    }

    /// Remembers where packets lie, for a later pass over the same file that wants few of them. Returns how much of so many bytes that
    /// takes at most.
    pub fn learn_places(&mut self, memory: usize) -> usize {
        self.places.begin(memory)
    }

    /// Nothing but packets in these ranges is wanted, between ports with these sums; what lies between others may be passed over.
    pub fn want(&mut self, places: &Places, ranges: Vec<[u64; 2]>, sums: &Sums) {
        self.wanted = Some(Wanted::new(places, ranges, sums));
    }

    /// A packet in front of the window.
    #[inline]
    pub(super) fn on_earlier(&mut self, packet: &RawPacket<'_>) {
        self.openings.on_earlier(packet);
        self.streams.on_packet(packet, false);
    }

    /// One of the window.
    #[inline]
    pub(super) fn on_wanted(&mut self, packet: &RawPacket<'_>) {
        self.openings.on_wanted(packet);
        self.streams.on_packet(packet, true);
    }
}
