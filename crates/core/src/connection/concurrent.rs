//! With several requests under way at once, which of them does each message answer, and what did each wait
//! for?
//!
//! One request at a time needs no bytes: the other end's next message is the reply. A client that asks again
//! before it has its reply (a pipeline, a multiplexed connection) can be told from one that writes a request
//! in pieces only by the content of the messages, so this works on marks alone ([`Mark`]). Each exchange then
//! has an account of its own: the same moment is billed to every request that was waiting in it.
//!
//! A hold-up in a direction delays everything queued after it: each wait of a sender is judged as always, and
//! kept. A request's bill is the time from its first byte to its reply's last, less the hold-ups of either
//! direction meanwhile, less the path; the rest is the responder's own time.

use tcpwhy_wire::{Duration, Segment, Seq};

use super::Connection;
use super::billing::NAGLE;
use super::closing::doubt_pauses;
use super::headless::{HEAD_MAX, Headless, clip};
use super::streaming::Answered;
use super::talk::{Part, Resent, Talk, Unread, asked_at_once, expects};
use crate::bill::account::Account;
use crate::bill::asked::{Ask, Expects, Passed};
use crate::bill::covered::Covered;
use crate::bill::exchange::Path;
use crate::bill::revise::{Guess, Revision};
use crate::bill::split::Split;
use crate::bill::waits::fill;
use crate::estimate::maybe::Maybe;
use crate::flow::ends::{SERVER, side};
use crate::flow::segment_class::SegmentClass;
use crate::rules::verdict::Verdict;
use crate::rules::{self, application_window, nagle, round_trip, several_questions};
use crate::tally::closed::Closed;
use crate::tally::ledger::Ledger;
use crate::words::cause::Cause;
use crate::words::limits::ASKS_ON_MAX;
use crate::words::mark::{Mark, Role, without_news};
use crate::words::report::{Kind, Pairing, Trigger};

/// Requests under way at once on one connection; protocols settle for less (RFC 9113, 6.5.2, recommends 100
/// streams or more).
const ASKED_MAX: usize = 1024;
/// Retransmissions that may yet prove needless.
const RESENT_MAX: usize = 64;
/// Heads of messages whose bytes are still to be delivered.
const UNREAD_MAX: usize = 4096;
/// The cause that does not hold up a direction: its sender's own program.
pub(super) const OWN: u32 = Cause::SenderThink.bit();
/// The causes in a request's own direction that hold up its reply.
const REPAIRS: u32 = Cause::Rto.bit() | Cause::Loss.bit();

