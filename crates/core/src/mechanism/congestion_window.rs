//! Was the congestion window used up, and was it growing, restarted, or starved of acknowledgements?
//!
//! The sender had more to send, neither Nagle nor the advertised window stopped it, and it went on when an
//! acknowledgement of new data arrived. The bytes of each round tell the rest: growing by half or more is slow start
//! (RFC 5681, 3.1), small again after an idle time longer than the RTO is its restart (RFC 5681, 4.1;
//! tcp_slow_start_after_idle), exactly flat without a loss is the sending socket's buffer: a congestion window that is
//! used up always grows.

use tcpwhy_wire::{Duration, Seq};

use super::growth::{Growth, Shape, is_whole_round};
use super::{HELD_BACK_MIN, Verdict, Wait, bandwidth, receive_window};
use crate::account::Charge;
use crate::cause::Cause;
use crate::exchange::SEND_BUFFER_MIN;
use crate::half::{Order, Queue, Release};
use crate::report::{Confidence, Detail, Trigger};

/// RFC 6928; Linux since 2.6.39.
const INITIAL_WINDOW_SEGMENTS: u32 = 10;
/// Rounds of the same flight that no congestion window explains.
const FLAT_ROUNDS: u8 = 3;
/// A silence shorter than this may end with an acknowledgement by chance.
pub(super) const WHOLE_ROUND_MIN: Duration = Duration::from_millis(1);

/// What the rounds so far say about the window. A round ends when a byte that was sent in it is acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rounds {
    /// First byte of the round under way.
    started: Option<Seq>,
    /// Most bytes in flight in the round under way, and in the one before it.
    flight: u32,
    last: u32,
    /// The largest flight before the last idle time.
    before_idle: u32,
    largest: u32,
    /// The largest flight that a window has room for that was reset, and the first one since.
    restarted_max: u32,
    since_idle: Option<u32>,
    /// Rounds whose flight was that of `flat_from`, in a row.
    flat: u8,
    flat_from: u32,
    lost: bool,
    filled: Filled,
    /// The last whole round was larger than any before it: the window is still opening from its initial size.
    growing: bool,
    /// Waits that ended when the flight had shrunk to so many bytes, in a row, and how many bytes that were.
    drained: u8,
    drained_to: u32,
    pub(crate) growth: Growth,
}

/// Whether the peer's window was used up in the round under way, and in the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Filled {
    now: bool,
    last: bool,
}

impl Rounds {
    /// Nothing was sent for longer than the retransmission timeout: the window may be reset. Linux halves it for each timeout
    /// that has gone by, down to what a new connection has (tcp_cwnd_restart, net/ipv4/tcp_output.c).
    pub(crate) fn on_idle(&mut self, silent: Duration, rto: Duration, mss: u32) {
        let before_idle = self.largest.max(self.before_idle);
        let timeouts = (silent.as_nanos() / rto.as_nanos().max(1)).clamp(0, 31);
        let restarted_max = before_idle.saturating_mul(2) >> timeouts;
        let restarted_max = restarted_max.max((INITIAL_WINDOW_SEGMENTS + 2) * mss);
        *self = Self { before_idle, restarted_max, ..Self::default() };
    }

    /// A message begins with this byte: its first bytes are a round of their own.
    pub(crate) fn on_message(&mut self, first: Seq) {
        self.started = Some(first);
        self.flight = 0;
        self.growth.interrupt();
    }

    /// Segments were lost: growth from here on is recovery or congestion avoidance.
    pub(crate) fn on_loss(&mut self) {
        (self.lost, self.growing) = (true, false);
        self.growth = Growth::default();
    }

