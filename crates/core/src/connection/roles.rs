//! What has a connection shown of which end asks and which answers?
//!
//! The end that opens a connection mostly asks, and the other end's next message is the reply. But a server
//! may ask, or send something unrequested, and the client's next message may answer that, or be one that
//! needs no reply (heartbeats). Sizes and times tell these apart, though only sometimes: a slow server with a
//! client that asks again at once looks like a server that asks now and then and is answered at once. So the
//! server is taken to ask only if it began.

use tcpwhy_wire::{Duration, Instant};

use super::row::Row;
use super::seldom::{self, Had, Reacted, Seldom, Steady, Unanswered};
use crate::bill::account::Account;
use crate::estimate::grid::{DISTANCE_MIN, Grid};
use crate::estimate::{maybe::Maybe, polls::Polls};
use crate::flow::ends::SERVER;
use crate::words::limits::WORD_MAX;

/// An end that merely reacts takes at most one part in this many of the other end's time.
const SHARE: i64 = 10;
/// ... or perhaps in this many,
const DOUBTED: i64 = 4;
/// ... and in this many if the other end is as slow as a person.
const STEADY: i64 = 100;
/// Reactions that differ by at most one part in this many are a program's that waits on a timer.
const STEADY_SHARE: i64 = 16;
/// Shorter reactions are a host's work, and alike for any program.
const REACTION_MIN: Duration = Duration::from_millis(5);
/// A greeting is no longer than this: a longer first message was requested elsewhere.
const GREETING_MAX: u64 = 1 << 14;
/// A client that takes at least this long did more than react.
const IDLE_MIN: Duration = Duration::from_millis(50);
/// A server that asks does not ask again sooner, unless it is known to.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(200);
/// A server not yet known to ask that is silent this long after a possible answer waited for no one.
pub(super) const PAUSE_LONG: Duration = Duration::from_millis(500);
/// This many possible answers of one length in a row were answers.
pub(super) const TURNS_MIN: u8 = 3;
/// Shorter waits are not kept: a silence counts from a second on, which is ten times this.
const KEPT_MIN: Duration = Duration::from_millis(100);
/// After this many messages of one length without a reply, none is needed.
const UNANSWERED_MIN: u8 = 2;
/// A reply within this comes at once.
const QUICK: Duration = Duration::from_millis(2);
/// This many of them are no chance.
const QUICK_MIN: u32 = 3;
/// Fewer slow replies are not kept.
const SLOW_MIN: u8 = 4;
/// A typist presses the next key after at least this long, and before `KEY_WITHIN`; heartbeats take longer.
/// Source: none written down.
const KEY_AFTER: Duration = Duration::from_millis(20);
const KEY_WITHIN: Duration = Duration::from_secs(2);
/// This many replies as long as their requests are a terminal's echoes. Source: none written down.
const ECHOES_MIN: u32 = 4;

/// An unrequested message of the server's, which the client's next message may answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parked {
    pub n: u64,
    pub start: Instant,
    pub idle: Duration,
    pub bytes: u64,
    pub packets: [u64; 2],
    pub account: Account,
    /// When its last segment passed.
    pub last_at: Instant,
}

/// A client's message that nothing has answered yet, and the server's next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub len: u32,
    /// How long the client took after the server's last message, if it reacted to that.
    pub reaction: Option<Duration>,
    /// How long the server took.
    pub wait: Duration,
}

impl Turn {
    /// Whether the client reacted, and the server took its own time.
    fn is_reaction(&self) -> bool {
        self.reaction.is_some_and(|reaction| reaction.times(SHARE) <= self.wait)
    }
}

/// What led to the client's message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Chain {
    /// It began by itself, as far as is known.
    #[default]
    Own,
    /// The server spoke first, and late.
    Greeted,
    /// The messages before it, of this length and number, may have been answers.
    Answers(u32, u8),
}

