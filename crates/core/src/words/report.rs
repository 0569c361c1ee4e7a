//! What does the analysis say? The model behind every output form.
//!
//! Field names and units are those of the JSON document (`tcpwhy.report/1`).

use std::collections::BTreeMap;
use std::fmt;

use tcpwhy_wire::{Duration, Endpoint, Instant};

use crate::words::cause::{Cause, Side};
use crate::words::form::Form;
use crate::words::limits::SERVERS_MAX;
use crate::words::opening::Opening;
pub use crate::words::rung::{Billed, Rung, Trigger};
pub use crate::words::steps::Steps;

/// Everything one run found out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Segments that reached the analysis.
    pub segments: u64,
    /// Time over all setups, exchanges and one-way messages. The lines of `bill` sum to it exactly.
    pub elapsed: Duration,
    /// The same by the clock: each moment of a connection counts once, however many messages waited
    /// in it.
    pub by_clock: Duration,
    /// Setups, exchanges, one-way messages and subscriptions billed.
    pub setups: u64,
    /// See `setups`.
    pub exchanges: u64,
    /// See `setups`.
    pub one_way: u64,
    /// See `setups`.
    pub subscriptions: u64,
    /// The whole capture's bill, largest first.
    pub bill: Vec<TotalLine>,
    /// What to act on, most expensive first.
    pub findings: Vec<Finding>,
    /// Connections in the order of their first packet. Those beyond the detail limit are counted in `omitted`.
    pub connections: Vec<Connection>,
    /// Connections and exchanges that were billed but are not listed one by one.
    pub omitted: Omitted,
    /// How often the lists were thinned, see [`crate::Listing::Thinned`].
    pub thinned: u32,
    /// For thinned lists: how many hosts use each server that has a finding, whether their
    /// connections are listed or not.
    pub clients: BTreeMap<Endpoint, u64>,
    /// Things seen in the capture that limit what can be said, with how often: "capture dropped
    /// packets", ...
    pub notes: Vec<Note>,
    /// The capture's clock is wrong: nothing is more than possible.
    pub times_doubted: bool,
}

impl Report {
    /// The connection with this number, if it is listed.
    pub fn connection(&self, id: u64) -> Option<&Connection> {
        let at = self.connections.binary_search_by_key(&id, |connection| connection.id).ok()?;
        self.connections.get(at)
    }

    /// Makes all of it no more than possible: the capture's clock is wrong, and nothing says by how much.
    pub fn doubt_times(&mut self) {
        self.times_doubted = true;
        for finding in &mut self.findings {
            finding.confidence = Confidence::Possible;
        }
        let exchanges = self.connections.iter_mut().flat_map(|connection| &mut connection.exchanges);
        for line in exchanges.flat_map(|exchange| &mut exchange.bill) {
            line.confidence = Confidence::Possible;
        }
    }

    /// The connection that begins with this packet, if it is listed: connections are numbered in
    /// this order.
    pub fn connection_from(&self, first_packet: u64) -> Option<&Connection> {
        let first = |connection: &Connection| connection.packet_range[0];
        let at = self.connections.binary_search_by_key(&first_packet, first).ok()?;
        self.connections.get(at)
    }
}

/// What the detail limits left out of the lists (never out of the sums).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Connections billed but not listed.
    pub connections: u64,
    /// Exchanges billed but not listed.
    pub exchanges: u64,
}

/// A remark about the capture, in plain words, and how many packets or connections it concerns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Stable kebab-case name: `capture-drops`, `one-direction`, `time-steps-back`, `duplicates`, ...
    pub kind: &'static str,
    /// How often.
    pub count: u64,
    /// First packet that shows it.
    pub first_packet: u64,
}

/// One cause over the whole capture or one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TotalLine {
    /// What the time was spent on.
    pub cause: Cause,
    /// Who could change it.
    pub side: Side,
    /// Total time.
    pub ns: Duration,
    /// The part of it that is only [`Confidence::Possible`].
    pub possible: Duration,
    /// The number of setups, exchanges and one-way messages with this cause.
    pub hits: u64,
}

/// Whose exchanges a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Servers {
    /// Those of one server.
    One(Endpoint),
    /// Those of this many servers, none of which takes a twentieth of the time. Beyond
    /// [`Self::COUNTED`] they are not counted, and this is `COUNTED` plus one.
    Several(u64),
}

