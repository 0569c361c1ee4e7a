//! What has a connection shown of who asks and who answers?
//!
//! Whoever opens a connection mostly asks, and what the other end sends next is the answer. But a server may ask, or send what
//! nobody asked for, and the client's next message may be its answer to that, or nothing that anybody answers (heart-beats).
//! Sizes and times tell them apart, and only in some cases: a slow server behind a client that asks again at once looks
//! like a server that asks now and then and is answered at once. So the server is taken to ask only where it began.

use tcpwhy_wire::{Duration, Instant};

use super::row::Row;
use super::seldom::{Had, Pushes, Reacted, Seldom, Steady, Unanswered};
use crate::bill::account::Account;
use crate::estimate::{grid::Grid, maybe::Maybe, polls::Polls};
use crate::flow::ends::SERVER;
use crate::words::limits::WORD_MAX;

/// Whoever reacts takes a tenth of the time that the other one takes, or less.
const SHARE: i64 = 10;
/// ... or perhaps a quarter,
const DOUBTED: i64 = 4;
/// ... and of somebody who takes a person's time a hundredth.
const STEADY: i64 = 100;
/// Reactions are alike to one part in so many, as a program's are that waits by a timer before it answers.
const STEADY_SHARE: i64 = 16;
/// Shorter ones are a host's work, and as much alike whatever the program is.
const REACTION_MIN: Duration = Duration::from_millis(5);
/// No protocol's greeting is so long: whoever begins with more gives what nobody on this connection asked for.
const GREETING_MAX: u64 = 1 << 14;
/// A client that takes so long did something else than react.
const IDLE_MIN: Duration = Duration::from_millis(50);
/// A server that asks does not ask again sooner, unless it is known to.
pub(super) const PAUSE_MIN: Duration = Duration::from_millis(200);
/// A server that has not shown yet that it asks, and is silent for longer behind what may be an answer, waited for no one.
pub(super) const PAUSE_LONG: Duration = Duration::from_millis(500);
/// Turns in a row that may have been answers of one length; they were.
pub(super) const TURNS_MIN: u8 = 3;
/// Nobody takes a wait that is ten times as long for anything but a wait.
const KEPT_MIN: Duration = Duration::from_millis(100);
/// So many messages of one length without an answer need none.
const UNANSWERED_MIN: u8 = 2;
/// So many messages that nobody asked for are a habit.
const PUSHES_MIN: u32 = 3;
/// An answer that takes no longer comes at once.
const QUICK: Duration = Duration::from_millis(2);
/// So many of them are no chance.
const QUICK_MIN: u32 = 3;
/// Whoever types takes so long for the next key, and no longer; heart-beats take longer. Source: none written down.
const KEY_AFTER: Duration = Duration::from_millis(20);
const KEY_WITHIN: Duration = Duration::from_secs(2);
/// So many answers as long as their questions are a terminal's. Source: none written down.
const ECHOES_MIN: u32 = 4;

/// A message of the server's that nobody asked for: what the client says next may be its answer.
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

/// A message of the client's that nothing has answered yet, and the server's next one.
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
    /// The messages before it, of so many bytes, may have been answers, and how many there were.
    Answers(u32, u8),
}

impl Steady {
    fn is_alike(&self, reaction: Duration) -> bool {
        let off = reaction - self.reaction;
        off.max(-off) <= self.reaction.divided_by(STEADY_SHARE)
    }

    /// The client reacted after so long, and the server took so long then.
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

