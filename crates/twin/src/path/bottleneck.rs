//! How long does a packet wait for earlier ones, and then for its own bits? A queue and the link
//! that empties it, one packet after the other: by a rate, or by a trace of delivery opportunities.

use std::collections::VecDeque;

use tcpwhy_wire::{Duration, Instant};

use super::codel::Codel;
use super::{DropReason, Output, Packet};

/// Capacity of the queue. The packet that is being sent is not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, from the IP header on.
    Bytes(u64),
    /// Packets of any length.
    Packets(u64),
}

/// A drop-tail queue, optionally with CoDel at its head, emptied by a server.
#[derive(Debug)]
pub struct Bottleneck {
    server: Server,
    limit: Limit,
    codel: Option<Codel>,
    queue: VecDeque<Packet>,
    queued_bytes: u64,
    /// Packets that have come out and were not fetched yet.
    out: VecDeque<(Packet, Option<DropReason>)>,
}

/// The link that empties the queue.
#[derive(Debug)]
pub enum Server {
    /// A serial link: each packet takes its bits' time.
    Rate(Rate),
    /// Opportunities to deliver a number of bytes each, at given times.
    Trace(Trace),
}

impl Bottleneck {
    /// A queue of this length, emptied by this server.
    pub fn new(server: Server, limit: Limit, codel: Option<Codel>) -> Self {
        Self { server, limit, codel, queue: VecDeque::new(), queued_bytes: 0, out: VecDeque::new() }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        if let Some(packet) = packet {
            self.admit(packet);
        }
        let next = self.advance(now);
        match (self.out.pop_front(), next) {
            (Some((packet, None)), _) => Output::Packet(packet),
            (Some((packet, Some(reason))), _) => Output::Dropped(packet, reason),
            (None, Some(at)) => Output::Wait(at),
            (None, None) => Output::Nothing,
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        self.queue.len() + self.out.len() + usize::from(self.server.is_sending())
    }

    fn admit(&mut self, packet: Packet) {
        let full = match self.limit {
            Limit::Bytes(limit) => self.queued_bytes + u64::from(packet.len) > limit,
            Limit::Packets(limit) => self.queue.len() as u64 >= limit,
        };
        // An idle link takes the packet from the queue at the same instant.
        if full && (self.server.is_sending() || !self.queue.is_empty()) {
            self.out.push_back((packet, Some(DropReason::QueueFull)));
            return;
        }
        self.server.begin(packet.at);
        self.queued_bytes += u64::from(packet.len);
        self.queue.push_back(packet);
    }

    /// Lets the server work until `until`; returns when it will next have something to do.
    fn advance(&mut self, until: Instant) -> Option<Instant> {
        loop {
            if !self.server.is_sending() {
                let at = self.server.free_at(self.queue.front()?.at);
                if at > until {
                    return Some(at);
                }
                let Some(packet) = self.dequeue(at) else { continue };
                self.server.start(packet, at);
            }
            match self.server.finish(until) {
                Ok(packet) => self.out.push_back((packet, None)),
                Err(at) => return Some(at),
            }
        }
    }

    /// Takes the next packet to be sent at `at`; CoDel may drop some first, even all.
    fn dequeue(&mut self, at: Instant) -> Option<Packet> {
        loop {
            let packet = self.queue.pop_front()?;
            self.queued_bytes -= u64::from(packet.len);
            let Some(codel) = &mut self.codel else { return Some(packet) };
            if codel.keeps(at - packet.at, self.queued_bytes, at) {
                return Some(packet);
            }
            self.out.push_back((Packet { at, ..packet }, Some(DropReason::Codel)));
        }
    }
}

impl Server {
    fn is_sending(&self) -> bool {
        match self {
            Self::Rate(rate) => rate.sending.is_some(),
            Self::Trace(trace) => trace.sending.is_some(),
        }
    }

    /// A packet arrives at `at`. The first one sets the trace's time zero.
    fn begin(&mut self, at: Instant) {
        if let Self::Trace(trace) = self {
            trace.start.get_or_insert(at);
        }
    }

    /// When a packet that arrived at `arrived` can be taken from the queue.
    fn free_at(&mut self, arrived: Instant) -> Instant {
        match self {
            Self::Rate(rate) => rate.free_at.max(arrived),
            Self::Trace(trace) => trace.next_opportunity(arrived),
        }
    }

    fn start(&mut self, packet: Packet, at: Instant) {
        match self {
            Self::Rate(rate) => rate.start(packet, at),
            Self::Trace(trace) => trace.sending = Some((packet.len, packet)),
        }
    }