impl Servers {
    /// Servers are counted individually up to this number.
    pub const COUNTED: u64 = SERVERS_MAX as u64;
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::One(endpoint) => endpoint.fmt(f),
            Self::Several(count) if count > Self::COUNTED => f.write_str("thousands of servers"),
            Self::Several(count) => write!(f, "{count} servers"),
        }
    }
}

/// One cause over many exchanges with a server, or with several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What the time was spent on.
    pub cause: Cause,
    /// Who could change it.
    pub side: Side,
    /// The server's address and port, which names the service; or the fact that there are several.
    pub servers: Servers,
    /// Setups, exchanges or one-way messages (whichever kind the cause was found in) that have the
    /// cause.
    pub hits: u64,
    /// The number of that kind in all.
    pub of: u64,
    /// Total time.
    pub ns: Duration,
    /// Median over the hits.
    pub p50: Duration,
    /// 99th percentile over the hits.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
    /// The slow ones among the hits, if most of the time is theirs and the median says nothing
    /// about them.
    pub slow: Option<SlowHits>,
    /// The average time of the exchanges without a hit, if there are any.
    pub without: Option<Duration>,
    /// Confidence of most of the time.
    pub confidence: Confidence,
    /// Packet numbers that show it: those of the most expensive hit and of the first ones.
    pub evidence: Vec<u64>,
    /// Connection and exchange number of the most expensive hit, for drilling down.
    pub worst: (u64, u64),
    /// Detail of the most expensive hit.
    pub detail: Detail,
}

/// The hits of a finding that take several times as long as the median, and most of the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowHits {
    /// How many there are.
    pub hits: u64,
    /// Their median.
    pub p50: Duration,
    /// The median of the other hits.
    pub rest_p50: Duration,
}

/// One connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Number in order of first packet, from 1.
    pub id: u64,
    /// The sender of the SYN, or the stated guess.
    pub client: Endpoint,
    /// The other end.
    pub server: Endpoint,
    /// Client and server are a guess: the capture starts after the handshake.
    pub assumed: bool,
    /// Where along the path the capture was taken.
    pub vantage: Vantage,
    /// The smallest round trip seen; `None` if nothing shows it.
    pub rtt_min: Option<Duration>,
    /// MSS announced by client and server, bytes.
    pub mss: [Option<u16>; 2],
    /// Packets, both directions.
    pub packets: u64,
    /// Payload bytes by client and server, each byte once.
    pub bytes: [u64; 2],
    /// First and last packet number.
    pub packet_range: [u64; 2],
    /// Times of the first and the last packet.
    pub span: [Instant; 2],
    /// Setups, exchanges and one-way messages billed, listed or not.
    pub billed: u64,
    /// Their time by the clock: each moment counts once, however many messages waited in it.
    pub by_clock: Duration,
    /// The connection's bill, largest first.
    pub bill: Vec<TotalLine>,
    /// Setups, exchanges and one-way messages in order of time, as far as the detail limit allows.
    pub exchanges: Vec<Exchange>,
    /// The packet ladder, if requested.
    pub ladder: Vec<Rung>,
    /// The same in compact form, if those of all connections are kept.
    pub steps: Option<Box<Steps>>,
    /// Packets after those of the ladder, for which there was no room.
    pub ladder_omitted: u64,
    /// What the ladder's numbers count from.
    pub opening: Opening,
}

impl Connection {
    /// The sum of its bill.
    pub fn cost(&self) -> Duration {
        self.bill.iter().map(|line| line.ns).sum()
    }

    /// Makes the ladder count and scale as Wireshark does for the whole file, whose earlier packets
    /// are summed up in `earlier`. No bill changes: packets that were not analysed say nothing of
    /// the waits.
    pub fn open_with(&mut self, earlier: &Opening) {
        let here = self.opening.counts_from;
        let by = [0, 1].map(|side| {
            here[side].zip(earlier.counts_from[side]).map_or(0, |(here, there)| (here - there) as u32)
        });
        for rung in &mut self.ladder {
            let side = usize::from(rung.from == Side::Server);
            rung.shift(by[side], by[1 - side]);
            if let (None, Some(scale)) = (rung.window_scale, earlier.scales[side]) {
                rung.window_scale = Some(scale);
                rung.window = u32::from(rung.window_field) << scale;
            }
        }
        self.opening = *earlier;
    }
}

