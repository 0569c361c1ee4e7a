//! Do late replies of a busy host still leave shortly after the tick of its kernel?
//!
//! What a timer releases leaves on its tick or after it, by as much as ran before it. On a busy host, no two
//! replies may be on one tick to a tenth of a millisecond (`estimate/timer_hits.rs`), but all of them stay
//! within `BAND`, of which chance would leave out four of five. So it takes more of them to prove what a few
//! exact ones do: a wait counts if it differs from the last one by more than the band is wide, since a
//! program on its client's schedule stays in a band as far as its own times do.

use tcpwhy_wire::{Duration, Instant};

use super::ticks::{ALL, ANCHORED_MAX, DRIFT_PPM, FOUR_MS, LateReply, OF_PROGRAMS, TICKS, fits_one_timer};

/// How far apart a busy host releases replies that were due on a tick. Source: two recordings beside other
/// work, of up to 0.75 ms.
const BAND: Duration = Duration::from_micros(800);
/// This many make it suspect: of a program's replies, one in a hundred would by chance.
const SUSPECT: u8 = 4;
/// ... and this many prove it: of a program's, one in two thousand would.
const PROVEN: u8 = 6;

/// Replies that came when a timer would have released them, and how far apart on its tick.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct TickBand {
    anchor: Option<Instant>,
    /// The first and the last of them on each of `TICKS`, in ns from the anchor's.
    ranges: [[i64; 2]; TICKS.len()],
    /// On which ticks all of them are within `BAND`.
    ticks: u8,
    /// One of them was on no tick that programs keep.
    is_kernel_s: bool,
    waited: Duration,
    /// How much longer than the connection's timer they took: the least and the most.
    beyond: [Duration; 2],
    hits: u8,
    misses: u8,
}

impl TickBand {
    #[cold]
    #[inline(never)]
    pub(super) fn on_hit(&mut self, reply: LateReply) {
        let differs = reply.waited - std::mem::replace(&mut self.waited, reply.waited);
        let since = self.anchor.map_or(Duration::MAX, |anchor| reply.at - anchor);
        if since > ANCHORED_MAX || !since.is_positive() {
            return self.begin(reply);
        }
        let (ticks, ranges) = self.with(reply);
        if ticks == 0 {
            self.misses = self.misses.saturating_add(1);
            if self.misses > self.hits / 4 {
                *self = Self { waited: reply.waited, ..Self::default() };
                self.begin(reply);
            }
            return;
        }
        (self.ticks, self.ranges) = (ticks, ranges);
        self.is_kernel_s |= ticks & OF_PROGRAMS == 0;
        let beyond = reply.waited - reply.timer;
        self.beyond = [self.beyond[0].min(beyond), self.beyond[1].max(beyond)];
        if differs.max(-differs) > BAND {
            self.hits = self.hits.saturating_add(1);
        }
    }

    /// In which bands all of them would be with this one, and the ranges of these.
    fn with(&self, reply: LateReply) -> (u8, [[i64; 2]; TICKS.len()]) {
        let (mut ticks, mut ranges) = (self.ticks, self.ranges);
        let Some(anchor) = self.anchor else { return (0, ranges) };
        let since = (reply.at - anchor).as_nanos();
        let widest = BAND.as_nanos() + since.abs() / 1_000_000 * DRIFT_PPM;
        for (bit, tick) in TICKS.into_iter().enumerate() {
            let tick = tick.as_nanos();
            let past = (since + tick / 2).rem_euclid(tick) - tick / 2;
            let [first, last] = ranges[bit];
            let range = [first.min(past), last.max(past)];
            if range[1] - range[0] > widest {
                ticks &= !(1 << bit);
            } else {
                ranges[bit] = range;
            }
        }
        // On shorter ticks, a band is too large a part.
        (if ticks & FOUR_MS == 0 { 0 } else { ticks }, ranges)
    }

    fn begin(&mut self, reply: LateReply) {
        if self.anchor.is_none() {
            self.beyond = [reply.waited - reply.timer; 2];
        }
        (self.anchor, self.ranges, self.ticks) = (Some(reply.at), [[0; 2]; TICKS.len()], ALL);
    }

    /// A reply came at no timer's time.
    pub(super) fn on_miss(&mut self) {
        *self = Self::default();
    }

    /// Whether this reply is within the band of the others.
    pub(super) fn holds(&self, reply: LateReply) -> bool {
        let since = self.anchor.map_or(Duration::MAX, |anchor| reply.at - anchor);
        since.max(-since) <= ANCHORED_MAX && self.with(reply).0 & self.ticks != 0
    }

    /// Whether a timer of this length released them.
    #[inline(never)]
    pub(super) fn is_proven(&self, timer: Duration) -> bool {
        self.is_kernel_s && self.are(PROVEN) && fits_one_timer(self.beyond, self.ticks, timer)
    }

    /// Whether a timer may have.
    pub(super) fn is_suspect(&self) -> bool {
        self.are(SUSPECT)
    }

    fn are(&self, hits: u8) -> bool {
        self.hits >= hits && self.misses <= self.hits / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::limits::RTO_MIN;

    fn after(replies: &[(i64, i64)]) -> TickBand {
        let mut band = TickBand::default();
        for &(at_us, waited_us) in replies {
            band.on_hit(LateReply {
                at: Instant::from_nanos(at_us * 1_000),
                blur: Duration::ZERO,
                packet: 0,
                len: 100,
                waited: Duration::from_micros(waited_us),
                idle: Duration::ZERO,
                timer: RTO_MIN,
            });
        }
        band
    }

    /// Replies of uWebSockets beside other work, near their server: how far after its tick, us, and how long
    /// they took.
    #[test]
    fn replies_shortly_behind_a_tick_are_a_timer_s() {
        let behind = [0, -108, -102, 134, -109, 326, -28, -99, 136];
        let took = [207_000, 208_300, 206_200, 208_800, 209_900, 204_700, 206_000, 207_900, 206_600];
        let replies = (0..).zip(behind).zip(took).map(|((n, behind), took)| (n * 224_000 + behind, took));
        let replies: Vec<_> = replies.collect();
        assert!(after(&replies).is_proven(RTO_MIN));
        assert!(after(&replies[..6]).is_suspect() && !after(&replies[..6]).is_proven(RTO_MIN));
    }

    /// A server that takes a little over 205 ms, asked every 300 ms: within a band of 4 ms, since its client
    /// keeps a schedule.
    #[test]
    fn a_schedule_of_the_client_s_is_no_tick_of_the_server_s() {
        let scheduled = |n: i64| (n * 300_000 + n * 37 % 7 * 100, 205_000 + n * 37 % 7 * 100);
        assert!(!after(&(0..30).map(scheduled).collect::<Vec<_>>()).is_suspect());
    }

    /// A program that works every 20 ms leaves on ticks of 4 ms too.
    #[test]
    fn steps_that_programs_take_as_well_prove_no_timer() {
        let stepped = |n: i64| (n * 220_000 + n * n % 5 * 100, 203_000 + n * 1_700 % 6_100);
        assert!(!after(&(0..30).map(stepped).collect::<Vec<_>>()).is_proven(RTO_MIN));
    }
}
