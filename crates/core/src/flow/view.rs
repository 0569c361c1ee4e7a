//! What did a sender know when it sent: what was acknowledged, how far the window reached, what last
//! released it?
//!
//! Rules ask for four kinds of ACK that may have clocked a segment out. In most connections the latest ACK
//! is three of them and is kept once, in place; where they differ, the older ones have memory of their own.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::estimate::maybe::Maybe;
use crate::flow::segment_class::LastData;

/// The ACK that clocked a segment out, or could have: it ended something that held the sender back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockingAck {
    /// The earliest time at which a segment that waited for it passes the capture.
    pub earliest_departure: Instant,
    /// Of the ACK.
    pub packet: u64,
    pub rtt: Maybe<Duration>,
    /// It acknowledges a retransmission and is timed from the last one: the true time may be longer (Karn).
    pub repaired: bool,
    /// It acknowledges everything that had passed the capture before it.
    pub whole: bool,
    /// Bytes in flight before it.
    pub flight: u32,
    /// Window advertised before it.
    pub window: u32,
    /// The largest window advertised before it.
    pub window_peak: u32,
    /// Bytes that still fitted the window before it.
    pub room: i32,
    /// Bytes in flight after it.
    pub left: u32,
}

/// Where such an ACK is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Nowhere,
    Latest,
    Older,
}

/// Those that are not the latest.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Older {
    small_acked: Option<ClockingAck>,
    all_acked: Option<ClockingAck>,
    window_opened: Option<ClockingAck>,
    /// The largest window that was used up.
    used_up: u32,
}

/// What the sender knew.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    /// What the sender knows to be acknowledged, as far as ACKs can have reached it (RFC 9293, 3.3.1).
    pub snd_una: Option<Seq>,
    /// Right edge of the send window: SND.UNA + SND.WND (RFC 9293, 3.3.1).
    pub right_edge: Option<Seq>,
    /// The right edges before it, the newest first; the first one fills the rest.
    right_edges_before: [Seq; 4],
    /// Whether `right_edges_before` holds any.
    has_moved: bool,
    pub window: u32,
    pub window_peak: u32,
    /// The window is from a segment with SYN.
    pub unscaled: bool,
    /// When the first ACK reached the sender since it last sent.
    pub unanswered_since: Maybe<Instant>,
    /// The last ACK that signals a loss.
    pub loss_signal: Maybe<Instant>,
    latest: Option<ClockingAck>,
    small_acked: Place,
    all_acked: Place,
    older: Option<Box<Older>>,
}

impl View {
    /// The last ACK of new data.
    #[inline]
    pub(crate) fn clocking_ack(&self) -> Option<ClockingAck> {
        self.latest
    }

    /// The ACK after which no small segment was outstanding (Minshall's form of Nagle).
    #[inline]
    pub(crate) fn small_acked(&self) -> Option<ClockingAck> {
        match self.small_acked {
            Place::Nowhere => None,
            Place::Latest => self.latest,
            Place::Older => self.older.as_ref()?.small_acked,
        }
    }

    /// The ACK after which nothing was outstanding.
    #[inline]
    pub(crate) fn all_acked(&self) -> Option<ClockingAck> {
        match self.all_acked {
            Place::Nowhere => None,
            Place::Latest => self.latest,
            Place::Older => self.older.as_ref()?.all_acked,
        }
    }

    /// The ACK that opened a window which had been too small for the next segment.
    #[inline]
    pub(crate) fn window_opened(&self) -> Option<ClockingAck> {
        self.older.as_ref()?.window_opened
    }

    /// Whether the sender had no room at all before that.
    #[inline]
    pub(crate) fn had_no_room(&self) -> bool {
        self.older.as_ref().is_some_and(|older| older.window_opened.is_some_and(|opened| opened.room <= 0))
    }

    /// Whether the window cut off a segment that ends here. Which ACK the sender had last is not known
    /// exactly, so earlier right edges count too.
    #[inline]
    pub(crate) fn cuts(&self, end: Seq) -> bool {
        self.right_edge == Some(end) || self.has_moved && self.right_edges_before.contains(&end)
    }

