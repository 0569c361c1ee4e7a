//! How do the messages of a connection relate to each other, if their protocol is read?

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::headless::Headless;
use super::numbered::{Numbered, Ripe, open};
use crate::bill::account::Account;
use crate::bill::asked::{Ask, Expects, Passed};
use crate::bill::covered::Covered;
use crate::bill::split::Split;
use crate::bill::waits::Waits;
use crate::estimate::credit::Credit;
use crate::flow::ends::SERVER;
use crate::words::mark::{Credit as Said, Mark, Role};

/// What is known of the messages of a connection whose protocol is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Talk {
    /// The unanswered request, while there is one at a time.
    pub pending: Option<Pending>,
    /// Requests without a complete reply, in order, once there was more than one at a time.
    pub asked: VecDeque<Ask>,
    pub some_are: SomeAre,
    pub ripe: Ripe,
    /// Heads of messages are missing from the capture.
    pub heads_lost: bool,
    pub numbered: Numbered,
    pub is_concurrent: bool,
    /// Messages are whole frames of either end, which do not say which end asks.
    pub is_framed: bool,
    /// The message that each end's next bytes belong to.
    pub parts: [Part; 2],
    pub waits: [Waits; 2],
    /// Each end's last message, of those that are requests, replies or neither, was one that nobody asked for.
    pub told: [bool; 2],
    /// Each end's bytes still to be read.
    pub unread: [Unread; 2],
    /// Each end's retransmissions that may yet prove needless.
    pub resent: [Vec<Resent>; 2],
    /// Which moments have been billed at all.
    pub covered: Covered,
    /// What each end may still send by its protocol's own flow control, if that is seen.
    pub credit: [Credit; 2],
    /// What its present segment uses of that: stream, bytes, and the byte after.
    pub uses: Vec<(u64, u32, Option<Seq>)>,
    /// The byte after each end's last written frame.
    pub written: [Option<Seq>; 2],
    /// Each end's bytes that set up the session, before any request: the first, and the one after the last.
    pub session: [Option<[Seq; 2]>; 2],
    /// Where the last line read of a greeting in several ends, and whether it is the greeting's last.
    pub greeting: Option<(Seq, bool)>,
    /// Where the last alert of TLS begins.
    pub alert: Option<Seq>,
}

/// Whether any request under way is of a kind, so that not all are searched for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SomeAre {
    /// It is not captured where somebody's reply ends.
    pub cut: bool,
    /// Several were under way at once.
    pub several: bool,
    /// Answered completely by the present segment, after which nothing is read.
    pub ending: bool,
    /// Each end's requests without an identifier and before this number have their replies.
    waiting: [u64; 2],
    /// The largest identifier of each end's requests so far: most protocols count them up.
    highest: [Option<u64>; 2],
}

/// Retransmitted bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resent {
    pub at: Instant,
    pub packet: u64,
    pub seq: Seq,
    pub stamp: Option<u32>,
    /// What its sender had waited for.
    pub split: Split,
}

/// Bytes of one end not yet assigned to messages, since something before them is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Unread {
    /// Where they begin, once anything has been read.
    pub begin: Option<Seq>,
    /// How many of them were captured.
    pub seen: u32,
    pub marks: Vec<Mark>,
    /// The last of them, if their message's head goes on behind them.
    pub headless: Option<Box<Headless>>,
}

/// A request without a reply, or in the middle of one.
#[expect(clippy::struct_excessive_bools, reason = "facts of both that do not exclude each other")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Pending {
    pub asker: usize,
    pub id: Option<u64>,
    pub expects: Expects,
    pub seq: Seq,
    pub end: Option<Seq>,
    /// Nothing of it follows `end`.
    pub is_over: bool,
    /// The byte after what the other end had sent when it was asked.
    pub heard: Option<Seq>,
    /// What the requester had acknowledged with it.
    pub acks: Option<Seq>,
    pub is_answering: bool,
    /// The reply's head has been read completely.
    pub head_is_over: bool,
    pub answer_end: Option<Seq>,
    /// The reply ends at `answer_end`.
    pub answer_is_last: bool,
    /// It is not captured where it ends.
    pub is_cut: bool,
    /// What came from elsewhere may have released the reply.
    pub is_released: bool,
}

