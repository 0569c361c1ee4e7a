//! Which SYNs and SYN-ACKs has a handshake had so far, and when?

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::estimate::maybe::Maybe;
use crate::words::limits::{DELAYED_ACK_MAX, QUEUED_MIN};

/// SYNs and SYN-ACKs whose time stamps are remembered, to tell which of them was answered.
const SYNS_REMEMBERED: usize = 8;
/// A packet crosses a host's interfaces, or a router, in less.
const SIGHTED_WITHIN: Duration = Duration::from_millis(2);
/// No timer of a SYN is so short, and no clock of a host that counts its packets stands still for so long behind one (RFC 6298, 2.1: 1 s;
/// RFC 7323, 5.4: a tick of 1 s at most, and of 1 to 10 ms in all hosts of today).
const COPIED_WITHIN: Duration = Duration::from_millis(200);
/// What a router further on lets pass has passed within this. Source: none written down.
const ROUTED_WITHIN: Duration = Duration::from_millis(10);
/// The longest first timer of a SYN in use (RFC 1122, 4.2.3.1; RFC 6298 has 1 s).
const GIVEN_UP_AFTER: Duration = Duration::from_millis(3_300);
/// The shortest first timer of a SYN-ACK (RFC 6298, 2.1; TCP_TIMEOUT_INIT, include/net/tcp.h).
const SYN_ACK_TIMER: Duration = Duration::from_secs(1);
/// ... and by how much it may fire earlier or later (the wheel's eighth of a second, kernel/time/timer.c).
const SYN_ACK_TIMER_PLAY: Duration = Duration::from_millis(120);
/// A SYN that comes so many times later than all those before took is none of theirs. Source: none written down.
const ANEW: i64 = 4;

/// A way so long may be a queue, or a radio that wakes, unless it is as long a second time. Source: none written down.
const ONCE_MAX: Duration = Duration::from_millis(100);
/// What is as long takes so much longer at most, a timer of acknowledgements and its tick (TCP_DELACK_MIN, include/net/tcp.h), or one part in so many. Source: none written down.
const CONFIRMED_WITHIN: Duration = Duration::from_millis(50);
const CONFIRMED_SHARE: i64 = 4;
/// One that takes so many times as long as an answer had waited for something else, ... Source: none written down.
const UNPROVEN: i64 = 2;
/// ... if it takes so much longer.
const UNPROVEN_BY: Duration = Duration::from_millis(1);
/// No answer comes back in one part in so many of the path's round trip. Source: none written down.
const SOONER: i64 = 2;

/// The handshake of one connection. Most are one SYN and one SYN-ACK.
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    pub first_syn: (Instant, u64),
    /// The last one, once there is one, and its packet.
    syn_ack: (Maybe<Instant>, u64),
    last_syn_marks: Marks,
    last_syn_ack_marks: Marks,
    rare: Option<Box<Rare>>,
    /// The only SYN-ACK echoes the only SYN.
    is_echoed: bool,
    /// The server took what the SYN carried, and the request did not wait for the handshake.
    pub is_fast: bool,
    pub done: bool,
    /// A later round trip to the server was about as long, or shorter.
    is_confirmed: bool,
    /// Copies of the client's first data that had no answer yet.
    pub copies: u8,
}

