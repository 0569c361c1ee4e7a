//! What do the last words of a connection answer?
//!
//! A server that gives up an idle connection, or ends a TLS session (RFC 8446, 6.1), says so and
//! closes: that answers nothing. Data for a client that has closed is met by a reset: nobody waits for
//! it any more.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::frame_sizes::{TICKETS_MAX, is_control, is_goodbye};
use super::seldom::Had;
use super::{Connection, Flow};
use crate::bill::exchange::{Open, Path};
use crate::estimate::maybe::Maybe;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::segment_class::SegmentClass;
use crate::tally::ledger::Ledger;
use crate::words::limits::{BESIDE, BURST_GAP, NEWS_MIN, ROUND_TRIP_PLAY};
use crate::words::report::Kind;

/// Last words are at most this long.
const BYTES_MAX: u64 = 128;
/// ... and their sender closes within this.
const AT_ONCE: Duration = Duration::from_millis(5);
/// The first request follows the handshakes of TCP and, in two round trips, of TLS (RFC 5246, 7.3).
const FIRST_ASKED: u64 = 3;
/// Nobody gives a connection up sooner.
const SILENCE_MIN: Duration = Duration::from_secs(1);
/// A client that closes right at a reply may close before its last bytes; after a pause this long it
/// has read them. Source: none written down.
const PAUSE_MIN: Duration = Duration::from_millis(50);
/// Replies have come this many times sooner on this connection.
const SOONER: i64 = 10;
/// A client that gives up has waited this many times longer than the reply then takes to come. Source:
/// none written down.
const GAVE_UP: i64 = 16;
/// Who has acknowledged nothing for as long, of all that has come again meanwhile, is gone: several of the longest delays of an
/// acknowledgement (RFC 9293, 3.8.6.3). Source: none written down.
const GONE_AFTER: Duration = Duration::from_secs(2);

impl Connection {
    /// Takes more of a reply for an end that has closed: it may still read, or have given up.
    #[cold]
    pub(super) fn on_more_for_closed(&mut self, from: usize) {
        let kept = self.roles.had.as_deref().is_some_and(|had| self.is_since_closing(had, 1 - from));
        if let Some(had) = self.had_so_far(from).filter(|_| !kept) {
            self.roles.had = Some(Box::new(had));
        }
    }

    /// Whether `had` is what this end had when it closed, and more came after that.
    fn is_since_closing(&self, had: &Had, end: usize) -> bool {
        self.roles.closed_at[end].get().is_some_and(|closed_at| had.more_at >= closed_at)
    }

    fn had_so_far(&self, from: usize) -> Option<Had> {
        let open = self.open.as_deref().filter(|open| open.initiator != from)?;
        let (account, last) = (open.reply.so_far(), *open.reply.frontier()?);
        let (end, more_at) = (self.flows[from].snd_nxt?, self.now);
        Some(Had { n: open.n, account, last, bytes: open.reply_bytes, packet: open.packets[1], end, more_at })
    }

    /// Takes a server's message after what its TLS seems to have said by itself. It may be the reply to
    /// a request sent along with the client's Finished, or, after that alone and a silence, the
    /// farewell to a connection that was opened in advance.
    #[cold]
    #[inline(never)]
    pub(super) fn on_more_than_opening(&mut self, segment: &Segment, from: usize) {
        let silent = self.flows[from].last_data.is_some_and(|last| segment.at - last.at >= SILENCE_MIN);
        if silent && u64::from(segment.payload_len) <= BYTES_MAX {
            self.roles.had = self.had_so_far(from).map(Box::new);
        }
    }

    /// Whether a server closes right after a short message that came long after the tickets for a
    /// Finished alone, which requests nothing more, or after what was longer than tickets: the reply.
    #[cold]
    #[inline(never)]
    fn ends_unused(&mut self, at: Instant, from: usize, ledger: &mut Ledger) -> bool {
        let longest = self.roles.longest_wait;
        let finished = self.open.as_deref().is_some_and(|open| self.is_finished_alone(open));
        let Some(open) = self.open.as_deref_mut() else { return false };
        let open_to = self.roles.closed_at[1 - from].is_none();
        let replied = |had: &Had| {
            open_to && had.bytes > u64::from(TICKETS_MAX) && had.more_at - had.last.at >= SILENCE_MIN
        };
        let is_of = |had: &Had| had.n == open.n && at - had.more_at <= AT_ONCE && (finished || replied(had));
        let Some(had) = self.roles.had.take_if(|had| is_of(had)) else { return false };
        let long = had.more_at - had.last.at >= longest.times(SOONER);
        let more = open.reply_bytes.saturating_sub(had.bytes);
        let unused = long && more <= BYTES_MAX;
        if unused {
            let packet = open.packets[1];
            open.end_before(true, &had.account, had.last, more, had.packet);
            self.close(None, ledger);
            self.close_push(from, had.more_at, packet, more, ledger);
        }
        unused
    }