/// The message that one end's next bytes belong to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Part {
    /// The exchange, and whether it is the reply.
    pub of: Option<(u64, bool)>,
    /// Where the part ends, if known, and whether the message ends with it.
    pub end: Option<Seq>,
    pub last: bool,
}

impl Pending {
    /// Whether the requester has the complete reply when it sends again with this ACK. The other end has sent
    /// bytes up to `sent`, and `unread` says if that is more than was acknowledged. Bytes without a readable
    /// head, which was captured in part, count as the reply if replies come in order.
    fn is_answered(&self, acked: Option<Seq>, sent: Option<Seq>, unread: bool) -> bool {
        match self.answer_end {
            _ if !self.is_answering => {
                let spoken = sent.is_some_and(|sent| self.heard.is_none_or(|heard| sent.after(heard)));
                self.id.is_none() && (spoken && !unread || self.has_unseen_answer(acked, sent))
            }
            _ if self.is_cut => !unread,
            Some(end) if self.answer_is_last => acked.is_some_and(|acked| acked.at_or_after(end)),
            // A reply with an identifier says when it is over; one in order ends where nothing more comes.
            _ => self.id.is_none() && !unread,
        }
    }

    /// Whether the requester acknowledges more than when it asked, of which the capture has nothing: the
    /// reply was not captured.
    fn has_unseen_answer(&self, acked: Option<Seq>, sent: Option<Seq>) -> bool {
        acked.zip(self.acks).is_some_and(|(acked, before)| {
            acked.after(before) && sent.is_none_or(|sent| acked.after(sent) && sent.at_or_before(before))
        })
    }
}

impl Talk {
    /// Whether bytes of `from` belong to a message under way, by the length in its head, or because its last line is still to come.
    pub(super) fn goes_on(&self, from: usize, seq: Seq) -> bool {
        let greets = |(end, last): (Seq, bool)| from == SERVER && (!last || seq.before(end));
        self.greeting.is_some_and(greets)
            || self.pending.is_some_and(|ask| {
                let answer_end = ask.answer_end.filter(|_| ask.answer_is_last);
                let end = if ask.asker == from { ask.end } else { answer_end };
                end.is_some_and(|end| seq.before(end))
            })
    }

    /// Whether `from` is in the middle of a message whose end its head does not tell.
    pub(super) fn tells_more(&self, from: usize) -> bool {
        self.pending.filter(|ask| ask.id.is_none()).is_some_and(|ask| {
            let answer_goes_on = ask.is_answering && !ask.answer_is_last && !ask.is_cut;
            if ask.asker == from { !ask.is_over } else { answer_goes_on }
        })
    }

    /// Whether the last request has a stream that its sender keeps open (RFC 9113, 5.1; streaming calls of
    /// gRPC).
    pub(super) fn is_dialogue(&self) -> bool {
        self.pending.is_some_and(|ask| ask.id.is_some() && !ask.is_over)
    }

    /// Whether the segment, which ends at `end`, holds a complete reply before the bytes that are no longer
    /// read.
    #[cold]
    pub(super) fn ends_with(&mut self, marks: &[Mark], end: Seq) -> bool {
        let whole = |mark: &Mark| {
            let is_over = mark.last && mark.end.is_some_and(|last| last.at_or_before(end));
            mark.role == Role::Answers && !mark.by_peer && is_over
        };
        let framed = marks.iter().any(|mark| mark.role == Role::Framed);
        self.some_are.ending |= self.is_concurrent && !framed && marks.iter().any(whole);
        self.some_are.ending
    }

    /// Whether what another connection brought may have released the present reply.
    pub(super) fn is_released(&self) -> bool {
        self.pending.is_some_and(|ask| ask.is_released)
    }

