//! What does a finished message cost? The path beyond the capture is added, and the bill handed to the
//! ledger.

mod cut_off;
mod greeted;
mod usual;

use tcpwhy_wire::{Duration, Instant, Segment};

use super::roles::Parked;
use super::turn::{Paired, STREAM_PIECES};
use super::{Connection, accepting};
use crate::bill::account::Account;
use crate::bill::exchange::Open;
use crate::bill::line::LineView;
use crate::bill::revise::{Guess, Revision};
use crate::estimate::maybe::Maybe;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::handshake::Setup;
use crate::flow::segment_class::LastData;
use crate::rules::handshake;
use crate::rules::round_trip::Shortened;
use crate::rules::{drain, late_answer, late_start, round_trip};
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::{DELAYED_ACK_MAX, HELD_BACK_MIN, ROUND_TRIP_PLAY};
use crate::words::report::{Confidence, Kind, Pairing};

impl Connection {
    /// Ends the exchange under way and hands it to the ledger. `next` is the segment that starts something
    /// else.
    pub(crate) fn close(&mut self, next: Option<&Segment>, ledger: &mut Ledger) {
        if next.is_none() || self.open.is_some() && !self.waits_for_a_shorter_way() {
            self.close_setup(None, ledger); // not before the first exchange has shown the round trip
        }
        if next.is_none() {
            self.close_asked(ledger);
        }
        if next.is_none() && self.ends_answered() {
            self.close_last(ledger);
        } else {
            self.close_open(next, ledger);
        }
        if next.is_none() {
            self.release(ledger);
        }
    }

    pub(super) fn close_open(&mut self, next: Option<&Segment>, ledger: &mut Ledger) {
        self.take_later(ledger);
        if next.is_some_and(|next| self.roles.had.is_some() && self.ends_idle(next, ledger)) {
            return;
        }
        if self.frames.is_http2() && self.is_no_more_than_frames(next) {
            self.drop_open(ledger);
            return;
        }
        let Some(mut open) = self.open.take() else { return };
        let mut parked = self.roles.take_parked();
        if self.talk.is_some() {
            self.weigh_unanswered(&mut open, parked.is_some());
        }
        let speaker = self.settle(&mut open, next, &mut parked, ledger);
        let mut kind = open.kind();
        let packet = open.packets[1];
        let (start, packets, request_bytes) = match (kind, open.piece) {
            (Kind::OneWay, (start, first, bytes)) => (start, [first, packet], bytes),
            _ => (open.start, open.packets, open.request_bytes),
        };
        match parked {
            Some(parked) if kind == Kind::OneWay => {
                if self.next_n == open.n + 1 {
                    self.next_n = open.n; // it has no number of its own
                }
                let account = open.request.settle();
                self.close_with_answer(*parked, account, (start, request_bytes), packets, ledger);
                self.spare = Some(open);
                return;
            }
            Some(parked) => self.close_parked(*parked, ledger),
            None => {}
        }
        let awaited = self.weigh_wait(&mut open, next);
        kind = if awaited.is_positive() { Kind::Subscription } else { kind };
        self.learn_roles(&open, kind);
        if let Some(next) = next {
            self.doubt_unasked(&mut open, next);
        }
        let end = self.charge_way_back(&mut open, kind, speaker, next);
        let elapsed = open.last_path().settle().total();
        // For its sender, a one-way message is over when it is written.
        let own = if kind == Kind::OneWay { elapsed - end } else { elapsed + awaited };
        self.last_wait_end = Maybe::of(start + own);
        let meta = Closed {
            n: open.n,
            kind,
            initiator: side(open.initiator),
            by: self.pairing(&open, kind),
            start,
            awaited,
            client_idle: open.client_idle,
            request_bytes,
            reply_bytes: open.reply_bytes,
            packets,
            ..self.closed(ledger)
        };
        self.hand_over(meta, open.last_path().settle(), ledger);
        self.spare = Some(open);
    }

