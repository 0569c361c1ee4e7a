//! What does a segment show that its receiver drops because of a wrong checksum?
//!
//! It shows that its sender sent it, and its place in the stream: the data is lost on the way, and its
//! repair is billed like that of any other loss. Nothing else in its header is believed, except that it
//! answers what had just been sent. A reset, an ACK or a jump in sequence numbers may itself be the
//! damage, or a forgery (`tcp_v4_rcv`, net/ipv4/tcp_ipv4.c, drops it unread).

use tcpwhy_wire::{Flags, Segment, TcpOptions};

use super::Connection;

impl Connection {
    /// The segment with nothing but its data, and with what its sender had last acknowledged; `None` if
    /// it has no data that continue the stream.
    #[cold]
    pub(crate) fn as_lost(&self, segment: &Segment, from: usize) -> Option<Segment> {
        let (flow, back) = (&self.flows[from], &self.flows[1 - from]);
        let (next, acked) = (flow.snd_nxt?, flow.highest_ack.or(flow.first)?);
        let in_order = segment.seq.at_or_after(acked) && segment.seq.at_or_before(next);
        let is_data = segment.payload_len > 0 && !segment.flags.syn() && !segment.flags.rst();
        let scale = self.window_scale(from).unwrap_or_else(|| back.unusual.scale_bounds.scale());
        // The first segment of a reply acknowledges the request. An ACK number that is exactly the end
        // of what the peer has sent is no chance, and without it the reply would seem to answer
        // nothing.
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
