//! Does this segment continue the message under way, or begin one of its own?

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Connection;
use super::opening::AT_ONCE;
use super::turn::Silence;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::{LastData, SegmentClass, SendQueue};
use crate::flow::view::ClockingAck;
use crate::rules::verdict::Verdict;
use crate::rules::{handshake, late_start, nagle, shut_window, unseen_copy};
use crate::words::cause::Cause;
use crate::words::limits::{BURST_GAP, LATE_SHARE, WORD_MAX};
use crate::words::report::Kind;

/// After this much silence in a message, with everything acknowledged and nothing queued, the next
/// bytes are a message of their own: a push, the next item of a stream.
const NEW_MESSAGE_AFTER: Duration = Duration::from_secs(1);
/// The same before any reply: a client with `Expect: 100-continue` waits for a second (libcurl, Go)
/// before it sends the rest.
const NEW_REQUEST_AFTER: Duration = Duration::from_millis(1_500);
/// After both ends were silent for this long, all data has arrived, ACKs or not: the capture may lack
/// them.
const SETTLED_AFTER: Duration = Duration::from_secs(10);
/// Shorter silences, from this on, also end a message if no reply ever comes.
const PIECE_AFTER: Duration = Duration::from_millis(200);
/// ... and from this on, if each message is a frame of its own.
const FRAME_AFTER: Duration = Duration::from_millis(50);
/// This many bytes are a keystroke, or two.
const KEYS_MAX: u32 = 4;
/// The least time that a typist takes to find the next key.
const KEY_AFTER: Duration = Duration::from_millis(50);
/// ... and in round trips: a reaction to an echoed key takes no longer. Source: none written down.
const KEY_RTTS: i64 = 20;
/// A silence of this many round trips ends a message on connections whose messages end so. Source: none
/// written down.
const ENDS_RTTS: i64 = 4;
/// After this many requests in a row whose second part was sent on a timer, such parts are messages of
/// their own.
const ASKED_MIN: u8 = 3;
/// Data that its sender wrote in one go has no pause as long as this. Source: none written down.
const CONFIRMED_AFTER: Duration = Duration::from_millis(20);
/// This many segments in flight are a long message.
const LONG_SEGMENTS: u32 = 10;
/// A message in this many pieces without an answer is a stream.
pub(super) const PIECES_MAX: usize = 32;

impl Connection {
    /// Whether new bytes begin something of their own instead of continuing or answering the message
    /// under way.
    pub(super) fn starts_message(&self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        let Some(open) = &self.open else { return class == SegmentClass::New };
        match class {
            SegmentClass::New => {}
            // Beyond everything this message has sent: the first transmission was lost before the
            // capture.
            SegmentClass::OutOfOrderOrRepair { .. }
                if from == open.initiator
                    && open.request_end.is_none_or(|end| segment.seq.at_or_after(end)) => {}
            _ => return false,
        }
        if from != open.initiator {
            // The peer of a message answers it; a client that speaks after the server's push starts its
            // own. Data that follows a reply and acknowledges more than the capture has of the request
            // answers another request.
            let answered = open.reply_first.is_some() && segment.at - self.last_of(from) >= BURST_GAP;
            let begun = open.reply_first.is_none();
            return begun && (open.initiator == SERVER || self.is_unasked(open, segment))
                || (answered && self.flows[open.initiator].acked_unseen())
                || self.frames.is_ping();
        }
        match open.reply_first {
            // It had seen some of the reply, and more of it than when it last sent. Bytes sent before
            // that belong to the request turn.
            Some(first) => {
                let read = segment.ack.after(first)
                    && open.request_acks.is_none_or(|acks| segment.ack.after(acks))
                    && !self.was_held(open, segment, from, class, first)
                    && !self.was_queued(segment, from, class);
                segment.flags.ack()
                    && !self.frames.goes_on()
                    && (read || self.asks_beside(open, segment, from, first))
            }
            None => {
                self.says_no_more_than_a_frame(segment, from)
                    || self.has_seen_missing_answer(open, segment, from)
            }
        }
    }

    /// Whether the unanswered message under way is one of HTTP/2's own frames, and this segment another
    /// message.
    #[inline]
    pub(super) fn says_no_more_than_a_frame(&self, segment: &Segment, from: usize) -> bool {
        self.frames.is_http2() && self.is_behind_a_frame(segment, from)
    }

