//! Is this one of the messages that an end sends on a timer, whatever was requested?
//!
//! Measurements, ticks and published news follow the request that started them at equal intervals, each
//! a small write of its own. Nobody waits for the next one: the reply ends with the first of them.
//! Until enough have come, they may be a reply in parts, so the message is kept as it was before them.

use tcpwhy_wire::{Duration, Instant, Segment};

use super::Connection;
use super::row::{Push, Row};
use super::seldom::may_be_streams;
use super::turn::Silence;
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::bill::revise::Revision;
use crate::estimate::grid::{DISTANCE_MIN, Grid, MAY_MIN};
use crate::estimate::maybe::Maybe;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::segment_class::{LastData, SegmentClass, SendQueue};
use crate::rules::round_trip;
use crate::rules::verdict::Verdict;
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::report::Kind;

/// Any other cause before a segment means that TCP held it up.
const BY_ITSELF: u32 =
    Cause::SenderThink.bit() | Cause::Unexplained.bit() | Cause::Bandwidth.bit() | Cause::Queueing.bit();
/// No peer delays an ACK for longer (RFC 1122, 4.2.3.2).
const SILENT_MIN: Duration = Duration::from_millis(500);
const REPAIRS: u32 = Cause::Rto.bit() | Cause::Loss.bit();
/// What an end says by itself now and then comes after at least so long. Source: none written down.
const BEAT_AFTER: Duration = Duration::from_secs(2);
/// A host that only sends a message back takes less than this. Source: none written down.
const BEAT_WAIT_MIN: Duration = Duration::from_millis(2);

impl Connection {
    /// Notes a small segment after a silence. Returns what the silence means, if a timer sent the
    /// segment or it is the request behind the setup of a session.
    pub(super) fn on_push(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        verdict: &mut Verdict,
    ) -> Option<Silence> {
        if self.asks_behind_finished(segment, from) {
            return Some(Silence::Piece);
        }
        let last = self.flows[from].last_data?;
        let quiet = segment.at - last.at;
        if quiet < DISTANCE_MIN
            || !self.is_push(segment, from, class)
            || self.goes_on_by_its_bytes(from, segment.seq)
        {
            return None;
        }
        let open = self.open.as_deref()?;
        let replies = from != open.initiator && open.reply_first.is_some();
        if !replies && (from == CLIENT || open.initiator == CLIENT) {
            return None;
        }
        let path = if replies { &open.reply } else { &open.request };
        if path.last.is_none() {
            self.roles.on_unasked(segment.at, segment.payload_len);
            return None;
        }
        // A repair would have made it late.
        if self.roles.is_on_grid(from, segment.at) && !verdict.split.has(REPAIRS) {
            self.roles.on_unasked(segment.at, segment.payload_len);
            return Some(Silence::Message);
        }
        if last.queue == SendQueue::More || !verdict.split.has_only(BY_ITSELF) {
            return None;
        }
        self.on_row(segment, from, quiet, last, verdict)
    }

    fn is_push(&self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        class == SegmentClass::New
            && segment.flags.psh()
            && segment.payload_len < self.mss(from)
            && (self.flows[from].flight() < self.mss(from) || self.is_silent(segment.at, from))
    }

    /// Whether an end has been silent for so long that its last data is acknowledged, captured or not.
    fn is_silent(&self, at: Instant, from: usize) -> bool {
        self.flows[from].last_data.is_some_and(|last| at - last.at >= SILENT_MIN)
    }

    #[cold]
    fn on_row(
        &mut self,
        segment: &Segment,
        from: usize,
        quiet: Duration,
        last: LastData,
        verdict: &mut Verdict,
    ) -> Option<Silence> {
        let open = self.open.as_deref_mut()?;
        let replies = from != open.initiator;
        let push = Push { at: segment.at, packet: segment.packet, len: segment.payload_len };
        let end = segment.seq + segment.payload_len;
        let path = if replies { &mut open.reply } else { &mut open.request };
        let known = self.roles.row.take().filter(|row| (row.of, row.end) == (open.n, segment.seq));
        let mut row = known.unwrap_or_else(|| {
            Box::new(Row {
                grid: Grid::default(),
                of: open.n,
                end,
                account: Account::default(),
                packet: 0,
                first: last,
                is_answer: false,
                pieces: 0,
                pushes: Vec::new(),
            })
        });
        let count = row.grid.on_distance(segment.at, quiet);
        if count == 1 {
            row.account = path.so_far();
            row.packet = open.packets[1];
            row.first = last;
            row.is_answer = replies && open.reply_bytes == u64::from(last.len);
            row.pieces = open.pieces.len();
            row.pushes.clear();
        }
        row.pushes.push(push);
        row.end = end;
        if row.grid.is_kept() {
            if from == SERVER {
                self.roles.on_grid(row.grid);
            }
            if open.pieces.len() > row.pieces {
                return Some(Silence::Message); // each has been set aside as a message of its own
            }
            self.roles.row = Some(row);
            return Some(Silence::Stream);
        }
        if count >= MAY_MIN {
            path.settle().revise(Revision::MayBeMany { sender: side(from), form: Form::OrPushes });
            verdict.split.doubt();
        }
        self.roles.row = Some(row);
        None
    }

