//! Was the answer to a SYN delayed on the path?
//!
//! A handshake longer than the path's round trip proves little by itself. It was delayed in a queue by
//! what exceeds the round trip if the server's time stamps, other connections between the hosts, or a
//! second SYN-ACK sooner after the first than any host's timer runs show that the first one was late.
//! Often only later segments show how short the round trip is.

use tcpwhy_wire::{Duration, Instant};

use super::Connection;
use crate::bill::charge::Charge;
use crate::estimate::maybe::Maybe;
use crate::estimate::rto::RtoEstimator;
use crate::flow::ends::{CLIENT, SERVER};
use crate::flow::handshake::Setup;
use crate::rules::handshake::{self, LOST_AFTER};
use crate::rules::late_answer;
use crate::words::limits::{HELD_BACK_MIN, QUEUED_MIN, RTO_MIN};
use crate::words::report::Confidence;

/// A handshake this long may have gone by satellite, through a queue, or to a host whose radio had to
/// wake. Source: none written down.
const LONG: Duration = Duration::from_millis(100);
/// ... and segments within this time tell whether it was a queue: a sender's clock drifts by less than
/// a millisecond in it.
const TOLD_WITHIN: Duration = Duration::from_secs(10);
/// An end this many times nearer may be another host, as elsewhere (`rules/proxy.rs`). Source: none
/// written down.
const NEARER: i64 = 10;
/// Two round trips are as long as each other within one part in this many. Source: none written down.
const AS_LONG_SHARE: i64 = 32;

impl Connection {
    /// Whether the handshake took so long that it is better billed once more is known of the path, or no other round trip agrees with the
    /// least so far.
    #[inline]
    pub(super) fn waits_for_a_shorter_way(&self) -> bool {
        let took = |setup: &Setup| setup.last_syn_ack().is_some_and(|(at, _)| at - setup.first_syn.0 >= LONG);
        let waits = |setup: &Setup| !self.setup_billed && (took(setup) || self.is_way_to_show(self.next_n));
        self.setup.as_ref().is_some_and(waits) && self.is_way_to_be_told()
    }

    #[cold]
    #[inline(never)]
    fn is_way_to_be_told(&self) -> bool {
        let Some(setup) = self.setup.as_ref().filter(|setup| setup.done) else { return false };
        let Some((at, _)) = setup.last_syn_ack() else { return false };
        let once = setup.opened().is_some() || setup.is_first_answered();
        once && self.now - at < TOLD_WITHIN
    }

    /// The round trip to the server, as far as it is known.
    #[inline]
    pub(super) fn way_of(&self, setup: &Setup) -> Duration {
        let shown = handshake::round_trip(setup, self.tap_rtt(SERVER), self.reactions[SERVER][0]);
        self.path_memory.min(SERVER).map_or(shown, |known| known.min(shown))
    }

    /// The time of a handshake within one host above its round trips. No path lies between the ends: a filter, a full
    /// backlog or a busy processor kept the SYN. If no round trip is shorter, loopback itself may be slow (netem).
    #[inline]
    pub(super) fn opened_by_host(&self, setup: &Setup) -> Option<Charge> {
        if !self.is_on_one_host() {
            return None;
        }
        let own = setup.opened()? - self.way_of(setup);
        (own >= QUEUED_MIN).then(|| handshake::within_host(own))
    }

    /// How long the only SYN-ACK was delayed on the path, whose round trip is `way` as far as is known.
    #[inline]
    pub(super) fn opened_late(&self, setup: &Setup, way: Duration) -> Option<(Duration, Confidence)> {
        if self.is_on_one_host() {
            return None;
        }
        let Some(took) = setup.opened() else {
            let dated = self.left_before_any_timer(setup, way);
            return dated.or_else(|| {
                let earlier = setup.answers_earlier(self.path_memory.shown(SERVER));
                earlier.map(|stood| (stood, Confidence::Possible))
            });
        };
        if takes_longer(setup, way) { self.weigh_late_opening(setup, took, way) } else { None }
    }