    /// Whether these marks of one end show more than one request and reply in turn: a request beside an
    /// unanswered one, or a message that answers nothing. The other end has sent bytes up to `sent`.
    pub(super) fn ends_turns(
        &mut self,
        marks: &[Mark],
        from: usize,
        acked: Option<Seq>,
        sent: Option<Seq>,
    ) -> bool {
        let unread = sent.is_some_and(|sent| acked.is_none_or(|acked| acked.before(sent)));
        self.pending = self.pending.filter(|ask| ask.asker != from || !ask.is_answered(acked, sent, unread));
        let mut asked = self.pending.filter(|ask| ask.asker == from).map(|ask| ask.id);
        let turned = self.pending.is_some_and(|ask| ask.asker == SERVER);
        if turned || marks.iter().any(|mark| mark.stands_alone() || mark.asks() && from == SERVER) {
            return true;
        }
        marks.iter().filter(|mark| mark.asks()).any(|mark| {
            let beside = mark.first && asked.is_some_and(|id| id.is_none() || id != mark.id);
            asked = Some(mark.id);
            beside
        })
    }

    /// Notes the marks of one end while there is one request at a time. The other end has sent bytes up to `heard`, this one acknowledges those to `acks`.
    pub(super) fn note_in_turn(
        &mut self,
        marks: &[Mark],
        from: usize,
        heard: Option<Seq>,
        acks: Option<Seq>,
    ) {
        for mark in marks {
            self.note_session(mark, from);
            match (mark.role, &mut self.pending) {
                (Role::Asks, Some(ask)) if ask.asker == from && ask.id == mark.id => {
                    (ask.end, ask.is_over) = (mark.end, mark.last);
                }
                (Role::Asks | Role::Subscribes, _) if mark.first => {
                    self.greeting = None;
                    self.pending = Some(Pending {
                        asker: from,
                        id: mark.id,
                        expects: expects(mark.role),
                        seq: mark.seq,
                        end: mark.end,
                        is_over: mark.last,
                        heard,
                        acks,
                        is_answering: false,
                        head_is_over: false,
                        answer_end: None,
                        answer_is_last: false,
                        is_cut: false,
                        is_released: false,
                    });
                }
                (Role::Answers, Some(ask)) if ask.asker != from && ask.id == mark.id => {
                    ask.is_answering = true;
                    ask.is_released |= mark.released;
                    ask.head_is_over = !mark.first;
                    (ask.answer_end, ask.answer_is_last) = (mark.end, mark.last);
                }
                (Role::Cut, Some(ask)) if ask.asker != from => ask.is_cut = true,
                _ => {}
            }
        }
    }

    /// Notes what sets up the session.
    pub(super) fn note_session(&mut self, mark: &Mark, from: usize) {
        if let (true, Some(end)) = (mark.session, mark.end) {
            let [_, last] = self.session[from].get_or_insert([mark.seq, end]);
            *last = last.latest(end);
        }
    }

    /// Notes what a mark of `from` does to flow control; the other end learns of it a while later.
    pub(super) fn note_credit(&mut self, mark: &Mark, from: usize, learned: Instant) {
        let stream = mark.id.unwrap_or(0);
        match mark.credit {
            None => {}
            Some(Said::Uses(bytes)) => self.uses.push((stream, bytes, mark.end)),
            Some(Said::Grants(bytes)) => self.credit[1 - from].grant(learned, stream, bytes),
            Some(Said::Initial(bytes)) => self.credit[1 - from].begin_with(bytes),
        }
    }

    /// How long `from` had used up its protocol's window before this segment. Takes the segment's share.
    pub(super) fn wait_for_credit(
        &mut self,
        from: usize,
        seq: Seq,
        since: Instant,
        now: Instant,
    ) -> Duration {
        let in_a_frame = self.written[from].is_some_and(|end| seq.before(end));
        let waited = if in_a_frame { Duration::ZERO } else { self.credit[from].wait(since, now) };
        for (stream, bytes, end) in self.uses.drain(..) {
            self.credit[from].take(stream, bytes);
            self.written[from] = end;
        }
        waited
    }