impl Connection {
    /// Whether exchanges are billed here.
    #[inline]
    pub(super) fn is_concurrent(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.is_concurrent)
    }

    /// Notes the messages that begin in a segment, before the segment itself is taken.
    #[inline]
    pub(super) fn take_marks(&mut self, marks: &[Mark], segment: &Segment, from: usize, ledger: &mut Ledger) {
        if !marks.is_empty() {
            self.note_marks(marks, segment, from, ledger);
        }
    }

    #[cold]
    fn note_marks(&mut self, marks: &[Mark], segment: &Segment, from: usize, ledger: &mut Ledger) {
        let greetings: Vec<Mark>;
        let marks = if marks.iter().any(|mark| mark.role == Role::Greets) {
            greetings = marks.iter().map(|mark| self.take_greeting(mark, segment, from)).collect();
            &greetings
        } else {
            marks
        };
        if self.take_unreadable(marks, segment.seq) {
            return;
        }
        if from == SERVER && marks.iter().any(|mark| mark.session && !mark.by_peer) {
            self.frames.on_session();
        }
        let marks = if self.is_concurrent() { marks } else { without_news(marks) };
        let ends = |talk: &mut Talk| talk.ends_with(marks, segment.seq + segment.payload_len);
        if marks.iter().any(|mark| matches!(mark.role, Role::Lost | Role::Framed))
            && !self.talk.as_deref_mut().is_some_and(ends)
        {
            self.lose_talk(marks, from, ledger);
            if marks.iter().any(|mark| mark.role == Role::Framed) {
                self.talk.get_or_insert_default().is_framed = true;
            }
            return;
        }
        let [heard, sent] = [from, 1 - from].map(|end| self.flows[end].snd_nxt);
        for mark in marks.iter().filter(|mark| mark.by_peer) {
            self.talk.get_or_insert_default().note_in_turn(&[*mark], 1 - from, heard, None);
        }
        let acked = segment.flags.ack().then_some(segment.ack);
        let at_once = asked_at_once(marks);
        let talk = self.talk.get_or_insert_default();
        if !talk.is_concurrent {
            if at_once.is_empty() && !talk.ends_turns(marks, from, acked, sent) {
                // The other end's marks were noted above as its own.
                let own = marks.iter().filter(|mark| !mark.by_peer);
                own.for_each(|mark| talk.note_in_turn(&[*mark], from, sent, acked));
                self.note_greeting(marks, from);
                return;
            }
            self.begin_concurrency(segment, ledger);
            self.next_n +=
                self.talk.as_deref_mut().map_or(0, |talk| talk.part(&at_once, 1 - from, self.next_n));
        }
        let learned = self.now + self.tap_rtt(1 - from);
        let talk = self.talk.get_or_insert_default();
        for mark in marks.iter().filter(|mark| !mark.by_peer) {
            talk.note_credit(mark, from, learned);
        }
        let unread = &mut talk.unread[from];
        if unread.marks.len() >= UNREAD_MAX {
            unread.marks.clear(); // they wait for bytes that never come
        }
        let begin = unread.begin.unwrap_or(segment.seq);
        let known = |mark: &Mark| begin - mark.seq > HEAD_MAX as i32;
        let own = |mark: &&Mark| !mark.by_peer && mark.role != Role::Lost && !known(mark);
        unread.marks.extend(marks.iter().filter(own));
        unread.marks.sort_by_key(|mark| mark.seq - begin);
        unread.marks.dedup();
    }

    /// Whether a finished message set up the session; none does once one has not.
    pub(super) fn set_up_session(&mut self, asker: usize, request: Option<[Seq; 2]>) -> bool {
        let Some(talk) = self.talk.as_deref_mut().filter(|talk| !talk.is_concurrent) else { return false };
        let Some([first, end]) = talk.session[asker] else { return false };
        let lies_in = request.is_some_and(|of| first.before(of[1]) && of[1].at_or_before(end));
        // A message before the session, such as a CONNECT or a greeting, does not end it.
        let is_before = request.is_none_or(|of| of[1].at_or_before(first));
        if !lies_in && !is_before {
            talk.session = [None; 2];
        }
        lies_in
    }

    /// More than one request and one reply in turn: from now on, each message has an account of its own.
    fn begin_concurrency(&mut self, segment: &Segment, ledger: &mut Ledger) {
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let waiting = talk.pending.take();
        let of_waiting = |first: Seq, end: Seq| {
            waiting.is_some_and(|ask| first.at_or_before(ask.seq) && ask.seq.before(end))
        };
        let is_its = self.open.as_deref().is_some_and(|open| {
            open.request_first.zip(open.request_end).is_some_and(|(first, end)| of_waiting(first, end))
        });
        if !is_its {
            self.close_beside(segment, ledger);
        }
        if let Some(parked) = self.roles.take_parked() {
            self.close_parked(*parked, ledger);
        }
        let taken = self.open.take();
        let delivered = [0, 1].map(|end| self.flows[end].delivered());
        let last_end = self.last_wait_end;
        let Some(talk) = self.talk.as_deref_mut() else { return };
        talk.is_concurrent = true;
        talk.covered = Covered::since(last_end.get());
        let begins = delivered.map(|begin| Unread { begin, ..Unread::default() });
        talk.unread = begins;
        let (Some(mut open), Some(waiting)) = (taken, waiting) else { return };
        open.join_pieces();
        open.charge_late();
        let mut ask = Ask {
            n: open.n,
            asker: open.initiator,
            id: waiting.id,
            expects: waiting.expects,
            idle: open.client_idle,
            start: open.start,
            question: Passed::begin(open.start, open.packets[0], waiting.seq),
            answer: None,
            parts: [1, u8::from(open.reply_first.is_some())],
            is_answered: false,
            is_cut: waiting.is_cut,
            account: open.last_path().settle().clone(),
        };
        let passed = |path: &Path, bytes: u64, end: Option<Seq>| {
            let last = path.last.as_ref().map(|last| (last.at, last.packet));
            last.zip(end).map(|(last, end)| Passed { first: last, last, bytes, end })
        };
        if let Some(question) = passed(&open.request, open.request_bytes, open.request_end) {
            ask.question = Passed { first: ask.question.first, ..question };
        }
        if open.reply_first.is_some() {
            ask.answer = passed(&open.reply, open.reply_bytes, self.flows[1 - open.initiator].snd_nxt);
        }
        clip(Some(&mut ask.question), waiting.end);
        clip(ask.answer.as_mut(), waiting.answer_end);
        talk.parts[ask.asker] = Part { of: Some((ask.n, false)), end: waiting.end, last: false };
        let answer = Part { of: Some((ask.n, true)), end: waiting.answer_end, last: waiting.answer_is_last };
        talk.parts[1 - ask.asker] = if waiting.is_answering { answer } else { Part::default() };
        talk.some_are.cut = ask.is_cut;
        talk.ask(ask);
        self.spare = Some(open);
    }

    /// A data segment while exchanges are billed here: [`Connection::on_data`], from its class on.
    #[cold]
    pub(super) fn on_concurrent_data(
        &mut self,
        segment: &Segment,
        from: usize,
        class: SegmentClass,
        mss: u32,
        ledger: &mut Ledger,
    ) {
        let mut verdict = Verdict { split: Split::of(Duration::ZERO), trigger: Trigger::Write };
        if let Some(last) = self.flows[from].last_data {
            let wait = self.wait(segment, from, class, mss, &last, 0);
            verdict = rules::judge(&wait);
            if verdict.split.has(NAGLE) {
                self.weigh_held_beside(segment, from, &last, &mut verdict.split);
            }
            let mut observation = rules::observe(&wait, &verdict);
            observation.forget_shape();
            self.models[from].take(&observation);
        }
        if !verdict.split.has(REPAIRS) && nagle::is_ignored(&self.pair(), from, segment, class) {
            self.on_nagle_ignored(from);
        }
        self.charge_credit(segment, from, &mut verdict);
        let new_bytes = self.take_data(segment, from, class, mss);
        let now = self.now;
        if let Some(talk) = self.talk.as_deref_mut() {
            talk.unread[from].seen += new_bytes;
            if !matches!(class, SegmentClass::Retransmission { .. }) {
                talk.waits[from].keep(&verdict.split, OWN, now);
            } else if talk.resent[from].len() < RESENT_MAX {
                let stamp = segment.options.timestamps.map(|stamps| stamps.val);
                let (packet, seq, split) = (segment.packet, segment.seq, verdict.split.clone());
                talk.resent[from].push(Resent { at: now, packet, seq, stamp, split });
            }
        }
        self.deliver(segment, from, ledger);
        if self.talk.as_deref().is_some_and(|talk| talk.some_are.ending) {
            self.lose_talk(&[], from, ledger);
        }
        self.rung(segment, from, verdict.trigger, Some(&verdict.split), ledger);
    }

    /// A wait taken for the sender's own time may have been a wait for its protocol's window.
    fn charge_credit(&mut self, segment: &Segment, from: usize, verdict: &mut Verdict) {
        let now = self.now;
        let (since, stopped) = self.flows[from].last_data.map_or((now, 0), |last| (last.at, last.packet));
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let waited = talk.wait_for_credit(from, segment.seq, since, now);
        if !waited.is_positive() || verdict.split.has(REPAIRS) {
            return;
        }
        let packets = [stopped, segment.packet];
        verdict.split = application_window::judge(&verdict.split, waited, side(from), packets);
    }

    /// Gives the bytes up to the first missing one to the messages that they belong to.
    fn deliver(&mut self, segment: &Segment, from: usize, ledger: &mut Ledger) {
        let Some(end) = self.flows[from].delivered() else { return };
        let Some(unread) = self.talk.as_deref_mut().map(|talk| &mut talk.unread[from]) else { return };
        let mut at = unread.begin.unwrap_or(segment.seq);
        let mut marks = std::mem::take(&mut unread.marks);
        let read = marks.iter().take_while(|mark| mark.seq.before(end)).count();
        for mark in marks.drain(..read) {
            let until = mark.seq.latest(at);
            self.extend_part(segment, from, at, until);
            at = until;
            let part = self.begin_part(&mark, segment, from, ledger);
            if let Some(talk) = self.talk.as_deref_mut() {
                talk.parts[from] = part;
            }
        }
        self.extend_part(segment, from, at, end);
        if let Some(talk) = self.talk.as_deref_mut() {
            talk.unread[from].begin = Some(end.latest(at));
            talk.unread[from].marks = marks;
        }
    }

    /// Adds the bytes from `first` to `end` to the message that their sender is in the middle of.
    #[inline(never)]
    fn extend_part(&mut self, segment: &Segment, from: usize, first: Seq, end: Seq) {
        let now = self.now;
        let Some(talk) = self.talk.as_deref_mut() else { return };
        let part = talk.parts[from];
        let Some((n, is_answer)) = part.of else {
            let unread = &mut talk.unread[from];
            unread.seen = unread.seen.saturating_sub((end - first).max(0) as u32);
            unread.headless = Headless::behind(unread.headless.take(), [first, end], now, segment);
            return;
        };
        let reached = part.end.is_some_and(|last| end.at_or_after(last));
        let (end, all) = (if reached { part.end.unwrap_or(end) } else { end }, end);
        // Bytes missing from the capture are in no sum.
        let bytes = ((end - first).max(0) as u32).min(talk.unread[from].seen);
        let Some(ask) = talk.find(n) else { return };
        if is_answer && bytes > 0 {
            let answer = ask.answer.get_or_insert(Passed::begin(now, segment.packet, first));
            answer.take(now, segment.packet, bytes, end);
        } else if bytes > 0 {
            ask.question.take(now, segment.packet, bytes, end);
        }
        let is_last_part = if is_answer { ask.answer.is_some() } else { ask.expects == Expects::Nothing };
        if reached && part.last && is_last_part && !ask.is_answered {
            ask.is_answered = true;
            talk.note_ripe(n);
        }
        talk.unread[from].seen -= bytes;
        if reached {
            talk.parts[from] = Part::default();
            talk.unread[from].headless = Headless::behind(None, [end, all], now, segment);
        }
    }

    /// The message that a mark's bytes belong to.
    fn begin_part(&mut self, mark: &Mark, segment: &Segment, from: usize, ledger: &mut Ledger) -> Part {
        let n = match mark.role {
            Role::Asks | Role::Subscribes | Role::Tells => {
                Some(self.question_of(mark, segment, from, ledger))
            }
            Role::Answers => match self.answer_of(mark, from, ledger) {
                Answered::Part(n) => Some(n),
                Answered::ByNews => Some(self.ask(mark, Expects::Nothing, segment, from, ledger)),
                Answered::Nothing => None,
            },
            Role::Defers => {
                self.defer(mark, from);
                None
            }
            Role::Cut => self.cut(mark, from),
            Role::Greets
            | Role::Neither
            | Role::Framed
            | Role::Lost
            | Role::Unread
            | Role::Sealed
            | Role::Alert => None,
        };
        let of = n.and_then(|n| {
            let talk = self.talk.as_deref_mut()?;
            talk.told[from] = mark.role == Role::Tells;
            talk.find(n).map(|ask| (n, ask.asker != from))
        });
        self.join_head(mark, of, from);
        Part { of, end: mark.end, last: mark.last }
    }

    /// The request that a mark continues, or a new one.
    fn question_of(&mut self, mark: &Mark, segment: &Segment, from: usize, ledger: &mut Ledger) -> u64 {
        if let Some(n) = self.talk.as_deref_mut().and_then(|talk| talk.goes_on_with(mark, from))
            && !self.asks_anew(n, from, ledger)
        {
            return n;
        }
        self.ask(mark, expects(mark.role), segment, from, ledger)
    }

    /// Begins a new exchange.
    fn ask(
        &mut self,
        mark: &Mark,
        expects: Expects,
        segment: &Segment,
        from: usize,
        ledger: &mut Ledger,
    ) -> u64 {
        self.close_cut(from, ledger);
        let asked = self.talk.as_deref().map_or(0, |talk| talk.asked.len());
        if asked >= ASKED_MAX
            && let Some(oldest) = self.talk.as_deref_mut().and_then(|talk| talk.asked.pop_front())
        {
            self.close_ask(oldest, ledger);
        }
        if self.next_n == 0 && self.setup.is_some() {
            self.next_n = 1; // 0 is the setup
        }
        let n = self.next_n;
        self.next_n += 1;
        let idle_since = self.idle_since().filter(|_| asked == 0);
        let at = self.now;
        let held = self.held_before(mark, expects, segment, from);
        let ask = Ask {
            n,
            asker: from,
            id: mark.id,
            expects,
            idle: idle_since.map_or(Duration::ZERO, |since| (at - held - since).at_least_zero()),
            start: at - held,
            question: Passed::begin(at, segment.packet, mark.seq),
            answer: None,
            parts: [1, 0],
            is_answered: false,
            is_cut: false,
            account: Account::default(),
        };
        if let Some(talk) = self.talk.as_deref_mut() {
            talk.ask(ask);
        }
        n
    }

    /// Closes every exchange under way.
    pub(super) fn close_asked(&mut self, ledger: &mut Ledger) {
        while let Some(ask) = self.talk.as_deref_mut().and_then(|talk| talk.asked.pop_front()) {
            self.close_ask(ask, ledger);
        }
    }

    pub(super) fn close_ask(&mut self, mut ask: Ask, ledger: &mut Ledger) {
        self.close_setup(None, ledger);
        let speaker = if ask.answer.is_some() { 1 - ask.asker } else { ask.asker };
        let kind = match (&ask.answer, ask.expects) {
            (None, _) => Kind::OneWay,
            (Some(_), Expects::News) => Kind::Subscription,
            (Some(_), _) => Kind::Exchange,
        };
        let packet = ask.answer.map_or(ask.question.last.1, |answer| answer.last.1);
        self.bill_ask(&mut ask);
        let awaited = match kind {
            Kind::Subscription => ask.account.revise(Revision::News { server: side(1 - ask.asker) }),
            _ => Duration::ZERO,
        };
        let ends = if kind == Kind::OneWay { [Some(0), Some(1)] } else { [Some(ask.asker), None] };
        let before = ask.account.total();
        for end in ends.into_iter().flatten() {
            let way = if kind == Kind::OneWay { round_trip::behind_one_way } else { round_trip::of_path };
            let (path, stood) = way(&self.pair(), end, side(speaker));
            for charge in [Some(path), stood].into_iter().flatten() {
                ask.account.charge(&charge.evidence(packet, 0));
            }
        }
        if ask.expects == Expects::Nothing && !ask.is_answered {
            // Its head gives no length, as with a radio stream.
            doubt_pauses(&mut ask.account, side(ask.asker));
        }
        if self.assumed {
            ask.account.revise(Revision::Guessed(Guess::Roles));
        }
        let elapsed = ask.account.total();
        let over = ask.start + if kind == Kind::OneWay { before } else { elapsed + awaited };
        let by_clock = self
            .talk
            .as_deref_mut()
            .map(|talk| talk.covered.take([ask.start, ask.start + elapsed + awaited]));
        self.last_wait_end = Maybe::of(self.last_wait_end.get().map_or(over, |known| known.max(over)));
        let meta = Closed {
            n: ask.n,
            kind,
            initiator: side(ask.asker),
            by: (kind != Kind::OneWay).then_some(match ask.id {
                Some(_) => Pairing::Identifier,
                None => Pairing::Order,
            }),
            start: ask.start,
            by_clock: by_clock.map(|covered| (covered - awaited).at_least_zero()),
            awaited,
            client_idle: ask.idle,
            request_bytes: ask.question.bytes,
            reply_bytes: ask.answer.map_or(0, |answer| answer.bytes),
            packets: [ask.question.first.1, packet.max(ask.question.last.1)],
            ..self.closed(ledger)
        };
        self.hand_over(meta, &mut ask.account, ledger);
    }

    /// Charges what a request and its reply waited for, up to the last byte that passed.
    fn bill_ask(&self, ask: &mut Ask) {
        let Some(talk) = self.talk.as_deref() else { return };
        let (asker, other, is_cut) = (ask.asker, 1 - ask.asker, ask.is_cut || talk.heads_lost);
        let [asking, answering] = [&talk.waits[asker], &talk.waits[other]];
        let question = ask.question;
        if ask.until() < question.last.0 {
            let span = [ask.until(), question.last.0];
            let packets = [question.first.1, question.last.1];
            let pause =
                |ns| several_questions::pause(&self.pair(), is_cut || ns >= ASKS_ON_MAX, asker, packets);
            fill(&mut ask.account, span, &[(asking, !0)], pause);
        }
        let Some(answer) = ask.answer else { return };
        let packets = [question.last.1, answer.first.1];
        if ask.until() < answer.first.0 {
            let pair = self.pair();
            let way = several_questions::way(&pair, ask, answer.first.0 - ask.until(), packets);
            way.charges().for_each(|charge| ask.account.charge(charge));
            let think = several_questions::think(&pair, ask, packets);
            let span = [ask.until(), answer.first.0];
            fill(&mut ask.account, span, &[(answering, !0), (asking, REPAIRS)], |_| think);
        }
        if ask.until() < answer.last.0 {
            let span = [ask.until(), answer.last.0];
            let packets = [answer.first.1, answer.last.1];
            let pause = |_| several_questions::pause(&self.pair(), is_cut, other, packets);
            fill(&mut ask.account, span, &[(answering, !0)], pause);
        }
    }
}