    #[cold]
    #[inline(never)]
    fn is_behind_a_frame(&self, segment: &Segment, from: usize) -> bool {
        self.open.as_deref().is_some_and(|open| {
            from == open.initiator
                && open.reply_first.is_none()
                && segment.at - open.request_at() >= BURST_GAP
                && self.frames.is_frame_before(open, segment.payload_len)
        })
    }

    /// When the last data of an end passed.
    fn last_of(&self, end: usize) -> Instant {
        self.flows[end].last_data.map_or(Instant::MIN, |last| last.at)
    }

    /// Whether the reply is missing from the capture, so that no packet shows when it came and no bill
    /// what it cost.
    fn has_seen_missing_answer(&self, open: &Open, segment: &Segment, from: usize) -> bool {
        // Two queues of a capture may deliver a reply after the packet that it triggers.
        let at_once = segment.at - open.request_at() < BURST_GAP;
        // An end with nothing in the capture shows only in its peer's ACKs.
        (self.flows[1 - from].acked_unseen() || self.last_packet[1 - from].is_none())
            && !at_once
            && open.request_acks.is_some_and(|acks| segment.ack.after(acks))
    }

    /// Whether its sender had more to send all along, and a window released this: the request goes on
    /// although part of the reply is there.
    fn was_queued(&self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        let flow = &self.flows[from];
        let Some(last) = flow.last_data.as_ref().filter(|last| last.queue != SendQueue::Emptied) else {
            return false;
        };
        let wait = self.wait(segment, from, class, self.mss(from), last, 0);
        // A request that ends with a full segment is answered before the next one. Far from its sender,
        // it is unknown which of several ACKs released this, but so many bytes hardly ever end that way
        // by chance. The client's first request begins along with its Finished, and what its server's
        // TLS says by itself answers none of it.
        let opened = self.frames.has_only_opened();
        let long = !wait.near_sender() && (opened || last.flight >= LONG_SEGMENTS * wait.mss);
        let more = |ack: &ClockingAck| ack.left > 0 || long;
        flow.view.clocking_ack().is_some_and(|ack| more(&ack) && wait.follows(&ack))
    }

    /// Whether this is the rest of the request, written with its beginning and held until the reply to
    /// that.
    fn was_held(&self, open: &Open, segment: &Segment, from: usize, class: SegmentClass, first: Seq) -> bool {
        let (Some(last), 0, Kind::Exchange) = (&open.request.last, open.request.index, open.kind()) else {
            return false;
        };
        let wait = self.wait(segment, from, class, self.mss(from), last, 0);
        nagle::holds_rest(&wait, first)
    }

    /// What the silence before a segment that continues its sender's part means.
    pub(super) fn silence(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        verdict: &Verdict,
    ) -> Silence {
        let Some(open) = self.open.as_deref() else { return Silence::None };
        let path = if from == open.initiator { &open.request } else { &open.reply };
        // Segments left out between them are no part of it.
        let Some(last) = path.frontier() else { return Silence::None };
        let quiet = segment.at - last.at;
        if class == SegmentClass::New && self.repeats_in_vain(path, from) {
            return Silence::Message;
        }
        if self.surely_goes_on(open, segment, from, quiet) {
            return if self.has_confirmed(open, from, quiet) { Silence::Message } else { Silence::None };
        }
        let own_time = is_own_time(verdict, quiet);
        let left_out = self.flows[from].last_data.filter(|latest| latest.packet != last.packet);
        let unheard =
            left_out.map_or(self.flows[from].flight(), |latest| latest.flight.saturating_sub(latest.len));
        // From a stack that does not set PSH, a silence with everything acknowledged tells.
        let told = || quiet >= NEW_MESSAGE_AFTER && (from == open.initiator || !self.has_more(last, from));
        let emptied = (last.queue != SendQueue::More || told()) && unheard == 0;
        // The lost segment had not been sent yet when a packet of its sender showed that nothing was in flight.
        if matches!(class, SegmentClass::OutOfOrderOrRepair { .. })
            && self.flows[from].nothing_out_at - last.at >= NEW_MESSAGE_AFTER
        {
            return Silence::Message;
        }
        if class != SegmentClass::New {
            return Silence::None;
        }
        // Everything in transit has arrived by now: the peer has requested nothing since, and nothing
        // was retransmitted.
        let nobody_waits = verdict.split.has_only(Cause::SenderThink.bit() | Cause::Unexplained.bit())
            && quiet >= SETTLED_AFTER
            && self.last_packet[1 - from].get().is_none_or(|peer| peer - last.at < NEW_MESSAGE_AFTER);
        let asking = from == open.initiator && open.reply_first.is_none();
        if asking && quiet >= PIECE_AFTER && self.is_word_again(open, segment, from, verdict) {
            return Silence::Message;
        }
        if !(nobody_waits || own_time && emptied) {
            let aside = asking && own_time && quiet >= PIECE_AFTER && self.may_be_answered_alone(open, last);
            return if aside { Silence::Piece } else { Silence::None };
        }
        if asking && quiet >= PIECE_AFTER && self.is_second_try(open, segment, from)
            || own_time && emptied && self.ends_by_habit(open, last, segment, from, quiet)
        {
            return Silence::Message;
        }
        let again = asking && from == CLIENT && quiet >= PIECE_AFTER && open.pieces.is_empty();
        if again && self.roles.on_asked_late(segment.at, ASKED_MIN) {
            return Silence::Message;
        }
        if from == SERVER && !asking && quiet >= PIECE_AFTER {
            self.roles.on_spoken_late();
        }
        // Output that repeats itself, as each second, has been heard already.
        let repeats = last.len == segment.payload_len;
        if !asking && !repeats && self.runs_a_command(open, last.at, from, quiet) {
            return Silence::None;
        }
        by_length(quiet, asking, open.pieces.len())
    }

