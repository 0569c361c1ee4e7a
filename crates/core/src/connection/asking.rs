//! Who asks? What the server sends by itself is kept until its next message tells what the client's was, an answer to it or a
//! question.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Connection;
use super::frame_sizes::{are_windows, is_control};
use super::opening::AT_ONCE;
use super::roles::{PAUSE_LONG, PAUSE_MIN, Parked, TURNS_MIN, Turn};
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::estimate::maybe::Maybe;
use crate::estimate::own_time::is_round;
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

/// A program that answers a question hardly ever takes longer for certain: a second, as captures measure it.
const LONG_MIN: Duration = Duration::from_millis(950);

/// A timer that both ends keep may be as short, and what comes by it answers nothing for certain. Source: none written down.
const CERTAIN_MAX: Duration = Duration::from_millis(500);

/// What nobody reads and comes later than this behind a question may be news: a person's word, an event.
const NEWS_AFTER: Duration = Duration::from_secs(10);
/// ... and where the capture does not have the beginning, so that nobody knows what the connection is for.
const NEWS_AFTER_MIDWAY: Duration = Duration::from_secs(2);
/// So short a question may be a word that needs no answer: a heart-beat within TLS, a line of a chat.
const LINE_MAX: u64 = 128;
/// ... and so short are the heart-beats themselves, which nobody keeps waiting for as long.
const BEAT_MAX: u64 = 64;
const BEAT_AFTER: Duration = Duration::from_secs(2);
/// So few bytes in cipher may confirm what the other end has just said: those of brokers are 21 in a record of TLS 1.2 (basic.ack of AMQP 0-9-1, 1.8.3.13), or 4
/// (MQTT 3.1.1, 3.4 to 3.7). Most questions are longer.
const CONFIRMS_MAX: u64 = 50;
/// ... and so few are signals for the most part: the 6 of NATS's PING in TLS 1.2, of which few take so long to answer. Source: none written down.
const SIGNAL_MAX: u32 = 35;
/// What answers a signal takes less than one part in so many of the time until the next one. Source: none written down.
const SIGNALS: i64 = 100;
/// What masks a frame of WebSocket (RFC 6455, 5.3).
const MASK: u64 = 4;
/// Whoever reacts takes a tenth of the time that the other end takes, or less.
const REACTS: i64 = 10;

impl Connection {
    /// A segment begins a message of its own: what was under way is over.
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

    /// Whether what the client says now may answer what the server sent by itself: not a greeting, and not the first message
    /// of a capture that starts in the middle, which may be an answer of its own unless it is as long as the client's (a heart-beat).
    fn may_be_answered(&self, segment: &Segment, from: usize) -> bool {
        let Some(open) = self.open.as_deref().filter(|_| from == CLIENT) else { return false };
        let by_itself = open.initiator == SERVER && open.reply_first.is_none();
        let reaction = self.reaction(self.now).is_some_and(|reaction| reaction <= PAUSE_MIN);
        let sent_back = self.assumed && open.request_bytes == u64::from(segment.payload_len);
        by_itself
            && reaction
            && !self.frames.tells_who_asks()
            && !self.asks_by_its_bytes(Some(segment.seq))
            && (self.flows[CLIENT].bytes > 0 && !(self.assumed && open.n == 0) || sent_back)
    }

    /// How long the client took for what it began at `at`, if it reacted to the last thing that the server sent.
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

    /// Whether the server's first segment behind a message of the client's is no answer to that.
    pub(super) fn is_unasked(&self, open: &Open, segment: &Segment) -> bool {
        self.roles.watch() && self.is_no_answer(open, segment)
            || open.request_bytes <= LINE_MAX && self.confirms_alone(open, segment)
    }

    /// Whether the client has done no more than to confirm what the server had said, so that this is the next thing that it says by itself.
    #[cold]
    #[inline(never)]
    fn confirms_alone(&self, open: &Open, segment: &Segment) -> bool {
        self.is_next_ping(open, segment)
            || self.has_answered_ping(open, segment)
            || self.has_opened_windows(open, segment)
            || self.has_made_room(open, segment)
    }

    /// Whether the client of an SSH has said one word at the heels of what it heard, and the server says nothing for a hundred times as long: a window (RFC 4254, 5.2), which
    /// is as short as a key, and which no terminal echoes.
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