    /// The request that a mark of `from` answers: by its identifier, or else the first one without a reply,
    /// and then all earlier ones are answered.
    pub(super) fn answered_by(&mut self, mark: &Mark, from: usize) -> Option<u64> {
        let is_of = |ask: &Ask| {
            let is_asked = ask.asker != from && ask.expects != Expects::Nothing;
            is_asked && ask.id == mark.id && !ask.is_answered
        };
        if let Some(id) = mark.id {
            let numbers = self.numbered.with(1 - from, id, &self.asked).iter();
            return numbers
                .filter_map(|(_, n)| open(&self.asked, *n))
                .find(|ask| is_of(ask))
                .map(|ask| ask.n);
        }
        let asker = 1 - from;
        let waiting = self.some_are.waiting[asker];
        let start = self.asked.partition_point(|ask| ask.n < waiting);
        for place in start..self.asked.len() {
            let ask = &mut self.asked[place];
            if !is_of(ask) {
                continue;
            }
            // Replies come in order: after the first request without one, no other reply has begun.
            if !mark.first || ask.answer.is_none() {
                self.some_are.waiting[asker] = ask.n;
                return Some(ask.n);
            }
            ask.is_answered = true;
            if self.ripe.note(ask) {
                self.ripe.forget(&self.asked);
            }
        }
        self.some_are.waiting[asker] = self.asked.back().map_or(waiting, |last| last.n + 1);
        None
    }

    /// The message of `from` on the same stream that nobody waits for.
    pub(super) fn told_by(&mut self, mark: &Mark, from: usize) -> Option<u64> {
        self.latest(mark, from, Expects::Nothing)
    }

    /// The request of `from` that a mark continues.
    pub(super) fn goes_on_with(&mut self, mark: &Mark, from: usize) -> Option<u64> {
        let is_new = if mark.id.is_none() { mark.first } else { mark.id > self.some_are.highest[from] };
        if is_new { None } else { self.latest(mark, from, expects(mark.role)) }
    }

    /// The latest open exchange of `from` with this identifier, or without one, that expects `waits_for`.
    fn latest(&mut self, mark: &Mark, from: usize, waits_for: Expects) -> Option<u64> {
        let is_of = |ask: &&Ask| {
            ask.asker == from && ask.id == mark.id && ask.expects == waits_for && !ask.is_answered
        };
        let found = match mark.id {
            Some(id) => {
                let numbers = self.numbered.with(from, id, &self.asked).iter().rev();
                numbers.filter_map(|(_, n)| open(&self.asked, *n)).find(is_of)
            }
            None => self.asked.iter().rev().find(is_of),
        };
        found.map(|ask| ask.n)
    }

    /// Adds a request that is under way from now on.
    pub(super) fn ask(&mut self, ask: Ask) {
        debug_assert!(
            self.asked.is_empty() || ask.account.heap() == 0,
            "one that comes later has cost nothing yet"
        );
        let highest = &mut self.some_are.highest[ask.asker];
        *highest = (*highest).max(ask.id);
        // Earlier ones had their replies when the last one was asked, or `several` is set already.
        self.some_are.several |= self.asked.back().is_some_and(|last| last.answer.is_none());
        self.numbered.insert(&ask, &self.asked);
        self.asked.push_back(ask);
    }

    /// One segment's supposed request of `asker` is several, each of which is owed a reply. Returns the
    /// number of additional exchanges, the first of which is number `next`.
    #[cold]
    pub(super) fn part(&mut self, marks: &[Mark], asker: usize, next: u64) -> u64 {
        let whole = |ask: &mut Ask| {
            let one = ask.asker == asker && ask.answer.is_none() && ask.question.first == ask.question.last;
            one && !marks.is_empty()
        };
        let Some(mut ask) = self.asked.pop_back_if(whole) else { return 0 };
        let mut more = 0;
        for (mark, end) in marks.iter().filter_map(|mark| Some((mark, mark.end?))) {
            ask.question = Passed { bytes: (end - mark.seq).max(0) as u64, end, ..ask.question };
            self.ask(ask.clone());
            let (n, start) = (next + more, ask.question.first.0);
            ask = Ask { n, start, account: Account::default(), ..ask };
            more += 1;
        }
        more.saturating_sub(1)
    }