    /// Whether a far sender that sets PSH at the ends of its writes had more to send after `last`:
    /// once all is acknowledged, only the path can delay that.
    #[cold]
    fn has_more(&self, last: &LastData, from: usize) -> bool {
        let far = self.tap_rtt(from) > self.tap_rtt(1 - from);
        far && last.len >= self.mss(from) && self.flows[from].has_pushed()
    }

    /// Whether data that is not yet acknowledged may be a request by itself: the ACK number of its
    /// reply will show whether that waited for the rest.
    #[cold]
    #[inline(never)]
    fn may_be_answered_alone(&self, open: &Open, last: &LastData) -> bool {
        let whole = last.queue == SendQueue::Emptied && last.len < self.mss(open.initiator);
        whole && open.pieces.len() < PIECES_MAX / 2 && open.request.repaired_at().is_none()
    }

    /// Whether a terminal has echoed a key and started a command, which may be silent until it has
    /// output: a person possibly waits through its first silence.
    fn runs_a_command(&self, open: &Open, said_at: Instant, from: usize, quiet: Duration) -> bool {
        let first = said_at - open.request_at() < NEW_MESSAGE_AFTER;
        from == SERVER && self.roles.echoes_keys() && first && quiet < SETTLED_AFTER
    }

    /// Whether this silence is too short to end anything, or the message is longer by its head.
    fn surely_goes_on(&self, open: &Open, segment: &Segment, from: usize, quiet: Duration) -> bool {
        quiet < PIECE_AFTER
            && open.pieces.len() < PIECES_MAX
            && !self.flows[from].plain
            && segment.payload_len > KEYS_MAX
            && !self.is_framed()
            || self.goes_on_by_its_bytes(from, segment.seq)
            || self.flows[from].missed_since_data > 0 && from != open.initiator && self.sent_meanwhile(from, quiet)
            // It may as well be news, sent as it occurs: then its pauses are at most possible, and end
            // it eventually.
            || quiet < SETTLED_AFTER && self.talk.as_ref().is_some_and(|talk| talk.is_unfinished(from))
    }

    /// Whether its sender's packet numbers show that some were sent during the silence, and lost.
    #[cold]
    #[inline(never)]
    fn sent_meanwhile(&self, from: usize, quiet: Duration) -> bool {
        let flow = &self.flows[from];
        quiet < SETTLED_AFTER && flow.numbers_its_packets()
    }

