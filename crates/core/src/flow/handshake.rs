//! Which SYNs and SYN-ACKs has a handshake had so far, and when?

use tcpwhy_wire::{Duration, Instant, Segment, Timestamps};

use crate::estimate::maybe::Maybe;
use crate::flow::copied_syns::{Rare, SYNS_REMEMBERED, TICK_MIN, agree};
use crate::flow::syn_marks::{Marks, SIGHTED_WITHIN};
use crate::words::limits::{DELAYED_ACK_MAX, QUEUED_MIN};

/// A SYN that passes again at another hop count within this time is the same packet. Source: none written
/// down.
const ROUTED_WITHIN: Duration = Duration::from_millis(10);
/// The longest initial SYN timeout in use (RFC 1122, 4.2.3.1; RFC 6298 has 1 s).
const GIVEN_UP_AFTER: Duration = Duration::from_millis(3_300);
/// The shortest initial SYN-ACK timeout (RFC 6298, 2.1; TCP_TIMEOUT_INIT, include/net/tcp.h).
const SYN_ACK_TIMER: Duration = Duration::from_secs(1);
/// ... and how much earlier or later it may fire (the wheel's eighth of a second, kernel/time/timer.c).
const SYN_ACK_TIMER_PLAY: Duration = Duration::from_millis(120);
/// No clock of time stamps ticks more slowly (RFC 7323, 5.4).
const TICK_MAX: Duration = Duration::from_secs(1);
/// A SYN that comes this many times later than all SYNs before it took is a new attempt. Source: none
/// written down.
const ANEW: i64 = 4;

/// A handshake this long may have met a queue or a radio waking up, unless a second round trip is as long.
/// Source: none written down.
const ONCE_MAX: Duration = Duration::from_millis(100);
/// A round trip confirms a known one if it differs by at most a delayed-ACK timer and its tick
/// (TCP_DELACK_MIN, include/net/tcp.h), or by one part in `CONFIRMED_SHARE`. Source: none written down.
const CONFIRMED_WITHIN: Duration = Duration::from_millis(50);
const CONFIRMED_SHARE: i64 = 4;
/// A handshake this many times as long as a reply had waited for something else, ... Source: none written
/// down.
const UNPROVEN: i64 = 2;
/// ... if it took longer by at least this.
const UNPROVEN_BY: Duration = Duration::from_millis(1);
/// No answer comes back sooner than one part in this many of the path's round trip. Source: none written
/// down.
const SOONER: i64 = 2;

/// The handshake of one connection. Most are one SYN and one SYN-ACK.
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    pub first_syn: (Instant, u64),
    /// When the last SYN-ACK passed, if any, and its packet number.
    syn_ack: (Maybe<Instant>, u64),
    last_syn_marks: Marks,
    last_syn_ack_marks: Marks,
    rare: Option<Box<Rare>>,
    /// The only SYN-ACK echoes the only SYN.
    is_echoed: bool,
    /// The server took the data in the SYN: the request did not wait for the handshake.
    pub is_fast: bool,
    pub done: bool,
    /// By the client's time stamps, less time passed between the SYN and the SYN-ACK than by the capture's.
    pub clock_stood: bool,
    /// A later round trip to the server was about as long as the shortest one known.
    is_confirmed: bool,
    /// Retransmissions of the client's first data that nothing has answered yet.
    pub copies: u8,
}

impl Setup {
    pub(crate) fn new(syn: &Segment) -> Self {
        Self {
            first_syn: (syn.at, syn.packet),
            syn_ack: (Maybe::NONE, 0),
            last_syn_marks: Marks::of(syn),
            last_syn_ack_marks: Marks::default(),
            rare: None,
            is_echoed: false,
            is_fast: false,
            done: false,
            clock_stood: false,
            is_confirmed: false,
            copies: 0,
        }
    }