    /// Whether one end keeps its time, and the other one keeps none.
    fn is_shown(&self) -> bool {
        self.count >= TURNS_MIN && self.longest >= self.shortest.times(SHARE)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Roles {
    /// Anything of this may be no plain question and answer.
    alert: bool,
    parked: Option<Box<Parked>>,
    chain: Chain,
    seldom: Option<Box<Seldom>>,
    pub row: Option<Box<Row>>,
    /// How many questions were answered at once.
    quick: u32,
    /// How many questions were answered with as many bytes, at the pace of somebody who types.
    echoes: u32,
    /// The server spoke first, and more than a greeting.
    leads: bool,
    /// Bytes of the client's last question that was answered, and of its last answer.
    pub question_len: u32,
    answer_len: u32,
    /// The server went on late behind its last answer.
    spoken_late: bool,
    /// How often the server has asked, since anything spoke against it.
    server_asked: u8,
    /// The longest that an answer of the server's took, where that is long enough to count.
    pub longest_wait: Duration,
    /// When each end has closed.
    pub closed_at: [Maybe<Instant>; 2],
    /// What had come of an answer when its asker had closed, and more of it came.
    pub had: Option<Box<Had>>,
    pub goes_on: crate::estimate::goes_on::GoesOn,
}

impl Roles {
    #[inline]
    fn seldom(&self) -> &Seldom {
        self.seldom.as_deref().unwrap_or(&Seldom::NONE)
    }

    #[cold]
    fn seldom_mut(&mut self) -> &mut Seldom {
        self.seldom.get_or_insert_with(|| Box::new(Seldom::NONE))
    }

    /// Gives up what it takes besides its own.
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

    /// A question went on at `at` behind a silence. Returns whether it does so by a timer, as `least` equal distances before show.
    pub(super) fn on_asked_late(&mut self, at: Instant, least: u8) -> bool {
        let asks = &mut self.seldom_mut().asks;
        let by_timer = asks.is_due(at, least);
        asks.on_moment(at);
        by_timer
    }

    /// Whether the server's next message may be no answer.
    #[inline]
    pub(super) fn watch(&self) -> bool {
        self.alert
    }

    fn look(&mut self) {
        let seldom = self.seldom();
        let unanswered = seldom.unanswered.count >= UNANSWERED_MIN;
        let open = self.leads || self.chain != Chain::Own;
        self.alert = self.parked.is_some() || open || unanswered || seldom.grid.is_kept();
    }

    /// Keeps what the server sent by itself.
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

    /// Whether the client's message was a heart-beat, or an answer, so that the server's message is none.
    pub(super) fn is_unasked(&self, turn: &Turn) -> bool {
        self.is_beat(turn) || self.is_answer(turn)
    }

    /// Whether it may have been an answer, and may have been a question.
    pub(super) fn is_doubtful(&self, turn: &Turn) -> bool {
        let begun = self.parked.is_some() || self.chain != Chain::Own;
        let reacted = turn.reaction.is_some_and(|reaction| reaction.times(DOUBTED) <= turn.wait);
        // A word at the heels of what came late may confirm that, whatever its length.
        let confirms = self.chain == Chain::Greeted && turn.len <= WORD_MAX;
        let may_answer = reacted && (turn.len != self.question_len || confirms);
        begun && may_answer && turn.wait >= PAUSE_MIN && !self.is_answer(turn)
    }

    /// The server went on behind a silence with everything acknowledged: it may have spoken by itself, and what the client says
    /// to that may be an answer.
    pub(super) fn on_spoken_late(&mut self) {
        self.spoken_late = true;
    }

    /// A message that needs no answer gets none but by chance, which seldom lets one follow right behind it.
    fn is_beat(&self, turn: &Turn) -> bool {
        let Unanswered { len, count, every, .. } = self.seldom().unanswered;
        len == turn.len && count >= UNANSWERED_MIN && turn.wait.times(SHARE) > every
    }

    fn may_answer(&self, turn: &Turn) -> bool {
        turn.is_reaction() && turn.len != self.question_len
    }

    /// Whether the server is the one that asks: it began, the client's messages follow its own after one time, and its next ones come
    /// when they come.
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
        // Nothing is like a client's next question more than the one before it.
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

    /// The server answered the client's question of `len` bytes, which ended at `asked_at`, after `wait`, for all that is known or as a
    /// guess.
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
        let tells = self.alert || self.spoken_late || is_guess || wait >= KEPT_MIN;
        if tells || self.seldom().unanswered.len == len || self.answer_len == len {
            self.leads |= len == 0 && answer_bytes > GREETING_MAX;
            if wait >= PAUSE_MIN {
                self.on_long_answer(asked_at + wait, asked_at);
            }
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

    /// The server sent something by itself at `at`.
    pub(super) fn on_push(&mut self, at: Instant) {
        let pushes = &mut self.seldom_mut().pushes;
        pushes.count = pushes.count.saturating_add(1);
        pushes.first.get_or_insert(at);
        pushes.last = Some(at);
    }

    /// Whether the server is in the habit of that.
    pub(super) fn pushes_often(&self) -> bool {
        self.seldom().pushes.count >= PUSHES_MIN
    }

    /// Whether something that comes so long after a question may as well be the next of these.
    pub(super) fn may_be_push(&self, wait: Duration) -> bool {
        let Pushes { count, first: Some(first), last: Some(last) } = self.seldom().pushes else {
            return false;
        };
        self.pushes_often() && wait.times(SHARE * i64::from(count - 1)) >= last - first
    }

    /// Whether questions are keys that come back: behind them speaks what a person has started and waits for.
    pub(super) fn echoes_keys(&self) -> bool {
        self.echoes >= ECHOES_MIN
    }

    /// Whether most of so many questions were answered a thousand times sooner.
    pub(super) fn is_out_of_all_measure(&self, wait: Duration, questions: u64) -> bool {
        wait >= QUICK.times(1_000)
            && self.quick >= QUICK_MIN
            && u64::from(self.quick).saturating_mul(2) >= questions
    }

    /// Whether messages of so many bytes went without an answer often enough to need none.
    pub(super) fn may_need_none(&self, len: u64) -> bool {
        let unanswered = self.seldom().unanswered;
        unanswered.ever >= UNANSWERED_MIN && u64::from(unanswered.len) == len
    }

    /// Whether it is half a second and more, while so many questions were answered hundreds of times sooner.
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

    /// Whether the client, who took `idle` to react, may have answered the server with `len` bytes, which then took so long to ask
    /// again with no more than that. A person's pauses differ, and a slow server's not so much.
    pub(super) fn may_ask(&self, wait: Duration, idle: Duration, [len, next]: [u64; 2]) -> bool {
        let Reacted { count, shortest, longest } = self.seldom().reacted;
        let differ = longest.max(wait) >= shortest.min(wait).times(2);
        let words = len.max(next) <= u64::from(WORD_MAX);
        count >= TURNS_MIN && idle.times(STEADY) <= wait && (next <= len || words) && differ
    }

    /// The server took long to answer, at `at`, what was asked at `asked_at`.
    #[cold]
    fn on_long_answer(&mut self, at: Instant, asked_at: Instant) {
        let seldom = self.seldom_mut();
        seldom.own_time.on_answer(at, asked_at);
        let grid = seldom.own_time.grid;
        if seldom.own_time.is_shown() && !seldom.grid.is_kept() {
            self.on_grid(grid);
        }
    }

    /// Whether its long answers may come when it is its time, whatever was asked.
    pub(super) fn may_keep_time(&self) -> bool {
        self.seldom().own_time.may_be()
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

    /// The server sent a small message of `len` bytes by itself at `at`.
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

    /// Whether this moment is one of the server's timer.
    pub(super) fn is_tick(&self, at: Instant) -> bool {
        let grid = self.seldom().grid;
        grid.is_kept() && grid.is_last(at)
    }

    /// Whether something of this end's at `at` is the next of what it sends by a timer.
    pub(super) fn is_on_grid(&self, from: usize, at: Instant) -> bool {
        from == SERVER && self.seldom().grid.fits(at)
    }

    /// Bytes that it takes besides its own.
    pub(super) fn heap(&self) -> usize {
        let parked = self.parked.as_ref().map_or(0, |parked| size_of::<Parked>() + parked.account.heap());
        let seldom = self.seldom.as_ref().map_or(0, |_| size_of::<Seldom>());
        parked + seldom + self.row.as_ref().map_or(0, |row| row.memory())
    }
}
