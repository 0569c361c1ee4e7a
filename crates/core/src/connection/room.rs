//! Does a client of encrypted HTTP/2 open its window, and had its server waited for that?
//!
//! A window is 65,535 bytes unless somebody says otherwise (RFC 9113, 6.9.2). Whoever reads a long answer opens it again by WINDOW_UPDATE, for the stream and the
//! connection in one record, right after data and while the answer goes on. That is no request, and what the server sends as soon as it has
//! received it had waited for it. In ciphertext only lengths show. A server does the same for an upload: if the client sends a window's bytes
//! each time several messages as long as WINDOW_UPDATE have come, it had waited for these. Many messages
//! of one such length, each for some KB of one upload, are window updates as well.

use tcpwhy_wire::{Instant, Segment};

use super::Connection;
use super::frame_sizes::{is_control, record_of_windows};
use super::frames::UPLOAD_MIN;
use super::opening::AT_ONCE;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::segment_class::{SegmentClass, SendQueue};
use crate::rules::application_window;
use crate::rules::verdict::Verdict;
use crate::rules::wait::Wait;
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, HELD_BACK_MIN, ROUND_TRIP_PLAY, WORD_MAX};

/// Half a window: no end opens it again sooner (`nghttp2_should_send_window_update`,
/// lib/nghttp2_helper.c).
const READ_MIN: u64 = 32_767;
/// The bytes that such a window, or half of it, lets through, including what frames and records add.
const WINDOWS: std::ops::RangeInclusive<u32> = 32_767..=67_000;
/// Bytes in flight when an upload has used up such a window. Fewer may be due to a congestion window,
/// which grows.
const USED_UP: std::ops::RangeInclusive<u32> = 64_000..=67_000;
/// At least this many messages open the window again before it is used up. Source: none written down.
const WORDS_MIN: u64 = 3;
/// This many messages as long as WINDOW_UPDATE within one upload, each for at least `PIECE_MIN` of
/// its bytes, are window updates and not replies to its pieces. Source: none written down.
const MANY_WORDS: u64 = 8;
const PIECE_MIN: u64 = 4_096;
/// A reply that has gone on so often is in full flow. Source: none written down.
const FLOW_MIN: usize = 2;

impl Connection {
    /// Whether the client's segment opens windows within the reply under way.
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

    /// Whether an encrypted segment, as long as frames of HTTP/2's own, comes while its peer is sending: what has just arrived
    /// ends with a full segment, and more follows. A reply in full flow ends no sooner for that, and an upload is answered by
    /// none of it.
    #[inline]
    pub(super) fn speaks_meanwhile(&mut self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        class == SegmentClass::New
            && segment.payload_len <= WORD_MAX
            && is_control(segment.payload_len.into())
            && self.is_frame_in_full_flow(segment, from)
    }