    /// Whether everything before the `next` message was HTTP/2's own frames.
    #[cold]
    #[inline(never)]
    fn is_no_more_than_frames(&self, next: Option<&Segment>) -> bool {
        let from = |next: &Segment| usize::from(next.src != self.ends.end(CLIENT));
        next.is_some_and(|next| self.says_no_more_than_a_frame(next, from(next)))
            || self.open.is_some() && self.frames.is_ping()
    }

    /// Drops an exchange of HTTP/2's own frames, which nobody waits for and which answer nothing.
    #[cold]
    fn drop_open(&mut self, ledger: &mut Ledger) {
        let Some(open) = self.open.take() else { return };
        self.next_n = self.next_n.min(open.n);
        self.spare = Some(open);
        if let Some(parked) = self.roles.take_parked() {
            self.close_parked(*parked, ledger);
        }
    }

    /// A greeting that the client did not wait for, or a reply that the server follows with a `next` message
    /// of equal length, may be the first of several messages that the server sends by itself.
    #[inline(never)]
    fn doubt_unasked(&self, open: &mut Open, next: &Segment) {
        if open.request_bytes == 0 && self.doubts_greeting(open, next) {
            return;
        }
        if next.src == self.ends.end(SERVER) && open.reply_bytes == u64::from(next.payload_len)
            || self.returns_ping(open, next)
        {
            self.doubt_first_of_many(open);
        }
    }

    /// In a protocol that is not read, a reply as long as the push that follows it may itself have been a
    /// push.
    #[cold]
    fn doubt_first_of_many(&self, open: &mut Open) {
        if open.kind() == Kind::Exchange
            && open.initiator == CLIENT
            && !self.asks_by_its_bytes(open.request_first)
        {
            let unasked = Revision::MayBeOther { server: side(SERVER), form: Form::OrPushes };
            open.last_path().settle().revise(unasked);
        }
    }

    /// Charges the way after the last segment that the capture did not see. Returns how long that is.
    fn charge_way_back(
        &mut self,
        open: &mut Open,
        kind: Kind,
        speaker: usize,
        next: Option<&Segment>,
    ) -> Duration {
        let is_late = kind == Kind::Exchange
            && (open.is_unheard || next.is_some_and(|next| self.was_heard_late(open, next, speaker)));
        let asks_nothing = kind == Kind::Exchange && self.asks_nothing(open);
        let is_session = kind == Kind::Exchange && self.is_session(open);
        let is_own = asks_nothing || is_session && open.is_parted;
        let (asker, packet) = (side(open.initiator), open.packets[1]);
        let account = open.last_path().settle();
        if kind == Kind::OneWay {
            doubt_pauses(account, asker);
        }
        let end = if is_late {
            round_trip::charge_doubtful_way_back(&self.pair(), account, speaker, packet)
        } else {
            round_trip::charge_way_back(&self.pair(), account, kind, speaker, packet)
        };
        if is_session {
            account.revise(Revision::SetUpTls { asker });
        }
        if is_own {
            account.revise(Revision::MayBeOwn { server: side(SERVER) }); // whatever is behind it waits anyway
        }
        if self.assumed || self.paired == Paired::Unread {
            self.temper_assumed(open, kind);
        }
        if self.greeted {
            self.doubt_asked(open);
        }
        if self.pairing(open, kind) == Some(Pairing::Guess) {
            open.last_path().settle().revise(Revision::Guessed(Guess::Pairing));
        }
        end
    }

    /// Causes that name an end are at most likely if its role is a guess, or if none of a program's message
    /// bytes were captured. Possibly nobody waited for the server, or for what follows a pause.
    #[cold]
    pub(super) fn temper_assumed(&self, open: &mut Open, kind: Kind) {
        let own = kind == Kind::Exchange && self.may_be_own(open);
        let many = self.may_be_many(open);
        let answers = self.assumed && self.may_answer_unseen(open);
        let account = open.last_path().settle();
        for end in [CLIENT, SERVER].into_iter().filter(|&end| many[end]) {
            doubt_pauses(account, side(end));
        }
        if own {
            account.revise(Revision::MayBeOwn { server: side(SERVER) });
        }
        if answers {
            account.revise(Revision::MayBeOther { server: side(SERVER), form: Form::OrPushes });
        }
        if self.assumed {
            account.revise(Revision::Guessed(Guess::Roles));
        }
        if self.paired == Paired::Unread {
            account.revise(Revision::Guessed(Guess::Unread));
        }
    }

