//! When would another stack have sent an ACK? Holds back the pure ACKs of a receiver that sends one
//! for every segment (a Linux host with `quickack` on the route), and passes those that the other
//! stack would have sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tcpwhy_wire::{Duration, Endpoint, Instant, Seq};

use super::{DropReason, Output, Packet, TcpHead};

/// A receiver's rule for acknowledging data that arrives in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckPolicy {
    /// Acknowledge when this many segments are unacknowledged; 1 means at once.
    pub every: u32,
    /// What counts as a segment.
    pub count: Count,
    /// Acknowledge at the latest this long after ...
    pub after: Duration,
    /// ... this.
    pub timer: Timer,
}

/// What counts towards [`AckPolicy::every`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Every segment that carries data, however short.
    Segments,
    /// Full segments: bytes divided by the MSS.
    FullSegments,
}

/// What starts the delayed acknowledgement's timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The first unacknowledged segment.
    FirstSegment,
    /// Each unacknowledged segment restarts it.
    EachSegment,
    /// A free-running clock (BSD's 200 ms fast timeout): the ACK leaves with the next tick.
    Tick,
}

impl AckPolicy {
    /// The known policy of a stack, by name; `None` for an unknown name.
    pub fn named(stack: &str) -> Option<Self> {
        let policy = |every, after_ms, timer| Self {
            every,
            count: Count::Segments,
            after: Duration::from_millis(after_ms),
            timer,
        };
        match stack {
            // TcpDelAckTicks: 2 ticks of 100 ms, otherwise every other segment (Microsoft, TCP/IP registry values).
            "windows-xp" | "windows-7" => Some(policy(2, 200, Timer::FirstSegment)),
            // Windows: Get-NetTCPSetting, template Internet: DelayedAckTimeout 40 ms, DelayedAckFrequency 2.
            // FreeBSD: TCPTV_DELACK is hz/25 (netinet/tcp_timer.h, from 13 on); a second segment finds it running.
            "windows-10" | "windows-11" | "freebsd" => Some(policy(2, 40, Timer::FirstSegment)),
            // 4.4BSD: tcp_fasttimo runs every 200 ms whatever arrives.
            "bsd" => Some(policy(2, 200, Timer::Tick)),
            // XNU, net.inet.tcp.delayed_ack=3: every second packet, and every eighth once it
            // considers the connection a stream; TCPTV_DELACK is 100 ms.
            "macos" => Some(policy(2, 100, Timer::FirstSegment)),
            "macos-streaming" => Some(policy(8, 100, Timer::FirstSegment)),
            _ => None,
        }
    }
}

/// An [`AckPolicy`] in operation, for every connection that passes.
#[derive(Debug)]
pub struct AckThinner {
    policy: AckPolicy,
    flows: BTreeMap<Key, Flow>,
    /// When held ACKs are to be sent.
    timers: BTreeSet<(Instant, Key)>,
    started: Option<Instant>,
    out: VecDeque<(Packet, Option<DropReason>)>,
}

/// Receiver and sender.
type Key = (Endpoint, Endpoint);

/// One connection.
#[derive(Debug)]
struct Flow {
    /// What the sender knows to be acknowledged; `None` until the receiver has acknowledged
    /// anything (a client's SYN does not).
    acked: Option<Seq>,
    /// What the receiver has received.
    received: Seq,
    /// Segments between the two.
    segments: u32,
    /// Payload of a full segment.
    mss: u32,
    /// The latest ACK, and when it is to be sent.
    held: Option<(Packet, Instant)>,
}

impl AckThinner {
    /// Passes what `policy` would send.
    pub const fn new(policy: AckPolicy) -> Self {
        Self { policy, flows: BTreeMap::new(), timers: BTreeSet::new(), started: None, out: VecDeque::new() }
    }