    /// Bytes in flight, as the sender knew it, before the byte that it sends next.
    #[inline]
    pub(crate) fn flight_before(&self, next: Seq) -> u32 {
        self.snd_una.map_or(0, |snd_una| (next - snd_una).max(0) as u32)
    }

    /// The window now reaches up to `right_edge`.
    #[inline]
    pub(crate) fn reach(&mut self, right_edge: Seq) {
        if let Some(before) = self.right_edge {
            if !right_edge.after(before) {
                return;
            }
            let [last, second, third, _] = self.right_edges_before;
            self.right_edges_before =
                if self.has_moved { [before, last, second, third] } else { [before; 4] };
            self.has_moved = true;
        }
        self.right_edge = Some(right_edge);
    }

    /// Whether the window had held its sender since `last`: there was `room` for no segment, or for one but
    /// not two, with more to send, if no opening of the window counts since then (tcp_tso_should_defer,
    /// net/ipv4/tcp_output.c).
    #[inline]
    pub(crate) fn had_too_little(&self, room: i32, last: Option<&LastData>, mss: u32) -> bool {
        let room = i64::from(room);
        room < 2 * i64::from(mss) && (room < i64::from(mss) || !self.opened_since(last))
    }

    /// An ACK opened a window that had held the sender.
    #[inline(never)]
    pub(crate) fn open_window(&mut self, ack: ClockingAck) {
        let older = self.older.get_or_insert_default();
        older.used_up = older.used_up.max(ack.window);
        older.window_opened = Some(ack);
    }

    /// The largest window that was used up until an ACK opened it.
    pub(crate) fn window_used_up(&self) -> u32 {
        self.older.as_ref().map_or(0, |older| older.used_up)
    }

    /// Whether a window opened after `last` was sent.
    fn opened_since(&self, last: Option<&LastData>) -> bool {
        self.window_opened().zip(last).is_some_and(|(opened, last)| opened.earliest_departure > last.at)
    }

    /// The windows so far are smaller than they were taken for by this many powers of two.
    pub(crate) fn shrink_windows(&mut self, powers: u8) {
        if self.unscaled {
            return;
        }
        self.window >>= powers;
        self.window_peak >>= powers;
        if let Some(older) = &mut self.older {
            older.used_up >>= powers;
        }
        self.right_edge = self.snd_una.map(|snd_una| snd_una + self.window);
    }

    /// Whether a newer ACK can replace the latest one, which then is needed in no other role.
    #[inline]
    pub(crate) fn may_advance(&self, small_acked: bool, all_acked: bool) -> bool {
        (self.small_acked != Place::Latest || small_acked) && (self.all_acked != Place::Latest || all_acked)
    }

    /// [`Self::advance`] in that case: returns where to keep the ACK.
    #[inline]
    pub(crate) fn latest_is(&mut self, small_acked: bool, all_acked: bool) -> &mut Option<ClockingAck> {
        if small_acked {
            self.small_acked = Place::Latest;
        }
        if all_acked {
            self.all_acked = Place::Latest;
        }
        &mut self.latest
    }

    /// Takes an ACK of new data, and the other roles that it has.
    #[inline]
    pub(crate) fn advance(&mut self, ack: impl FnOnce() -> ClockingAck, small_acked: bool, all_acked: bool) {
        if !self.may_advance(small_acked, all_acked) {
            self.keep_latest(small_acked, all_acked);
        }
        if small_acked {
            self.small_acked = Place::Latest;
        }
        if all_acked {
            self.all_acked = Place::Latest;
        }
        let latest = self.latest.insert(ack());
        self.unanswered_since.set_first(latest.earliest_departure);
    }

    /// Keeps the latest ACK in the roles that the next one does not take over.
    #[inline(never)]
    fn keep_latest(&mut self, small_acked: bool, all_acked: bool) {
        if self.small_acked == Place::Latest && !small_acked {
            self.older.get_or_insert_default().small_acked = self.latest;
            self.small_acked = Place::Older;
        }
        if self.all_acked == Place::Latest && !all_acked {
            self.older.get_or_insert_default().all_acked = self.latest;
            self.all_acked = Place::Older;
        }
    }
}