    /// A segment that begins with `seq` makes it `flight` bytes in flight, `una` being acknowledged, and leaves `room` in the
    /// peer's window.
    #[inline]
    pub(crate) fn on_flight(&mut self, seq: Seq, flight: u32, una: Option<Seq>, room: i32, mss: u32) {
        match (self.started, una) {
            (None, _) => self.started = Some(seq),
            (Some(started), Some(una)) if una.after(started) => self.end(seq, mss),
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
        self.growing =
            !self.lost && self.grew(self.flight) && self.flight >= self.largest.max(self.before_idle);
        self.last = self.flight;
        self.since_idle.get_or_insert(self.flight);
        self.flight = 0;
        self.started = Some(next);
        self.filled = Filled { now: false, last: self.filled.now };
        self.growth.on_round();
    }

    /// How many rounds in a row are flat, one of `flight` bytes included. A congestion window that is used up grows by
    /// half a segment a round at least (one acknowledgement for two segments, RFC 5681, 3.1).
    fn flatness(&self, flight: u32, mss: u32) -> u8 {
        let rounds = self.flat.saturating_add(1);
        let grown = flight.saturating_sub(self.flat_from);
        let flat = self.flat_from > 0
            && u64::from(grown) * 2 < u64::from(mss) * u64::from(rounds)
            && flight >= self.flat_from - self.flat_from / 16;
        if flat { rounds } else { 0 }
    }

    fn grew(&self, flight: u32) -> bool {
        u64::from(flight) * 8 > u64::from(self.last) * 9
    }

    /// Whether flights as large as this one, or the one before it, use up the peer's window: it bounds them then, however they
    /// are spaced within a round. One that has grown away from them since does not.
    fn fill(&self, flight: u32, window: u32) -> bool {
        let flight = u64::from(flight.max(self.last));
        self.filled.last && u64::from(window) * 2 <= flight * 3
    }

    /// Bytes in flight in the round that `release` ends.
    pub(super) fn flight_with(&self, release: &Release) -> u32 {
        self.flight.max(release.flight)
    }

    /// A wait ended when acknowledgements that the sender had let pass had left `left` bytes in flight.
    pub(crate) fn on_drained(&mut self, left: u32, mss: u32) {
        let same = self.drained > 0 && left.abs_diff(self.drained_to) <= (left / 4).max(2 * mss);
        self.drained = if same { self.drained.saturating_add(1) } else { 1 };
        self.drained_to = left;
    }
}

/// What a slow host takes to answer an acknowledgement with the next segment.
pub(super) const SLOW_HOST: Duration = Duration::from_millis(4);

pub(crate) fn judge(wait: &Wait<'_>) -> Option<Verdict> {
    if wait.order != Order::New || wait.gap < super::BURST_GAP {
        return None;
    }
    let advanced = wait.half.view.advanced();
    let release = advanced.filter(|release| wait.follows(release) || follows_late(wait, release));
    let Some(release) = release else {
        let queued = match wait.last.queue {
            Queue::More => wait.half.flight() > 0,
            // A duplicate acknowledgement lets one segment more leave (limited transmit, RFC 3042).
            Queue::Unknown if after_loss_signal(wait) => true,
            // Segments in quick succession with several in flight are a queue being sent.
            Queue::Unknown if wait.half.flight() > 2 * wait.mss && wait.gap < wait.rtt().divided_by(2) => {
                true
            }
            // So are full ones and nothing else, as fast as the bottleneck or in a recovery.
            Queue::Unknown
                if wait.is_full()
                    && wait.half.is_backlogged(wait.mss)
                    && (near_rate(wait) || recovering(wait)) =>
            {
                true
            }
            // So are full ones to a beat, where nothing in flight could hold them.
            Queue::Unknown => {
                wait.is_full() && wait.half.flight() <= wait.last.len && wait.half.cadence.is_steady()
            }
            Queue::Emptied => false,
        };
        return queued.then(|| spaced(wait));
    };
    if paced(wait, &release) {
        return Some(spaced(wait));
    }
    let (cause, form, confidence) = match wait.last.queue {
        Queue::Emptied if piled_up(wait) => which(wait, &release),
        Queue::Emptied => mid_write(wait, &release)
            .or_else(|| counted_out(wait, &release))
            .or_else(|| between_pieces(wait, &release))?,
        _ => which(wait, &release),
    };
    // Where no handshake says how the windows are scaled, it may be one of those.
    let confidence = if wait.half.scale_bounds.is_in_use() { Confidence::Possible } else { confidence };
    let detail = Detail {
        flight_bytes: Some(u64::from(wait.habits.rounds.flight_with(&release))),
        window_bytes: (release.window > 0).then(|| u64::from(release.window)),
        ack_delay: (cause == Cause::DelayedAckCwnd).then(|| wait.ack_delay(&release)).flatten(),
        form,
        ..Detail::default()
    };
    let mut split = bandwidth::split(wait);
    if let Some(held) = unread(wait, &release) {
        split.take(held);
    }
    if !wait.follows(&release) && !wait.near_sender() {
        let late = Charge::new(
            Cause::Queueing,
            wait.half.side,
            wait.segment.at - release.effective,
            Confidence::Possible,
        );
        split.take(late.evidence(release.packet, wait.segment.packet));
    }
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, confidence)
        .evidence(release.packet, wait.segment.packet)
        .detail(detail);
    Some(Verdict { split: split.rest(charge), trigger: Trigger::Packet(release.packet) })
}