    /// An ACK of data from `from` shows whether retransmissions were needed: not if it says so (RFC 2883) or
    /// answers the first transmission (RFC 3522). Bytes after needed ones are delivered only then.
    pub(super) fn settle_resent(&mut self, ack: &Segment, from: usize, but: u32) {
        let echoed = ack.options.timestamps.map(|stamps| stamps.ecr);
        let told = ack.options.sack().first().is_some_and(|block| block.end.at_or_before(ack.ack));
        let answers_first =
            self.resent[from].first().and_then(|first| Some(echoed?.wrapping_sub(first.stamp?)));
        if told || answers_first.is_some_and(|since| (since as i32) < 0) {
            self.resent[from].clear();
        }
        let needed = self.resent[from].iter().take_while(|resent| ack.ack.after(resent.seq)).count();
        for resent in self.resent[from].drain(..needed).collect::<Vec<_>>() {
            self.waits[from].keep(&resent.split, but, resent.at);
            for ask in &mut self.asked {
                let part = if ask.asker == from { Some(&mut ask.question) } else { ask.answer.as_mut() };
                if let Some(part) = part.filter(|part| part.end.after(resent.seq)) {
                    part.last = part.last.max((resent.at, resent.packet));
                }
            }
        }
    }

    /// Removes the request with this number if both ends' ACKs cover its last word. It may stand at `place`,
    /// and the next one after it does from then on.
    #[cold]
    pub(super) fn take_over(&mut self, n: u64, acked: [Option<Seq>; 2], place: &mut usize) -> Option<Ask> {
        if self.asked.get(*place).is_none_or(|ask| ask.n != n) {
            *place = self.asked.binary_search_by_key(&n, |ask| ask.n).ok()?;
        }
        let ask = self.asked.get(*place)?;
        if ask.is_over(acked) {
            return self.asked.remove(*place);
        }
        // It has grown since.
        let _ = self.ripe.note(ask);
        None
    }

    /// The last word of the request with this number has passed.
    #[cold]
    pub(super) fn note_ripe(&mut self, n: u64) {
        if let Ok(place) = self.asked.binary_search_by_key(&n, |ask| ask.n)
            && self.ripe.note(&self.asked[place])
        {
            self.ripe.forget(&self.asked);
        }
    }

    /// The exchange with this number.
    pub(super) fn find(&mut self, n: u64) -> Option<&mut Ask> {
        let place = self.asked.binary_search_by_key(&n, |ask| ask.n).ok()?;
        self.asked.get_mut(place)
    }

    /// Its heap size in bytes, with its own struct, which is boxed.
    pub(super) fn heap(&self) -> usize {
        // Only the first of several has anything in its account before its end.
        let account = self.asked.front().map_or(0, |ask| ask.account.heap());
        let waits: usize = self.waits.iter().map(Waits::heap).sum();
        let marks: usize = self.unread.iter().map(|unread| unread.marks.capacity()).sum();
        let resent: usize = self.resent.iter().map(Vec::capacity).sum();
        let credits: usize = self.credit.iter().map(Credit::heap).sum();
        let waits = waits
            + self.numbered.heap()
            + self.ripe.heap()
            + credits
            + marks * size_of::<Mark>()
            + resent * size_of::<Resent>();
        size_of::<Self>() + self.asked.capacity() * size_of::<Ask>() + account + waits + self.covered.heap()
    }
}

/// The complete requests that the other end had sent before its protocol was known, if there are several.
pub(super) fn asked_at_once(marks: &[Mark]) -> Vec<Mark> {
    let asked = |mark: &&Mark| mark.by_peer && mark.role == Role::Asks;
    let whole = |mark: &Mark| mark.first && mark.last && mark.end.is_some() && mark.id.is_none();
    let several = marks.iter().filter(asked).count() > 1 && marks.iter().filter(asked).all(whole);
    marks.iter().filter(asked).filter(|_| several).copied().collect()
}

/// What a message expects by its mark.
pub(super) fn expects(role: Role) -> Expects {
    match role {
        Role::Subscribes => Expects::News,
        Role::Tells => Expects::Nothing,
        Role::Asks
        | Role::Answers
        | Role::Defers
        | Role::Greets
        | Role::Neither
        | Role::Cut
        | Role::Framed
        | Role::Lost
        | Role::Unread
        | Role::Sealed
        | Role::Alert => Expects::Answer,
    }
}