    /// The packet being sent, if its last bit is out by `until`; otherwise when it will be.
    fn finish(&mut self, until: Instant) -> Result<Packet, Instant> {
        match self {
            Self::Rate(rate) => rate.finish(until),
            Self::Trace(trace) => trace.finish(until),
        }
    }
}

/// A serial link.
#[derive(Debug)]
pub struct Rate {
    bits_per_s: u64,
    overhead_bytes: u32,
    free_at: Instant,
    /// Bits times 10^9 by which the last finishing time was rounded down, so that rounding errors
    /// do not add up.
    carry: u128,
    sending: Option<Packet>,
}

impl Rate {
    /// A link of this rate (at least 1 bit/s) that adds `overhead_bytes` to each packet: 38 for Ethernet's header,
    /// checksum, preamble and gap.
    pub fn new(bits_per_s: u64, overhead_bytes: u32) -> Self {
        let bits_per_s = bits_per_s.max(1);
        Self { bits_per_s, overhead_bytes, free_at: Instant::MIN, carry: 0, sending: None }
    }

    fn start(&mut self, packet: Packet, at: Instant) {
        if at > self.free_at {
            self.carry = 0;
        }
        let bits = (u128::from(packet.len) + u128::from(self.overhead_bytes)) * 8;
        let scaled = bits * 1_000_000_000 + self.carry;
        let rate = u128::from(self.bits_per_s);
        self.carry = scaled % rate;
        self.free_at = at + Duration::from_nanos(i64::try_from(scaled / rate).unwrap_or(i64::MAX));
        self.sending = Some(packet);
    }

    fn finish(&mut self, until: Instant) -> Result<Packet, Instant> {
        match self.sending.take_if(|_| self.free_at <= until) {
            Some(packet) => Ok(Packet { at: self.free_at, ..packet }),
            None => Err(self.free_at),
        }
    }
}

/// A trace of delivery opportunities, as read by mahimahi's link shell: at each time,
/// [`Trace::OPPORTUNITY_BYTES`] may leave; unused opportunities are lost; the trace repeats with
/// its last time as the period. Time zero is the first packet's arrival.
#[derive(Debug)]
pub struct Trace {
    times: Vec<Duration>,
    start: Option<Instant>,
    round: i64,
    next: usize,
    /// Left of the opportunity at `budget_at`.
    budget_bytes: u32,
    budget_at: Instant,
    /// Bytes of the packet still to be sent.
    sending: Option<(u32, Packet)>,
}

impl Trace {
    /// What one opportunity delivers: a full packet.
    pub const OPPORTUNITY_BYTES: u32 = 1500;

    /// A trace from sorted times; the last must be positive. `None` otherwise.
    pub fn new(times: Vec<Duration>) -> Option<Self> {
        let rising = times.is_sorted() && times.first().is_some_and(|first| *first >= Duration::ZERO);
        let repeats = times.last().is_some_and(|last| last.is_positive());
        let (budget_bytes, budget_at) = (0, Instant::MIN);
        (rising && repeats).then_some(Self {
            times,
            start: None,
            round: 0,
            next: 0,
            budget_bytes,
            budget_at,
            sending: None,
        })
    }

    fn at(&self, round: i64, n: usize) -> Instant {
        let period = self.times.last().copied().unwrap_or(Duration::MAX);
        self.start.unwrap_or_default() + period.times(round) + self.times[n]
    }

    /// When bytes can leave, at or after `arrived`: in the rest of the current opportunity, or in
    /// the next one.
    fn next_opportunity(&mut self, arrived: Instant) -> Instant {
        if self.budget_bytes > 0 && arrived <= self.budget_at {
            return self.budget_at;
        }
        // Opportunities that found the queue empty are lost.
        self.budget_bytes = 0;
        while self.at(self.round, self.next) < arrived {
            self.skip();
        }
        self.at(self.round, self.next)
    }

    fn skip(&mut self) {
        self.next += 1;
        if self.next == self.times.len() {
            self.next = 0;
            self.round += 1;
        }
    }

    fn finish(&mut self, until: Instant) -> Result<Packet, Instant> {
        loop {
            let Some((left, packet)) = self.sending.take() else { return Err(Instant::MAX) };
            if self.budget_bytes == 0 {
                let at = self.at(self.round, self.next);
                if at > until {
                    self.sending = Some((left, packet));
                    return Err(at);
                }
                self.budget_at = at;
                self.budget_bytes = Self::OPPORTUNITY_BYTES;
                self.skip();
            }
            let sent = left.min(self.budget_bytes);
            self.budget_bytes -= sent;
            if sent == left {
                return Ok(Packet { at: self.budget_at, ..packet });
            }
            self.sending = Some((left - sent, packet));
        }
    }
}