    /// Whether the client, of whose connection nobody knows that it is one of HTTP/2, has said two words at once that are as long as those which open its window and that of
    /// a stream (RFC 9113, 6.9), at the heels of what it had heard.
    fn has_opened_windows(&self, open: &Open, segment: &Segment) -> bool {
        let wait = segment.at - open.request_at();
        wait >= LONG_MIN
            && open.initiator == CLIENT
            && are_windows(open.first_len, open.request_bytes)
            && open.request.index == 1
            && self.may_be_cipher()
            && self.reaction(open.passed).is_some_and(|reaction| reaction.times(REACTS) <= wait)
    }

    /// Whether the client has answered the server's signal at once with one of its own, and this is the server's next one, when it is its time: a PING of
    /// WebSocket (RFC 6455, 5.5.2) has 24 bytes in a record of TLS 1.3, and what answers it 28.
    fn is_next_ping(&self, open: &Open, segment: &Segment) -> bool {
        let pinged = self.flows[SERVER].last_data.is_some_and(|last| last.len == segment.payload_len);
        pinged && self.is_signal(open.request_bytes as u32) && self.is_reaction_to_push(open, segment)
    }

    /// Whether the client has answered the server's PING of WebSocket: a PONG repeats what that said (RFC 6455, 5.5.3), and a client masks what it says with four bytes
    /// more (5.3).
    fn has_answered_ping(&self, open: &Open, segment: &Segment) -> bool {
        let said = self.flows[SERVER].last_data.map(|last| u64::from(last.len));
        said.is_some_and(|said| open.request_bytes == said + MASK)
            && self.may_be_cipher()
            && self.is_reaction_to_push(open, segment)
    }

    /// Whether the client said at once what it said, and the server speaks so much later.
    fn is_reaction_to_push(&self, open: &Open, segment: &Segment) -> bool {
        let wait = segment.at - open.request_at();
        open.initiator == CLIENT
            && wait >= BEAT_AFTER
            && self.reaction(open.passed).is_some_and(|reaction| reaction.times(SIGNALS) <= wait)
    }

    /// Whether the client's message, which began at `first`, is a question as far as its bytes are read.
    pub(super) fn asks_by_its_bytes(&self, first: Option<Seq>) -> bool {
        let pending = self.talk.as_ref().and_then(|talk| talk.pending);
        pending.is_some_and(|ask| ask.asker == CLIENT && first.is_none_or(|first| ask.seq.at_or_after(first)))
    }