    /// Ends the message before the pushes that seemed to continue it: nobody waited for those.
    #[cold]
    pub(super) fn close_stream(&mut self, from: usize, ledger: &mut Ledger) {
        let (Some(row), Some(open)) = (self.roles.row.take(), self.open.as_deref_mut()) else { return };
        let [earlier @ .., _] = row.pushes.as_slice() else { return };
        let bytes: u64 = earlier.iter().map(|push| u64::from(push.len)).sum();
        open.end_before(from != open.initiator, &row.account, row.first, bytes, row.packet);
        let first = Push { at: row.first.at, packet: row.first.packet, len: row.first.len };
        // The reply itself came on the timer.
        let by_timer = row.is_answer && row.grid.is_step(open.waited - self.tap_rtt(from));
        if by_timer && let Some(open) = self.open.as_deref_mut() {
            open.drop_reply();
        }
        self.close(None, ledger);
        for push in by_timer.then_some(&first).into_iter().chain(earlier) {
            self.close_push(from, push.at, push.packet, u64::from(push.len), ledger);
        }
    }

    /// Whether this is the server's next tick, and not the reply to what the client happened to request
    /// before it. If so, it is a message of its own, and the request stays open.
    #[inline]
    pub(super) fn passes_tick(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        ledger: &mut Ledger,
    ) -> bool {
        let passes = from == SERVER && self.roles.watch() && self.is_next_tick(segment, class);
        if passes {
            self.pass_tick(segment, ledger);
        }
        passes
    }

    #[cold]
    fn is_next_tick(&self, segment: &Segment, class: SegmentClass) -> bool {
        let asked = |open: &&Open| open.initiator == CLIENT && open.reply_first.is_none();
        self.roles.is_on_grid(SERVER, segment.at)
            && self.is_push(segment, SERVER, class)
            && self
                .open
                .as_deref()
                .filter(asked)
                .is_some_and(|open| !self.asks_by_its_bytes(open.request_first))
    }

    #[cold]
    fn pass_tick(&mut self, segment: &Segment, ledger: &mut Ledger) {
        self.roles.on_unasked(segment.at, segment.payload_len);
        let idle_since = self.last_wait_end;
        self.close_push(SERVER, segment.at, segment.packet, u64::from(segment.payload_len), ledger);
        self.last_wait_end = idle_since;
    }

    /// Doubts that a server which speaks at intervals of its own, at whatever time it was asked, answers by that.
    #[inline]
    pub(super) fn doubt_beat(&self, open: &Open, len: u32, wait: Duration, verdict: &mut Verdict) -> bool {
        let seldom = self.roles.seldom();
        let streams = || {
            u32::try_from(open.request_bytes).is_ok_and(|asked| may_be_streams(wait, asked, u64::from(len)))
        };
        let by_itself = seldom.own_beat.is_shown() && (wait >= DISTANCE_MIN || streams());
        let beats = (by_itself
            || seldom.beat_len == len && may_cross(open.request_bytes, len, (open.client_idle, wait)))
            && !self.asks_by_its_bytes(open.request_first);
        if beats {
            verdict.split.doubt();
        }
        beats
    }

    /// The client has said as many bytes as the server had before, after an idle time.
    #[cold]
    #[inline(never)]
    pub(super) fn note_beat(&mut self, (said, len): (u64, u64), idle: Duration) {
        let Ok(len) = u32::try_from(len) else { return };
        if said == u64::from(len) && idle >= BEAT_AFTER {
            self.roles.seldom_mut().beat_len = len;
            self.roles.look();
        }
    }

    /// Bills a small unrequested message: its own way and nothing else.
    #[cold]
    pub(super) fn close_push(
        &mut self,
        from: usize,
        at: Instant,
        packet: u64,
        bytes: u64,
        ledger: &mut Ledger,
    ) {
        if from == SERVER {
            self.roles.on_push(at);
        }
        let mut account = Account::default();
        round_trip::charge_way_back(&self.pair(), &mut account, Kind::OneWay, from, packet);
        let idle = self.idle_since().map_or(Duration::ZERO, |since| (at - since).at_least_zero());
        let meta = Closed {
            n: self.next_n,
            kind: Kind::OneWay,
            initiator: side(from),
            start: at,
            client_idle: idle,
            request_bytes: bytes,
            packets: [packet; 2],
            ..self.closed(ledger)
        };
        self.next_n += 1;
        self.last_wait_end = Maybe::of(at);
        self.hand_over(meta, &mut account, ledger);
    }
}

/// Whether one of two messages that are equally long, and that one end or the other sends now and then, need not answer the
/// other: it comes later than a host that answers by itself.
fn may_cross(said: u64, len: u32, (idle, wait): (Duration, Duration)) -> bool {
    said == u64::from(len) && idle >= BEAT_AFTER && wait >= BEAT_WAIT_MIN
}