/// For how long one acknowledgement of a whole flight waited at a receiver whose application does not read. Several segments
/// are acknowledged at once unless that makes the window smaller (__tcp_ack_snd_check, net/ipv4/tcp_input.c): then by the timer.
fn unread(wait: &Wait<'_>, release: &Release) -> Option<Charge> {
    let acked = release.flight.saturating_sub(release.left);
    let whole = acked > 4 * wait.mss && release.left < release.flight / 4;
    let shrunk = release.window.saturating_sub(wait.half.view.window);
    let held_back = wait.ack_delay(release).filter(|&delay| delay >= HELD_BACK_MIN)?;
    if !whole || shrunk < acked / 2 || wait.half.scale_bounds.is_in_use() {
        return None;
    }
    let detail = Detail { ack_delay: Some(held_back), form: Some("slow-reader"), ..Detail::default() };
    let charge = Charge::new(Cause::ReceiverThink, wait.half.side, held_back, Confidence::Likely);
    Some(charge.evidence(release.packet, wait.segment.packet).detail(detail))
}

/// A writer that finds its send buffer full pushes what fitted (tcp_sendmsg_locked, net/ipv4/tcp.c), as if that were the end of
/// the message, and goes on when a third of it is free (sk_stream_write_space, net/core/stream.c): with the very
/// acknowledgement that makes it a third. What is acknowledged as a whole long after it arrived had not been read.
fn mid_write(wait: &Wait<'_>, release: &Release) -> Option<(Cause, Option<&'static str>, Confidence)> {
    let by_release = release.flight.saturating_sub(release.left);
    let before = wait.half.acked_since(wait.last).saturating_sub(by_release);
    let third = wait.last.flight / 3;
    let full = wait.last.flight >= SEND_BUFFER_MIN && wait.is_full() && wait.gap >= HELD_BACK_MIN;
    if !full || before >= third || before + by_release < third || !wait.follows(release) {
        return None;
    }
    let held_back = wait.ack_delay(release).is_some_and(|delay| delay >= HELD_BACK_MIN);
    if held_back && release.left < release.flight / 4 {
        return Some((Cause::ReceiverThink, Some("slow-reader"), Confidence::Possible));
    }
    Some((Cause::SendBuffer, Some("drained"), Confidence::Possible))
}

/// Whether a sender went on at once behind a piece that had emptied its queue: sendfile hands over what its pipe holds (16 pages
/// of 4 KB; splice_direct_to_actor, fs/splice.c), and the last packet of each such piece is small and pushed.
pub(super) fn writes_on(wait: &Wait<'_>) -> bool {
    wait.last.queue == Queue::Emptied
        && wait.last.len > wait.mss
        && wait.is_full()
        && wait.gap < super::BURST_GAP
}

/// One that does waits behind such a piece for the same acknowledgements as behind any other.
fn between_pieces(wait: &Wait<'_>, release: &Release) -> Option<(Cause, Option<&'static str>, Confidence)> {
    let many = wait.last.flight >= INITIAL_WINDOW_SEGMENTS * wait.mss && wait.last.len > wait.mss;
    let whole_round = wait.gap >= wait.rtt() - wait.rtt().divided_by(4) && wait.gap >= WHOLE_ROUND_MIN;
    if !(wait.habits.writes_on && many && whole_round && wait.is_full()) {
        return None;
    }
    let (cause, form, _) = which(wait, release);
    Some((cause, form, Confidence::Possible))
}

