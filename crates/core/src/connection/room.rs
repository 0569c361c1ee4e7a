//! Does a client of HTTP/2 in cipher say that it has room, and had its server waited for that?
//!
//! A window is 65,535 bytes unless somebody says otherwise (RFC 9113, 6.9.2). Whoever reads a long answer opens it again by WINDOW_UPDATE, for the stream and the
//! connection in one record, at the heels of the data and while the answer goes on: that is no question, and what the server sends one way
//! behind it, as soon as it has it, had waited for it. All that the bytes tell is how many they are.

use tcpwhy_wire::Segment;

use super::Connection;
use super::frame_sizes::is_control;
use super::opening::AT_ONCE;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::segment_class::SegmentClass;
use crate::rules::application_window;
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::words::cause::Cause;
use crate::words::limits::{HELD_BACK_MIN, ROUND_TRIP_PLAY};

/// Half a window: sooner nobody opens it again (`nghttp2_should_send_window_update`, lib/nghttp2_helper.c).
const READ_MIN: u64 = 32_767;
/// What such a window lets through, or the half of it, with what frames and records add.
const WINDOWS: std::ops::RangeInclusive<u32> = 32_767..=67_000;

impl Connection {
    /// Whether a segment of the client's opens windows within the answer under way.
    #[cold]
    #[inline(never)]
    pub(super) fn gives_room(&mut self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        if from != CLIENT || class != SegmentClass::New || !self.frames.are_windows(segment.payload_len) {
            return false;
        }
        let gives = self.open.as_deref().is_some_and(is_long) && self.follows_at_once(segment, from);
        if gives {
            self.frames.leave_out(from, segment.at);
        }
        gives
    }

    /// Whether the client has: what the server acknowledges late is that.
    #[cold]
    #[inline(never)]
    pub(super) fn has_given_room(&self, open: &Open) -> bool {
        is_long(open) && self.frames.last_window().is_some_and(|given| given > open.request_at())
    }

    /// What passed for the server's own time may have been a wait for its client's window.
    #[cold]
    #[inline(never)]
    pub(super) fn charge_room(&self, wait: &Wait<'_>, from: usize, verdict: &mut Verdict) {
        let Some(given) = self.frames.last_window().filter(|_| from == SERVER && wait.gap >= HELD_BACK_MIN)
        else {
            return;
        };
        // What a window has room for again is data, and no frame of HTTP/2's own.
        if is_control(wait.segment.payload_len.into()) {
            return;
        }
        let behind = wait.segment.at - given - wait.rtt_to_sender;
        let at_once = (-wait.rtt_to_sender.divided_by(ROUND_TRIP_PLAY)..=AT_ONCE).contains(&behind);
        let own = Cause::SenderThink.bit() | Cause::SendBuffer.bit();
        let with_link = own | Cause::Bandwidth.bit();
        // What the congestion window lets go follows each acknowledgement, and a flight that ends where a window of HTTP/2 does ends for that.
        let full = WINDOWS.contains(&wait.last.flight)
            && verdict.split.has_only(with_link | Cause::CongestionWindow.bit());
        if at_once
            && verdict.split.has(own | Cause::CongestionWindow.bit())
            && (full || verdict.split.has_only(with_link))
        {
            let packets = [wait.last.packet, wait.segment.packet];
            verdict.split = application_window::judge(&verdict.split, wait.gap, side(from), packets);
        }
    }
}

fn is_long(open: &Open) -> bool {
    open.initiator == CLIENT && open.reply_bytes >= READ_MIN
}
