//! Which end asks? What the server sends by itself is kept until its next message tells whether the
//! client's was an answer to it or a request.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Connection;
use super::frame_sizes::{are_windows, is_control, is_ping};
use super::opening::AT_ONCE;
use super::roles::{PAUSE_LONG, PAUSE_MIN, Parked, TURNS_MIN, Turn};
use super::turn::Paired;
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::estimate::maybe::Maybe;
use crate::estimate::own_time::{is_beat, is_round};
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::ports;
use crate::flow::segment_class::SegmentClass;
use crate::rules::verdict::Verdict;
use crate::rules::{round_trip, server_think};
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::limits::{HOST_VARIATION, ROUND_TRIP_PLAY};
use crate::words::mark::{Mark, Role};
use crate::words::report::Kind;

/// Longer waits for a reply are not certain, since programs rarely take a second to answer; a little
/// less, as captures measure it.
const LONG_MIN: Duration = Duration::from_millis(950);

/// Longer waits are at most likely: timers of both ends may be this short, and a message sent on one
/// need not answer anything. Source: none written down.
const CERTAIN_MAX: Duration = Duration::from_millis(500);

/// An unread message that comes later than this after a request may be news: a person's word, an event.
const NEWS_AFTER: Duration = Duration::from_secs(10);
/// ... and in a capture that lacks the connection's beginning or its payload, so that its purpose is unknown.
const NEWS_AFTER_MIDWAY: Duration = Duration::from_secs(2);
/// A request this short may be a message that needs no reply: a heartbeat within TLS, a line of a chat.
const LINE_MAX: u64 = 128;
/// ... and heartbeats themselves are this short; none of them is kept waiting as long as `BEAT_AFTER`.
const BEAT_MAX: u64 = 64;
const BEAT_AFTER: Duration = Duration::from_secs(2);
/// This few encrypted bytes may confirm what the other end has just said: acknowledgements of brokers
/// take 21 in a TLS 1.2 record (basic.ack of AMQP 0-9-1, 1.8.3.13), or 4 (MQTT 3.1.1, 3.4 to 3.7). Most
/// requests are longer.
pub(super) const CONFIRMS_MAX: u64 = 50;
/// ... and this few are mostly signals, like NATS's PING of 6 in TLS 1.2, which rarely take so long to
/// answer. Source: none written down.
const SIGNAL_MAX: u32 = 35;
/// The answer to a signal takes less than one part in this many of the time until the next signal.
/// Source: none written down.
const SIGNALS: i64 = 100;
/// The masking key of a WebSocket frame (RFC 6455, 5.3).
const MASK: u64 = 4;
/// The bytes of a control frame of 125 and its head (RFC 6455, 5.5), in a record of TLS 1.2 (RFC 5288, 3).
const PING_MAX: u64 = 156;
/// An end that merely reacts takes at most one part in this many of the other end's time.
pub(super) const REACTS: i64 = 10;
/// ... and in this many of the time between two of the other end's beats, if it delays its
/// acknowledgements (40 ms of 1 s). Source: none written down.
const BEAT_REACTS: i64 = 20;

impl Connection {
    /// A segment begins a message of its own, which ends the exchange under way.
    pub(super) fn turn_over(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        ledger: &mut Ledger,
    ) {
        self.weigh_upload(segment, from);
        let unasked = |open: &&Open| from == SERVER && open.initiator == CLIENT && open.reply_first.is_none();
        let answer = self.open.as_deref().filter(unasked).map(|open| open.request_bytes as u32);
        if self.may_be_answered(segment, from) {
            self.park(segment, ledger);
        } else {
            self.close(Some(segment), ledger);
        }
        if let Some(len) = answer {
            self.roles.on_answer(len);
        }
        self.begin(segment, from, class);
    }