    /// Whether nothing else shows a path as long as the handshake: later answers came sooner, or a clock of
    /// milliseconds may have measured the path as nothing.
    fn is_setup_bounded(&self, setup: &Setup) -> bool {
        let longer = |took| !self.fine && self.is_opened_longer(took, self.way_of(setup));
        setup.opened().is_some_and(|took| self.answers.came_sooner(took) || longer(took))
    }

    /// Whether the round trip to an end has become shorter, and may do so again.
    #[inline]
    pub(super) fn varies(&self, end: usize) -> bool {
        let ways = || [self.tap_rtt(CLIENT), self.tap_rtt(SERVER)];
        let how = self.shortened[end];
        how != Shortened::No && round_trip::varies(how, self.next_exchange(), &self.flows, end, ways())
    }

    /// The number of the next exchange.
    pub(super) fn next_exchange(&self) -> u32 {
        u32::try_from(self.next_n).unwrap_or(u32::MAX)
    }

    /// Whether the requester acknowledges the reply with the `next` segment, later than any host would after
    /// receiving it (RFC 1122, 4.2.3.2), or went on without it: the reply was lost or delayed on its way.
    fn was_heard_late(&self, open: &Open, next: &Segment, speaker: usize) -> bool {
        let last = open.reply.last.filter(|_| next.src == self.ends.end(open.initiator));
        let late = |last: LastData| self.is_acked_late(last.at, self.tap_rtt(open.initiator), speaker);
        last.is_some_and(late)
    }

    /// Closes the exchange under way, whose reply may not have arrived when `next` was sent.
    pub(super) fn close_beside(&mut self, next: &Segment, ledger: &mut Ledger) {
        if let Some(open) = self.open.as_deref_mut().filter(|open| next.src == self.ends.end(open.initiator))
        {
            let flow = &self.flows[1 - open.initiator];
            let unheard = flow.snd_nxt.is_some_and(|end| next.ack.before(end)) && next.flags.ack();
            open.is_unheard |= unheard && open.reply.last.is_some();
        }
        self.close(Some(next), ledger);
    }

    /// Whether the present segment acknowledges what passed at `at`, later than any host delays an ACK, and
    /// its sender mostly sends pure ACKs.
    #[inline]
    pub(super) fn is_acked_late(&self, at: Instant, rtt_to_listener: Duration, speaker: usize) -> bool {
        let flow = &self.flows[speaker];
        self.now - at > rtt_to_listener + DELAYED_ACK_MAX + HELD_BACK_MIN
            && flow.acked_just_now()
            && flow.is_acked_bare()
    }

    /// Settles a complete exchange: charges or drops what is still in doubt. Returns the end that spoke last.
    /// Pieces without a reply are closed, the first of them as the answer to the parked message.
    pub(super) fn settle(
        &mut self,
        open: &mut Open,
        next: Option<&Segment>,
        parked: &mut Option<Box<Parked>>,
        ledger: &mut Ledger,
    ) -> usize {
        let speaker = open.last_speaker();
        let listener = 1 - speaker;
        let rate = self.shown_rate(speaker);
        let copied = open.last_path().repaired_at();
        if let Some(repaired) = copied {
            self.weigh_last_copies(open, next, repaired);
        }
        open.last_path().commit();
        if copied.is_some() {
            self.tell_ignored(open);
        }
        if next.is_none() && (copied.is_some() || open.last_path().index >= STREAM_PIECES) {
            self.weigh_cut_off(open, copied.is_some());
        }
        let path = open.last_path();
        path.charge_early(rate, side(speaker));
        if let Some(late) = path.take_seemed_late() {
            late_answer::weigh_seemed(&self.flows[speaker], open, late);
        }
        if open.request.has_copies() || open.reply.has_copies() {
            self.keep_copies(open);
        }
        if open.kind() == Kind::OneWay {
            self.close_pieces(open, parked, ledger);
            open.reply_bytes = 0; // bytes that crossed it on the path
        }
        self.charge_unrepaired(open);
        self.charge_never_arrived(open);
        drain::charge(
            &self.flows[speaker],
            self.mss(speaker),
            [self.tap_rtt(speaker), self.tap_rtt(listener)],
            open,
        );
        late_start::charge(&self.flows[open.initiator], open);
        speaker
    }