    /// The state of a handshake in which nothing has been retransmitted so far.
    #[cold]
    fn once(&self) -> Rare {
        let syn_ack = self.last_syn_ack().zip(self.last_syn_ack_marks.stamp());
        Rare {
            syns: self.last_syn_marks.stamp().map(|stamp| (self.first_syn.0, stamp)).into_iter().collect(),
            syn_count: 1,
            last_syn: self.first_syn,
            first_syn_ack: self.syn_ack,
            syn_ack_count: u32::from(self.syn_ack.0.is_some()),
            syn_acks: syn_ack.into_iter().collect(),
            answered: self.is_echoed.then_some(self.first_syn.0).into(),
            again: Maybe::NONE,
            again_stamp: None,
            last_again: ((Maybe::NONE, 0), 0),
            taken: Maybe::NONE,
            left_late: false,
            least_since: Duration::MAX,
            copy_taken: false,
            syn_as_it_was: false,
            ended: Maybe::NONE,
            early: None,
        }
    }

    #[cold]
    fn rare_mut(&mut self) -> &mut Rare {
        if self.rare.is_none() {
            self.rare = Some(Box::new(self.once()));
        }
        let Some(rare) = &mut self.rare else { unreachable!("it was made") };
        rare
    }

    /// The client retransmits its SYN. Returns whether nothing has answered it: only other connections can
    /// then tell how far away the server is.
    pub(crate) fn on_syn(&mut self, syn: &Segment) -> bool {
        let marks = self.last_syn_marks;
        let rare = self.rare_mut();
        if rare.syns.len() < SYNS_REMEMBERED
            && let Some(stamps) = syn.options.timestamps
        {
            rare.syns.push((syn.at, stamps.val));
        }
        rare.syn_count = rare.syn_count.saturating_add(1);
        rare.last_syn = (syn.at, syn.packet);
        rare.syn_as_it_was |= marks == Marks::of(syn) && syn.ip_id.is_some_and(|id| id != 0);
        self.last_syn_marks = Marks::of(syn);
        self.is_unanswered()
    }

    pub(crate) fn on_syn_ack(&mut self, syn_ack: &Segment) {
        if self.done {
            let rare = self.rare_mut();
            if rare.again.is_none() {
                rare.again_stamp = syn_ack.options.timestamps.map(|stamps| stamps.val);
            }
            rare.again.set_first(syn_ack.at);
            rare.last_again = ((Maybe::of(syn_ack.at), syn_ack.packet), rare.last_again.1.saturating_add(1));
            return;
        }
        if self.rare.is_some() || self.syn_ack.0.is_some() {
            self.rare_mut().on_syn_ack(syn_ack);
        } else {
            let echoed = syn_ack.options.timestamps.map(|stamps| stamps.ecr);
            self.is_echoed = echoed.is_some() && echoed == self.last_syn_marks.stamp();
        }
        self.syn_ack = (Maybe::of(syn_ack.at), syn_ack.packet);
        self.last_syn_ack_marks = Marks::of(syn_ack);
    }

    /// The client acknowledges the SYN-ACK and echoes a time stamp. Of several SYN-ACKs with different
    /// stamps, the echoed one had arrived (RFC 7323, 4.3), and those after it repaired nothing.
    #[inline]
    pub(crate) fn on_taken(&mut self, ack: &Segment, stamps: Timestamps) {
        if !self.done && (self.rare.is_some() || ack.at - self.first_syn.0 > DELAYED_ACK_MAX) {
            self.weigh_taken(ack, stamps);
        }
    }

    #[cold]
    #[inline(never)]
    fn weigh_taken(&mut self, ack: &Segment, stamps: Timestamps) {
        let ticks = |asked: u32| i64::from(stamps.val.wrapping_sub(asked) as i32);
        let asked = self.last_syn_marks.stamp().map(ticks).filter(|ticks| *ticks >= 0);
        let (last, _) = self.last_syn();
        let took = self.syn_ack.0.get().map_or(Duration::ZERO, |answered| answered - last);
        // It sent the ACK after the SYN-ACK had passed, wherever the capture was taken.
        self.clock_stood = asked.is_some_and(|ticks| took >= TICK_MAX.times(ticks + 1));
        self.discard_copies(ack.at, stamps.ecr);
        let bare = self.rare.is_none() && ack.payload_len == 0;
        if bare && asked.is_some_and(|ticks| self.has_left_late(ack.at, ticks)) {
            let rare = self.rare_mut();
            (rare.taken, rare.left_late) = (Maybe::of(ack.at), true);
        }
    }