    /// How long the SYN-ACK of the first of several SYNs was delayed, if its server's time stamps say that it had left before any
    /// timer, and before the second SYN can have come.
    #[cold]
    #[inline(never)]
    fn left_before_any_timer(&self, setup: &Setup, way: Duration) -> Option<(Duration, Confidence)> {
        let (at, _) = setup.last_syn_ack().filter(|_| setup.is_first_answered() && way.is_positive())?;
        let dated = self.late_by_stamps(at).map(|late| at - late);
        let due = dated.into_iter().chain(setup.due_by()).min().filter(|due| at - *due >= RTO_MIN)?;
        let (left, again) = (due - setup.first_syn.0 - way, setup.last_syn().0 - setup.first_syn.0);
        (left < again.min(LOST_AFTER)).then_some((at - setup.first_syn.0 - way, Confidence::Likely))
    }

    #[cold]
    #[inline(never)]
    fn weigh_late_opening(
        &self,
        setup: &Setup,
        took: Duration,
        way: Duration,
    ) -> Option<(Duration, Confidence)> {
        // A nearer host acknowledges for the server: only the server's replies show how far away that
        // is.
        let near = self.has_opened_sooner(took);
        let beyond = !near && self.beyond().is_some();
        let proxied = beyond || !near && self.may_be_behind();
        let behind = (took - self.answers.farthest()).at_least_zero();
        if proxied && behind >= RTO_MIN.max(took.divided_by(2)) {
            return Some((behind, Confidence::Possible));
        }
        // No path is as long as the handshake if the first of these came in half the time.
        let proxied = beyond || proxied && behind < took.divided_by(2);
        let least = handshake::least_queue;
        let above = |way: Duration| Some(took - way).filter(|above| *above >= least(way) && !proxied);
        let (at, _) = setup.last_syn_ack()?;
        let stamps = self.late_by_stamps(at).unwrap_or_default();
        let beside =
            above(way).filter(|above| self.path_memory.stood_about(SERVER, at, *above)).unwrap_or_default();
        let again = setup.stood_at_least().filter(|_| !self.is_opened_as_answered(took));
        let shown = stamps.max(beside).max(again.unwrap_or_default());
        match above(way) {
            Some(above) if shown >= above.divided_by(2) => Some((above, Confidence::Likely)),
            None if shown >= least(took) => Some((shown.min(took), Confidence::Possible)),
            // A host that forwards packets may delay the first one (ARP, a new entry of its tables).
            Some(above)
                if self.is_of_one_host(took, way)
                    && (above >= way.max(HELD_BACK_MIN) || self.has_come_sooner(took)) =>
            {
                Some((above, Confidence::Possible))
            }
            _ => self.above_siblings(took).filter(|_| !proxied).map(|above| (above, Confidence::Possible)),
        }
    }

    /// Whether a round trip of this connection itself was shorter by more than a path varies.
    fn has_come_sooner(&self, took: Duration) -> bool {
        let own = self.tap_rtt(SERVER);
        took - own >= handshake::least_queue(own)
    }

    /// Whether the host at the end of a round trip of `way` is the one that accepted the connection after it `took` so much longer: one ten times
    /// nearer may be another (`rules/proxy.rs`), unless an answer came from there too.
    fn is_of_one_host(&self, took: Duration, way: Duration) -> bool {
        took < way.times(NEARER) || self.answers.came_sooner(took) || self.has_opened_sooner(took)
    }

    /// Whether a handshake between the hosts was half as long, and so was a round trip of this connection: whoever answers SYNs, for itself or for another
    /// host, is so near.
    fn has_opened_sooner(&self, took: Duration) -> bool {
        let half = |shown: Duration| shown <= took.divided_by(2);
        half(self.tap_rtt(SERVER)) && self.path_memory.shown(SERVER).is_some_and(half)
    }

    /// Whether data was acknowledged after as long as the handshake took: then the path is so long, and a server that repeats its SYN-ACK sooner
    /// has a timer shorter than the path. No queue stands so still.
    fn is_opened_as_answered(&self, took: Duration) -> bool {
        let smoothed = self.flows[CLIENT].rto.settled().map(|smoothed| smoothed - self.tap_rtt(CLIENT));
        smoothed.is_some_and(|way| (way - took).max(took - way) <= took.divided_by(AS_LONG_SHARE))
    }

