//! Which SYNs and SYN-ACKs has a handshake had so far, and when?

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::estimate::short_deque::ShortDeque;

/// SYNs whose time stamps are remembered, to tell which of them was answered.
const SYNS_REMEMBERED: usize = 8;
/// A packet crosses a host's interfaces, or a router, in less.
const SIGHTED_WITHIN: Duration = Duration::from_millis(2);
/// No timer of a SYN is so short, and no clock of a host that counts its packets stands still for so long behind one (RFC 6298, 2.1: 1 s;
/// RFC 7323, 5.4: a tick of 1 s at most, and of 1 to 10 ms in all hosts of today).
const COPIED_WITHIN: Duration = Duration::from_millis(200);
/// The longest first timer of a SYN in use (RFC 1122, 4.2.3.1; RFC 6298 has 1 s).
const GIVEN_UP_AFTER: Duration = Duration::from_millis(3_300);
/// A SYN that comes so many times later than all those before took is none of theirs. Source: none written down.
const ANEW: i64 = 4;

/// One that takes so many times as long as an answer had waited for something else, ... Source: none written down.
const UNPROVEN: i64 = 2;
/// ... if it takes so much longer.
const UNPROVEN_BY: Duration = Duration::from_millis(1);

/// The handshake of one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setup {
    pub first_syn: (Instant, u64),
    /// The first ones with a time stamp, and what it says.
    syns: ShortDeque<(Instant, u32)>,
    pub syn_count: u32,
    pub last_syn: (Instant, u64),
    last_syn_marks: Marks,
    last_syn_ack_marks: Marks,
    pub first_syn_ack: Option<Instant>,
    pub last_syn_ack: Option<(Instant, u64)>,
    pub syn_ack_count: u32,
    /// The last two, and what their time stamps say.
    syn_ack_stamps: [Option<(Instant, u32)>; 2],
    /// The SYN that the SYN-ACK echoes, where time stamps tell.
    pub answered: Option<Instant>,
    /// What the SYN carried, until that is answered.
    pub early: Option<Box<Segment>>,
    /// The server took that, and the request did not wait for the handshake.
    pub is_fast: bool,
    pub done: bool,
    /// Copies of the client's first data that had no answer yet.
    pub copies: u8,
}

impl Setup {
    pub(crate) fn new(syn: &Segment) -> Self {
        let mut setup = Self {
            first_syn: (syn.at, syn.packet),
            syns: ShortDeque::default(),
            syn_count: 0,
            last_syn: (syn.at, syn.packet),
            last_syn_marks: Marks::default(),
            last_syn_ack_marks: Marks::default(),
            first_syn_ack: None,
            last_syn_ack: None,
            syn_ack_count: 0,
            syn_ack_stamps: [None; 2],
            answered: None,
            early: None,
            is_fast: false,
            done: false,
            copies: 0,
        };
        setup.on_syn(syn);
        setup
    }

    /// The client sends its SYN again. Returns whether nothing has answered it: how near the server's host is, only others can tell then.
    pub(crate) fn on_syn(&mut self, syn: &Segment) -> bool {
        if self.syns.len() < SYNS_REMEMBERED
            && let Some(stamps) = syn.options.timestamps
        {
            self.syns.push_back((syn.at, stamps.val));
        }
        self.last_syn_marks = Marks::of(syn);
        self.syn_count = self.syn_count.saturating_add(1);
        self.last_syn = (syn.at, syn.packet);
        self.is_unanswered()
    }

    pub(crate) fn on_syn_ack(&mut self, syn_ack: &Segment) {
        if self.done {
            return;
        }
        self.first_syn_ack.get_or_insert(syn_ack.at);
        self.last_syn_ack = Some((syn_ack.at, syn_ack.packet));
        self.last_syn_ack_marks = Marks::of(syn_ack);
        let stamp = syn_ack.options.timestamps.map(|stamps| (syn_ack.at, stamps.val));
        self.syn_ack_stamps = [self.syn_ack_stamps[1], stamp];
        self.syn_ack_count = self.syn_ack_count.saturating_add(1);
        if let Some(stamps) = syn_ack.options.timestamps
            && self.answered.is_none()
        {
            self.answered = self.syns.iter().find(|(_, val)| *val == stamps.ecr).map(|(at, _)| *at);
        }
    }

    /// When the SYN-ACK passed that has this time stamp.
    pub(crate) fn answered_by(&self, echoed: u32) -> Option<Instant> {
        self.syn_ack_stamps.iter().flatten().find(|(_, val)| *val == echoed).map(|(at, _)| *at)
    }

    /// Whether of several SYNs the first one was answered, as the stamp says that the only SYN-ACK echoes.
    pub(crate) fn is_first_answered(&self) -> bool {
        let mut vals = self.syns.iter().map(|(_, val)| *val);
        let first = vals.next();
        let differ = vals.all(|val| Some(val) != first);
        self.syn_count > 1
            && self.syn_ack_count == 1
            && differ
            && self.answered.is_some_and(|at| at == self.first_syn.0)
    }