    /// Discards the last retransmission, at `repaired`, if the peer went on before it can have arrived.
    /// Nobody waits for retransmissions of last words either.
    #[cold]
    #[inline(never)]
    fn weigh_last_copies(&self, open: &mut Open, next: Option<&Segment>, repaired: Instant) {
        let last_words = open.kind() == Kind::OneWay && self.are_last_words(open);
        let speaker = open.last_speaker();
        let (heard, way) = (self.ends.end(1 - speaker), self.tap_rtt(1 - speaker));
        let path = open.last_path();
        let echoes = |next: &Segment| {
            let stamps = next.options.timestamps.filter(|_| next.src == heard);
            stamps.is_some_and(|stamps| path.answers_repair(stamps.ecr))
        };
        let soonest = way - way.divided_by(ROUND_TRIP_PLAY);
        let unneeded = next.is_some_and(|next| next.at - repaired < soonest && !echoes(next));
        if last_words || unneeded || self.has_fallen_silent(path, speaker, repaired) {
            path.discard();
        }
    }

    /// How it is known which message answers which.
    fn pairing(&self, open: &Open, kind: Kind) -> Option<Pairing> {
        let is_guess = open.is_guess || self.paired == Paired::Guess || self.frames.is_doubtful();
        match kind {
            Kind::Setup | Kind::OneWay => None,
            _ if is_guess => Some(Pairing::Guess),
            _ if open.is_parted => Some(Pairing::Order),
            _ => Some(Pairing::OnlyOpen),
        }
    }

    /// Whether the exchange set up the session.
    #[inline]
    pub(super) fn is_session(&mut self, open: &Open) -> bool {
        self.talk.is_some()
            && self.set_up_session(open.initiator, open.request_first.zip(open.request_end).map(Into::into))
    }

    /// Learns from a finished message which end asks.
    fn learn_roles(&mut self, open: &Open, kind: Kind) {
        let len = open.request_bytes as u32;
        match kind {
            Kind::OneWay if open.initiator != CLIENT => self.roles.on_push(open.passed),
            _ if open.initiator != CLIENT => {}
            Kind::OneWay => self.roles.on_unanswered(len, open.passed),
            _ => {
                let wait = open.waited - self.tap_rtt(SERVER);
                let (idle, asked_at, bytes) = (open.client_idle, open.request_at(), open.reply_bytes);
                self.roles.on_question(len, wait, open.is_guess, idle, asked_at, bytes);
            }
        }
    }

    #[inline]
    pub(super) fn closed(&mut self, ledger: &mut Ledger) -> Closed {
        let known = self.service.filter(|key| ledger.services.holds(*key));
        let service = known.unwrap_or_else(|| ledger.services.key(self.ends.end(SERVER)));
        if known.is_none() {
            self.service = Some(service);
        }
        Closed {
            connection: self.id,
            service,
            n: 0,
            kind: Kind::Setup,
            initiator: Side::Client,
            by: None,
            start: self.now,
            by_clock: None,
            awaited: Duration::ZERO,
            client_idle: Duration::ZERO,
            request_bytes: 0,
            reply_bytes: 0,
            packets: [0; 2],
            round: self.rtt_min(),
        }
    }