    /// Whether the connection has shown that its messages end this way: each a frame of its own, a
    /// short confirmation of a push, a typist's keys, or a continued reply of a server that sends
    /// unrequested messages.
    fn ends_by_habit(
        &self,
        open: &Open,
        last: &LastData,
        segment: &Segment,
        from: usize,
        quiet: Duration,
    ) -> bool {
        let path = self.tap_rtt(CLIENT) + self.tap_rtt(SERVER);
        let many = quiet >= path.times(ENDS_RTTS) && self.flows[from].outstanding() == 0;
        if self.is_framed() && quiet >= FRAME_AFTER.max(path.times(ENDS_RTTS)) {
            return true;
        }
        let small = segment.payload_len < self.mss(from) && last.len < self.mss(from);
        if from != open.initiator {
            return many && small && quiet >= PIECE_AFTER && self.roles.pushes_often();
        }
        let typed = segment.payload_len <= KEYS_MAX
            && open.piece.2 <= u64::from(KEYS_MAX)
            && quiet >= KEY_AFTER.max(path.times(KEY_RTTS));
        let confirmed = from == CLIENT
            && quiet >= PIECE_AFTER
            && (self.roles.has_parked() || self.is_word_at_heels(open));
        many && open.reply_first.is_none() && open.pieces.is_empty() && (typed || confirmed)
    }

    /// Whether the client's message so far was its reaction to a push: a short message acknowledged by
    /// itself, before a silence of several round trips.
    #[inline]
    fn has_confirmed(&self, open: &Open, from: usize, quiet: Duration) -> bool {
        from == CLIENT && quiet >= CONFIRMED_AFTER && self.roles.has_parked() && self.is_reaction(open, quiet)
    }

    #[cold]
    #[inline(never)]
    fn is_reaction(&self, open: &Open, quiet: Duration) -> bool {
        let path = self.tap_rtt(CLIENT) + self.tap_rtt(SERVER);
        let flow = &self.flows[CLIENT];
        let alone = open.initiator == CLIENT && open.reply_first.is_none() && open.request.index == 0;
        alone
            && open.request_bytes <= u64::from(WORD_MAX)
            && quiet >= path.times(ENDS_RTTS)
            && flow.has_emptied_its_queue()
            && flow.outstanding() == 0
            && self.may_be_cipher()
            && !self.goes_on_by_its_bytes(CLIENT, open.request_end.unwrap_or_default())
    }

    /// Whether the client has so far sent only short encrypted messages right after what it received,
    /// which they confirm.
    #[cold]
    #[inline(never)]
    fn is_word_at_heels(&self, open: &Open) -> bool {
        let words = u64::from(WORD_MAX) * (open.request.index as u64 + 1);
        let short = open.request_bytes <= words && open.request_bytes > 0;
        short && self.may_be_cipher() && self.came_at_heels(open)
    }

    /// Whether the client began right after what it received.
    pub(super) fn came_at_heels(&self, open: &Open) -> bool {
        let heard = self.flows[SERVER].last_data;
        heard.is_some_and(|heard| open.passed - heard.at - self.tap_rtt(CLIENT) <= AT_ONCE)
    }

    /// Whether this has the length of the whole message so far: a second try, or the next heartbeat.
    fn is_second_try(&self, open: &Open, segment: &Segment, from: usize) -> bool {
        let small = segment.payload_len < self.mss(from) && segment.flags.psh();
        small && open.pieces.is_empty() && open.piece.2 == u64::from(segment.payload_len)
    }

    /// Whether this message is short, as long as the last one, and all of that is acknowledged as seen
    /// here. If only its sender's own messages bound the distance, they show just how seldom it speaks,
    /// not that it waited for the ACK or was held until then (RFC 896).
    #[cold]
    #[inline(never)]
    fn is_word_again(&self, open: &Open, segment: &Segment, from: usize, verdict: &Verdict) -> bool {
        self.is_bound(from)
            && self.flows[from].outstanding() == 0
            && self.is_second_try(open, segment, from)
            && verdict.split.has_only(Cause::SenderThink.bit() | Cause::Nagle.bit())
    }

