//! What do the two ends of a connection send, and when does the capture at the client see it?

use std::cmp::Ordering;

use crate::Shape;
use crate::random::Random;

/// A packet or a turn of a connection, at its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned {
    pub(crate) at_ns: i64,
    /// Order of planning, which decides between equal times.
    pub(crate) order: u64,
    pub(crate) connection: u32,
    pub(crate) plan: Plan,
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Planned {}

/// A planned action.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    /// A packet is seen.
    Send(Sent),
    /// The connection plans its next turn.
    Go,
    /// The connection is over; its slot may be reused.
    Over,
}

/// A packet of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) by: Side,
    /// Offsets from the initial sequence numbers of sender and receiver.
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) len: u32,
    pub(crate) flags: u8,
    /// When the packet was sent whose time stamp is echoed.
    pub(crate) echo_ns: i64,
}

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Client,
    Server,
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

/// Payload of a full segment: an Ethernet MTU without IP and TCP headers and time stamps.
const MSS: u32 = 1448;
/// A full frame with preamble and gap at 1 Gb/s.
const FRAME_NS: i64 = 12_300;
/// From a packet's arrival to the one that it causes.
const REACTION_NS: i64 = 20_000;
/// The shortest delayed ACK of Linux (TCP_DELACK_MIN).
const DELAYED_ACK_NS: i64 = 40_000_000;
/// The maximum window of an upload, segments.
const MAX_FLIGHT: u32 = 64;

/// A connection between its first and its last packet.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    shape: Shape,
    random: Random,
    stage: Stage,
    pub(crate) ends: [([u8; 4], u16); 2],
    pub(crate) isn: [u32; 2],
    /// The ends' time stamp clocks at time 0.
    pub(crate) clock: [u32; 2],
    pub(crate) ip_id: [u16; 2],
    /// From the client, where the capture is, to the server and back.
    pub(crate) rtt_ns: i64,
    /// Next sequence number of each end, relative to its initial one.
    next: [u32; 2],
    /// When the client last saw a packet of the server.
    heard_ns: i64,
    turns: u32,
    /// Each request is written in two pieces, without TCP_NODELAY.
    stalls: bool,
    flight: u32,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Opening,
    Talking,
    Closing,
}

type Push<'a> = dyn FnMut(i64, Plan) + 'a;

impl Connection {
    pub(crate) fn new(shape: Shape, number: u64, connections: u64, mut random: Random) -> Self {
        let slot = if shape == Shape::Churn { number % 40_000 } else { number };
        let (host, port) = ((slot / 20_000) as u8, 10_000 + (slot % 20_000) as u16);
        let stalls = shape == Shape::Rpc && number % 20 == 7.min(connections - 1);
        Self {
            shape,
            stage: Stage::Opening,
            ends: [([10, 1, host, 1 + (slot % 200) as u8], port), ([10, 2, 0, 1 + (slot % 8) as u8], 8080)],
            isn: [random.next() as u32, random.next() as u32],
            clock: [random.next() as u32, random.next() as u32],
            ip_id: [random.next() as u16, random.next() as u16],
            rtt_ns: match shape {
                Shape::Rpc => random.between(100_000, 40_000_000),
                Shape::Bulk | Shape::BulkFull => random.between(5_000_000, 40_000_000),
                Shape::Churn => random.between(100_000, 20_000_000),
            },
            next: [0, 0],
            heard_ns: 0,
            // A few more than needed for the requested packets: the capture is cut before its
            // connections end.
            turns: match (shape, stalls) {
                (Shape::Rpc, false) => 235,
                (Shape::Rpc, true) => 125,
                (Shape::Bulk, _) => 172,
                (Shape::BulkFull, _) => 58,
                (Shape::Churn, _) => 1,
            },
            stalls,
            flight: 10,
            random,
        }
    }

    /// Plans packets from `at_ns` on, and when to plan the next.
    pub(crate) fn plan(&mut self, at_ns: i64, push: &mut Push<'_>) {
        match self.stage {
            Stage::Opening => {
                self.client_sends(at_ns, 0, SYN, push);
                let back_ns = at_ns + self.rtt_ns;
                self.server_sends(back_ns, at_ns, 0, SYN | ACK, push);
                self.client_sends(back_ns + REACTION_NS, 0, ACK, push);
                self.stage = Stage::Talking;
                push(back_ns + 2 * REACTION_NS, Plan::Go);
            }
            Stage::Talking => {
                let next_ns = match self.shape {
                    Shape::Rpc => self.request_and_reply(at_ns, push),
                    Shape::Bulk | Shape::BulkFull => self.round(at_ns, push),
                    Shape::Churn => self.short(at_ns, push),
                };
                self.turns -= 1;
                if self.turns == 0 {
                    self.stage = Stage::Closing;
                }
                push(next_ns, if self.shape == Shape::Churn { Plan::Over } else { Plan::Go });
            }
            Stage::Closing => {
                let over_ns = self.close(at_ns, push);
                push(over_ns, Plan::Over);
            }
        }
    }