    /// By how much other handshakes between the hosts were shorter: the host that answers SYNs is
    /// equally far away in all of them, unless later round trips were as long as this one (another
    /// host behind the same address).
    fn above_siblings(&self, took: Duration) -> Option<Duration> {
        let much = |above: Duration, least: Duration| above >= least.max(RTO_MIN);
        let own = self.tap_rtt(SERVER);
        let least = self.path_memory.shown(SERVER).filter(|_| self.is_unproven() || much(took - own, own))?;
        Some(took - least).filter(|above| much(*above, least))
    }

    /// By how much the SYN-ACK, which passed `at`, was later than the fastest packet after it.
    fn late_by_stamps(&self, at: Instant) -> Option<Duration> {
        let clock = &self.flows[SERVER].clock;
        let soon = self.now - at < TOLD_WITHIN.times(2) && clock.began() == Some(at) && clock.is_rated();
        let late = clock.base().filter(|_| soon).map(|base| -base - clock.tick());
        late.filter(|late| late.is_positive() && !self.is_on_one_host())
    }

    /// Whether the SYN-ACK's delay against later packets of its host equals the excess of the handshake
    /// over the round trip they show: then two clocks agree, and one host sent both.
    #[cold]
    #[inline(never)]
    pub(super) fn was_opened_late(&self) -> bool {
        let Some((setup, near)) = self.setup.as_ref().zip(self.tap_rtt[SERVER].get()) else { return false };
        let clock = &self.flows[SERVER].clock;
        let at = setup.last_syn_ack().map(|(at, _)| at);
        let late = clock.base().filter(|_| at.is_some() && clock.began() == at).map(|base| -base);
        let agrees = |(took, late): (Duration, _)| late_answer::agree(took - near, late, clock.tick());
        setup.opened().zip(late).is_some_and(agrees)
    }

    /// A round trip without the time that its answer was queued on its way, as the clock shows that; unless the SYN-ACK may have been late as well,
    /// and the clock with it. A clock that says it was queued for nearly all of the time must mean something else.
    #[cold]
    #[inline(never)]
    pub(super) fn without_queue(&mut self, rtt: Duration, waited: Duration, from: usize) -> Duration {
        if waited > rtt.times(3).divided_by(4) {
            return rtt;
        }
        let opened = self.setup.as_ref().filter(|_| from == SERVER).and_then(Setup::opened);
        if let Some(above) = opened.map(|opened| opened - rtt).filter(|above| *above >= QUEUED_MIN)
            && self.flows[from].clock.began_late(above)
        {
            self.flows[from].queued_on_way = Maybe::NONE;
            return rtt;
        }
        rtt - waited
    }

    /// A handshake that took a SYN timer longer than others between these hosts was completed by a
    /// retransmission: the round trip is as short as theirs.
    #[cold]
    #[inline(never)]
    pub(super) fn doubt_opening(&mut self) {
        let Some(way) = self.path_memory.shown(SERVER) else { return };
        if self.opened_by_copy(way) {
            self.tap_rtt[SERVER] = Maybe::of(way);
            self.models[SERVER].forget_pauses();
        }
    }

    /// Whether the SYN-ACK that opened it came a SYN's timer late, if the round trip to the server is
    /// `way`: it was a retransmission, or answered a SYN not captured, and timed nothing (RFC 6298,
    /// 5.7).
    pub(super) fn opened_by_copy(&mut self, way: Duration) -> bool {
        let setup = self.setup.as_ref().filter(|setup| setup.opened() == self.tap_rtt[SERVER].get());
        let copied = setup.is_some_and(|setup| handshake::is_of_copy(setup, way));
        let server = &mut self.flows[SERVER];
        if copied && !server.timestamps && server.last_data.is_none() {
            server.rto = RtoEstimator::behind_a_copy(server.acked_bare == 0);
        }
        copied
    }
}

/// Whether the handshake took, or may have taken, longer than the path, whose round trip is `way` as
/// far as is known.
#[inline]
pub(super) fn takes_longer(setup: &Setup, way: Duration) -> bool {
    setup.opened().is_some_and(|took| took - way >= handshake::least_queue(way)) || setup.answered_again()
}