    /// Whether a segment belongs to a message under way that its head said to be longer.
    pub(super) fn goes_on_by_its_bytes(&self, from: usize, seq: Seq) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.goes_on(from, seq))
    }

    /// Who says who it is before the other end has said anything waits for that to do the same (RFC 4253, 4.2), and a client for its server's
    /// first word in any case.
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

    /// Whether messages are whole frames of either side that do not say who asks.
    pub(super) fn is_framed(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.is_framed)
    }

    /// Whether what is known of its messages asks more of a segment than whose turn it is: several are under way, or one of them stays open.
    #[inline]
    pub(super) fn is_told_apart(&self) -> bool {
        self.talk.as_deref().is_some_and(|talk| talk.is_concurrent || talk.is_framed || talk.is_dialogue())
    }

    #[cold]
    fn is_no_answer(&self, open: &Open, segment: &Segment) -> bool {
        !open.crosses(segment)
            && !self.asks_by_its_bytes(open.request_first)
            && self.roles.is_unasked(&self.turn(open, segment.at))
    }

    /// How sure it is that an answer took so long: a second is too long where no protocol is read, and it may be something else
    /// that the server says by itself, or the first part of another talk. Returns whether it may be, so that its way back need not have been waited for.
    pub(super) fn weigh_answer(&self, open: &Open, len: u32, verdict: &mut Verdict) -> bool {
        if open.initiator == CLIENT {
            let own = verdict.split.charges().filter(|charge| charge.cause == Cause::ServerThink);
            let wait: Duration = own.map(|charge| charge.ns).sum();
            let signal = wait.times(4) >= PAUSE_MIN && self.may_confirm(open, false);
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
        let push = acknowledged && self.roles.may_be_push(wait);
        let lens = [open.request_bytes, u64::from(len)];
        let asks = wait >= LONG_MIN && self.roles.may_ask(wait, open.client_idle, lens);
        let news = wait >= if self.midway { NEWS_AFTER_MIDWAY } else { NEWS_AFTER };
        // An acknowledgement within HTTP/2, as it seems: what comes a second later answers nothing.
        let reacted = open.client_idle.times(REACTS) <= wait;
        let word = wait >= LONG_MIN && reacted && is_control(open.request_bytes);
        // Without a connection's beginning, what is said at the heels of the other end's words may confirm a push, and needs no answer.
        let confirms = self.midway && wait >= LONG_MIN && reacted && acknowledged;
        // So may in cipher a word that is too short for most questions: what comes at its time behind that is the next event.
        let confirms = confirms || self.may_confirm(open, reacted && wait >= PAUSE_MIN);
        let timer = wait >= LONG_MIN && self.roles.may_keep_time();
        let timer = timer || wait >= PAUSE_LONG && len < self.mss(SERVER) && self.may_be_due(open);
        // A greeting is short: what begins with full segments was asked for elsewhere (the data of FTP), or is a stream.
        let greets = wait >= LONG_MIN && open.request_bytes == 0 && len >= self.mss(SERVER);
        // Who has been silent for longer than that does not wait for its answers one behind the other: a heart-beat, a word.
        let seldom = acknowledged && open.client_idle >= wait && open.request_bytes <= LINE_MAX;
        // Words of both ends, each on its own timer, look like questions and answers whose server takes its time.
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

    /// Whether who serves by its port, and nothing else, may be the one that asks in cipher: its peer reacts within a hundredth of the time, and no answer before
    /// took a tenth of it.
    fn may_be_asked(&self, open: &Open, wait: Duration) -> bool {
        self.midway
            && self.may_be_cipher()
            && open.n > u64::from(TURNS_MIN)
            && open.client_idle.times(SIGNALS) <= wait
            && self.roles.longest_wait.times(REACTS) <= wait
    }

    /// Whether the server's message comes when its timer is due, a round time behind the last thing that it said by itself or at all, and the client had
    /// spoken at the heels of what it had heard.
    fn may_be_due(&self, open: &Open) -> bool {
        let wait = self.now - open.request_at();
        let said = self.flows[SERVER].last_data.map(|last| last.at);
        let by_itself = self.roles.row.as_ref().and_then(|row| row.pushes.last()).map(|push| push.at);
        open.client_idle.times(REACTS) <= wait
            && said.into_iter().chain(by_itself).any(|said| is_round(self.now - said, wait))
    }

    /// Whether what the client said, or with which it `reacted`, is so short that it may have confirmed what the server had said, in a protocol that
    /// nobody reads any more.
    #[cold]
    #[inline(never)]
    fn may_confirm(&self, open: &Open, reacted: bool) -> bool {
        // Several may be confirmed at once, each by a record of its own.
        let words = open.request.index.max(1) as u64;
        let short = open.request_bytes > 0 && open.request_bytes <= words * CONFIRMS_MAX;
        short && (reacted && self.may_be_cipher() || self.is_signal(open.request_bytes as u32))
    }

    /// Whether so few bytes in cipher hardly say more than that their sender is there.
    pub(super) fn is_signal(&self, len: u32) -> bool {
        len <= SIGNAL_MAX && self.may_be_cipher()
    }

    /// Whether what is said is in cipher and is not HTTP/2: nobody reads on, or its port says so where the capture has neither the beginning nor the bytes.
    pub(super) fn may_be_cipher(&self) -> bool {
        self.speaks_tls() && (!self.frames.is_http2() || self.frames.is_guess())
    }

    /// Whether it is TLS or another cipher, or its port says so.
    pub(super) fn speaks_tls(&self) -> bool {
        self.talk.is_some() || ports::speaks_tls(self.ends.end(SERVER).port)
    }

    /// Whether what was asked is.
    pub(super) fn is_in_cipher(&self, open: &Open) -> bool {
        self.may_be_cipher() && !self.asks_by_its_bytes(open.request_first)
    }

    /// What rests on a guess at who asks is no more than possible.
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

    /// Nobody answered it.
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

    /// The client answered it with a message that began at `start` and has cost `answer` since then.
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
        account.charge_split(&server_think::of_client(&self.pair(), wait, [asked, first]));
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