/// Small packets of a sender without Nagle leave one by one until as many are out as the window counts (TCP_INIT_CWND,
/// 10, at first); what the application writes from then on is joined and leaves with the next acknowledgement. If it goes
/// on as before instead, the application was waiting too: small packets fill a send buffer by what the kernel spends
/// on each (sk_wmem_alloc counts truesize).
fn counted_out(wait: &Wait<'_>, release: &Release) -> Option<(Cause, Option<&'static str>, Confidence)> {
    let segments = wait.last.flight_segments.max(wait.last.unheard);
    let unheard = wait.last.una.map_or(0, |una| (wait.segment.seq - una).max(0) as u32);
    // With Nagle, one small segment is in flight at most (tcp_minshall_check, net/ipv4/tcp_output.c).
    let small = wait.last.flight.max(unheard) < segments.saturating_sub(1) * wait.mss;
    let nagle_is_off = wait.habits.nagle_ignored > 0 || small;
    if segments < INITIAL_WINDOW_SEGMENTS || !nagle_is_off || !wait.follows(release) {
        return None;
    }
    if wait.segment.payload_len > wait.last.len {
        return Some(which(wait, release));
    }
    let whole_round = wait.gap >= wait.rtt() - wait.rtt().divided_by(4) && wait.gap >= WHOLE_ROUND_MIN;
    whole_round.then_some((Cause::SendBuffer, Some("small-writes"), Confidence::Possible))
}

fn which(wait: &Wait<'_>, release: &Release) -> (Cause, Option<&'static str>, Confidence) {
    let rounds = &wait.habits.rounds;
    let flight = rounds.flight_with(release);
    // In the middle of a round its flight is not complete: what the last ones did says more.
    if rounds.growing && wait.gap < wait.rtt() - wait.rtt().divided_by(4) {
        return (start(rounds, flight), None, Confidence::Likely);
    }
    if drained(wait, release) {
        let again = rounds.drained > 1;
        let confidence = if again { Confidence::Likely } else { Confidence::Possible };
        return (Cause::SendBuffer, Some("drained"), confidence);
    }
    let serialised = bandwidth::rate(wait)
        .map_or(Duration::ZERO, |rate| rate.time_for(wait.half.on_wire(release.flight, 0, wait.mss)));
    let held_back = wait.ack_delay(release).map_or(Duration::ZERO, |delay| delay - serialised);
    // On one host nothing but its reader holds back the acknowledgement of several segments that have long arrived
    // (__tcp_ack_snd_check, net/ipv4/tcp_input.c: the window would shrink).
    let several = release.flight > 2 * wait.mss && release.left < release.flight / 4;
    if wait.half.on_one_host && several && held_back >= HELD_BACK_MIN {
        return (Cause::ReceiverThink, Some("slow-reader"), Confidence::Likely);
    }
    // After a timeout all but what was sent again counts as lost.
    let few = release.flight <= 4 * wait.mss
        || (release.repaired && release.flight.saturating_sub(release.left) <= 2 * wait.mss);
    // A window of a segment or two opens with the next acknowledgements, however late they come.
    if !rounds.lost && rounds.flatness(flight, wait.mss) >= FLAT_ROUNDS {
        return flat(wait, release, Confidence::Likely);
    }
    // On a long path the window costs its round trip with a prompt acknowledgement too.
    if held_back >= HELD_BACK_MIN.max(wait.gap.divided_by(4)) && few {
        return (Cause::DelayedAckCwnd, None, Confidence::Likely);
    }
    if !rounds.lost && !rounds.grew(flight) && rounds.last > 0 {
        match rounds.flatness(flight, wait.mss) {
            0 => {}
            1 => return flat(wait, release, Confidence::Possible),
            _ => return flat(wait, release, Confidence::Likely),
        }
    }
    if !rounds.lost && rounds.growth.with(flight, wait.mss) == Shape::Uneven && is_whole_round(wait) {
        let (cause, form, confidence) = flat(wait, release, Confidence::Possible);
        return (cause, form.or(Some("uneven")), confidence);
    }
    let (cause, form) = phase(rounds, flight);
    if form == Some("avoidance") && rounds.fill(flight, wait.half.view.window) && !rounds.lost {
        return (Cause::ReceiveWindow, Some(receive_window::form(wait.half, wait)), Confidence::Likely);
    }
    // A first flight that fits no window that was reset: the sender has kept it (tcp_slow_start_after_idle).
    let kept = rounds.since_idle.unwrap_or(flight) > rounds.restarted_max;
    let confidence = match cause {
        Cause::SlowStartAfterIdle if kept => Confidence::Possible,
        _ => Confidence::Likely,
    };
    (cause, form, confidence)
}

/// Which part of its life a congestion window is in that `flight` bytes have used up.
fn phase(rounds: &Rounds, flight: u32) -> (Cause, Option<&'static str>) {
    if rounds.lost {
        return (Cause::CongestionWindow, Some("after-loss"));
    }
    if !rounds.grew(flight) && rounds.last > 0 {
        return (Cause::CongestionWindow, Some("avoidance"));
    }
    (start(rounds, flight), None)
}

