//! How did a connection begin? What its sequence numbers count from and how its windows are scaled,
//! by its own packets or by earlier ones that were not analysed.

use tcpwhy_wire::{Flags, Segment, Seq};

/// The beginning of a connection, for client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// What relative sequence numbers count from: a SYN is 0; without one the first packet is 1.
    pub counts_from: [Option<Seq>; 2],
    /// A SYN was among the packets that this comes from.
    pub has_syn: bool,
    /// The window scales, if the handshake gives them.
    pub scales: [Option<u8>; 2],
}

impl Opening {
    /// Takes a segment of client or server (0, 1). Returns what its sequence number and its
    /// acknowledgement number count from.
    pub fn on_segment(&mut self, segment: &Segment, from: usize) -> (Seq, Option<Seq>) {
        self.on_numbers([segment.seq, segment.ack], segment.flags, from)
    }

    /// The same from the sequence and acknowledgement numbers.
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