    /// Bills unanswered pieces as messages of their own; nobody waited during the silence between them.
    fn close_pieces(&mut self, open: &mut Open, parked: &mut Option<Box<Parked>>, ledger: &mut Ledger) {
        let speaker = open.initiator;
        let mut idle = open.client_idle;
        for mut piece in std::mem::take(&mut open.pieces) {
            let silence = piece.silence.charges().map(|charge| charge.ns).sum();
            if let Some(parked) = parked.take() {
                let what = (piece.start, piece.bytes);
                self.close_with_answer(*parked, &mut piece.account, what, piece.packets, ledger);
                idle = silence;
                continue;
            }
            round_trip::charge_way_back(
                &self.pair(),
                &mut piece.account,
                Kind::OneWay,
                speaker,
                piece.packets[1],
            );
            doubt_pauses(&mut piece.account, side(speaker));
            let meta = Closed {
                n: open.n,
                kind: Kind::OneWay,
                initiator: side(speaker),
                start: piece.start,
                client_idle: idle,
                request_bytes: piece.bytes,
                packets: piece.packets,
                ..self.closed(ledger)
            };
            self.hand_over(meta, &mut piece.account, ledger);
            idle = silence;
            open.n = self.next_n;
            self.next_n += 1;
        }
        open.client_idle = idle;
    }

    /// Bills the handshake, unless done already. If only SYNs are known of it, a `reset` ends it.
    pub(super) fn close_setup(&mut self, reset: Option<(Instant, u64)>, ledger: &mut Ledger) {
        if self.setup.is_none() || self.setup_billed {
            return;
        }
        let usual = self.close_usual_setup(ledger);
        self.setup_billed = true;
        self.next_n = self.next_n.max(1);
        if usual {
            return;
        }
        let Some(setup) = self.setup.as_ref() else { return };
        let Some(last) = setup.last().filter(|_| !setup.is_fast) else { return };
        let reset = reset.filter(|_| setup.is_unanswered());
        let last = reset.map_or(last, |(_, packet)| packet);
        let side = self.flows[CLIENT].side;
        if setup.is_given_up() {
            return;
        }
        let mut account = std::mem::take(&mut ledger.scratch);
        let pair = self.pair();
        let mut stood = [CLIENT, SERVER].map(|end| round_trip::stood(&pair, end, side));
        stood[SERVER] = self.opened_by_host(setup).or(stood[SERVER].take());
        let server = self.way_of(setup);
        // A host that acknowledges for the server shows nothing of the path that the last SYN took.
        let behind = setup.is_repeated() && self.beyond().is_some();
        let server = if behind { (Duration::ZERO, false) } else { (server, !self.is_ambiguous()) };
        let late = self.opened_late(setup, server.0);
        let (client, mut sure) = round_trip::to_client(&pair);
        let shorter = |end: usize| {
            stood[end].is_none()
                && round_trip::above_least(&self.path_memory, end, self.tap_rtt(end)).is_some()
        };
        let known_shorter = [CLIENT, SERVER].into_iter().any(shorter);
        let bounded = self.is_setup_bounded(setup) || pair.varies[SERVER] || known_shorter;
        if self.is_unproven() || self.answers.is_of_another() || bounded {
            sure = sure.min(Confidence::Likely);
        }
        if setup.opened().is_some_and(|took| self.answers.came_much_sooner(took)) {
            sure = Confidence::Possible;
        }
        handshake::bill((setup, reset, late), (client, sure), server, stood, &mut account);
        if setup.is_last_answered() && self.is_beside(SERVER) {
            account.revise(Revision::Dropped { by: Side::Server, form: accepting::FORM }); // all had arrived
        } else if setup.is_unanswered() && self.is_ignored_beside() {
            account.revise(Revision::Dropped { by: Side::Server, form: Form::Unanswered });
        }
        let meta =
            Closed { start: setup.first_syn.0, packets: [setup.first_syn.1, last], ..self.closed(ledger) };
        self.hand_over(meta, &mut account, ledger);
        account.clear();
        ledger.scratch = account;
    }
}

/// Unanswered messages, and pieces with pauses between them, may be as many separate messages.
#[cold]
pub(super) fn doubt_pauses(account: &mut Account, sender: Side) {
    let pauses = |line: LineView<'_>| line.cause() == Cause::SenderThink;
    if account.bill().summary().any(pauses) {
        account.revise(Revision::MayBeMany { sender, form: Form::OrMessages });
    }
}