/// What a handshake has where something of it came again, or a SYN carried data.
#[derive(Clone, Debug, PartialEq)]
struct Rare {
    /// The first ones with a time stamp, and what it says.
    syns: Vec<(Instant, u32)>,
    syn_count: u32,
    last_syn: (Instant, u64),
    first_syn_ack: (Maybe<Instant>, u64),
    syn_ack_count: u32,
    /// The first ones with a time stamp, their packets, and what it says.
    syn_acks: Vec<((Instant, u64), u32)>,
    /// The SYN that the SYN-ACK echoes, where time stamps tell.
    answered: Maybe<Instant>,
    /// The first SYN-ACK behind the one that the client took.
    again: Maybe<Instant>,
    /// When the client acknowledged one of them, behind a later one.
    taken: Maybe<Instant>,
    /// The quickest acknowledgement of what the client has sent since.
    least_since: Duration,
    /// What the SYN carried, until that is answered.
    early: Option<Box<Segment>>,
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
            is_confirmed: false,
            copies: 0,
        }
    }

    /// What is kept where something comes again, while nothing has.
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
            taken: Maybe::NONE,
            least_since: Duration::MAX,
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

    /// The client sends its SYN again. Returns whether nothing has answered it: how near the server's host is, only others can tell then.
    pub(crate) fn on_syn(&mut self, syn: &Segment) -> bool {
        let rare = self.rare_mut();
        if rare.syns.len() < SYNS_REMEMBERED
            && let Some(stamps) = syn.options.timestamps
        {
            rare.syns.push((syn.at, stamps.val));
        }
        rare.syn_count = rare.syn_count.saturating_add(1);
        rare.last_syn = (syn.at, syn.packet);
        self.last_syn_marks = Marks::of(syn);
        self.is_unanswered()
    }

    pub(crate) fn on_syn_ack(&mut self, syn_ack: &Segment) {
        if self.done {
            self.rare_mut().again.set_first(syn_ack.at);
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

    /// The client acknowledges it, and echoes a stamp. That of one of several SYN-ACKs, where those behind it have others, says that this one had arrived: nothing
    /// that follows an answer is echoed behind it (RFC 7323, 4.3), and those behind it brought the client nothing.
    #[inline]
    pub(crate) fn on_taken(&mut self, at: Instant, echoed: u32) {
        if self.rare.is_some() && !self.done {
            self.discard_copies(at, echoed);
        }
    }

    #[cold]
    #[inline(never)]
    fn discard_copies(&mut self, at: Instant, echoed: u32) {
        let Some(rare) = self.rare.as_mut().filter(|rare| rare.syn_count == 1) else { return };
        let stamped = rare.syn_acks.len() == rare.syn_ack_count as usize;
        let is_last = rare.syn_acks.last().is_none_or(|(_, stamp)| *stamp == echoed);
        let taken = rare.syn_acks.iter().position(|(_, stamp)| *stamp == echoed);
        if let Some(index) = taken.filter(|_| stamped && !is_last) {
            (rare.syn_ack_count, rare.taken) = (index as u32 + 1, Maybe::of(at));
            self.syn_ack = (Maybe::of(rare.syn_acks[index].0.0), rare.syn_acks[index].0.1);
        }
    }

    /// Keeps what its SYN carried.
    pub(crate) fn keep_early(&mut self, data: Segment) {
        self.rare_mut().early.get_or_insert_with(|| Box::new(data));
    }

    /// What it carried, where that has not been asked for before.
    #[inline]
    pub(crate) fn take_early(&mut self) -> Option<Box<Segment>> {
        self.rare.as_mut()?.early.take()
    }

    pub(crate) fn syn_count(&self) -> u32 {
        self.rare.as_ref().map_or(1, |rare| rare.syn_count)
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

    /// The last one that the client waited for: whoever never takes any does not wait for its copies.
    #[inline]
    pub(crate) fn awaited_syn_ack(&self) -> Option<(Instant, u64)> {
        match &self.rare {
            Some(rare) if !self.done => rare.first_syn_ack.0.get().map(|at| (at, rare.first_syn_ack.1)),
            _ => self.last_syn_ack(),
        }
    }

    /// The same, where there was one SYN and one SYN-ACK, and data waited for these.
    #[inline]
    pub(crate) fn only_syn_ack(&self) -> Option<(Instant, u64)> {
        self.last_syn_ack().filter(|_| self.rare.is_none() && !self.is_fast)
    }

    /// The SYN that the SYN-ACK echoes, where time stamps tell.
    pub(crate) fn answered(&self) -> Option<Instant> {
        match &self.rare {
            Some(rare) => rare.answered.get(),
            None => self.is_echoed.then_some(self.first_syn.0),
        }
    }

    /// When the SYN-ACK passed that has this time stamp.
    pub(crate) fn answered_by(&self, echoed: u32) -> Option<Instant> {
        match &self.rare {
            Some(_) if self.is_taken_behind_a_timer() => None,
            Some(rare) => rare.syn_acks.iter().find(|(_, val)| *val == echoed).map(|((at, _), _)| *at),
            None => self.syn_ack.0.get().filter(|_| self.last_syn_ack_marks.stamp() == Some(echoed)),
        }
    }

    /// Whether a SYN-ACK came again behind the one that the client took.
    #[inline]
    pub(crate) fn answered_again(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.again.is_some())
    }

    /// How long behind the SYN-ACK its acknowledgement passed, where a copy lies between the two.
    pub(crate) fn taken_after(&self) -> Option<Duration> {
        let (at, _) = self.last_syn_ack()?;
        self.rare.as_ref()?.taken.get().map(|taken| taken - at)
    }

    /// Whether a copy lies between them that a timer sent: what acknowledges the SYN-ACK may have answered that again (RFC 9293, 3.10.7.4), and times no way.
    pub(crate) fn is_taken_behind_a_timer(&self) -> bool {
        let timer = SYN_ACK_TIMER - SYN_ACK_TIMER_PLAY;
        let copied =
            |(at, _): (Instant, u64)| self.rare.as_ref().is_some_and(|rare| rare.is_taken_behind(at + timer));
        self.last_syn_ack().is_some_and(copied)
    }

    /// Which of the copies behind the SYN-ACK that the client took came so long `after` that.
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

    /// Bytes that it takes besides its own.
    #[inline]
    pub(crate) fn heap(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.memory())
    }

    /// Whether of several SYNs the first one was answered, as the stamp says that the only SYN-ACK echoes.
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

    /// Whether of several SYNs the last one alone was answered. Beside the server an answer to an earlier one would have passed before,
    /// whatever time stamps tell.
    pub(crate) fn is_last_answered(&self) -> bool {
        let last = || self.answered().is_none_or(|at| at == self.last_syn().0);
        self.syn_count() > 1 && self.syn_ack_count() == 1 && last()
    }

    /// Whether a SYN or SYN-ACK has passed so shortly before that this one is no other: no timer is so short. One whose identification and
    /// time stamp are the last one's is that one on its way through a bridge or a tunnel, and so is one that is a few routers away from the
    /// first; a server that answers a repeated SYN while its own timer runs out sends two SYN-ACKs that are both its own.
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

    /// How long it took, where nothing of it was sent again.
    #[inline]
    pub(crate) fn opened(&self) -> Option<Duration> {
        let once = self.syn_count() == 1 && self.syn_ack_count() == 1;
        self.first_syn_ack().filter(|_| once).map(|at| at - self.first_syn.0)
    }

    /// Whether it took so long that it may have stood, or an answer has come in less than half of what it took, and of `acked_bare` acknowledgements without data none but the SYN-ACK: how far away the
    /// server is then, `near` at most, is known from answers alone, which its program may have made. Whatever forwards packets takes its time for the first one.
    pub(crate) fn is_unproven(&self, acked_bare: u32, near: Duration) -> bool {
        let much_nearer = |took: Duration| took >= near.times(UNPROVEN) && took - near >= UNPROVEN_BY;
        let unproven = |took: Duration| {
            let once = acked_bare <= 1;
            let unlike = once || !self.is_confirmed;
            took >= ONCE_MAX && unlike || once && much_nearer(took)
        };
        self.opened().is_some_and(unproven)
    }

    /// Something of the client's was acknowledged after `rtt`, and the way to the server and back is `known` to be that long since. What takes much
    /// longer than that and a timer of acknowledgements says nothing of how long it is, nor does a box's word that came much sooner.
    #[inline]
    pub(crate) fn on_round_trip(&mut self, rtt: Duration, known: Duration) {
        let asked = self.opened().is_some_and(|took| took >= ONCE_MAX);
        let alike = (rtt - known).max(known - rtt) <= CONFIRMED_WITHIN.max(known.divided_by(CONFIRMED_SHARE));
        self.is_confirmed |= asked && alike;
    }

    /// Something that the client has sent once since was acknowledged after `rtt`.
    #[inline]
    pub(crate) fn on_sample(&mut self, rtt: Duration) {
        if let Some(rare) = self.rare.as_mut().filter(|_| self.done) {
            rare.least_since = rare.least_since.min(rtt);
        }
    }

    /// How long the second of two SYNs was behind the first, where the only SYN-ACK came much sooner behind it than other handshakes between the hosts
    /// have `shown` their way to be, or than anything since: then it answers the first one. What comes back later than hosts hold acknowledgements
    /// back waited for no program.
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

    /// How long it took at least, whatever was sent again.
    #[inline]
    pub(crate) fn opened_at_least(&self) -> Option<Duration> {
        self.first_syn_ack().map(|at| at - self.last_syn().0).filter(|took| *took >= Duration::ZERO)
    }

    /// The packet that ended it, or the last one of a client that nobody answered.
    pub(crate) fn last(&self) -> Option<u64> {
        let syn = (self.syn_count() > 1).then_some(self.last_syn().1);
        self.last_syn_ack().map(|(_, packet)| packet).or(syn)
    }

    /// Whether the client had stopped asking when the answer came: it did not repeat its SYN (1 s by RFC 6298, 3 s before) and never
    /// took the answer. Nor does one that asks once wait for what comes behind its timer.
    pub(crate) fn is_given_up(&self) -> bool {
        let answered = self.last_syn_ack().filter(|_| !self.done);
        let once = self.syn_count() == 1;
        answered.is_some_and(|(at, _)| {
            let late = at - self.last_syn().0;
            once && late >= SYN_ACK_TIMER || late >= GIVEN_UP_AFTER
        })
    }

    /// Whether a SYN at `at` is no copy of those before: no timer of theirs, which doubles at most, runs for so long. Their program has
    /// begun anew, and nobody waited meanwhile.
    pub(crate) fn is_over(&self, at: Instant) -> bool {
        let asked = self.last_syn().0 - self.first_syn.0;
        self.syn_count() >= 3 && self.is_unanswered() && at - self.last_syn().0 > asked.times(ANEW)
    }

    /// Whether the client sent its SYN and saw nothing of it.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.last_syn_ack().is_none() && !self.done
    }

    /// Whether it did so again and again.
    pub(crate) fn is_repeated(&self) -> bool {
        self.syn_count() > 1
    }
}