    /// Whether the ACK of the only SYN-ACK left much later than that had passed, as so many `ticks` of the client's clock since the SYN
    /// agree with the capture's: a host acknowledges a SYN-ACK as it comes, or by a timer.
    fn has_left_late(&self, at: Instant, ticks: i64) -> bool {
        let behind = self.syn_ack.0.get().map(|answered| (at - answered, answered - self.first_syn.0));
        let late = |(behind, took): (Duration, Duration)| behind > DELAYED_ACK_MAX.max(took);
        behind.is_some_and(late) && agree(at - self.first_syn.0, ticks)
    }

    fn discard_copies(&mut self, at: Instant, echoed: u32) {
        let Some(rare) = &mut self.rare else { return };
        let stamped = rare.syn_acks.len() == rare.syn_ack_count as usize;
        let is_last = rare.syn_acks.last().is_none_or(|(_, stamp)| *stamp == echoed);
        let taken = rare.syn_acks.iter().position(|(_, stamp)| *stamp == echoed);
        rare.copy_taken = stamped && taken.is_some_and(|index| index > 0);
        if let Some(index) = taken.filter(|_| stamped && !is_last) {
            (rare.syn_ack_count, rare.taken) = (index as u32 + 1, Maybe::of(at));
            self.syn_ack = (Maybe::of(rare.syn_acks[index].0.0), rare.syn_acks[index].0.1);
        }
    }

    /// Keeps the SYN with its data.
    pub(crate) fn keep_early(&mut self, data: Segment) {
        self.rare_mut().early.get_or_insert_with(|| Box::new(data));
    }

    /// Gives it out, once.
    #[inline]
    pub(crate) fn take_early(&mut self) -> Option<Box<Segment>> {
        self.rare.as_mut()?.early.take()
    }

    pub(crate) fn syn_count(&self) -> u32 {
        self.rare.as_ref().map_or(1, |rare| rare.syn_count)
    }

