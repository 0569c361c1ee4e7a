//! What do all connections between two hosts together know about the path between them?
//!
//! The smallest round trip that any of them saw, and the queue that any of them saw last: a connection that
//! opens into a standing queue has seen no shorter path itself, and sees nothing vary. Also whether another round
//! trip agrees with the smallest.

use tcpwhy_wire::{Duration, Instant};

use crate::words::limits::{HELD_BACK_MIN, QUEUED_MIN};

/// A queue seen longer ago than this may be gone.
const LASTS: Duration = Duration::from_secs(1);
/// An answer is news to other connections if it took this much longer than the least round trip. Source: none written down.
const NEWS_MIN: Duration = Duration::from_millis(1);
/// How often a connection shares what it knows and asks the others.
const NEWS_AFTER: Duration = Duration::from_millis(50);
/// Two round trips of one path differ by at most one part in this many, or by less than a queue. Source: none
/// written down.
const AGREE_SHARE: i64 = 16;

/// The paths from the capture to the client and to the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PathMemory {
    /// The smallest round trip of any connection, and the smallest that a handshake itself took;
    /// [`Duration::MAX`] if unknown.
    min: [Duration; 2],
    shown: [Duration; 2],
    /// When a packet last waited, and how much later it was than the fastest of its connection;
    /// [`Instant::MIN`] if none has.
    queued: [(Instant, Duration); 2],
    /// When an answer of a host by itself, which no program delays, last took long, and how long its round trip was; [`Instant::MIN`] if
    /// there was none.
    took: [(Instant, Duration); 2],
    /// When a connection saw its own smallest, if no other of its round trips agrees with that; [`Instant::MIN`]
    /// otherwise.
    alone: [Instant; 2],
    /// When the smallest of all was seen, and whether another round trip agrees with it.
    seen_at: [Instant; 2],
    agreed: [bool; 2],
    /// Ports at which the server has accepted connections, the latest first; 0 where there are fewer.
    ports: [u16; 4],
    /// The server's port where an end sent small segments behind small ones; 0 if nowhere.
    nodelay: [u16; 2],
    /// The same where Nagle's algorithm held a write of an end, and the length of what was sent before that.
    held: [(u16, u16); 2],
    /// When this was last shared, likewise, and whether to share it again: because the connection has learned
    /// something, or because others may have.
    shared: Instant,
    pub news: bool,
    asks: bool,
}

impl Default for PathMemory {
    fn default() -> Self {
        let unknown = [Duration::MAX; 2];
        let (queued, shared) = ([(Instant::MIN, Duration::ZERO); 2], Instant::MIN);
        let took = queued;
        let ([alone, seen_at], agreed) = ([[Instant::MIN; 2]; 2], [false; 2]);
        Self {
            min: unknown,
            shown: unknown,
            queued,
            took,
            alone,
            seen_at,
            agreed,
            ports: [0; 4],
            nodelay: [0; 2],
            held: [(0, 0); 2],
            shared,
            news: false,
            asks: false,
        }
    }
}

impl PathMemory {
    /// Smallest round trip between the capture and one end over all connections.
    #[inline]
    pub(crate) fn min(&self, end: usize) -> Option<Duration> {
        Some(self.min[end]).filter(|min| *min < Duration::MAX)
    }

    /// By how much a round trip is longer than that; negative if none is known.
    #[inline]
    pub(crate) fn above(&self, end: usize, rtt: Duration) -> Duration {
        rtt - self.min[end] // an unknown minimum is the longest time
    }

    /// The smallest round trip that a handshake took, even if later segments were acknowledged
    /// sooner.
    pub(crate) fn shown(&self, end: usize) -> Option<Duration> {
        Some(self.shown[end]).filter(|shown| *shown < Duration::MAX)
    }

    /// The server has accepted a connection at this port.
    pub(crate) fn on_accepted(&mut self, port: u16) {
        if !self.accepts(port) {
            self.ports.rotate_right(1);
            self.ports[0] = port;
        }
    }

