//! What do the rounds of a transfer say about what holds their sender? A round lasts until a byte that was
//! sent in it is acknowledged; its flight is the most that was in flight.

use tcpwhy_wire::{Duration, Instant, Seq};

use crate::estimate::growth::Growth;
use crate::words::limits::{INITIAL_WINDOW_SEGMENTS, TIMER_TICK};

/// What the rounds so far say about the window. A round ends when a byte that was sent in it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Rounds {
    /// First byte of the round under way.
    pub(crate) started: Option<Seq>,
    /// Most bytes in flight in the round under way, and in the one before it.
    pub(crate) flight: u32,
    pub(crate) last: u32,
    /// The largest flight of all rounds that have ended.
    peak: u32,
    /// The largest flight before the last idle time, and since.
    pub(crate) before_idle: u32,
    pub(crate) largest: u32,
    /// The largest flight that fits a window after its reset, and the first one since.
    pub(crate) restarted_max: u32,
    pub(crate) since_idle: Option<u32>,
    /// A timer has repaired a loss since, and the largest flight up to such a loss before that.
    timed_out: bool,
    lost_before_idle: u32,
    /// Rounds in a row whose flight was that of `flat_from`.
    flat: u8,
    flat_from: u32,
    pub(crate) lost: bool,
    /// The largest flight up to the loss, and whether the last round since was half as large again as the
    /// one before it.
    lost_at: u32,
    regrown: bool,
    filled: Filled,
    /// The last whole round was larger than any before it: the window is still opening from its initial size.
    pub(crate) growing: bool,
    /// Waits in a row that ended when the flight had shrunk to so many bytes, and how many bytes that were.
    pub(crate) drained: u8,
    drained_to: u32,
    pub(crate) growth: Growth,
    /// The window may have been reset after an idle time, and may not: packets of that time are missing.
    pub(crate) may_be_reset: bool,
    /// What was lost may only have been overtaken.
    may_be_overtaken: bool,
}

/// Whether the peer's window was used up in the round under way, and in the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Filled {
    now: bool,
    last: bool,
}

/// Where and when a round began on the path beyond a host that acknowledges for the sender, and how many bytes the one
/// before it had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RoundBeyond {
    pub began: Seq,
    pub began_at: Instant,
    pub before: u32,
}

/// A window is reset after an idle time longer than the timer, in whole ticks of its kernel
/// (tcp_slow_start_after_idle_check, include/net/tcp.h); what a capture knows of that timer is not exact.
pub(crate) fn idle_min(rto: Duration) -> Duration {
    rto + rto.divided_by(16) + TIMER_TICK
}

impl Rounds {
    /// Nothing was sent for longer than the retransmission timeout: the window may be reset. Linux halves it
    /// for each timeout that has passed, down to that of a new connection (tcp_cwnd_restart,
    /// net/ipv4/tcp_output.c).
    pub(crate) fn on_idle(&mut self, silent: Duration, rto: Duration, mss: u32) {
        let before_idle = self.largest.max(self.before_idle);
        let timeouts = (silent.as_nanos() / rto.as_nanos().max(1)).clamp(0, 31);
        let restarted_max = before_idle.saturating_mul(2) >> timeouts;
        let restarted_max = restarted_max.max((INITIAL_WINDOW_SEGMENTS + 2) * mss);
        let lost_before_idle = self.lost_before_idle.max(if self.timed_out { self.lost_at } else { 0 });
        *self = Self { before_idle, restarted_max, lost_before_idle, ..Self::default() };
    }

    /// A message begins at this byte: its first bytes are a round of their own.
    pub(crate) fn on_message(&mut self, first: Seq) {
        self.started = Some(first);
        self.flight = 0;
        self.growth.interrupt();
    }

    /// [`Self::on_message`] and [`Self::on_flight`] of its first segment, before which everything was
    /// acknowledged; it `fills` the peer's window if no other one fits in.
    #[inline]
    pub(crate) fn begin_with(&mut self, first: Seq, flight: u32, fills: bool) {
        (self.started, self.flight) = (Some(first), flight);
        self.growth.interrupt();
        self.largest = self.largest.max(flight);
        self.filled.now |= fills;
    }

