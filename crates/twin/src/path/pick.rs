//! Which packets are meant? A share of all, bursts, or specific ones that a scenario names.

use std::collections::BTreeMap;

use tcpwhy_wire::{Endpoint, Seq};

use super::random::{Chance, Stream};
use super::{DropReason, Packet, TcpHead};

/// Which packets an element acts on.
#[derive(Clone, Debug, PartialEq)]
pub enum Pick {
    /// Each with this probability.
    Share(f64),
    /// A Gilbert-Elliott channel: two states, drawn for each packet.
    Burst {
        /// Probability that a good channel turns bad before a packet.
        to_bad: f64,
        /// Probability that a bad channel turns good before a packet.
        to_good: f64,
        /// Probability that a packet in the bad state is picked.
        in_bad: f64,
        /// Probability that a packet in the good state is picked.
        in_good: f64,
    },
    /// All longer than this, in bytes from the IP header on: a link with a smaller MTU, after a
    /// router that does not report it (RFC 2923, 2.1).
    Larger(u32),
    /// Specific packets.
    Named(Named),
}

/// Specific packets of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// What is counted.
    pub kind: Kind,
    /// Only in the n-th connection that the element sees, from 1; otherwise in each.
    pub connection: Option<u64>,
    /// How many transmissions of the same bytes are meant: 1 for the first only, 2 for its
    /// retransmission too. (For kinds other than data, every transmission counts separately.)
    pub times: u32,
}

/// The kind of packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The n-th segments that carry new data, from 1. Retransmissions are not counted.
    Data(Vec<u64>),
    /// The n-th SYNs of clients, from 1.
    Syn(Vec<u64>),
    /// The n-th SYN-ACKs, from 1.
    SynAck(Vec<u64>),
    /// The n-th pure ACKs, from 1.
    Ack(Vec<u64>),
    /// The n-th FINs, from 1, with or without data.
    Fin(Vec<u64>),
    /// Segments that carry any byte from offset `start` up to but not including `end`; the first byte has offset 0.
    Bytes {
        /// First byte.
        start: u32,
        /// The byte after the last.
        end: u32,
    },
}

/// A [`Pick`] in operation.
#[derive(Debug)]
pub struct Picker {
    rule: Rule,
    stream: Stream,
}

#[derive(Debug)]
enum Rule {
    Share(Chance),
    Burst { to_bad: Chance, to_good: Chance, in_bad: Chance, in_good: Chance, bad: bool },
    Larger(u32),
    Named(Named, BTreeMap<(Endpoint, Endpoint), Flow>, u64),
}

/// What is known of one direction of one connection.
#[derive(Debug)]
struct Flow {
    /// Number of the connection.
    number: u64,
    /// Sequence number of the first byte of data.
    first_byte: Seq,
    /// The byte after the last one seen.
    end: Seq,
    /// Packets counted so far.
    count: u64,
    /// Bytes whose next transmissions are meant.
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Target {
    start: Seq,
    end: Seq,
    left: u32,
}

impl Picker {
    /// A picker with its own random stream.
    pub fn new(pick: &Pick, stream: Stream) -> Self {
        let rule = match pick {
            Pick::Share(share) => Rule::Share(Chance::new(*share)),
            Pick::Burst { to_bad, to_good, in_bad, in_good } => Rule::Burst {
                to_bad: Chance::new(*to_bad),
                to_good: Chance::new(*to_good),
                in_bad: Chance::new(*in_bad),
                in_good: Chance::new(*in_good),
                bad: false,
            },
            Pick::Larger(bytes) => Rule::Larger(*bytes),
            Pick::Named(named) => Rule::Named(named.clone(), BTreeMap::new(), 0),
        };
        Self { rule, stream }
    }

    /// Why this packet is picked, or `None`.
    pub fn picks(&mut self, packet: &Packet) -> Option<DropReason> {
        let stream = &mut self.stream;
        let (picked, reason) = match &mut self.rule {
            Rule::Share(share) => (stream.chance(*share), DropReason::Random),
            Rule::Burst { to_bad, to_good, in_bad, in_good, bad } => {
                *bad = if *bad { !stream.chance(*to_good) } else { stream.chance(*to_bad) };
                (stream.chance(if *bad { *in_bad } else { *in_good }), DropReason::Burst)
            }
            Rule::Larger(bytes) => (packet.len > *bytes, DropReason::TooLarge),
            Rule::Named(named, flows, connections) => {
                let picked = packet.tcp.as_ref().is_some_and(|tcp| named.means(tcp, flows, connections));
                (picked, DropReason::Named)
            }
        };
        picked.then_some(reason)
    }
}

impl Named {
    fn means(
        &self,
        tcp: &TcpHead,
        flows: &mut BTreeMap<(Endpoint, Endpoint), Flow>,
        connections: &mut u64,
    ) -> bool {
        let first_byte = if tcp.flags.syn() { tcp.seq + 1 } else { tcp.seq };
        let flow = flows.entry((tcp.src, tcp.dst)).or_insert_with(|| Flow::new(connections, first_byte));
        if tcp.flags.syn() && flow.first_byte != first_byte {
            // The ports are reused: another connection.
            *flow = Flow::new(connections, first_byte);
        }
        if self.connection.is_some_and(|number| number != flow.number) {
            return false;
        }
        match &self.kind {
            Kind::Data(numbers) => flow.means_data(tcp, numbers, self.times),
            Kind::Bytes { start, end } => flow.means_bytes(tcp, *start, *end, self.times),
            Kind::Syn(numbers) => tcp.flags.syn() && !tcp.flags.ack() && flow.counts(numbers),
            Kind::SynAck(numbers) => tcp.flags.syn() && tcp.flags.ack() && flow.counts(numbers),
            Kind::Ack(numbers) => tcp.is_pure_ack() && flow.counts(numbers),
            Kind::Fin(numbers) => tcp.flags.fin() && flow.counts(numbers),
        }
    }
}

impl Flow {
    fn new(connections: &mut u64, first_byte: Seq) -> Self {
        *connections += 1;
        Self { number: *connections, first_byte, end: first_byte, count: 0, targets: Vec::new() }
    }

    fn counts(&mut self, numbers: &[u64]) -> bool {
        self.count += 1;
        numbers.contains(&self.count)
    }

    fn means_data(&mut self, tcp: &TcpHead, numbers: &[u64], times: u32) -> bool {
        if tcp.payload_len == 0 {
            return false;
        }
        let (start, end) = (tcp.seq, tcp.seq + tcp.payload_len);
        if end.after(self.end) {
            let new_from = self.end.latest(start);
            self.end = end;
            if self.counts(numbers) {
                self.targets.push(Target { start: new_from, end, left: times });
            }
        }
        self.hits_target(start, end)
    }

    fn means_bytes(&mut self, tcp: &TcpHead, start: u32, end: u32, times: u32) -> bool {
        if self.count == 0 {
            self.count = 1;
            let target = Target { start: self.first_byte + start, end: self.first_byte + end, left: times };
            self.targets.push(target);
        }
        tcp.payload_len > 0 && self.hits_target(tcp.seq, tcp.seq + tcp.payload_len)
    }

    fn hits_target(&mut self, start: Seq, end: Seq) -> bool {
        let hit = |target: &&mut Target| start.before(target.end) && end.after(target.start);
        let Some(target) = self.targets.iter_mut().find(hit) else { return false };
        target.left = target.left.saturating_sub(1);
        self.targets.retain(|target| target.left > 0);
        true
    }
}