    /// Whether it is known to accept connections there.
    pub(crate) fn accepts(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    /// An end of a connection to this port does without Nagle's algorithm.
    pub(crate) fn on_nodelay(&mut self, end: usize, port: u16) {
        self.nodelay[end] = port; // the next news will bring it
    }

    /// Whether the same end of another connection to this port does.
    #[inline]
    pub(crate) fn has_nodelay(&self, end: usize, port: u16) -> bool {
        self.nodelay[end] == port && port != 0
    }

    /// Nagle's algorithm held a write of an end of a connection to this port, behind so many bytes.
    pub(crate) fn on_held(&mut self, end: usize, port: u16, behind: u32) {
        let held = (port, u16::try_from(behind).unwrap_or_default());
        self.news |= self.held[end] != held;
        self.held[end] = held;
    }

    /// Behind how many bytes it has done so on another connection to this port.
    pub(crate) fn held_behind(&self, end: usize, port: u16) -> Option<u32> {
        let (at, behind) = self.held[end];
        (at == port && behind > 0).then_some(behind.into())
    }

    /// A packet on the way to or from this end was late by `queued` at `now`.
    #[inline(never)]
    pub(crate) fn on_queued(&mut self, end: usize, now: Instant, queued: Duration) {
        let (at, seen) = self.queued[end];
        let known = now - at < NEWS_AFTER || (now - at < LASTS.divided_by(2) && queued < seen);
        if !known {
            self.queued[end] = (now, queued);
            self.news = true;
        }
    }

    /// A host answered by itself after `took`, which is long.
    #[inline(never)]
    pub(crate) fn on_long(&mut self, end: usize, now: Instant, took: Duration) {
        let (at, longest) = self.took[end];
        if now - at >= LASTS.divided_by(2) || took > longest {
            self.took[end] = (now, took);
            // What took as long as always is no news to other connections.
            self.news |= self.min(end).is_some_and(|min| took - min >= NEWS_MIN);
        }
    }

    /// By how much the longest of these round trips lately was above `least`.
    #[inline]
    pub(crate) fn varied_lately(&self, end: usize, now: Instant, least: Duration) -> Duration {
        let (at, longest) = self.took[end];
        if now - at <= LASTS { longest - least } else { Duration::ZERO }
    }

    /// A connection's own smallest round trip is `least`. If another connection knows one that is shorter by
    /// `much`, it asks the others, unless it just has.
    #[inline]
    pub(crate) fn on_least(&mut self, end: usize, now: Instant, least: Duration, much: Duration) {
        // Nothing is longer than the longest time, which stands for an unknown minimum.
        if least - self.min[end] >= much && self.is_old(now) {
            self.asks = true;
        }
    }

    /// A connection's own smallest round trip is `least` from `now` on, and was `known` before.
    pub(crate) fn on_shorter(&mut self, end: usize, now: Instant, known: Option<Duration>, least: Duration) {
        if known.is_none_or(|known| !agree(known, least)) {
            self.alone[end] = now;
        }
    }

    /// Another one took `rtt`, and the smallest so far is `known`.
    #[inline]
    pub(crate) fn on_another(&mut self, end: usize, now: Instant, known: Duration, rtt: Duration) {
        if self.alone[end] != Instant::MIN && now > self.alone[end] && agree(known, rtt) {
            self.alone[end] = Instant::MIN;
        }
    }

    /// Whether nothing agrees with a connection's own smallest round trip, `least`, or another connection's is
    /// shorter: a packet may have stood in a queue, or waited for a host or its radio.
    #[inline]
    pub(crate) fn is_alone(&self, end: usize, least: Duration) -> bool {
        // Compared first: most paths of requests and replies are shorter.
        least > QUEUED_MIN
            && (self.alone[end] != Instant::MIN || least - self.min[end] > QUEUED_MIN)
            && !self.agrees_beside(end, least)
    }

    /// Whether a connection has no more than one round trip that its own smallest, `least`, rests on.
    #[inline]
    pub(crate) fn is_single(&self, end: usize, least: Duration) -> bool {
        self.alone[end] != Instant::MIN && self.is_alone(end, least)
    }

    /// Whether the smallest of all connections agrees with it, and so does a third round trip or its own second.
    #[cold]
    #[inline(never)]
    fn agrees_beside(&self, end: usize, least: Duration) -> bool {
        (self.agreed[end] || self.alone[end] == Instant::MIN) && agree(least, self.min[end])
    }

    /// Whether a queue at least half this long was seen lately.
    pub(crate) fn stood(&self, end: usize, now: Instant, queued: Duration) -> bool {
        let (at, seen) = self.queued[end];
        now - at <= LASTS && seen >= queued.divided_by(2)
    }

    /// The same around `at`, which may be some time ago.
    pub(crate) fn stood_about(&self, end: usize, at: Instant, queued: Duration) -> bool {
        let (seen_at, seen) = self.queued[end];
        (at - seen_at).max(seen_at - at) <= LASTS && seen >= queued.divided_by(2)
    }

    /// The queue that was seen lately, and how long ago.
    #[inline]
    pub(crate) fn queued_lately(&self, end: usize, now: Instant) -> Option<(Duration, Duration)> {
        let (at, seen) = self.queued[end];
        (now - at <= LASTS).then_some((seen, now - at))
    }

    /// Whether to share it again.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.news | self.asks
    }