    /// Segments were lost: growth from here on is recovery or congestion avoidance. Or they may only have been overtaken.
    pub(crate) fn on_loss(&mut self, may_be_overtaken: bool) {
        self.may_be_overtaken = may_be_overtaken && (self.may_be_overtaken || !self.lost);
        (self.lost, self.growing, self.regrown) = (true, false, false);
        self.lost_at = self.lost_at.max(self.peak).max(self.flight);
        self.growth = Growth::default();
    }

    /// That loss was repaired by a timer.
    pub(crate) fn on_timeout(&mut self) {
        self.timed_out = true;
    }

    /// A segment that begins at `seq` brings `flight` bytes in flight, with `snd_una` acknowledged, and
    /// leaves `room` in the peer's window.
    #[expect(clippy::inline_always, reason = "each usual segment with data passes it")]
    #[inline(always)]
    pub(crate) fn on_flight(&mut self, seq: Seq, flight: u32, snd_una: Option<Seq>, room: i32, mss: u32) {
        match (self.started, snd_una) {
            (None, _) => self.started = Some(seq),
            (Some(started), Some(snd_una)) if snd_una.after(started) => self.end(seq, mss),
            _ => {}
        }
        self.flight = self.flight.max(flight);
        self.largest = self.largest.max(flight);
        self.filled.now |= room < mss as i32;
    }

    fn end(&mut self, next: Seq, mss: u32) {
        (self.flat, self.flat_from) = match self.flatness(self.flight, mss) {
            0 => (0, self.flight),
            flat => (flat, self.flat_from),
        };
        (self.lost, self.regrown) = (self.lost && !self.reopens(self.flight), self.grows(self.flight));
        self.growing =
            !self.lost && self.opens(self.flight) && self.flight >= self.largest.max(self.before_idle);
        self.last = self.flight;
        self.peak = self.peak.max(self.flight);
        self.since_idle.get_or_insert(self.flight);
        self.flight = 0;
        self.started = Some(next);
        self.filled = Filled { now: false, last: self.filled.now };
        self.growth.on_round();
    }

    /// How many rounds in a row are flat, including one of `flight` bytes. A congestion window that is used
    /// up grows by half a segment a round: one ACK for two segments (RFC 5681, 3.1), or CUBIC's 0.53 (RFC 9438,
    /// 4.3). Half of that is less than any, and the first rounds must not grow at all.
    pub(crate) fn flatness(&self, flight: u32, mss: u32) -> u8 {
        let rounds = self.flat.saturating_add(1);
        let grown = flight.saturating_sub(self.flat_from);
        let flat = self.flat_from > 0
            && u64::from(grown) * 4 < u64::from(mss) * u64::from(rounds)
            && flight >= self.flat_from - self.flat_from / 16;
        if flat { rounds } else { 0 }
    }

    /// Whether a window that has let `flight` bytes pass is still opening. Without a loss it never closes,
    /// so a round that seems smaller, as rounds do over a full link, says nothing about the next one.
    pub(crate) fn opens(&self, flight: u32) -> bool {
        self.peak == 0 || u64::from(flight) * 8 > u64::from(self.peak) * 9
    }

    /// Whether `flight` bytes, the first of a connection, are what its window has room for: ten segments
    /// (RFC 6928). Acknowledgements that seem to pass without effect were then delayed on their way.
    pub(crate) fn is_initial_window(&self, flight: u32, mss: u32) -> bool {
        self.is_first() && flight == INITIAL_WINDOW_SEGMENTS * mss
    }

    /// Whether no round of the connection has ended yet.
    pub(crate) fn is_first(&self) -> bool {
        self.peak == 0 && self.before_idle == 0
    }

    /// Whether a round of this many bytes is half as large again as the previous one: in congestion
    /// avoidance none is, CUBIC's least of all (`cnt` in bictcp_update, net/ipv4/tcp_cubic.c, Linux 6.12).
    fn grows(&self, flight: u32) -> bool {
        self.last > 0 && u64::from(flight) * 2 > u64::from(self.last) * 3
    }

    /// Whether the reduction after a loss has been undone (tcp_undo_cwnd_reduction, net/ipv4/tcp_input.c):
    /// nothing was lost, and the window opens beyond what it was then, round after round.
    pub(crate) fn reopens(&self, flight: u32) -> bool {
        self.lost && self.regrown && self.last > self.lost_at && self.grows(flight)
    }

