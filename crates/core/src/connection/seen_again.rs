//! Has this packet of the connection passed before, on another interface or on the other side of a
//! router?
//!
//! The tests are in `flow/duplicate_filter.rs` and `flow/direction/seen_again.rs`; here is what the
//! connection knows besides: that packets are captured twice, and how many routers its ends' packets
//! have crossed.

use tcpwhy_wire::{Duration, Segment};

use super::Connection;
use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::flow::duplicate_filter;
use crate::flow::ends::{CLIENT, SERVER};
use crate::words::limits::HOST_VARIATION;

/// Reordering spans at most this part of a round trip (RFC 8985, 6.2).
const TOGETHER: i64 = 4;

/// At most this many routers lie between the two points where a capture sees a packet twice. Source:
/// none written down.
const HOPS_BETWEEN: u8 = 4;
/// A packet that does not wait in a router, firewall or tunnel passes it in less time, and a host's interfaces. Source:
/// none written down.
const WAITED_MIN: Duration = Duration::from_millis(5);

impl Connection {
    /// Whether this packet has passed before (`flow/duplicate_filter.rs`, `flow/direction/seen_again.rs`).
    pub(crate) fn has_seen(&mut self, segment: &Segment, from: usize) -> bool {
        let from = from & 1;
        let peer = &self.flows[1 - from];
        let hops_away = self.is_hops_away(segment, from);
        let same_window = || hops_away || peer.last_window() == self.window(segment, from);
        let doubled = self.doubled && (segment.seq_len() > 0 || same_window());
        let syn_again = segment.flags.syn()
            && self.flows[from].first == Some(segment.seq + 1)
            && self.setup.as_ref().is_some_and(|setup| setup.has_just_seen(segment, hops_away));
        let elsewhere = hops_away && !segment.flags.syn() || self.is_just_behind(segment, from);
        let again = syn_again
            || self.duplicates.as_ref().is_some_and(|duplicates| duplicates.is_again(segment, from))
            || peer.knows_acknowledgement(segment)
                && self.flows[from].is_seen_again(segment, doubled, elsewhere);
        let repeated = || self.duplicates.as_ref().is_some_and(|last| last.is_repeated(segment, from));
        if !again && repeated() {
            return true; // which says nothing of how the others are captured
        }
        self.doubled |= again && (segment.payload_len > 0 || segment.flags.syn() && hops_away);
        if again && segment.payload_len > 0 {
            self.pass_again(segment, from);
            self.note_twice(segment, from);
            if self.flows[from].lacked(segment) {
                self.come_after_all(segment, from);
            }
        }
        again
    }

    /// The identification of these bytes was missing before those of the last segment: it was overtaken, not lost, and what
    /// is behind it waits for no repair of it.
    #[cold]
    #[inline(never)]
    fn come_after_all(&mut self, segment: &Segment, from: usize) {
        let flow = &self.flows[from];
        self.models[from].copies_due = self.models[from].copies_due.saturating_sub(1);
        let soonest = (self.tap_rtt(CLIENT) + self.tap_rtt(SERVER)).divided_by(TOGETHER).max(HOST_VARIATION);
        let Some(last) = flow.last_data.filter(|last| segment.at + self.set_back - last.at <= soonest) else {
            return;
        };
        let (sender, ns) = (flow.side, last.spacing);
        let Some(open) = self.open.as_deref_mut() else { return };
        let path = if from == open.initiator { &mut open.request } else { &mut open.reply };
        if path.last.is_some_and(|before| before.packet == last.packet) {
            path.revise(Revision::Overtook { sender, ns });
        }
    }

    /// Notes a second sighting of a request's last segment: its receiver cannot have it before that.
    #[cold]
    #[inline(never)]
    fn pass_again(&mut self, segment: &Segment, from: usize) {
        let is_last = self.flows[from].snd_nxt == Some(segment.seq_end());
        let now = segment.at + self.set_back;
        // Which transmission passes again is not told.
        let once = |open: &Open| open.request.repaired_at().is_none();
        let waits = |open: &&mut Open| from == open.initiator && open.reply_first.is_none() && once(open);
        if let Some(open) = self.open.as_deref_mut().filter(waits)
            && is_last
            && open.request.last.is_some_and(|last| now - last.at >= WAITED_MIN)
        {
            open.request.pass_again(now);
        }
    }

    /// Whether this acknowledgement without data passes right behind another packet of its end, where packets are seen twice.
    fn is_just_behind(&self, segment: &Segment, from: usize) -> bool {
        let just = |at| segment.at - at < duplicate_filter::WITHIN;
        self.doubled && segment.seq_len() == 0 && self.last_packet[from].get().is_some_and(just)
    }

    /// Whether this packet has crossed a few routers more or less than the first of its end, without a
    /// later identification. Packets of one sender take several paths, so this counts only if some
    /// packets are captured twice, or for a handshake's.
    fn is_hops_away(&self, segment: &Segment, from: usize) -> bool {
        let hops = segment.ttl.abs_diff(self.ttl[from]);
        let known = self.last_packet[from].is_some() && (self.doubled || segment.flags.syn());
        (1..=HOPS_BETWEEN).contains(&hops) && known && !self.flows[from].is_numbered_behind(segment)
    }
}
