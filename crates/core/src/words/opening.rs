//! How did a connection begin? What its sequence numbers count from, and how its windows are scaled: by its own packets, or by
//! those in front of them, which were not analysed.

use tcpwhy_wire::{Flags, Segment, Seq};

/// The beginning of a connection, client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// What relative sequence numbers count from; a SYN has 0, and without one the first packet 1.
    pub counts_from: [Option<Seq>; 2],
    /// A SYN is among what it was learnt from.
    pub has_syn: bool,
    /// By how much windows are scaled, where the handshake says it.
    pub scales: [Option<u8>; 2],
}

impl Opening {
    /// Learns from a segment of client or server (0, 1). What its own number counts from, and what it acknowledges.
    pub fn on_segment(&mut self, segment: &Segment, from: usize) -> (Seq, Option<Seq>) {
        self.on_numbers([segment.seq, segment.ack], segment.flags, from)
    }

    /// The same of its sequence and acknowledgement number.
    pub(crate) fn on_numbers(
        &mut self,
        [seq, ack]: [Seq; 2],
        flags: Flags,
        from: usize,
    ) -> (Seq, Option<Seq>) {
        let first = if flags.syn() { seq } else { seq + u32::MAX };
        let base = *self.counts_from[from].get_or_insert(first);
        self.has_syn |= flags.syn() && seq == base;
        let ack_base = flags.ack().then(|| *self.counts_from[1 - from].get_or_insert(ack + u32::MAX));
        (base, ack_base)
    }
}