    /// See [`super::Element::process`].
    pub fn process(&mut self, packet: Option<Packet>, now: Instant) -> Output {
        if let Some(packet) = packet {
            self.on_packet(packet);
        }
        self.run_timers(now);
        match (self.out.pop_front(), self.timers.first()) {
            (Some((packet, None)), _) => Output::Packet(packet),
            (Some((packet, Some(reason))), _) => Output::Dropped(packet, reason),
            (None, Some((at, _))) => Output::Wait(*at),
            (None, None) => Output::Nothing,
        }
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        self.out.len() + self.timers.len()
    }

    fn run_timers(&mut self, until: Instant) {
        while self.timers.first().is_some_and(|(at, _)| *at <= until) {
            let Some((at, key)) = self.timers.pop_first() else { return };
            let Some(flow) = self.flows.get_mut(&key) else { continue };
            if let Some((packet, _)) = flow.held.take() {
                flow.acked = Some(flow.received);
                flow.segments = 0;
                self.out.push_back((Packet { at, ..packet }, None));
            }
        }
    }

    fn on_packet(&mut self, packet: Packet) {
        let started = *self.started.get_or_insert(packet.at);
        let Some(tcp) = packet.tcp else { return self.out.push_back((packet, None)) };
        let key = (tcp.src, tcp.dst);
        let flow = self.flows.entry(key).or_insert_with(|| Flow::new(&tcp));
        if tcp.flags.syn() {
            // The ports may be reused.
            let held = flow.held.take();
            *flow = Flow { held, ..Flow::new(&tcp) };
        }
        // An ACK is not held if it is carried by something else, or must be sent at once (the end
        // of the handshake, a gap: RFC 5681, 4.2, the answer to a probe, an opened window).
        let due = match flow.acked {
            Some(acked) if tcp.is_pure_ack() && !tcp.sack && tcp.ack.after(flow.received) => {
                flow.segments += (tcp.ack - flow.received).unsigned_abs().div_ceil(flow.mss);
                flow.received = tcp.ack;
                self.policy.is_due(flow.segments, (tcp.ack - acked).unsigned_abs(), flow.mss)
            }
            _ => true,
        };
        let held_before = flow.held.take();
        if let Some((_, at)) = &held_before {
            self.timers.remove(&(*at, key));
        }
        if due {
            if tcp.flags.ack() {
                flow.received = flow.acked.map_or(tcp.ack, |_| flow.received.latest(tcp.ack));
                flow.acked = Some(flow.received);
                flow.segments = 0;
            }
        } else {
            let until = match (self.policy.timer, &held_before) {
                (Timer::FirstSegment, Some((_, until))) => *until,
                (Timer::FirstSegment | Timer::EachSegment, _) => packet.at + self.policy.after,
                (Timer::Tick, _) => next_tick(started, packet.at, self.policy.after),
            };
            self.timers.insert((until, key));
            flow.held = Some((packet.clone(), until));
        }
        if let Some((superseded, _)) = held_before {
            self.out.push_back((Packet { at: packet.at, ..superseded }, Some(DropReason::AckThinned)));
        }
        if due {
            self.out.push_back((packet, None));
        }
    }
}

impl AckPolicy {
    const fn is_due(&self, segments: u32, bytes: u32, mss: u32) -> bool {
        match self.count {
            Count::Segments => segments >= self.every,
            Count::FullSegments => bytes >= self.every.saturating_mul(mss),
        }
    }
}

impl Flow {
    fn new(tcp: &TcpHead) -> Self {
        // Data segments are as long as this side's MSS option allows, minus the time stamps that
        // both sides agreed on.
        let options = if tcp.timestamps { TIMESTAMPS_LEN } else { 0 };
        let mss = u32::from(tcp.mss.unwrap_or(1460)).saturating_sub(options).max(1);
        Self { acked: None, received: tcp.ack, segments: 0, mss, held: None }
    }
}

fn next_tick(started: Instant, now: Instant, period: Duration) -> Instant {
    let period_ns = period.as_nanos().max(1);
    let ticks = (now - started).as_nanos() / period_ns + 1;
    started + Duration::from_nanos(ticks.saturating_mul(period_ns))
}

/// RFC 7323, appendix A: ten bytes plus two of padding.
const TIMESTAMPS_LEN: u32 = 12;