/// Which start it is that makes a window grow.
fn start(rounds: &Rounds, flight: u32) -> Cause {
    // The window had grown past the largest round, by up to as much again: what was acknowledged last counted too.
    if u64::from(rounds.before_idle) * 7 > u64::from(flight) * 4 {
        return Cause::SlowStartAfterIdle;
    }
    Cause::SlowStart
}

/// Near the receiver, what the window held before a flight that was lost to its end. The flight before it cannot have been
/// so long: a window begins with ten segments and is twice the largest flight at most (RFC 6928; RFC 5681, 3.1). So what
/// was lost left with the first acknowledgements of that one, and the repair began there.
pub(super) fn before_lost(wait: &Wait<'_>) -> Option<Charge> {
    let (half, rounds) = (wait.half, &wait.habits.rounds);
    let hole = (wait.segment.seq - half.snd_nxt?).max(0) as u32;
    // Where all of it goes out again, its packets are missing by their identification, and a copy or two with them.
    let counted = u32::from(half.missed_since_data.saturating_sub(2)).saturating_mul(wait.mss);
    let (lost, confidence) = if hole >= counted || half.numbers_its_packets() {
        (hole.max(counted), Confidence::Likely)
    } else {
        (counted, Confidence::Possible)
    };
    let most = (INITIAL_WINDOW_SEGMENTS * wait.mss).max(rounds.largest.saturating_mul(2));
    let released =
        half.view.unanswered_since.filter(|_| !wait.near_sender() && wait.last.queue != Queue::Emptied)?;
    if lost == 0 || rounds.flight.saturating_add(lost).saturating_add(wait.segment.payload_len) <= most {
        return None;
    }
    let (cause, form) = phase(rounds, rounds.flight);
    let detail = Detail { flight_bytes: Some(u64::from(rounds.flight)), form, ..Detail::default() };
    let charge = Charge::new(cause, half.side, released - wait.last.at, confidence);
    Some(charge.evidence(wait.last.packet, wait.segment.packet).detail(detail))
}

/// Rounds of one flight: the advertised window's, or the send buffer's. A sender that has less room than it likes to send
/// at once waits for more of it (tcp_tso_should_defer, net/ipv4/tcp_output.c), so that a window is used up when little
/// is left of it.
fn flat(
    wait: &Wait<'_>,
    release: &Release,
    confidence: Confidence,
) -> (Cause, Option<&'static str>, Confidence) {
    let little = release.window / 8;
    if release.window > 0 && i64::from(release.room) <= i64::from(little) {
        return (Cause::ReceiveWindow, Some(receive_window::form(wait.half, wait)), confidence);
    }
    // What fills a buffer leaves in trains, as room comes; who spaces segments all over the round trip paces them.
    if wait.half.is_paced() && wait.gap.times(8) <= wait.rtt() {
        return (Cause::Pacing, None, Confidence::Possible);
    }
    // Whoever keeps a beat looks the same if that is nearly as slow as the path is long.
    let beat = wait.half.is_paced() || wait.half.cadence.is_steady();
    (Cause::SendBuffer, None, if beat { Confidence::Possible } else { confidence })
}

/// Whether writes have piled up behind small segments, each of which emptied the queue: a full segment that leaves with
/// an acknowledgement is several of them, and a congestion window of so many packets was all that held them.
fn piled_up(wait: &Wait<'_>) -> bool {
    wait.segment.payload_len >= wait.mss && wait.last.len < wait.mss / 2 && wait.last.flight_segments >= 3
}

/// Whether the sender let acknowledgements of half its flight pass before it went on. Whom a window holds sends for each
/// of them; a writer that sleeps for room in its send buffer is woken when a third of it is free (sk_stream_write_space,
/// net/core/stream.c).
fn drained(wait: &Wait<'_>, release: &Release) -> bool {
    let half = wait.half;
    let by_release = release.flight.saturating_sub(release.left);
    let passed = half.acked_since(wait.last).saturating_sub(by_release);
    // Far from the sender, the time at which it had them is known as well as the way to it.
    let blurred = if wait.near_sender() { super::BURST_GAP } else { wait.hair().times(3) };
    let went_on = release.effective.min(wait.segment.at); // what it was late by on its way is no part of it
    let since = half.view.unanswered_since.filter(|&since| went_on - since >= blurred);
    since.is_some() && !recovering(wait) && passed >= release.flight.saturating_add(passed) / 2
}