    /// Whether the server goes on by itself, in a `next` short message, after one that came minutes after the tickets for a Finished
    /// alone: GOAWAY, and what it says before it closes. The client had asked nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn ends_idle(&mut self, next: &Segment, ledger: &mut Ledger) -> bool {
        let short = u64::from(next.payload_len) <= BYTES_MAX && next.src == self.ends.end(SERVER);
        let finished = self.open.as_deref().is_some_and(|open| self.is_finished_alone(open));
        let Some(open) = self.open.as_deref_mut().filter(|_| short && finished) else { return false };
        let more = |had: &Had| open.reply_bytes.saturating_sub(had.bytes);
        let idle =
            |had: &Had| had.n == open.n && had.more_at - had.last.at >= NEWS_MIN && more(had) <= BYTES_MAX;
        let Some(had) = self.roles.had.take_if(|had| idle(had)) else { return false };
        let (packet, more) = (open.packets[1], more(&had));
        open.end_before(true, &had.account, had.last, more, had.packet);
        self.close_open(Some(next), ledger);
        self.close_push(SERVER, had.more_at, packet, more, ledger);
        true
    }

    /// Whether a segment is its protocol's own: an alert, or a frame that answers nothing.
    #[inline]
    pub(super) fn is_of_protocol(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        opening: Option<Duration>,
    ) -> bool {
        self.is_alert(segment, from, class)
            || self.frames.is_left_out(self.open.as_deref(), segment, from, class, opening)
    }

    /// Whether a segment is an alert of TLS and nothing else, by its record's type: that answers nothing (RFC 5246, 7.2), neither behind
    /// an answer nor long after a question.
    #[inline]
    fn is_alert(&self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        let said = self.talk.as_deref().and_then(|talk| talk.alert);
        said == Some(segment.seq) && class == SegmentClass::New && self.is_beside_answers(segment, from)
    }

    #[cold]
    #[inline(never)]
    fn is_beside_answers(&self, segment: &Segment, from: usize) -> bool {
        self.open.as_deref().filter(|open| from != open.initiator).is_some_and(|open| {
            match open.reply.frontier().filter(|_| open.reply_first.is_some()) {
                Some(said) => segment.at - said.at >= BURST_GAP,
                None => segment.at - open.request_at() >= SILENCE_MIN,
            }
        })
    }

    /// Whether a short message fills the hole before its sender's own FIN, which overtook it, after a
    /// silence with nothing under way: it is a farewell, as if it had come first.
    #[inline]
    pub(super) fn fills_up_to_its_end(&self, segment: &Segment, from: usize) -> bool {
        self.roles.closed_at[from]
            .get()
            .is_some_and(|closed_at| self.is_overtaken_farewell(closed_at, segment, from))
    }

    #[cold]
    #[inline(never)]
    fn is_overtaken_farewell(&self, closed_at: Instant, segment: &Segment, from: usize) -> bool {
        let open = self.open.as_deref().filter(|open| from != open.initiator);
        let Some(said) = open.and_then(|open| open.reply.frontier()) else { return false };
        let flow = &self.flows[from];
        let acked = flow.highest_ack.is_some_and(|acked| acked == segment.seq);
        let last = flow.snd_nxt.is_some_and(|end| segment.seq + segment.payload_len + 1 == end);
        let silent = closed_at - said.at >= SILENCE_MIN && segment.at - closed_at <= AT_ONCE;
        acked && last && silent && u64::from(segment.payload_len) <= BYTES_MAX
    }

    /// One end has closed. Its last message was no reply if it came long after the request, although
    /// replies so far came soon and did not end the connection.
    #[cold]
    pub(super) fn on_close(&mut self, at: Instant, from: usize, ledger: &mut Ledger) {
        self.roles.closed_at[from].set_first(at);
        let first = self.roles.closed_at[from] == Maybe::of(at);
        let Some(open) = self.open.as_deref() else { return };
        let answers = open.initiator != from;
        if !answers {
            if from == SERVER {
                self.on_last_words(at);
            } else {
                self.on_goaway(at, ledger);
            }
            return;
        }
        // Otherwise it was sent before the other end's FIN can have arrived.
        let way = || self.tap_rtt(from) - self.tap_rtt(from).divided_by(ROUND_TRIP_PLAY);
        let heard = |closed_at: Instant| at - closed_at >= way();
        let said_before = |closed_at: Instant| open.reply.last.is_some_and(|said| said.at <= closed_at);
        if self.roles.closed_at[1 - from]
            .get()
            .is_some_and(|closed_at| said_before(closed_at) && heard(closed_at))
        {
            return; // the requester closed first, upon that reply
        }
        if self.roles.had.is_some() && self.ends_unused(at, from, ledger) {
            return;
        }
        let Some(open) = self.open.as_deref() else { return };
        let wait = open.waited - self.tap_rtt(from);
        // HTTP/2's own frames request nothing, however little is known of the connection.
        let none = || is_control(open.request_bytes) && is_goodbye(open.reply_bytes) && self.speaks_tls();
        // Ciphertext as long as the session's first request answers it, unless it is as long as a goodbye. A
        // Finished by itself is no request.
        let brief = || open.reply_bytes < open.request_bytes || is_goodbye(open.reply_bytes);
        let first_asked = open.n <= FIRST_ASKED && self.speaks_tls() && !self.is_finished_alone(open);
        let brief = || brief() || !first_asked;
        let long = wait >= SILENCE_MIN
            && wait >= self.roles.longest_wait.times(SOONER)
            && (self.roles.question_len > 0 && (brief() || is_control(open.request_bytes)) || none());
        let Some(said) = open.reply.last else { return };
        // All at once, in one segment or several (GOAWAY and close_notify).
        let first_at = open.request_at() + open.waited;
        // After a Finished alone a ticket may come first, which nobody had waited for either.
        let most = if long && self.is_finished_alone(open) { TICKETS_MAX.into() } else { BYTES_MAX };
        if long && open.reply_bytes <= most && at - said.at <= AT_ONCE && at - first_at <= AT_ONCE {
            self.take_leave(from, said.at, said.packet, ledger);
        } else if first && self.talk.is_some() {
            self.end_by_closing(at, from);
        }
    }

    /// A client has closed right after a possible GOAWAY that followed nothing but WINDOW_UPDATEs: it
    /// answered nothing.
    #[cold]
    #[inline(never)]
    fn on_goaway(&mut self, at: Instant, ledger: &mut Ledger) {
        let way = self.tap_rtt(CLIENT);
        let is_goaway = |open: &&Open| {
            open.reply_first.is_some()
                && open.reply.index == 0
                && self.frames.is_goaway_behind_windows([open.request_bytes, open.reply_bytes])
        };
        let said = self.open.as_deref().filter(is_goaway).and_then(|open| open.reply.last);
        if let Some(said) = said.filter(|said| at - said.at <= way + AT_ONCE) {
            self.take_leave(SERVER, said.at, said.packet, ledger);
        }
    }

    /// A server has closed right after a short unrequested message: however long it had been silent,
    /// nobody had waited for any timer to run out.
    #[cold]
    #[inline(never)]
    fn on_last_words(&mut self, at: Instant) {
        let short = |open: &&mut Open| open.kind() == Kind::OneWay && open.request_bytes <= BYTES_MAX;
        let Some(open) = self.open.as_deref_mut().filter(short) else { return };
        let Some(said) = open.request.last.filter(|said| said.packet == open.packets[0]) else { return };
        let silent = open.client_idle + (said.at - open.start);
        if said.at > open.start && silent >= SILENCE_MIN && at - said.at <= AT_ONCE {
            open.begins_with(said.at);
        }
    }

    /// Whether this is what an idle end said right before it closed: nobody waits until its
    /// retransmission arrives.
    #[cold]
    #[inline(never)]
    pub(super) fn are_last_words(&self, open: &Open) -> bool {
        let closed_at = self.roles.closed_at[open.initiator].get();
        let at_once = closed_at.is_some_and(|at| at >= open.start && at - open.start <= AT_ONCE);
        // Before a FIN, a message as long as a goodbye is one, however long its sender had been silent
        // before the capture, or after its peer's.
        let is_goodbye = is_goodbye(open.request_bytes) && self.speaks_tls();
        at_once && open.request_bytes <= BYTES_MAX && (is_goodbye || open.client_idle >= SILENCE_MIN)
            || self.is_into_the_void(open)
            || is_goodbye && self.says_goodbye_to_closed(open)
    }

    /// Whether an end has said goodbye and closed: it waits for nothing.
    pub(super) fn has_said_goodbye(&self, open: &Open) -> bool {
        self.roles.closed_at[open.initiator].is_some() && is_goodbye(open.request_bytes) && self.speaks_tls()
    }

    /// Whether a client ends its session when its server has closed already: no answer could come, and whether the host still
    /// acknowledges the goodbye interests nobody.
    fn says_goodbye_to_closed(&self, open: &Open) -> bool {
        let closed_at = self.roles.closed_at[SERVER].get().filter(|_| open.initiator == CLIENT);
        closed_at.is_some_and(|at| at <= open.start)
    }

    /// Whether a client sends a short message long after its server's FIN, and nothing acknowledges it: no
    /// answer could come any more.
    fn is_into_the_void(&self, open: &Open) -> bool {
        let closed_at = self.roles.closed_at[SERVER].get().filter(|_| open.initiator == CLIENT);
        let long_behind = closed_at.is_some_and(|at| open.start - at >= SILENCE_MIN);
        long_behind && open.request_bytes <= BYTES_MAX && self.is_unheard_of(open)
    }

    /// Whether it has repeated, to a peer that has fallen silent, what that has.
    #[cold]
    pub(super) fn repeats_in_vain(&self, path: &Path, from: usize) -> bool {
        path.repaired_at().is_some_and(|again| self.has_fallen_silent(path, from, again))
    }

    /// Whether the receiver of what was retransmitted, last at `again`, has said nothing since all of it had passed beside it: it is gone,
    /// or its host has left this path, and waits for copies of what it has no more.
    #[cold]
    #[inline(never)]
    pub(super) fn has_fallen_silent(&self, path: &Path, from: usize, again: Instant) -> bool {
        let (way, peer) = (self.tap_rtt(from), 1 - from);
        let beside = self.shown == [true; 2] && self.tap_rtt(peer).times(BESIDE) <= way + self.tap_rtt(peer);
        let Some(passed) = path.last.filter(|_| beside) else { return false };
        let flow = &self.flows[from];
        let said = self.last_packet[peer].get().is_none_or(|said| said > passed.at);
        !said
            && again - passed.at >= GONE_AFTER
            && flow.unusual.holes.is_empty()
            && !self.flows.iter().any(Flow::acked_unseen)
    }

    /// Whether this retransmits a request that nobody answers any more.
    #[inline]
    pub(super) fn is_past_answering(&self, from: usize, class: SegmentClass) -> bool {
        from == CLIENT && matches!(class, SegmentClass::Retransmission { .. }) && self.cannot_be_answered()
    }

    /// Whether a request's server closed without any reply and then its client closed, or its client
    /// has given up.
    #[cold]
    #[inline(never)]
    fn cannot_be_answered(&self) -> bool {
        let asked = |open: &&Open| open.initiator == CLIENT && open.reply_first.is_none();
        let over = |open: &Open| self.roles.closed_at[SERVER].is_some() || self.has_given_up(open);
        self.roles.closed_at[CLIENT].is_some() && self.open.as_deref().filter(asked).is_some_and(over)
    }

    /// Whether this answers the FIN of a client that has everything it waits for, as a TLS session's
    /// alert does (RFC 8446, 6.1), or repeats what did. Nobody waits for it.
    #[inline]
    pub(super) fn answers_close(&self, segment: &Segment, from: usize, class: SegmentClass) -> bool {
        self.roles.closed_at[1 - from].get().is_some_and(|closed_at| match class {
            SegmentClass::New => self.is_farewell_to(closed_at, segment, from),
            SegmentClass::Retransmission { .. } => self.is_behind_reply(segment, from),
            _ => false,
        })
    }

    /// The FIN came well after the reply and acknowledges it, and this comes as soon after the FIN as it
    /// can; or the FIN has arrived, and this is as long as an alert and ends its own direction, however
    /// late it leaves.
    #[cold]
    #[inline(never)]
    fn is_farewell_to(&self, closed_at: Instant, segment: &Segment, from: usize) -> bool {
        let open = self.open.as_deref().filter(|open| from != open.initiator);
        let Some(last) = open.and_then(|open| open.reply.frontier()) else { return false };
        let (way, took) = (self.tap_rtt(from), segment.at - closed_at);
        let soonest = way - way.divided_by(ROUND_TRIP_PLAY);
        let at_once = took >= soonest && took <= way + way.divided_by(ROUND_TRIP_PLAY) + AT_ONCE;
        let had_all = at_once && closed_at - last.at >= PAUSE_MIN;
        let ends = segment.flags.fin() && is_goodbye(segment.payload_len.into()) && self.speaks_tls();
        let heard = self.flows[1 - from].fin.is_some_and(|fin| segment.ack.at_or_after(fin));
        let said_all = ends && heard && closed_at >= last.at;
        let acked = self.flows[from].outstanding() == 0;
        acked && (had_all || said_all) && u64::from(segment.payload_len) <= BYTES_MAX
    }

    /// Whether this repeats only what was left out of the reply: it begins behind the reply's last byte, and
    /// reaches to its sender's FIN.
    #[cold]
    #[inline(never)]
    fn is_behind_reply(&self, segment: &Segment, from: usize) -> bool {
        let open = self.open.as_deref().filter(|open| from != open.initiator);
        let end = open.and_then(|open| {
            let bytes = u32::try_from(open.reply_bytes).ok()?;
            open.reply_first.map(|first| first + bytes)
        });
        let last = self.flows[from].fin == Some(segment.seq + segment.payload_len + 1);
        let short = u64::from(segment.payload_len) <= BYTES_MAX;
        last && short && end.is_some_and(|end| segment.seq.at_or_after(end))
    }

    #[cold]
    fn take_leave(&mut self, from: usize, at: Instant, packet: u64, ledger: &mut Ledger) {
        let Some(open) = self.open.as_deref_mut() else { return };
        let bytes = open.reply_bytes;
        open.drop_reply();
        self.close(None, ledger);
        self.close_push(from, at, packet, bytes, ledger);
    }

    /// Whether the client ignores a reset: while nothing else has answered its SYN, the reset must
    /// acknowledge that (RFC 9293, 3.10.7.3).
    #[cold]
    #[inline(never)]
    pub(super) fn ignores_reset(&self, reset: &Segment, from: usize) -> bool {
        let asks = from == SERVER && self.setup.is_some() && self.only_syns_of(CLIENT);
        let acks = || self.flows[CLIENT].first.is_none_or(|first| reset.ack.at_or_after(first));
        asks && !(reset.flags.ack() && acks())
    }

    /// `from` resets the connection. If it had closed before the reply came, and has acknowledged none
    /// of it, it had stopped waiting. If its protocol still owes it the reply, it had waited until it
    /// gave up; the reply then takes a small part of that time.
    #[cold]
    pub(super) fn on_reset(&mut self, from: usize) {
        let closed_at = self.roles.closed_at[from].get();
        let acked = self.flows[1 - from].highest_ack;
        let pending = self.talk.as_deref().and_then(|talk| talk.pending);
        let owed = pending.is_some_and(|ask| ask.asker == from && ask.is_answering);
        self.drop_alert(from);
        let Some(open) = self.open.as_deref_mut().filter(|open| open.initiator == from) else { return };
        let (Some(first), Some(closed_at)) = (open.reply_first, closed_at) else { return };
        let came_at = open.request_at() + open.waited;
        let taken = acked.is_some_and(|acked| acked.after(first));
        let gave_up = owed && (came_at - closed_at).times(GAVE_UP) <= closed_at - open.request_at();
        if closed_at <= came_at && !taken && !gave_up {
            open.drop_reply();
            if let Some(ask) = self.talk.as_deref_mut().and_then(|talk| talk.pending.as_mut()) {
                ask.is_answering = false;
            }
        } else if let Some(had) = self.roles.had.take()
            && closed_at > came_at
            && had.more_at >= closed_at
            && acked.is_some_and(|acked| acked.at_or_before(had.end))
        {
            // It had stopped waiting as well: nobody received what came after its FIN.
            let more = open.reply_bytes.saturating_sub(had.bytes);
            open.end_before(true, &had.account, had.last, more, had.packet);
        }
    }

    /// `from` resets the connection after its last encrypted message. Its client had said goodbye and
    /// closed, and has acknowledged none of that message: it is the alert that ends the session (RFC
    /// 8446, 6.1), and a client that closes TLS reads no more.
    #[cold]
    #[inline(never)]
    fn drop_alert(&mut self, from: usize) {
        let acked = self.flows[from].highest_ack;
        let closed = self.roles.closed_at[1 - from].is_some();
        let in_cipher =
            self.open.as_deref().is_some_and(|open| open.initiator != from && self.is_in_cipher(open));
        let Some(open) = self.open.as_deref_mut().filter(|_| in_cipher && closed) else { return };
        let unread = |first: Seq| acked.is_none_or(|acked| acked.at_or_before(first));
        if open.reply_bytes <= BYTES_MAX && open.reply_first.is_some_and(unread) {
            open.drop_reply();
        }
    }
}