    fn request_and_reply(&mut self, mut at_ns: i64, push: &mut Push<'_>) -> i64 {
        if self.stalls {
            self.client_sends(at_ns, 4, PSH | ACK, push);
            let acked_ns = at_ns + self.rtt_ns + DELAYED_ACK_NS;
            self.server_sends(acked_ns, at_ns, 0, ACK, push);
            at_ns = acked_ns + REACTION_NS;
        }
        let (request, reply) = (self.small(), self.small());
        self.client_sends(at_ns, request, PSH | ACK, push);
        let think_ns = self.random.between(50_000, 4_000_000);
        let reply_ns = at_ns + self.rtt_ns + think_ns;
        self.server_sends(reply_ns, at_ns, reply, PSH | ACK, push);
        if self.random.one_in(8) {
            // A pause long enough that the ACK does not wait for the next request.
            self.client_sends(reply_ns + DELAYED_ACK_NS, 0, ACK, push);
            return reply_ns + self.random.between(45_000_000, 120_000_000);
        }
        reply_ns + self.random.between(200_000, 5_000_000)
    }

    /// Payload of a packet of 100 to 300 bytes.
    fn small(&mut self) -> u32 {
        self.random.between(34, 235) as u32
    }

    /// One flight of an upload; every second segment is acknowledged, and the ACKs clock out the
    /// next.
    fn round(&mut self, at_ns: i64, push: &mut Push<'_>) -> i64 {
        for i in 0..self.flight {
            let sent_ns = at_ns + i64::from(i) * FRAME_NS;
            self.client_sends(sent_ns, MSS, ACK, push);
            if i % 2 == 1 {
                let ack = self.next[Side::Client as usize];
                let seq = self.next[Side::Server as usize];
                let sent =
                    Sent { by: Side::Server, seq, ack, len: 0, flags: ACK, echo_ns: sent_ns - FRAME_NS };
                push(sent_ns + self.rtt_ns, Plan::Send(sent));
            }
        }
        self.flight = (self.flight * 2).min(MAX_FLIGHT);
        self.heard_ns = at_ns + FRAME_NS + self.rtt_ns;
        self.heard_ns + REACTION_NS
    }

    /// A request, a reply, and one of three ways to close: 8, 7 or 6 packets with the handshake.
    fn short(&mut self, at_ns: i64, push: &mut Push<'_>) -> i64 {
        let (request, reply) = (self.small(), self.small());
        self.client_sends(at_ns, request, PSH | ACK, push);
        let reply_ns = at_ns + self.rtt_ns + self.random.between(50_000, 5_000_000);
        match self.random.between(0, 6) {
            0 => {
                self.server_sends(reply_ns, at_ns, reply, PSH | ACK, push);
                self.client_sends(reply_ns + REACTION_NS, 0, RST | ACK, push);
                reply_ns + 2 * REACTION_NS
            }
            1 => {
                self.server_sends(reply_ns, at_ns, reply, FIN | PSH | ACK, push);
                let fin_ns = reply_ns + REACTION_NS;
                self.client_sends(fin_ns, 0, FIN | ACK, push);
                self.server_sends(fin_ns + self.rtt_ns, fin_ns, 0, ACK, push);
                fin_ns + self.rtt_ns
            }
            _ => {
                self.server_sends(reply_ns, at_ns, reply, PSH | ACK, push);
                self.close(reply_ns + REACTION_NS, push)
            }
        }
    }

    fn close(&mut self, at_ns: i64, push: &mut Push<'_>) -> i64 {
        self.client_sends(at_ns, 0, FIN | ACK, push);
        let back_ns = at_ns + self.rtt_ns;
        self.server_sends(back_ns, at_ns, 0, FIN | ACK, push);
        self.client_sends(back_ns + REACTION_NS, 0, ACK, push);
        back_ns + REACTION_NS
    }

    /// The client has received everything that the server was planned to send before.
    fn client_sends(&mut self, at_ns: i64, len: u32, flags: u8, push: &mut Push<'_>) {
        let echo_ns = self.heard_ns - self.rtt_ns / 2;
        self.send(at_ns, Side::Client, len, flags, echo_ns, push);
    }

    /// `cause_ns`: when the client sent the packet that this answers.
    fn server_sends(&mut self, at_ns: i64, cause_ns: i64, len: u32, flags: u8, push: &mut Push<'_>) {
        self.send(at_ns, Side::Server, len, flags, cause_ns, push);
        self.heard_ns = at_ns;
    }

    fn send(&mut self, at_ns: i64, by: Side, len: u32, flags: u8, echo_ns: i64, push: &mut Push<'_>) {
        let [client, server] = self.next;
        let (seq, ack) = if by == Side::Client { (client, server) } else { (server, client) };
        let sequence_space = len + u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        self.next[by as usize] = seq.wrapping_add(sequence_space);
        push(at_ns, Plan::Send(Sent { by, seq, ack, len, flags, echo_ns }));
    }
}