    /// Whether less is in flight than the window let pass in an earlier round; without a loss it never
    /// closes.
    pub(crate) fn is_below_peak(&self, flight: u32, mss: u32) -> bool {
        flight.max(self.last).saturating_add(mss) < self.peak
    }

    /// Whether the loss behind which the window opens may be none.
    pub(crate) fn may_have_lost_nothing(&self) -> bool {
        self.lost && self.may_be_overtaken
    }

    /// Whether a window that has let `flight` bytes pass opens no more quickly than by a segment a round, after a timeout: half of
    /// what was in flight then, or two segments, are where slow start ends (RFC 5681, 3.1), and an idle time keeps that.
    pub(crate) fn is_past_threshold(&self, flight: u32, mss: u32) -> bool {
        self.lost_before_idle > 0 && flight >= (self.lost_before_idle / 2).max(2 * mss)
    }

    /// Whether a round of so many bytes had less than three quarters of an earlier one: what is measured far from the sender
    /// varies, a window that never closes does not.
    pub(crate) fn is_far_below_peak(&self, flight: u32) -> bool {
        !self.lost && u64::from(flight) * 4 < u64::from(self.peak) * 3
    }

    /// Whether flights as large as this one, or the previous one, use up the peer's window: it then bounds
    /// them, however they are spaced within a round. A window that has grown away from them since does not.
    pub(crate) fn fill(&self, flight: u32, window: u32) -> bool {
        let flight = u64::from(flight.max(self.last));
        self.filled.last && u64::from(window) * 2 <= flight * 3
    }

    /// Bytes in flight in the round that ends with this many.
    pub(crate) fn flight_with(&self, flight: u32) -> u32 {
        self.flight.max(flight)
    }

    /// A wait ended when ACKs, after which the sender had sent nothing, had left `left` bytes in flight.
    pub(crate) fn on_drained(&mut self, left: u32, mss: u32) {
        let same = self.drained > 0 && left.abs_diff(self.drained_to) <= (left / 4).max(2 * mss);
        self.drained = if same { self.drained.saturating_add(1) } else { 1 };
        self.drained_to = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Overtaken segments seemed lost in the second round; the rounds after that grow as in slow start.
    /// After a real loss they do not, though an open hole makes the flight seem larger by what is sent after
    /// it.
    #[test]
    fn a_window_that_opens_on_has_lost_nothing() {
        let after = |flights: &[u32]| {
            let mut rounds = Rounds { flight: 28_960, ..Rounds::default() };
            rounds.on_loss(false);
            for &flight in flights {
                rounds.flight = flight;
                rounds.end(Seq(0), 1460);
            }
            rounds.lost
        };
        assert!(!after(&[28_960, 53_576, 88_328, 139_160]));
        assert!(after(&[28_960, 46_336, 20_272, 21_720, 23_168, 24_616, 27_512]));
        assert!(
            after(&[28_960, 1_448, 2_896, 5_792, 11_584, 20_272, 21_720]),
            "a start up to half of what was lost"
        );
    }

    /// A window in avoidance grows by a segment every other round; a send buffer does not.
    #[test]
    fn what_grows_by_half_a_segment_a_round_is_not_flat() {
        let flat = |segments: &[u32]| {
            let mut rounds = Rounds::default();
            for &flight in segments {
                rounds.flight = flight * 1448;
                rounds.end(Seq(0), 1448);
            }
            rounds.flat >= 3
        };
        assert!(flat(&[12, 12, 12, 12]));
        assert!(!flat(&[10, 10, 11, 12, 12, 13, 13, 14, 14, 15]));
        assert!(!flat(&[12, 12, 13, 13]));
    }

    /// Rounds of a transfer over a full link in congestion avoidance, as captured at the receiver: the
    /// sender's own were 463, 498, 523, 539 and 565 kB.
    #[test]
    fn a_round_that_seems_smaller_does_not_make_the_next_one_open() {
        let mut rounds = Rounds::default();
        for flight in [115_840, 231_680, 401_096, 467_704, 438_744] {
            rounds.flight = flight;
            rounds.end(Seq(0), 1460);
        }
        assert!(!rounds.opens(512_592));
        assert!(rounds.opens(550_240), "an eighth more than any before it");
    }
}
