//! What does a segment say that nobody takes, because its checksum is wrong?
//!
//! That its sender sent it, where it stands in the order of the stream: the data are lost on their way to the receiver, and what repairs
//! them is billed as the repair of any other loss. Nothing else in its header is believed, but that it answers what had just been sent. A reset, an acknowledgement or a jump in the
//! numbers may be what was damaged, or what somebody made up (`tcp_v4_rcv`, net/ipv4/tcp_ipv4.c, drops it unread).

use tcpwhy_wire::{Flags, Segment, TcpOptions};

use super::Connection;

impl Connection {
    /// The segment with nothing but its data, and what its sender had said before; `None` where it has no data that follow on what was
    /// sent before.
    #[cold]
    pub(crate) fn as_lost(&self, segment: &Segment, from: usize) -> Option<Segment> {
        let (flow, back) = (&self.flows[from], &self.flows[1 - from]);
        let (next, acked) = (flow.snd_nxt?, flow.highest_ack.or(flow.first)?);
        let in_order = segment.seq.at_or_after(acked) && segment.seq.at_or_before(next);
        let is_data = segment.payload_len > 0 && !segment.flags.syn() && !segment.flags.rst();
        let scale = self.window_scale(from).unwrap_or_else(|| back.unusual.scale_bounds.scale());
        // The first segment of an answer acknowledges what it answers: a number that is just what the other end has sent is none of chance,
        // and without it the answer would be something that nobody had asked for.
        let ack = back.snd_nxt.filter(|sent| *sent == segment.ack).or(back.highest_ack)?;
        let same = Segment {
            ack,
            window: u16::try_from(back.last_window() >> scale).ok()?,
            flags: Flags(Flags::ACK | segment.flags.0 & Flags::PSH),
            options: TcpOptions::default(),
            ..*segment
        };
        (is_data && in_order).then_some(same)
    }
}