    #[cold]
    #[inline(never)]
    fn is_frame_in_full_flow(&mut self, segment: &Segment, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|open| open.initiator == CLIENT) else { return false };
        let upload = from == SERVER && open.reply_first.is_none() && open.request_bytes >= UPLOAD_MIN;
        let (path, begun) = if from == CLIENT { (&open.reply, true) } else { (&open.request, upload) };
        let Some(said) = path.frontier().filter(|_| begun && path.index >= FLOW_MIN) else { return false };
        let peer = &self.flows[1 - from];
        let soon = self.rtt_min().map_or(HELD_BACK_MIN, |rtt| rtt.min(HELD_BACK_MIN));
        let flows = peer.is_full(said.len, self.mss(1 - from))
            && peer.last_data.is_some_and(|last| last.packet == said.packet)
            && (segment.at - said.at <= soon || upload && said.queue == SendQueue::More);
        let frame = flows && self.speaks_tls();
        if frame {
            self.frames.leave_out(from, segment.at);
        }
        frame
    }

    /// Whether the client has done so, which explains a late ACK of the server's.
    #[cold]
    #[inline(never)]
    pub(super) fn has_given_room(&self, open: &Open) -> bool {
        is_long(open) && self.frames.last_window().is_some_and(|given| given > open.request_at())
    }

    /// An encrypted upload went on after a window's bytes and nothing but messages as long as
    /// WINDOW_UPDATE: if that happens again and again, they are HTTP/2's and answer nothing.
    pub(super) fn weigh_upload(&mut self, segment: &Segment, from: usize) {
        let uploads = |open: &Open| {
            from == CLIENT
                && open.initiator == CLIENT
                && open.request_bytes >= READ_MIN
                && open.reply_bytes > 0
        };
        if self.open.as_deref().is_some_and(uploads) {
            self.weigh_words(segment);
        }
    }

    #[cold]
    #[inline(never)]
    fn weigh_words(&mut self, segment: &Segment) {
        let (Some(open), Some(said)) = (self.open.as_deref(), self.flows[SERVER].last_data) else { return };
        let words = open.reply_bytes / u64::from(said.len.max(1));
        let alike = words >= WORDS_MIN && open.reply_bytes.is_multiple_of(u64::from(said.len));
        let window = u32::try_from(open.request_bytes).is_ok_and(|bytes| WINDOWS.contains(&bytes));
        let at_once = segment.at - said.at - self.tap_rtt(CLIENT) <= AT_ONCE;
        let record = record_of_windows(said.len)
            .filter(|_| alike && window && at_once && self.speaks_tls() && !self.frames.is_http2());
        self.frames.on_upload(record);
        let pieces = words >= MANY_WORDS && open.request_bytes / words >= PIECE_MIN;
        if alike && pieces && at_once && self.speaks_tls() && !self.frames.is_http2() {
            self.frames.on_many_windows(record_of_windows(said.len));
        }
    }

    /// When the peer last opened windows, if this sender may have waited for that.
    fn given_to(&self, from: usize, wait: &Wait<'_>) -> Option<Instant> {
        if from == SERVER {
            // No window is used up before as many bytes have been sent.
            let used = self.midway || self.flows[SERVER].bytes >= u64::from(*USED_UP.start());
            return self.frames.last_window().filter(|_| used && wait.gap >= HELD_BACK_MIN);
        }
        let uploads = |open: &Open| open.initiator == CLIENT && open.request_bytes >= READ_MIN;
        let uploads = wait.gap >= BURST_GAP && self.open.as_deref().is_some_and(uploads);
        self.frames.last_room().filter(|_| uploads)
    }

    /// Charges a sender's apparent pause to its peer's window if it ended with that.
    #[cold]
    #[inline(never)]
    pub(super) fn charge_room(&self, wait: &Wait<'_>, from: usize, verdict: &mut Verdict) {
        let Some(given) = self.given_to(from, wait) else { return };
        // What a window has room for again is data, and no frame of HTTP/2's own.
        if is_control(wait.segment.payload_len.into()) {
            return;
        }
        let behind = wait.segment.at - given - wait.rtt_to_sender;
        let at_once = (-wait.rtt_to_sender.divided_by(ROUND_TRIP_PLAY)..=AT_ONCE).contains(&behind);
        let own = Cause::SenderThink.bit() | Cause::SendBuffer.bit();
        let with_link = own | Cause::Bandwidth.bit();
        let congestion = Cause::CongestionWindow.bit() | Cause::SlowStart.bit();
        // What the congestion window lets go follows each acknowledgement, and a flight that ends where a window of HTTP/2 does ends for that.
        let is_window = |flight| {
            USED_UP.contains(flight)
                || WINDOWS.contains(flight) && (from == SERVER || acknowledges_nothing(wait))
        };
        let full = is_window(&wait.last.flight) && verdict.split.has_only(with_link | congestion);
        let held = if from == SERVER {
            verdict.split.has(own | Cause::CongestionWindow.bit())
                && (full && !verdict.split.has(Cause::SlowStart.bit()) || verdict.split.has_only(with_link))
        } else {
            full
        };
        if at_once && held {
            let packets = [wait.last.packet, wait.segment.packet];
            verdict.split = application_window::judge(&verdict.split, wait.gap, side(from), packets);
        }
    }
}

/// Whether the peer's last message acknowledged nothing new, so that no congestion window released this.
fn acknowledges_nothing(wait: &Wait<'_>) -> bool {
    let acked = wait.flow.view.clocking_ack();
    wait.peer.last_data.is_some_and(|said| acked.is_none_or(|acked| acked.packet < said.packet))
}

fn is_long(open: &Open) -> bool {
    open.initiator == CLIENT && open.reply_bytes >= READ_MIN
}