/// Far from the sender, a segment of a queue that was not empty may have been late on its way, or the acknowledgement
/// was: nothing else can have let it leave. Near a slow host it comes shortly behind, as nothing paced would.
fn follows_late(wait: &Wait<'_>, release: &Release) -> bool {
    let late = wait.segment.at - release.effective;
    let most =
        if wait.near_sender() { wait.gap.divided_by(8).min(SLOW_HOST) } else { wait.own.divided_by(2) };
    wait.last.queue != Queue::Emptied
        && release.effective > wait.last.at
        && late.is_positive()
        && late <= most
}

/// Whether the segment left as a duplicate or selective acknowledgement arrived.
fn after_loss_signal(wait: &Wait<'_>) -> bool {
    wait.half.view.loss_signal.is_some_and(|at| at > wait.last.at && wait.segment.at - at <= wait.hair())
}

/// Whether the sender keeps a beat of its own, to which acknowledgements come by chance: no queue that would give them one
/// stands in front of the bottleneck.
fn paced(wait: &Wait<'_>, release: &Release) -> bool {
    let half = wait.half;
    let waited = if wait.near_sender() { wait.ack_delay(release) } else { half.queued_on_way };
    wait.last.queue != Queue::Emptied
        && half.cadence.is_kept(wait.rtt())
        && waited.is_some_and(|waited| waited < wait.gap)
}

/// More was queued, no acknowledgement of new data released it: recovery from a loss goes on duplicate and selective
/// acknowledgements (RFC 6675), else the sender spaced its segments, or the bottleneck did.
fn spaced(wait: &Wait<'_>) -> Verdict {
    let split = bandwidth::split(wait);
    let (cause, form) = if recovering(wait) {
        (Cause::CongestionWindow, Some("recovery"))
    } else if wait.habits.rounds.fill(wait.habits.rounds.flight, wait.half.view.window)
        && !wait.habits.rounds.growing
    {
        (Cause::ReceiveWindow, Some(receive_window::form(wait.half, wait)))
    } else if wait.gap >= wait.rtt().divided_by(2) && (wait.half.cadence.is_steady() || near_rate(wait)) {
        (Cause::Pacing, None)
    } else if wait.gap >= wait.rtt().divided_by(2) {
        (Cause::Unexplained, None)
    } else if wait.habits.rounds.growing {
        // The pace follows the window: twice of it in a round trip (tcp_update_pacing_rate, net/ipv4/tcp_input.c), or what
        // BBR's startup has found so far.
        (start(&wait.habits.rounds, wait.habits.rounds.flight), Some("paced"))
    } else {
        (Cause::Pacing, None)
    };
    let charge = Charge::new(cause, wait.half.side, Duration::ZERO, Confidence::Possible)
        .evidence(wait.last.packet, wait.segment.packet)
        .detail(Detail { form, ..Detail::default() });
    Verdict { split: split.rest(charge), trigger: super::burst(wait.last, wait.segment.at) }
}

/// Whether a loss was signalled within the last round trip.
fn recovering(wait: &Wait<'_>) -> bool {
    wait.half.view.loss_signal.is_some_and(|at| at + wait.rtt() + wait.hair() >= wait.segment.at)
}

/// Whether the last segment took hardly longer than the bottleneck needs for it: pacing keeps near that rate, at three quarters of
/// it while a queue is to be drained and below it while the rate is taken for lower (bbr_pacing_gain, net/ipv4/tcp_bbr.c).
fn near_rate(wait: &Wait<'_>) -> bool {
    let needed =
        bandwidth::rate(wait).map(|rate| rate.time_for(wait.half.on_wire(wait.last.len, 0, wait.mss)));
    needed.is_some_and(|needed| wait.gap <= needed.times(3))
}

/// How many bytes were left in flight when a sender went on that had let acknowledgements pass.
pub(crate) fn drained_to(wait: &Wait<'_>, verdict: &Verdict) -> Option<u32> {
    let by_buffer = verdict.split.has(Cause::SendBuffer.bit());
    let release = wait.half.view.advanced().filter(|_| by_buffer)?;
    drained(wait, &release).then_some(release.left)
}