    /// Whether others may know more by now.
    #[inline]
    pub(crate) fn is_old(&self, now: Instant) -> bool {
        now - self.shared >= NEWS_AFTER
    }

    /// Takes in the round trips that a connection has been `told` by `now`, and those that its handshake took
    /// itself; gives it what the others know.
    #[inline]
    pub(crate) fn share(
        &mut self,
        own: &mut Self,
        told: [Option<Duration>; 2],
        opened: [Option<Duration>; 2],
        now: Instant,
    ) {
        for (end, rtt) in told.into_iter().enumerate() {
            if let Some(rtt) = rtt {
                self.compare(end, rtt, own, now);
            }
            if let Some(rtt) = rtt.filter(|rtt| *rtt < self.shown[end]) {
                self.min[end] = self.min[end].min(rtt);
                self.shown[end] = self.shown[end].min(opened[end].unwrap_or(Duration::MAX));
            }
            if own.nodelay[end] != 0 {
                self.nodelay[end] = own.nodelay[end];
            }
            if own.held[end].0 != 0 {
                self.held[end] = own.held[end];
            }
            if own.queued[end].0 > Instant::MIN {
                self.queued[end] = longer(self.queued[end], own.queued[end]);
            }
            if own.took[end].0 > Instant::MIN {
                self.took[end] = longer(self.took[end], own.took[end]);
            }
        }
        *own = Self { shared: now, news: false, alone: own.alone, ..*self };
    }

    /// Takes how far away both hosts are from what connections in the `opposite` direction have shown.
    pub(crate) fn take_turned(&mut self, opposite: &Self) {
        for (min, other) in self.min.iter_mut().zip(opposite.min.iter().rev()) {
            *min = (*min).min(*other);
        }
    }

    /// Compares a connection's `own` smallest round trip with that of all. What it has told before agrees with
    /// itself only, and two at the same time may have stood in one queue, or waited for one radio to wake.
    #[inline]
    fn compare(&mut self, end: usize, rtt: Duration, own: &Self, now: Instant) {
        let alone = own.alone[end];
        let by_itself = alone == Instant::MIN;
        if self.min[end] < Duration::MAX && agree(self.min[end], rtt) {
            let apart = alone > own.shared && alone - rtt >= self.seen_at[end];
            self.agreed[end] |= by_itself || apart;
        } else if rtt < self.min[end] {
            (self.agreed[end], self.seen_at[end]) = (by_itself, now);
        }
    }
}

/// Whether two round trips differ so little that both may be the path's.
#[inline]
pub(crate) fn agree(one: Duration, other: Duration) -> bool {
    let (less, more) = (one.min(other), one.max(other));
    more - less <= QUEUED_MIN.max(less.divided_by(AGREE_SHARE))
}

/// Whether a round trip `known` so far had a delayed ACK in it, where another one took `rtt`: it is longer by at least the
/// shortest such delay, and by more than two round trips of one path differ.
pub(crate) fn is_held_back(known: Duration, rtt: Duration) -> bool {
    known - rtt >= HELD_BACK_MIN && !agree(known, rtt)
}

/// The longer of two queues, unless it is too old.
fn longer(a: (Instant, Duration), b: (Instant, Duration)) -> (Instant, Duration) {
    let (early, late) = if a.0 <= b.0 { (a, b) } else { (b, a) };
    if early.1 > late.1 && late.0 - early.0 < LASTS.divided_by(2) { early } else { late }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_long_queue_is_not_forgotten_for_a_short_one_until_it_is_old() {
        let [mut shared, mut bulk, mut asking] = [PathMemory::default(); 3];
        let [long, short] = [40, 3].map(Duration::from_millis);
        bulk.on_queued(0, at(0), long);
        assert!(bulk.news);
        shared.share(&mut bulk, [Some(long), None], [None; 2], at(0));
        asking.on_queued(0, at(100), short);
        shared.share(&mut asking, [Some(long), None], [None; 2], at(100));
        assert!(asking.stood(0, at(200), long) && asking.min(0) == Some(long));
        asking.on_queued(0, at(900), short);
        shared.share(&mut asking, [Some(long), None], [None; 2], at(900));
        assert!(!asking.stood(0, at(1_000), long));
    }
}