/// Where along the path the capture was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vantage {
    /// Next to the client.
    Client,
    /// Next to the server.
    Server,
    /// Between them.
    Middle,
    /// Unknown (no handshake, or both ends on one host).
    #[default]
    Unknown,
}

impl Vantage {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

/// A setup, an exchange or a one-way message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Number within the connection, from 0 (the setup, if the capture has it).
    pub n: u64,
    /// Which of the four kinds.
    pub kind: Kind,
    /// Which end spoke first: mostly the client. A server may make requests as well, and may send
    /// what nobody asked for.
    pub initiator: Side,
    /// How it is known that the reply answers the request; `None` if there is no reply to a
    /// request.
    pub by: Option<Pairing>,
    /// Capture time of the first byte.
    pub start: Instant,
    /// From the request's first byte to the reply's last. The lines of `bill` sum to it exactly.
    pub elapsed: Duration,
    /// How long a subscription waited for news, which nobody minds; not billed.
    pub awaited: Duration,
    /// The client's own pause before it; not billed.
    pub client_idle: Duration,
    /// Payload of the request.
    pub request_bytes: u64,
    /// Payload of the reply.
    pub reply_bytes: u64,
    /// First and last packet number.
    pub packets: [u64; 2],
    /// The request in the protocol's words, if it has been filled in.
    pub request: Option<Box<str>>,
    /// The bill, largest first.
    pub bill: Vec<Line>,
}

/// How it is known which message answers which, the best evidence first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pairing {
    /// Both carry the same identifier.
    Identifier,
    /// The protocol answers in the order of the requests.
    Order,
    /// No other request was open.
    OnlyOpen,
    /// Which message answers which is unknown; anything based on it is at most likely.
    Guess,
}

impl Pairing {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identifier => "identifier",
            Self::Order => "order",
            Self::OnlyOpen => "only-open",
            Self::Guess => "guess",
        }
    }
}

/// What is billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The handshake of a connection.
    Setup,
    /// A request turn and the reply turn that answers it.
    Exchange,
    /// A message that gets no reply.
    OneWay,
    /// A request that is answered when there is news (long poll): nobody minds the wait.
    Subscription,
}

impl Kind {
    /// How many kinds there are.
    pub const COUNT: usize = 4;

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Exchange => "exchange",
            Self::OneWay => "one-way",
            Self::Subscription => "subscription",
        }
    }
}

/// One line of a bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What the time was spent on.
    pub cause: Cause,
    /// Who could change it.
    pub side: Side,
    /// Time spent.
    pub ns: Duration,
    /// The confidence that nine tenths of the time reach.
    pub confidence: Confidence,
    /// Packet numbers that show it.
    pub evidence: Vec<u64>,
    /// What was measured.
    pub detail: Detail,
}

/// How certain a charge or a line is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Confidence {
    /// It fits, and something else fits as well.
    #[default]
    Possible,
    /// The usual reading of these packets.
    Likely,
    /// The packets allow no other reading.
    Certain,
}

impl Confidence {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// What was measured about a line. Each cause fills the fields that it knows; JSON omits the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Bytes that waited (Nagle, cork).
    pub held_bytes: Option<u32>,
    /// The longest delay of the peer's acknowledgement.
    pub ack_delay: Option<Duration>,
    /// The window that was used up, bytes.
    pub window_bytes: Option<u64>,
    /// Bytes in flight when the sender stopped.
    pub flight_bytes: Option<u64>,
    /// Waits of this kind in the exchange.
    pub waits: Option<u32>,
    /// Segments retransmitted.
    pub retransmits: Option<u32>,
    /// The timer that matches the wait (RTO, cork).
    pub timer: Option<Duration>,
    /// Estimated rate of the bottleneck, bits per second.
    pub rate_bps: Option<u64>,
    /// For a finding: the smallest round trip of the connection that has its most expensive hit.
    pub round: Option<Duration>,
    /// The cause's own sub-form.
    pub form: Option<Form>,
}