    /// Whether a SYN came again with the IP ID of the one before it.
    pub(crate) fn came_as_it_was(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.syn_as_it_was)
    }

    pub(crate) fn syn_ack_count(&self) -> u32 {
        self.rare.as_ref().map_or(u32::from(self.syn_ack.0.is_some()), |rare| rare.syn_ack_count)
    }

    pub(crate) fn last_syn(&self) -> (Instant, u64) {
        self.rare.as_ref().map_or(self.first_syn, |rare| rare.last_syn)
    }

    pub(crate) fn first_syn_ack(&self) -> Option<Instant> {
        self.rare.as_ref().map_or(self.syn_ack.0, |rare| rare.first_syn_ack.0).get()
    }

    #[inline]
    pub(crate) fn last_syn_ack(&self) -> Option<(Instant, u64)> {
        self.syn_ack.0.get().map(|at| (at, self.syn_ack.1))
    }

    /// The last SYN-ACK that the client waited for. A client that never acknowledges any does not wait for
    /// retransmissions.
    #[inline]
    pub(crate) fn awaited_syn_ack(&self) -> Option<(Instant, u64)> {
        match &self.rare {
            Some(rare) if !self.done => rare.first_syn_ack.0.get().map(|at| (at, rare.first_syn_ack.1)),
            _ => self.last_syn_ack(),
        }
    }

    /// Whether a client that never took a SYN-ACK repeated its SYN behind one, a timer later: it has not had that.
    pub(crate) fn is_asked_again(&self) -> bool {
        let timer = SYN_ACK_TIMER - SYN_ACK_TIMER_PLAY;
        !self.done && self.first_syn_ack().is_some_and(|answered| self.last_syn().0 - answered >= timer)
    }

    /// The only SYN-ACK, if there was one SYN and one SYN-ACK, and the data waited for them.
    #[inline]
    pub(crate) fn only_syn_ack(&self) -> Option<(Instant, u64)> {
        self.last_syn_ack().filter(|_| self.rare.is_none() && !self.is_fast)
    }

    /// When the SYN passed that the SYN-ACK's TSecr echoes, if time stamps tell.
    pub(crate) fn answered(&self) -> Option<Instant> {
        match &self.rare {
            Some(rare) => rare.answered.get(),
            None => self.is_echoed.then_some(self.first_syn.0),
        }
    }

    /// When the SYN-ACK with this TSval passed.
    pub(crate) fn answered_by(&self, echoed: u32) -> Option<Instant> {
        match &self.rare {
            Some(_) if self.is_taken_behind_a_timer() => None,
            Some(rare) => rare.syn_acks.iter().find(|(_, val)| *val == echoed).map(|((at, _), _)| *at),
            None => self.syn_ack.0.get().filter(|_| self.last_syn_ack_marks.stamp() == Some(echoed)),
        }
    }

    /// Whether another SYN-ACK passed after the handshake was done.
    #[inline]
    pub(crate) fn answered_again(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.again.is_some())
    }

    /// When the client's ACK of a SYN-ACK passed, if a second SYN-ACK had passed in between.
    pub(crate) fn taken(&self) -> Option<Instant> {
        self.rare.as_ref()?.taken.get()
    }

    /// The last SYN-ACK that the server's timer sent after the handshake was done, and how many there were.
    pub(crate) fn copied_when_done(&self) -> Option<((Instant, u64), u32)> {
        let (copy, copies) = self.rare.as_ref()?.last_again;
        let (at, (last, _)) = (copy.0.get()?, self.last_syn_ack()?);
        (at - last >= SYN_ACK_TIMER - SYN_ACK_TIMER_PLAY).then_some(((at, copy.1), copies))
    }

    /// Whether the ACK of the only SYN-ACK had left late.
    pub(crate) fn is_left_late(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.left_late)
    }

    /// Time from the SYN-ACK to the client's ACK of it, likewise.
    pub(crate) fn taken_after(&self) -> Option<Duration> {
        self.taken().zip(self.last_syn_ack()).map(|(taken, (at, _))| taken - at)
    }

    /// Whether a timer retransmitted the SYN-ACK in between: the ACK may answer the retransmission (RFC
    /// 9293, 3.10.7.4) and gives no round trip.
    pub(crate) fn is_taken_behind_a_timer(&self) -> bool {
        let timer = SYN_ACK_TIMER - SYN_ACK_TIMER_PLAY;
        let copied =
            |(at, _): (Instant, u64)| self.rare.as_ref().is_some_and(|rare| rare.is_taken_behind(at + timer));
        self.last_syn_ack().is_some_and(copied)
    }

    /// Which retransmission of the SYN-ACK that the client took passed this long `after` it.
    pub(crate) fn copy_behind(&self, after: Duration) -> Option<u32> {
        let ((at, _), rare) = self.last_syn_ack().zip(self.rare.as_ref())?;
        let behind =
            rare.syn_acks.iter().map(|((copy, _), _)| *copy - at).filter(|behind| behind.is_positive());
        let near = |copy: Duration| (copy - after).max(after - copy) <= SYN_ACK_TIMER_PLAY;
        behind.zip(1..).find(|(copy, _)| near(*copy)).map(|(_, number)| number)
    }

    /// For how long the only SYN-ACK stood on its way at least, as the next one came sooner behind it than a server's timer can have sent that.
    pub(crate) fn stood_at_least(&self) -> Option<Duration> {
        let again = self.rare.as_ref()?.again.get()?;
        self.opened()?;
        let (at, _) = self.last_syn_ack()?;
        Some(SYN_ACK_TIMER - (again - at)).filter(|stood| *stood >= SYN_ACK_TIMER_PLAY)
    }

    /// By when it should have passed at the latest, as its server's clock ticked between the two, at most once in a millisecond (RFC 7323, 5.4).
    pub(crate) fn due_by(&self) -> Option<Instant> {
        let rare = self.rare.as_ref()?;
        let (again, taken) = (rare.again_stamp?, self.last_syn_ack_marks.stamp()?);
        rare.again.get().map(|at| at - TICK_MIN.times(i64::from(again.wrapping_sub(taken) as i32)))
    }

    /// The client's first packet after the SYN-ACK.
    #[inline]
    pub(crate) fn end(&mut self, at: Instant) {
        if let Some(rare) = self.rare.as_mut().filter(|_| !self.done) {
            rare.ended = Maybe::of(at);
        }
        self.done = true;
    }

    /// How long after the last of several SYN-ACKs that was.
    pub(crate) fn ended_after(&self) -> Option<Duration> {
        let ended = self.rare.as_ref()?.ended.get()?;
        self.last_syn_ack().map(|(at, _)| ended - at)
    }

    /// Whether the client is known to have waited for a retransmission of the SYN-ACK. Otherwise the first one
    /// may have arrived, and the ACK of it was lost, delayed, or dropped by the server's host.
    pub(crate) fn is_copy_taken(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.copy_taken)
    }

    /// Heap memory in bytes.
    #[inline]
    pub(crate) fn heap(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.memory())
    }

    /// Whether the first of several SYNs was answered, by the TSval that the only SYN-ACK echoes.
    pub(crate) fn is_first_answered(&self) -> bool {
        let Some(rare) = &self.rare else { return false };
        let mut vals = rare.syns.iter().map(|(_, val)| *val);
        let first = vals.next();
        let differ = vals.all(|val| Some(val) != first);
        rare.syn_count > 1
            && rare.syn_ack_count == 1
            && differ
            && rare.answered.get().is_some_and(|at| at == self.first_syn.0)
    }

    /// Whether only the last of several SYNs was answered. Next to the server, an answer to an earlier SYN
    /// would have passed before the last one, whatever time stamps tell.
    pub(crate) fn is_last_answered(&self) -> bool {
        let last = || self.answered().is_none_or(|at| at == self.last_syn().0);
        self.syn_count() > 1 && self.syn_ack_count() == 1 && last()
    }

    /// Whether this SYN or SYN-ACK is the last one, captured again: no timer is so short. With the same IP
    /// ID and TSval it crossed a bridge or a tunnel, at another hop count a router. A server that answers a
    /// retransmitted SYN as its own timer expires does send two SYN-ACKs.
    pub(crate) fn has_just_seen(&self, syn: &Segment, hops_away: bool) -> bool {
        if !syn.flags.ack() {
            let last = self.last_syn().0;
            return self.last_syn_marks.are_of(syn, last) || hops_away && syn.at - last < ROUTED_WITHIN;
        }
        let Some((at, _)) = self.last_syn_ack() else { return false };
        let asked_again = self.last_syn().0 > at;
        if hops_away && syn.at - at < ROUTED_WITHIN && !asked_again {
            return true;
        }
        syn.at - at < SIGHTED_WITHIN || !asked_again && self.last_syn_ack_marks.are_of(syn, at)
    }

    /// How long the handshake took, if nothing was retransmitted.
    #[inline]
    pub(crate) fn opened(&self) -> Option<Duration> {
        let once = self.syn_count() == 1 && self.syn_ack_count() == 1;
        self.first_syn_ack().filter(|_| once).map(|at| at - self.first_syn.0)
    }

    /// Whether the handshake may have taken longer than a round trip: it was long and nothing confirmed it,
    /// or a reply came in less than half the time. If the SYN-ACK is the only one of `acked_bare` ACKs
    /// without data, the distance to the server, at most `near`, is known only from replies, which its
    /// program may have made. Whatever forwards packets is slow with the first one.
    pub(crate) fn is_unproven(&self, acked_bare: u32, near: Duration) -> bool {
        let much_nearer = |took: Duration| took >= near.times(UNPROVEN) && took - near >= UNPROVEN_BY;
        let unproven = |took: Duration| {
            let once = acked_bare <= 1;
            let unlike = once || !self.is_confirmed;
            took >= ONCE_MAX && unlike || once && much_nearer(took)
        };
        self.opened().is_some_and(unproven)
    }

    /// Data of the client's was acknowledged after `rtt`; `known` is the shortest round trip to the server
    /// since then. A round trip longer than that and a delayed-ACK timer confirms nothing, nor does a
    /// middlebox's ACK that comes much sooner.
    #[inline]
    pub(crate) fn on_round_trip(&mut self, rtt: Duration, known: Duration) {
        let asked = self.opened().is_some_and(|took| took >= ONCE_MAX);
        let alike = (rtt - known).max(known - rtt) <= CONFIRMED_WITHIN.max(known.divided_by(CONFIRMED_SHARE));
        self.is_confirmed |= asked && alike;
    }

    /// Data that the client sent once was acknowledged after `rtt`.
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        if let Some(rare) = self.rare.as_mut().filter(|_| self.done) {
            rare.least_since = rare.least_since.min(rtt);
        }
    }

    /// The time between two SYNs, if the only SYN-ACK answers the first one: it came much sooner after the
    /// second than other handshakes between the hosts have `shown` possible, or than any round trip since.
    /// What these exceed it by is more than any delayed-ACK timer, so no host explains it.
    #[cold]
    pub(crate) fn answers_earlier(&self, shown: Option<Duration>) -> Option<Duration> {
        let (rare, soon) = (self.rare.as_ref()?, self.opened_at_least()?);
        let once = rare.syn_count == 2 && rare.syn_ack_count == 1 && rare.answered.is_none();
        let since = rare.least_since < Duration::MAX && rare.least_since - soon > DELAYED_ACK_MAX;
        let nearer =
            |shown: Duration| shown.min(rare.least_since) >= soon.times(SOONER) && shown - soon >= QUEUED_MIN;
        let sooner = shown.map_or(since, nearer);
        (once && sooner).then_some(rare.last_syn.0 - self.first_syn.0)
    }

    /// Whether of several SYNs nobody knows which one was answered, and of `acked_bare` acknowledgements without data none but the SYN-ACK shows
    /// how far away the server is.
    pub(crate) fn is_ambiguous(&self, acked_bare: u32) -> bool {
        self.is_repeated() && acked_bare <= 1 && self.last_syn_ack().is_some()
    }

    /// The least time that the handshake took, whatever was retransmitted.
    #[inline]
    pub(crate) fn opened_at_least(&self) -> Option<Duration> {
        self.first_syn_ack().map(|at| at - self.last_syn().0).filter(|took| *took >= Duration::ZERO)
    }

    /// The packet that ended the handshake, or the last SYN if nobody answered several.
    pub(crate) fn last(&self) -> Option<u64> {
        let syn = (self.syn_count() > 1).then_some(self.last_syn().1);
        self.last_syn_ack().map(|(_, packet)| packet).or(syn)
    }

    /// Whether the client had stopped asking when the answer came: it did not repeat its SYN (1 s by RFC 6298, 3 s before) and never
    /// took the answer. Nor does a client that sent one SYN wait for an answer later than its timer.
    pub(crate) fn is_given_up(&self) -> bool {
        let answered = self.last_syn_ack().filter(|_| !self.done);
        let once = self.syn_count() == 1;
        answered.is_some_and(|(at, _)| {
            let late = at - self.last_syn().0;
            once && late >= SYN_ACK_TIMER || late >= GIVEN_UP_AFTER
        })
    }

    /// Whether a SYN at `at` begins a new attempt: no retransmission timer, which at most doubles, runs for
    /// so long. The program has started over, and nobody waited in between.
    pub(crate) fn is_over(&self, at: Instant) -> bool {
        let asked = self.last_syn().0 - self.first_syn.0;
        self.syn_count() >= 3 && self.is_unanswered() && at - self.last_syn().0 > asked.times(ANEW)
    }

    /// Whether the client's SYN has had no answer.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.last_syn_ack().is_none() && !self.done
    }

    /// Whether the client retransmitted its SYN.
    pub(crate) fn is_repeated(&self) -> bool {
        self.syn_count() > 1
    }
}
