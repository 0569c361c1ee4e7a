//! What is known of a handshake in which something was retransmitted, or that carries data?

use tcpwhy_wire::{Duration, Instant, Segment};

use crate::estimate::maybe::Maybe;

/// SYNs and SYN-ACKs whose time stamps are remembered, to tell which of them was answered.
pub(crate) const SYNS_REMEMBERED: usize = 8;

/// What the clocks of time stamps usually take for a tick (kernel/Kconfig.hz; 1 ms on Linux since 4.13).
const TICKS: [Duration; 3] = [TICK_MIN, Duration::from_millis(4), Duration::from_millis(10)];
/// None ticks faster (RFC 7323, 5.4).
pub(crate) const TICK_MIN: Duration = Duration::from_millis(1);
/// Fewer of them agree with any time. Source: none written down.
const TICKS_MIN: i64 = 8;
/// They agree within one, or within one part in this many of the time that passed. Source: none written down.
const TICKS_SHARE: i64 = 32;

/// Whether so many ticks of a usual clock took the time that `passed`.
pub(crate) fn agree(passed: Duration, ticks: i64) -> bool {
    let off = |tick: Duration| (passed - tick.times(ticks)).max(tick.times(ticks) - passed);
    let fits = |tick: Duration| off(tick) <= tick.max(passed.divided_by(TICKS_SHARE));
    ticks >= TICKS_MIN && TICKS.into_iter().any(fits)
}

/// State of a handshake with a retransmission, or with data in the SYN.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rare {
    /// The first SYNs with a time stamp: when each passed, and its TSval.
    pub syns: Vec<(Instant, u32)>,
    pub syn_count: u32,
    pub last_syn: (Instant, u64),
    pub first_syn_ack: (Maybe<Instant>, u64),
    pub syn_ack_count: u32,
    /// The first SYN-ACKs with a time stamp: when each passed, its packet, and its TSval.
    pub syn_acks: Vec<((Instant, u64), u32)>,
    /// The SYN that the SYN-ACK echoes, where time stamps tell.
    pub answered: Maybe<Instant>,
    /// The first SYN-ACK after the handshake was done, and the last one with its packet.
    pub again: Maybe<Instant>,
    /// The time stamp of the first one.
    pub again_stamp: Option<u32>,
    pub last_again: ((Maybe<Instant>, u64), u32),
    /// When the client acknowledged an earlier one of them after a later one had passed.
    pub taken: Maybe<Instant>,
    /// The same of the only one, which by the client's time stamps had come late.
    pub left_late: bool,
    /// The least round trip of the client's data since.
    pub least_since: Duration,
    /// The client echoes a later one of several SYN-ACKs: none of those before it had arrived.
    pub copy_taken: bool,
    /// A SYN had the marks of the one before it, with an IP ID.
    pub syn_as_it_was: bool,
    /// When the client first answered any of them.
    pub ended: Maybe<Instant>,
    /// What the SYN carried, until that is answered.
    pub early: Option<Box<Segment>>,
}

impl Rare {
    pub(crate) fn is_taken_behind(&self, at: Instant) -> bool {
        self.taken.is_some() && self.syn_acks.last().is_some_and(|((copy, _), _)| *copy >= at)
    }

    pub(crate) fn on_syn_ack(&mut self, syn_ack: &Segment) {
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

    pub(crate) fn memory(&self) -> usize {
        let early = self.early.as_ref().map_or(0, |_| size_of::<Segment>());
        let stamps = self.syns.capacity() * size_of::<(Instant, u32)>()
            + self.syn_acks.capacity() * size_of::<((Instant, u64), u32)>();
        size_of::<Self>() + stamps + early
    }
}