impl Rare {
    fn is_taken_behind(&self, at: Instant) -> bool {
        self.taken.is_some() && self.syn_acks.last().is_some_and(|((copy, _), _)| *copy >= at)
    }

    fn on_syn_ack(&mut self, syn_ack: &Segment) {
        if self.first_syn_ack.0.is_none() {
            self.first_syn_ack = (Maybe::of(syn_ack.at), syn_ack.packet);
        }
        if let Some(stamps) = syn_ack.options.timestamps.filter(|_| self.syn_acks.len() < SYNS_REMEMBERED) {
            self.syn_acks.push(((syn_ack.at, syn_ack.packet), stamps.val));
        }
        self.syn_ack_count = self.syn_ack_count.saturating_add(1);
        if let Some(stamps) = syn_ack.options.timestamps
            && self.answered.is_none()
        {
            self.answered = self.syns.iter().find(|(_, val)| *val == stamps.ecr).map(|(at, _)| *at).into();
        }
    }

    fn memory(&self) -> usize {
        let early = self.early.as_ref().map_or(0, |_| size_of::<Segment>());
        let stamps = self.syns.capacity() * size_of::<(Instant, u32)>()
            + self.syn_acks.capacity() * size_of::<((Instant, u64), u32)>();
        size_of::<Self>() + stamps + early
    }
}

/// What tells one SYN of a host's from the next one: its identification, where that is not 0, and its time stamp, where it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Marks {
    stamp: u32,
    ip_id: u16,
    has_stamp: bool,
}

impl Marks {
    fn of(syn: &Segment) -> Self {
        let stamps = syn.options.timestamps;
        Self {
            stamp: stamps.map_or(0, |stamps| stamps.val),
            ip_id: syn.ip_id.unwrap_or(0),
            has_stamp: stamps.is_some(),
        }
    }

    fn stamp(self) -> Option<u32> {
        self.has_stamp.then_some(self.stamp)
    }

    /// Whether `syn` is the SYN that these are of, which passed `at`: no clock stands still for so long, and no counter.
    fn are_of(self, syn: &Segment, at: Instant) -> bool {
        let told = self != Self::default() && self == Self::of(syn);
        syn.at - at < if told { COPIED_WITHIN } else { SIGHTED_WITHIN }
    }
}