    /// Starts the account of a message with its first segment.
    pub(super) fn begin(&mut self, segment: &Segment, from: usize, class: SegmentClass) {
        let mut open = self.spare.take().unwrap_or_else(|| Box::new(Open::new()));
        let behind_opening = self.frames.begin_message();
        let at = self.now;
        if self.next_n == 0 && self.setup.is_some() {
            self.next_n = 1; // 0 is the setup
        }
        let greeting = from == SERVER && self.flows[CLIENT].bytes == 0 && self.flows[SERVER].bytes == 0;
        let (start, idle_since) = match self.handshake_end() {
            // The server speaks first: the client waits from the end of the handshake.
            Some(end) if greeting => (end, None),
            _ => (at, self.idle_since()),
        };
        self.greeted |= greeting;
        let initiator = if greeting && start < at { CLIENT } else { from };
        let idle = idle_since.map_or(Duration::ZERO, |since| (at - since).at_least_zero());
        open.restart(self.next_n, initiator, start.min(at), idle, (segment.at, segment.packet));
        self.next_n += 1;
        open.request_first = (initiator == from).then_some(segment.seq);
        open.first_len = if initiator == from { segment.payload_len } else { 0 };
        open.is_guess |=
            behind_opening && segment.payload_len <= WORD_MAX && self.follows_at_once(segment, from);
        // A message on a timer was not late.
        let by_timer = from == SERVER && self.roles.is_tick(segment.at);
        open.way_base = self.flows[from]
            .clock
            .base_with_last()
            .filter(|_| self.tap_rtt(from) >= self.tap_rtt(1 - from) && initiator == from && !by_timer)
            .into();
        if initiator != from {
            self.begin_unasked(&mut open, segment.packet);
        } else if let Some(before) = self.before_message(segment, from, class, idle_since) {
            open.begin_earlier(at, before.ns);
            open.request.charge(&before);
        } else {
            open.late = self.late_on_its_way(segment, from, idle_since).filter(|_| !by_timer).map(Box::new);
        }
        self.open = Some(open);
    }

    /// The server speaks first, without a request: its client waits from the end of the handshake.
    fn begin_unasked(&self, open: &mut Open, packet: u64) {
        let mut at = open.start;
        let ways = [CLIENT, SERVER].map(|end| self.tap_rtt(end));
        let setup = self.setup.as_ref();
        if let Some(lost) = setup.and_then(|setup| handshake::taken_in_vain(setup, ways, at, self.now)) {
            open.request.charge(&lost);
            at = at + lost.ns;
        }
        open.request.begin(LastData {
            at,
            packet,
            queue: SendQueue::Emptied,
            len: 0,
            flight: 0,
            flight_segments: 0,
            unheard: 0,
            stamp: None,
            snd_una: None,
            spacing: Duration::ZERO,
        });
    }

    /// The wait before the first segment of a message passed.
    fn before_message(
        &self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        idle_since: Option<Instant>,
    ) -> Option<Charge> {
        let pair = self.pair();
        let lost = unseen_copy::judge(&pair, segment, from, class, idle_since);
        lost.or_else(|| shut_window::judge(&pair, segment, from, idle_since))
    }

    /// [`late_start::on_its_way`] of this end's message.
    pub(super) fn late_on_its_way(
        &self,
        segment: &Segment,
        from: usize,
        idle_since: Option<Instant>,
    ) -> Option<Charge> {
        // Nothing is late on a path without length, and a coarse clock shows no length.
        let way = self.tap_rtt(from);
        let is_far = way >= self.tap_rtt(1 - from) && way.is_positive();
        late_start::on_its_way(&self.flows[from], is_far, segment, idle_since)
    }

    /// When the client received the SYN-ACK.
    fn handshake_end(&self) -> Option<Instant> {
        let setup = self.setup.as_ref()?;
        let (syn_ack, _) = setup.last_syn_ack()?;
        let end = syn_ack + self.tap_rtt(CLIENT);
        // If the handshake's ACK was late, the server did not know of the connection before.
        Some(setup.taken().map_or(end, |taken| end.max(taken)))
    }

    /// Since when nothing was under way.
    #[inline]
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.last_wait_end.get().or_else(|| self.handshake_end())
    }
}

/// Whether only its sender's own time lies before a segment, even if the link was charged part of it.
fn is_own_time(verdict: &Verdict, quiet: Duration) -> bool {
    let own = || verdict.split.charges().filter(|charge| charge.cause == Cause::SenderThink);
    let linked = || verdict.split.has_only(Cause::SenderThink.bit() | Cause::Bandwidth.bit());
    verdict.split.has_only(Cause::SenderThink.bit())
        || linked() && own().map(|charge| charge.ns).sum::<Duration>() >= quiet - quiet.divided_by(LATE_SHARE)
}

/// The meaning of a silence this long in a message of so many pieces, if nothing else tells.
fn by_length(quiet: Duration, asking: bool, pieces: usize) -> Silence {
    let end = if asking { NEW_REQUEST_AFTER } else { NEW_MESSAGE_AFTER };
    if quiet >= end || pieces >= PIECES_MAX {
        Silence::Message
    } else if quiet >= PIECE_AFTER && asking {
        Silence::Piece
    } else {
        Silence::None
    }
}