    /// Whether of several SYNs the last one alone was answered. Beside the server an answer to an earlier one would have passed before,
    /// whatever time stamps tell.
    pub(crate) fn is_last_answered(&self) -> bool {
        let last = || self.answered.is_none_or(|at| at == self.last_syn.0);
        self.syn_count > 1 && self.syn_ack_count == 1 && last()
    }

    /// Whether a SYN or SYN-ACK has passed so shortly before that this one is no other: no timer is so short. One whose identification and
    /// time stamp are the last one's is that one on its way through a bridge or a tunnel; a server that answers a repeated SYN while its
    /// own timer runs out sends two SYN-ACKs that are both its own.
    pub(crate) fn has_just_seen(&self, syn: &Segment) -> bool {
        if !syn.flags.ack() {
            return self.last_syn_marks.are_of(syn, self.last_syn.0);
        }
        let Some((at, _)) = self.last_syn_ack else { return false };
        let asked_again = self.last_syn.0 > at;
        syn.at - at < SIGHTED_WITHIN || !asked_again && self.last_syn_ack_marks.are_of(syn, at)
    }

    /// How long it took, where nothing of it was sent again.
    #[inline]
    pub(crate) fn opened(&self) -> Option<Duration> {
        let once = self.syn_count == 1 && self.syn_ack_count == 1;
        self.first_syn_ack.filter(|_| once).map(|at| at - self.first_syn.0)
    }

    /// Whether an answer has come in less than half of what it took, and of `acked_bare` acknowledgements without data none but the SYN-ACK: how far away the
    /// server is then, `near` at most, is known from answers alone, which its program may have made. Whatever forwards packets takes its time for the first one.
    pub(crate) fn is_unproven(&self, acked_bare: u32, near: Duration) -> bool {
        acked_bare <= 1
            && self.opened().is_some_and(|took| took >= near.times(UNPROVEN) && took - near >= UNPROVEN_BY)
    }

    /// Whether of several SYNs nobody knows which one was answered, and of `acked_bare` acknowledgements without data none but the SYN-ACK shows
    /// how far away the server is.
    pub(crate) fn is_ambiguous(&self, acked_bare: u32) -> bool {
        self.is_repeated() && acked_bare <= 1 && self.last_syn_ack.is_some()
    }

    /// How long it took at least, whatever was sent again.
    #[inline]
    pub(crate) fn opened_at_least(&self) -> Option<Duration> {
        self.first_syn_ack.map(|at| at - self.last_syn.0).filter(|took| *took >= Duration::ZERO)
    }

    /// The packet that ended it, or the last one of a client that nobody answered.
    pub(crate) fn last(&self) -> Option<u64> {
        let syn = (self.syn_count > 1).then_some(self.last_syn.1);
        self.last_syn_ack.map(|(_, packet)| packet).or(syn)
    }

    /// Whether the client had stopped asking when the answer came: it did not repeat its SYN (1 s by RFC 6298, 3 s before) and never
    /// took the answer. Nor does who takes neither of two answers wait for the second.
    pub(crate) fn is_given_up(&self) -> bool {
        let answered = self.last_syn_ack.filter(|_| !self.done);
        let takes_none = self.syn_count == 1 && self.syn_ack_count > 1;
        answered.is_some_and(|(at, _)| takes_none || at - self.last_syn.0 >= GIVEN_UP_AFTER)
    }

    /// Whether a SYN at `at` is no copy of those before: no timer of theirs, which doubles at most, runs for so long. Their program has
    /// begun anew, and nobody waited meanwhile.
    pub(crate) fn is_over(&self, at: Instant) -> bool {
        let asked = self.last_syn.0 - self.first_syn.0;
        self.syn_count >= 3 && self.is_unanswered() && at - self.last_syn.0 > asked.times(ANEW)
    }

    /// Whether the client sent its SYN and saw nothing of it.
    pub(crate) fn is_unanswered(&self) -> bool {
        self.last_syn_ack.is_none() && !self.done
    }

    /// Whether it did so again and again.
    pub(crate) fn is_repeated(&self) -> bool {
        self.syn_count > 1
    }
}

/// What tells one SYN of a host's from the next one: its identification and its time stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Marks {
    ip_id: Option<u16>,
    stamp: Option<u32>,
}

impl Marks {
    fn of(syn: &Segment) -> Self {
        Self {
            ip_id: syn.ip_id.filter(|&id| id != 0),
            stamp: syn.options.timestamps.map(|stamps| stamps.val),
        }
    }

    /// Whether `syn` is the SYN that these are of, which passed `at`: no clock stands still for so long, and no counter.
    fn are_of(self, syn: &Segment, at: Instant) -> bool {
        let told = self != Self::default() && self == Self::of(syn);
        syn.at - at < if told { COPIED_WITHIN } else { SIGHTED_WITHIN }
    }
}