    /// Whether the client's message may answer what the server sent by itself. Not if that was a
    /// greeting or the first message of a capture that starts midway, which may itself be a reply,
    /// unless the client's message has the same length (a heartbeat).
    fn may_be_answered(&self, segment: &Segment, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|_| from == CLIENT) else { return false };
        let by_itself =
            open.initiator == SERVER && open.reply_first.is_none() && !self.has_said_goodbye(open);
        let reaction = self.reaction(self.now).is_some_and(|reaction| reaction <= PAUSE_MIN);
        let sent_back = self.assumed && open.request_bytes == u64::from(segment.payload_len);
        by_itself
            && reaction
            && !self.frames.tells_who_asks()
            && !self.asks_by_its_bytes(Some(segment.seq))
            && (self.flows[CLIENT].bytes > 0 && !(self.assumed && open.n == 0) || sent_back)
    }

    /// How long the client took before what it began at `at`, if that reacted to the server's last
    /// data.
    fn reaction(&self, at: Instant) -> Option<Duration> {
        let before = self.flows[SERVER].last_data.as_ref()?;
        let rtt_to_client = self.tap_rtt(CLIENT);
        let reaction = at - before.at - rtt_to_client;
        (reaction >= -HOST_VARIATION - rtt_to_client.divided_by(ROUND_TRIP_PLAY))
            .then(|| reaction.at_least_zero())
    }

    fn turn(&self, open: &Open, at: Instant) -> Turn {
        Turn {
            len: open.request_bytes as u32,
            reaction: self.reaction(open.passed),
            wait: (at - open.request_at() - self.tap_rtt(SERVER)).at_least_zero(),
        }
    }

    /// Whether the server's first segment after a client's message does not answer it.
    pub(super) fn is_unasked(&self, open: &Open, segment: &Segment) -> bool {
        self.roles.watch() && self.is_no_answer(open, segment)
            || open.request_bytes <= LINE_MAX && self.confirms_alone(open, segment)
    }

    /// Whether the client has only confirmed what the server said, so that this segment is the next
    /// thing the server says by itself.
    #[cold]
    #[inline(never)]
    fn confirms_alone(&self, open: &Open, segment: &Segment) -> bool {
        self.is_next_ping(open, segment)
            || self.is_next_beat(open, segment)
            || self.has_answered_ping(open, segment)
            || self.has_opened_windows(open, segment)
            || self.has_made_room(open, segment)
    }

    /// Whether an SSH client sent one short message right after output, and the server was silent for a
    /// hundred times as long after it: a window adjustment (RFC 4254, 5.2), which is as short as a
    /// keystroke and which no terminal echoes.
    fn has_made_room(&self, open: &Open, segment: &Segment) -> bool {
        let wait = segment.at - open.request_at();
        let heard = self.flows[SERVER].last_data;
        open.initiator == CLIENT
            && self.ends.end(SERVER).port == ports::SSH
            && wait >= PAUSE_LONG
            && open.client_idle.times(SIGNALS) <= wait
            && open.request.index == 0
            && (1..=CONFIRMS_MAX).contains(&open.request_bytes)
            && self.flows[CLIENT].newly_acked == 0
            && heard.is_some_and(|heard| open.passed - heard.at - self.tap_rtt(CLIENT) <= AT_ONCE)
            && !self.asks_by_its_bytes(open.request_first)
    }

    /// Whether the client, on a connection not known to be HTTP/2, has sent two messages right after it
    /// heard something, whose lengths are those of WINDOW_UPDATE for the connection and for a stream
    /// (RFC 9113, 6.9).
    fn has_opened_windows(&self, open: &Open, segment: &Segment) -> bool {
        let wait = segment.at - open.request_at();
        wait >= LONG_MIN
            && open.initiator == CLIENT
            && are_windows(open.first_len, open.request_bytes)
            && open.request.index == 1
            && self.may_be_cipher()
            && self.reaction(open.passed).is_some_and(|reaction| reaction.times(REACTS) <= wait)
    }

    /// Whether this is the server's next heartbeat: as long as its last message and a round time
    /// after it, as before, while the client only reacted.
    fn is_next_beat(&self, open: &Open, segment: &Segment) -> bool {
        let wait = segment.at - open.request_at();
        let (Some(last), true) = (self.flows[SERVER].last_data, self.roles.beats()) else { return false };
        let behind = segment.at - last.at;
        open.initiator == CLIENT
            && wait >= PAUSE_LONG
            && last.len == segment.payload_len
            && if self.roles.server_asked > 0 { is_beat(behind) } else { is_round(behind, wait) }
            && self.has_reacted(open, wait)
            && !self.asks_by_its_bytes(open.request_first)
    }

    /// Whether the client spoke soon after the server, compared with the wait for the server's next word.
    fn has_reacted(&self, open: &Open, wait: Duration) -> bool {
        self.reaction(open.passed).is_some_and(|reaction| reaction.times(BEAT_REACTS) <= wait)
    }

    /// Whether the client answered the server's signal at once with one of its own, and this is the
    /// server's next signal on its timer. A WebSocket PING (RFC 6455, 5.5.2) takes 24 bytes in a TLS
    /// 1.3 record, and its answer 28.
    fn is_next_ping(&self, open: &Open, segment: &Segment) -> bool {
        let pinged = self.flows[SERVER].last_data.is_some_and(|last| last.len == segment.payload_len);
        pinged && self.is_signal(open.request_bytes as u32) && self.is_reaction_to_push(open, segment)
    }

    /// Whether the client may return the reply as the PONG of a PING (`has_answered_ping`): at once, and four bytes
    /// longer. Then nothing has answered the request.
    #[inline]
    pub(super) fn returns_ping(&self, open: &Open, next: &Segment) -> bool {
        let longer = u64::from(next.payload_len) == open.reply_bytes + MASK;
        longer
            && open.reply_bytes <= PING_MAX
            && next.src == self.ends.end(CLIENT)
            && self.may_be_cipher()
            && self.follows_at_once(next, CLIENT)
    }

    /// Whether the client has answered the server's WebSocket PING: a PONG repeats its data (RFC 6455,
    /// 5.5.3), and a client's frame has four more bytes for the mask (5.3). That of HTTP/2 is as long (RFC 9113, 6.7).
    fn has_answered_ping(&self, open: &Open, segment: &Segment) -> bool {
        let said = self.flows[SERVER].last_data.map(|last| u64::from(last.len));
        let echoes = |said: u64| open.request_bytes == said && is_ping(said) && self.speaks_tls();
        said.is_some_and(|said| open.request_bytes == said + MASK && self.may_be_cipher() || echoes(said))
            && self.is_reaction_to_push(open, segment)
    }

    /// Whether the client spoke at once after the server, and the server speaks only much later.
    fn is_reaction_to_push(&self, open: &Open, segment: &Segment) -> bool {
        let wait = segment.at - open.request_at();
        open.initiator == CLIENT
            && wait >= BEAT_AFTER
            && self.reaction(open.passed).is_some_and(|reaction| reaction.times(SIGNALS) <= wait)
    }

    /// Whether the client's message, which began at `first`, is a request by what is read of its bytes.
    pub(super) fn asks_by_its_bytes(&self, first: Option<Seq>) -> bool {
        let pending = self.talk.as_ref().and_then(|talk| talk.pending);
        pending.is_some_and(|ask| ask.asker == CLIENT && first.is_none_or(|first| ask.seq.at_or_after(first)))
    }

    /// Whether a segment continues a message under way, by the length in that message's head.
    pub(super) fn goes_on_by_its_bytes(&self, from: usize, seq: Seq) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.goes_on(from, seq))
    }

    /// An end that identifies itself before the other has spoken waits for the other to do the same
    /// (RFC 4253, 4.2), and a client waits for its server's first message in any case.
    pub(super) fn take_greeting(&self, mark: &Mark, segment: &Segment, from: usize) -> Mark {
        let server = &self.flows[SERVER];
        let silent = server.bytes == 0 && !self.midway && server.first.is_some();
        let role = match (from, mark.role) {
            (_, role) if role != Role::Greets || mark.by_peer => role,
            (CLIENT, _) if silent && server.first == Some(segment.ack) => Role::Asks,
            (SERVER, _) if silent => Role::Answers,
            _ => Role::Neither,
        };
        Mark { role, ..*mark }
    }

    /// Whether messages are whole frames of either end that do not say which end asks.
    pub(super) fn is_framed(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.is_framed)
    }

    /// Whether segments must be judged by more than whose turn it is, since several messages are under
    /// way or one stays open.
    #[inline]
    pub(super) fn is_told_apart(&self) -> bool {
        self.talk.as_deref().is_some_and(|talk| {
            talk.is_concurrent || talk.is_framed || talk.alert.is_some() || talk.is_dialogue()
        })
    }

    #[cold]
    fn is_no_answer(&self, open: &Open, segment: &Segment) -> bool {
        !open.crosses(segment)
            && !self.asks_by_its_bytes(open.request_first)
            && self.roles.is_unasked(&self.turn(open, segment.at))
    }

    /// Lowers the confidence in a long wait for a reply whose protocol is not read: the message may be
    /// something that the server says by itself, or the first part of another exchange. Returns whether
    /// it may be, in which case its way back need not have been waited for.
    pub(super) fn weigh_answer(&self, open: &Open, len: u32, verdict: &mut Verdict) -> bool {
        if open.initiator == CLIENT {
            let own = verdict.split.charges().filter(|charge| charge.cause == Cause::ServerThink);
            let wait: Duration = own.map(|charge| charge.ns).sum();
            let signal =
                wait.times(4) >= PAUSE_MIN && (self.may_confirm(open, false) || self.may_be_word(open, wait));
            if self.doubt_beat(open, len, wait, verdict) {
                return true;
            }
            if signal || wait >= PAUSE_MIN || self.roles.watch() && self.roles.may_give_orders() {
                return self.weigh_long(open, wait, len, verdict);
            }
        }
        false
    }

    #[cold]
    fn weigh_long(&self, open: &Open, wait: Duration, len: u32, verdict: &mut Verdict) -> bool {
        if self.asks_by_its_bytes(open.request_first) {
            return false;
        }
        let acknowledged = self.flows[CLIENT].newly_acked == 0;
        let push = acknowledged && (self.roles.may_be_push(wait) || self.roles.is_push_due(self.now));
        let lens = [open.request_bytes, u64::from(len)];
        let asks = wait >= LONG_MIN && self.roles.may_ask(wait, open.client_idle, lens);
        let unknown = self.midway || self.paired == Paired::Unread;
        let news = wait >= if unknown { NEWS_AFTER_MIDWAY } else { NEWS_AFTER };
        // The request looks like an acknowledgement within HTTP/2: a message a second later answers
        // nothing.
        let reacted = open.client_idle.times(REACTS) <= wait;
        let word = wait >= LONG_MIN && reacted && is_control(open.request_bytes);
        // In a capture that begins midway, a message right after the other end's may confirm a push,
        // and needs no reply.
        let confirms = self.midway && wait >= LONG_MIN && reacted && acknowledged;
        // So may an encrypted message too short for most requests: what follows on a timer is the next
        // event.
        let confirms = confirms || self.may_confirm(open, reacted && wait >= PAUSE_MIN);
        let confirms = confirms || self.may_be_word(open, wait);
        let timer = wait >= LONG_MIN && self.roles.may_keep_time();
        let timer = timer || wait >= PAUSE_LONG && len < self.mss(SERVER) && self.may_be_due(open, len);
        // So may any other message of a server whose timer has shown.
        let asker = self.roles.beats() && self.roles.server_asked > 0;
        let timer = timer || asker && self.has_reacted(open, self.now - open.request_at());
        // A greeting is short: a message that begins with full segments was requested elsewhere (the
        // data of FTP), or is a stream.
        let greets = wait >= LONG_MIN && open.request_bytes == 0 && len >= self.mss(SERVER);
        // A client that was silent for longer than that does not wait for one reply after the other: it
        // sent a heartbeat or a short message.
        let seldom = acknowledged && open.client_idle >= wait && open.request_bytes <= LINE_MAX;
        // Messages of both ends, each on its own timer, look like requests and replies of a slow
        // server.
        let words = acknowledged && lens.iter().all(|&len| len <= BEAT_MAX);
        let beats = words && (wait >= BEAT_AFTER || seldom && wait >= PAUSE_LONG);
        let beside = beats || seldom && self.roles.is_out_of_measure(wait, open.n);
        let none = greets || self.roles.may_need_none(open.request_bytes);
        let measure = beside || self.roles.is_out_of_all_measure(wait, open.n);
        let orders = self.roles.may_give_orders() || self.may_be_asked(open, wait);
        let is_doubtful = push || orders || asks || news || word || confirms || timer || none || measure;
        if is_doubtful {
            verdict.split.doubt();
        } else if seldom || wait >= CERTAIN_MAX {
            verdict.split.temper();
        }
        is_doubtful
    }

    /// Whether the end that is the server by nothing but its port may be the one that asks, in
    /// encrypted messages: its peer reacts within a hundredth of the wait, and no earlier reply took a
    /// tenth of it.
    fn may_be_asked(&self, open: &Open, wait: Duration) -> bool {
        self.midway
            && self.may_be_cipher()
            && open.n > u64::from(TURNS_MIN)
            && open.client_idle.times(SIGNALS) <= wait
            && self.roles.longest_wait.times(REACTS) <= wait
    }

    /// Whether the server's message of `len` bytes comes when its timer is due, a round time after its last
    /// message or its last push, and the client had spoken right after what it heard. Where all of these are
    /// of one length (a ping, which returns what it was sent), either end may be the one that asks, and hosts
    /// in between may have been late to forward it.
    fn may_be_due(&self, open: &Open, len: u32) -> bool {
        let wait = self.now - open.request_at();
        let last = self.flows[SERVER].last_data;
        let pings = open.request_bytes == u64::from(len) && last.is_some_and(|last| last.len == len);
        let said = last.map(|last| last.at);
        let forwarded = pings && said.is_some_and(|said| is_beat(self.now - said));
        let by_itself = self.roles.row.as_ref().and_then(|row| row.pushes.last()).map(|push| push.at);
        open.client_idle.times(REACTS) <= wait
            && (forwarded || said.into_iter().chain(by_itself).any(|said| is_round(self.now - said, wait)))
    }

    /// Whether the client's message, `reacted` or not, is so short that it may only have confirmed what
    /// the server said, in a protocol that is no longer read.
    #[cold]
    #[inline(never)]
    fn may_confirm(&self, open: &Open, reacted: bool) -> bool {
        // Several may be confirmed at once, each in a record of its own.
        let words = open.request.index.max(1) as u64;
        let short = open.request_bytes > 0 && open.request_bytes <= words * CONFIRMS_MAX;
        // Where no payload was captured, nothing says that it is not encrypted.
        let may_be_cipher = self.may_be_cipher() || self.paired == Paired::Unread;
        short && (reacted && may_be_cipher || self.is_signal(open.request_bytes as u32))
    }

    /// Whether an encrypted message of this length is unlikely to say more than that its sender is
    /// there.
    pub(super) fn is_signal(&self, len: u32) -> bool {
        len <= SIGNAL_MAX && self.may_be_cipher()
    }

    /// Whether messages are encrypted and not HTTP/2: nothing more can be read, or the port says so if
    /// the capture has neither the beginning nor the bytes.
    pub(super) fn may_be_cipher(&self) -> bool {
        self.speaks_tls() && (!self.frames.is_http2() || self.frames.is_guess())
    }

    /// Whether the connection is encrypted, by what was read or by its port.
    pub(super) fn speaks_tls(&self) -> bool {
        self.talk.is_some() || ports::speaks_tls(self.ends.end(SERVER).port)
    }

    /// Whether the request under way is encrypted.
    pub(super) fn is_in_cipher(&self, open: &Open) -> bool {
        self.may_be_cipher() && !self.asks_by_its_bytes(open.request_first)
    }

    /// A wait that rests on a guess at which end asks is at most possible.
    pub(super) fn doubt_turn(&mut self, segment: &Segment, from: usize, verdict: &mut Verdict) {
        if from == SERVER && self.roles.watch() {
            self.doubt_answer(segment, verdict);
        }
    }

    #[cold]
    fn doubt_answer(&mut self, segment: &Segment, verdict: &mut Verdict) {
        let Some(open) = self.open.as_deref().filter(|open| open.reply_first.is_none()) else { return };
        if self.asks_by_its_bytes(open.request_first) {
            return;
        }
        if self.roles.is_doubtful(&self.turn(open, segment.at)) {
            verdict.split.doubt();
            if let Some(open) = self.open.as_deref_mut() {
                (open.is_guess, open.is_unheard) = (true, true);
            }
        }
    }

    /// Keeps what the server sent by itself until it is known whether the client answers it.
    #[cold]
    fn park(&mut self, next: &Segment, ledger: &mut Ledger) {
        self.close_setup(None, ledger);
        let Some(mut open) = self.open.take() else { return };
        self.settle(&mut open, Some(next), &mut None, ledger);
        let mut account = Account::default();
        account.absorb(open.request.settle());
        let (start, first, bytes) = open.piece;
        self.last_wait_end = Maybe::of(start + account.total());
        self.roles.park(Parked {
            n: open.n,
            start,
            idle: open.client_idle,
            bytes,
            packets: [first, open.packets[1]],
            account,
            last_at: open.request_at(),
        });
        self.spare = Some(open);
    }

    /// Bills a parked message that nobody answered.
    #[cold]
    pub(super) fn close_parked(&mut self, parked: Parked, ledger: &mut Ledger) {
        self.roles.on_push(parked.start);
        let mut account = parked.account;
        let packet = parked.packets[1];
        round_trip::charge_way_back(&self.pair(), &mut account, Kind::OneWay, SERVER, packet);
        let meta = Closed {
            n: parked.n,
            kind: Kind::OneWay,
            initiator: side(SERVER),
            start: parked.start,
            client_idle: parked.idle,
            request_bytes: parked.bytes,
            packets: parked.packets,
            ..self.closed(ledger)
        };
        self.hand_over(meta, &mut account, ledger);
    }

    /// Bills a parked message that the client answered with a message that began at `start` and has
    /// cost `answer` since then.
    #[cold]
    pub(super) fn close_with_answer(
        &mut self,
        parked: Parked,
        answer: &mut Account,
        (start, bytes): (Instant, u64),
        [first, last]: [u64; 2],
        ledger: &mut Ledger,
    ) {
        let mut account = parked.account;
        let asked = parked.packets[1];
        let wait = start - parked.last_at;
        let mut think = server_think::of_client(&self.pair(), wait, [asked, first]);
        if self.may_not_be_asked() {
            think.doubt();
        }
        self.note_beat((parked.bytes, bytes), parked.idle);
        account.charge_split(&think);
        account.absorb(answer);
        round_trip::charge_way_back(&self.pair(), &mut account, Kind::Exchange, CLIENT, last);
        self.last_wait_end = Maybe::of(parked.start + account.total());
        let meta = Closed {
            n: parked.n,
            kind: Kind::Exchange,
            initiator: side(SERVER),
            start: parked.start,
            client_idle: parked.idle,
            request_bytes: parked.bytes,
            reply_bytes: bytes,
            packets: [parked.packets[0], last],
            ..self.closed(ledger)
        };
        self.hand_over(meta, &mut account, ledger);
    }
}