impl Steady {
    fn is_alike(&self, reaction: Duration) -> bool {
        let off = reaction - self.reaction;
        off.max(-off) <= self.reaction.divided_by(STEADY_SHARE)
    }

    /// The client reacted after `reaction`, and the server then took `wait`.
    fn on_turn(&mut self, reaction: Duration, wait: Duration) {
        if reaction < REACTION_MIN || reaction.times(DOUBTED) > wait {
            return;
        }
        if !self.is_alike(reaction) {
            *self = Self { reaction, count: 1, shortest: wait, longest: wait };
            return;
        }
        self.count = self.count.saturating_add(1);
        (self.shortest, self.longest) = (self.shortest.min(wait), self.longest.max(wait));
    }

    /// Whether one end keeps a steady time, and the other does not.
    fn is_shown(&self) -> bool {
        self.count >= TURNS_MIN && self.longest >= self.shortest.times(SHARE)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Roles {
    /// Messages may not be plain requests and replies.
    alert: bool,
    parked: Option<Box<Parked>>,
    chain: Chain,
    seldom: Option<Box<Seldom>>,
    pub row: Option<Box<Row>>,
    /// How many requests were answered at once.
    quick: u32,
    /// ... and how many not so soon.
    slow: u8,
    /// How many requests were answered with as many bytes, at a typist's pace.
    echoes: u32,
    /// The server spoke first, with more than a greeting.
    leads: bool,
    /// Length of the client's last request that was answered, and of its last answer.
    pub question_len: u32,
    answer_len: u32,
    /// The server continued late after its last reply.
    spoken_late: bool,
    /// How often the server has asked since anything spoke against it.
    pub server_asked: u8,
    /// The longest wait for a reply of the server's, if long enough to count.
    pub longest_wait: Duration,
    /// When each end has closed.
    pub closed_at: [Maybe<Instant>; 2],
    /// What a requester had of a reply when it closed, and more of that came.
    pub had: Option<Box<Had>>,
    pub goes_on: crate::estimate::goes_on::GoesOn,
}

impl Roles {
    #[inline]
    pub(super) fn seldom(&self) -> &Seldom {
        self.seldom.as_deref().unwrap_or(&Seldom::NONE)
    }

    #[cold]
    pub(super) fn seldom_mut(&mut self) -> &mut Seldom {
        self.seldom.get_or_insert_with(|| Box::new(Seldom::NONE))
    }

    /// Frees its heap memory.
    pub(super) fn free(&mut self) {
        self.take_parked();
        (self.row, self.seldom) = (None, None);
    }

    /// What its long waits have shown.
    #[inline]
    pub(super) fn polls(&self) -> &Polls {
        &self.seldom().polls
    }

    pub(super) fn polls_mut(&mut self) -> &mut Polls {
        &mut self.seldom_mut().polls
    }

    /// A request continued at `at` after a silence. Returns whether a timer sent it, as at least `least`
    /// equal intervals show.
    pub(super) fn on_asked_late(&mut self, at: Instant, least: u8) -> bool {
        let asks = &mut self.seldom_mut().asks;
        let by_timer = asks.is_due(at, least);
        asks.on_moment(at);
        by_timer
    }

    /// Whether the server's next message may be no reply.
    #[inline]
    pub(super) fn watch(&self) -> bool {
        self.alert
    }

    pub(super) fn look(&mut self) {
        let seldom = self.seldom();
        let unanswered = seldom.unanswered.count >= UNANSWERED_MIN || seldom.beat_len > 0;
        let open = self.leads || self.chain != Chain::Own;
        self.alert = self.parked.is_some() || open || unanswered || seldom.grid.is_kept();
    }

    /// Keeps an unrequested message of the server's.
    pub(super) fn park(&mut self, parked: Parked) {
        self.parked = Some(Box::new(parked));
        self.look();
    }

    pub(super) fn take_parked(&mut self) -> Option<Box<Parked>> {
        let parked = self.parked.take();
        if parked.is_some() {
            self.look();
        }
        parked
    }

    /// Whether the client's message was a heartbeat or an answer, so that the server's message is no reply.
    pub(super) fn is_unasked(&self, turn: &Turn) -> bool {
        self.is_beat(turn) || self.is_answer(turn)
    }

    /// Whether the client's message may have been an answer, or a request.
    pub(super) fn is_doubtful(&self, turn: &Turn) -> bool {
        let begun = self.parked.is_some() || self.chain != Chain::Own;
        let reacted = turn.reaction.is_some_and(|reaction| reaction.times(DOUBTED) <= turn.wait);
        // A short message right after a late one may confirm that, whatever its length.
        let confirms = self.chain == Chain::Greeted && turn.len <= WORD_MAX;
        let may_answer = reacted && (turn.len != self.question_len || confirms);
        begun && may_answer && turn.wait >= PAUSE_MIN && !self.is_answer(turn)
    }

    /// The server went on after a silence with everything acknowledged: it may have spoken by itself, and the
    /// client's response may be an answer.
    pub(super) fn on_spoken_late(&mut self) {
        self.spoken_late = true;
    }

    /// A message that needs no reply is followed by one only by chance, which seldom comes right after it.
    fn is_beat(&self, turn: &Turn) -> bool {
        let Unanswered { len, count, every, .. } = self.seldom().unanswered;
        len == turn.len && count >= UNANSWERED_MIN && turn.wait.times(SHARE) > every
    }

    fn may_answer(&self, turn: &Turn) -> bool {
        turn.is_reaction() && turn.len != self.question_len
    }

    /// Whether the server is the end that asks: it began, the client's messages follow its own after a steady
    /// time, and its next ones come at any time.
    fn gives_orders(&self) -> bool {
        self.leads && self.seldom().steady.is_shown()
    }

    /// Whether the server may be the one that asks.
    pub(super) fn may_give_orders(&self) -> bool {
        self.leads || self.seldom().steady.is_shown()
    }

    fn is_answer(&self, turn: &Turn) -> bool {
        if self.gives_orders()
            && turn.reaction.is_some_and(|reaction| self.seldom().steady.is_alike(reaction))
        {
            return true;
        }
        if !self.may_answer(turn) {
            return false;
        }
        // Nothing resembles a client's next request more than the one before.
        let differs = self.question_len == 0 || turn.len.saturating_mul(2) <= self.question_len;
        let least = match (self.chain, self.server_asked) {
            (_, 0) if !differs => return false,
            (_, 2..) if turn.len == self.answer_len => Duration::ZERO,
            (Chain::Answers(len, TURNS_MIN..), _) if len == turn.len => PAUSE_MIN,
            (_, 1..) if self.parked.is_some() => PAUSE_MIN,
            (Chain::Answers(len, _), _) if len == turn.len => PAUSE_LONG,
            _ if self.parked.is_some() => PAUSE_LONG,
            _ => return false,
        };
        turn.wait >= least
    }

    /// The client's message of `len` bytes was an answer.
    pub(super) fn on_answer(&mut self, len: u32) {
        self.server_asked = self.server_asked.saturating_add(1);
        self.answer_len = len;
        self.chain_on(len);
    }

    fn chain_on(&mut self, len: u32) {
        let before = match self.chain {
            Chain::Answers(known, count) if known == len => count,
            _ => 0,
        };
        self.chain = Chain::Answers(len, before.saturating_add(1));
        self.look();
    }

    /// Nothing answered the client's message of `len` bytes, which began at `at`.
    pub(super) fn on_unanswered(&mut self, len: u32, at: Instant) {
        let known = &mut self.seldom_mut().unanswered;
        let same = known.len == len;
        known.every = known.last.filter(|_| same).map_or(Duration::ZERO, |last| at - last);
        known.count = if same { known.count.saturating_add(1) } else { 1 };
        known.ever = if same { known.ever.saturating_add(1) } else { 1 };
        (known.len, known.last) = (len, Some(at));
        self.look();
    }

    /// The server answered the client's request of `len` bytes, which ended at `asked_at`, after `wait`, by
    /// all that is known or as a guess.
    #[inline]
    pub(super) fn on_question(
        &mut self,
        len: u32,
        wait: Duration,
        is_guess: bool,
        idle: Duration,
        asked_at: Instant,
        answer_bytes: u64,
    ) {
        self.quick = self.quick.saturating_add(u32::from(wait <= QUICK));
        if u64::from(len) == answer_bytes && (KEY_AFTER..=KEY_WITHIN).contains(&idle) {
            self.echoes = self.echoes.saturating_add(1);
        }
        if wait >= DISTANCE_MIN || seldom::may_be_streams(wait, len, answer_bytes) {
            self.on_slow_answer(asked_at + wait, asked_at);
        }
        let tells = self.alert || self.spoken_late || is_guess || wait >= KEPT_MIN;
        if tells || self.seldom().unanswered.len == len || self.answer_len == len {
            self.leads |= len == 0 && answer_bytes > GREETING_MAX;
            self.on_telling_question(len, wait, is_guess, idle);
        } else {
            self.question_len = len;
        }
    }

    #[cold]
    fn on_telling_question(&mut self, len: u32, wait: Duration, is_guess: bool, idle: Duration) {
        if wait >= PAUSE_MIN {
            self.on_long_wait(wait, idle);
        }
        if wait >= KEPT_MIN {
            self.longest_wait = self.longest_wait.max(wait);
        }
        if let Some(seldom) = self.seldom.as_mut().filter(|seldom| seldom.unanswered.len == len) {
            seldom.unanswered.count = 0;
        }
        if is_guess {
            self.chain_on(len);
            return;
        }
        let greeted = std::mem::take(&mut self.spoken_late) || len == 0 && wait >= PAUSE_MIN;
        self.chain = if greeted { Chain::Greeted } else { Chain::Own };
        self.question_len = len;
        if len == self.answer_len {
            self.server_asked = 0;
        }
        self.look();
    }

    /// The server sent something unrequested at `at`.
    pub(super) fn on_push(&mut self, at: Instant) {
        self.seldom_mut().pushes.on_push(at);
    }

    /// Whether the server does that habitually.
    pub(super) fn pushes_often(&self) -> bool {
        self.seldom().pushes.are_often()
    }

    /// Whether a message this long after a request may as well be the next unrequested one.
    pub(super) fn may_be_push(&self, wait: Duration) -> bool {
        self.seldom().pushes.may_be_next(wait.times(SHARE))
    }

    /// Whether a message at `at` is due like the unrequested ones before it, which come at one interval or a
    /// few.
    pub(super) fn is_push_due(&self, at: Instant) -> bool {
        self.seldom().pushes.are_due(at)
    }

    /// Whether requests are echoed keys: output that follows is from a command that a person has started and
    /// waits for.
    pub(super) fn echoes_keys(&self) -> bool {
        self.echoes >= ECHOES_MIN
    }

    /// Whether most of so many requests were answered a thousand times sooner.
    pub(super) fn is_out_of_all_measure(&self, wait: Duration, questions: u64) -> bool {
        wait >= QUICK.times(1_000)
            && self.quick >= QUICK_MIN
            && u64::from(self.quick).saturating_mul(2) >= questions
    }

    /// Whether messages of this length went unanswered often enough to need no reply.
    pub(super) fn may_need_none(&self, len: u64) -> bool {
        let unanswered = self.seldom().unanswered;
        unanswered.ever >= UNANSWERED_MIN && u64::from(unanswered.len) == len
    }

    /// Whether the wait is half a second or more although so many requests were answered hundreds of times
    /// sooner.
    pub(super) fn is_out_of_measure(&self, wait: Duration, questions: u64) -> bool {
        wait >= PAUSE_LONG
            && self.quick > 0
            && u64::from(self.quick).saturating_mul(2) >= questions.saturating_sub(1)
    }

    fn on_long_wait(&mut self, wait: Duration, idle: Duration) {
        let Seldom { steady, reacted, .. } = self.seldom_mut();
        steady.on_turn(idle, wait);
        if idle >= IDLE_MIN {
            *reacted = Reacted::default(); // it asks by itself
            return;
        }
        if idle.times(STEADY) > wait {
            return;
        }
        let first = reacted.count == 0;
        reacted.count = reacted.count.saturating_add(1);
        reacted.shortest = if first { wait } else { reacted.shortest.min(wait) };
        reacted.longest = reacted.longest.max(wait);
    }

    /// Whether the client, which took `idle` to react, may have answered the server with `len` bytes, and the
    /// server then took `wait` to ask again with no more than that. A person's pauses differ; a slow server's
    /// differ less.
    pub(super) fn may_ask(&self, wait: Duration, idle: Duration, [len, next]: [u64; 2]) -> bool {
        let Reacted { count, shortest, longest } = self.seldom().reacted;
        let differ = longest.max(wait) >= shortest.min(wait).times(2);
        let words = len.max(next) <= u64::from(WORD_MAX);
        count >= TURNS_MIN && idle.times(STEADY) <= wait && (next <= len || words) && differ
    }

    /// The server took its time to answer, at `at`, a request of `asked_at`. Few such replies show no beat.
    #[cold]
    fn on_slow_answer(&mut self, at: Instant, asked_at: Instant) {
        self.slow = self.slow.saturating_add(1);
        let long = at - asked_at >= PAUSE_MIN;
        let tells = long || self.slow >= SLOW_MIN;
        let grid = tells.then(|| self.seldom_mut().on_slow_answer(at, asked_at, long));
        grid.flatten().into_iter().for_each(|grid| self.on_grid(grid));
    }

    /// Whether its long replies may come on its own timer, whatever was requested.
    pub(super) fn may_keep_time(&self) -> bool {
        self.seldom().own_time.may_be()
    }

    /// Whether the server has spoken a round time after its last message, although it was asked
    /// later.
    pub(super) fn beats(&self) -> bool {
        self.seldom().own_time.beats()
    }

    pub(super) fn has_parked(&self) -> bool {
        self.parked.is_some()
    }

    /// The server keeps a timer's time.
    pub(super) fn on_grid(&mut self, grid: Grid) {
        let seldom = self.seldom_mut();
        (seldom.grid, seldom.grid_len) = (grid, 0);
        self.look();
    }

    /// The server sent a small unrequested message of `len` bytes at `at`.
    pub(super) fn on_unasked(&mut self, at: Instant, len: u32) {
        let Seldom { grid, grid_len, .. } = self.seldom_mut();
        if grid.fits(at) {
            grid.on_moment(at);
        } else if *grid_len == len {
            grid.on_moment(at);
            self.look();
        } else if !grid.is_kept() {
            *grid = Grid::default();
            grid.on_moment(at);
            *grid_len = len;
        }
    }

    /// Whether this moment is a tick of the server's timer.
    pub(super) fn is_tick(&self, at: Instant) -> bool {
        let grid = self.seldom().grid;
        grid.is_kept() && grid.is_last(at)
    }

    /// Whether this end's message at `at` is the next one of its timer.
    pub(super) fn is_on_grid(&self, from: usize, at: Instant) -> bool {
        from == SERVER && self.seldom().grid.fits(at)
    }

    /// Its heap size in bytes.
    pub(super) fn heap(&self) -> usize {
        let parked = self.parked.as_ref().map_or(0, |parked| size_of::<Parked>() + parked.account.heap());
        let seldom = self.seldom.as_ref().map_or(0, |_| size_of::<Seldom>());
        parked + seldom + self.row.as_ref().map_or(0, |row| row.memory())
    }
}
