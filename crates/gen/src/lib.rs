//! Which packets would a busy server's capture contain?
//!
//! Captures of given shapes for benchmarks and tests: the same shape, number of packets and seed
//! give the same bytes on any machine. Handshakes, sequence and acknowledgement numbers, time
//! stamps, windows and delays are those of real connections, so that an analysis does its real
//! work; payload is zeros. The capture is taken at the client.
//!
//! The shapes are those of the project's baselines:
//!
//! | shape | packets | what |
//! |---|---|---|
//! | `rpc` | 9.44 M | 20,000 connections of small requests and replies, 100 to 300 bytes a packet; one in twenty writes each request in two pieces and stalls on Nagle and the delayed acknowledgement |
//! | `bulk` | 3.11 M | 200 connections that upload, snap length 96 |
//! | `bulk-full` | 1.0 M | the same with all of each packet |
//! | `churn` | 7.5 M | a million connections of 6 to 8 packets over 40,000 4-tuples, each reuse with a new initial sequence number |
#![forbid(unsafe_code)]

mod connection;
mod frame;
mod hostile;
mod random;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::str::FromStr;

use connection::{Connection, Plan, Planned};
use frame::Frame;
pub use hostile::Hostile;
use random::Random;
use tcpwhy_wire::Instant;

/// The kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Small requests and replies.
    Rpc,
    /// Uploads, snap length 96.
    Bulk,
    /// Uploads with complete packets.
    BulkFull,
    /// Short connections.
    Churn,
}

impl Shape {
    /// All shapes.
    pub const ALL: [Self; 4] = [Self::Rpc, Self::Bulk, Self::BulkFull, Self::Churn];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rpc => "rpc",
            Self::Bulk => "bulk",
            Self::BulkFull => "bulk-full",
            Self::Churn => "churn",
        }
    }

    /// Packets in the baselines' capture of this shape.
    pub const fn packets(self) -> u64 {
        match self {
            Self::Rpc => 9_440_000,
            Self::Bulk => 3_110_000,
            Self::BulkFull => 1_000_000,
            Self::Churn => 7_500_000,
        }
    }

    /// Bytes kept of each packet.
    pub const fn snaplen(self) -> u32 {
        match self {
            Self::Bulk => 96,
            _ => 262_144,
        }
    }

    /// Time between the beginnings of two connections.
    const fn apart_ns(self) -> i64 {
        match self {
            // All of them within about the first second.
            Self::Rpc => 50_000,
            Self::Bulk | Self::BulkFull => 5_000_000,
            // 40,000 of them take 0.8 s: each is over long before its 4-tuple is reused.
            Self::Churn => 20_000,
        }
    }

    /// Connections in a capture of this many packets: fewer packets mean fewer connections, not
    /// shorter ones.
    fn connections(self, packets: u64) -> u64 {
        match self {
            Self::Rpc => packets.div_ceil(472).min(20_000),
            Self::Bulk => packets.div_ceil(15_550).min(200),
            Self::BulkFull => packets.div_ceil(5_000).min(200),
            Self::Churn => packets.div_ceil(6),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Shape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        Self::ALL.into_iter().find(|shape| shape.name() == name).ok_or(UnknownShape)
    }
}

/// The name is not one of [`Shape::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownShape;

impl fmt::Display for UnknownShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the shapes are rpc, bulk, bulk-full and churn")
    }
}

impl std::error::Error for UnknownShape {}

/// A generated packet: Ethernet, IPv4, TCP.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// Capture time.
    pub at: Instant,
    /// Bytes on the wire.
    pub original_len: u32,
    /// The bytes within the shape's snap length.
    pub data: &'a [u8],
}

/// Generates the packets of a capture one after the other, in order of time.
pub struct Generator {
    shape: Shape,
    left: u64,
    seed: u64,
    /// Connections not yet begun: number of the next one, total number, and when the next one
    /// begins.
    next: u64,
    connections: u64,
    next_at: i64,
    apart_ns: i64,
    /// Open connections, and free slots.
    open: Vec<Connection>,
    free: Vec<u32>,
    /// Packets to be sent, by time; packets of the same time in the order in which they were
    /// planned.
    agenda: BinaryHeap<Reverse<Planned>>,
    planned: u64,
    frame: Frame,
}

/// 2026-01-01 00:00 UTC.
const START_NS: i64 = 1_767_225_600_000_000_000;

impl Generator {
    /// A capture of `packets` packets. It is cut if its connections last longer, as real captures
    /// are.
    pub fn new(shape: Shape, packets: u64, seed: u64) -> Self {
        Self {
            shape,
            left: packets,
            seed,
            next: 0,
            connections: shape.connections(packets),
            next_at: START_NS,
            apart_ns: shape.apart_ns(),
            open: Vec::new(),
            free: Vec::new(),
            agenda: BinaryHeap::new(),
            planned: 0,
            frame: Frame::default(),
        }
    }

    /// Uses this many connections, which begin within a second: each has fewer packets accordingly.
    #[must_use]
    pub fn with_connections(self, connections: u64) -> Self {
        let connections = connections.max(1);
        let apart_ns = self.apart_ns.min(1_000_000_000 / connections as i64);
        Self { connections, apart_ns, ..self }
    }

    /// The next packet.
    #[expect(clippy::should_implement_trait, reason = "the packet borrows from the generator")]
    pub fn next(&mut self) -> Option<Packet<'_>> {
        if self.left == 0 {
            return None;
        }
        loop {
            let due = self.agenda.peek().map(|Reverse(planned)| planned.at_ns);
            if self.next < self.connections && due.is_none_or(|due| due >= self.next_at) {
                self.begin();
                continue;
            }
            let Reverse(planned) = self.agenda.pop()?;
            match planned.plan {
                Plan::Go => self.go_on(planned.connection, planned.at_ns),
                Plan::Send(segment) => {
                    self.left -= 1;
                    let connection = &mut self.open[planned.connection as usize];
                    self.frame.build(connection, &segment, planned.at_ns, self.shape.snaplen());
                    return Some(self.frame.packet(planned.at_ns));
                }
                Plan::Over => self.free.push(planned.connection),
            }
        }
    }

    fn begin(&mut self) {
        // Each connection draws from its own stream, so that none depends on the others.
        let random = Random::new(self.seed, self.next);
        let connection = Connection::new(self.shape, self.next, self.connections, random);
        let place = self.free.pop().unwrap_or(self.open.len() as u32);
        match self.open.get_mut(place as usize) {
            Some(over) => *over = connection,
            None => self.open.push(connection),
        }
        self.go_on(place, self.next_at);
        self.next += 1;
        self.next_at += self.apart_ns;
    }

    fn go_on(&mut self, place: u32, at_ns: i64) {
        let (agenda, planned) = (&mut self.agenda, &mut self.planned);
        self.open[place as usize].plan(at_ns, &mut |at_ns, plan| {
            *planned += 1;
            agenda.push(Reverse(Planned { at_ns, order: *planned, connection: place, plan }));
        });
    }
}
