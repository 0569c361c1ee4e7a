//! How did each end behave: how does it acknowledge, what windows does it offer, what does it
//! write, how does it react to losses?
//!
//! All of it follows from the packets of one connection, kept as its ladder: none of this runs for
//! every packet. What a capture at the other end cannot show is left out.

mod acknowledging;
mod controller;
mod rounds;
mod seen;
mod window;
mod writing;

use tcpwhy_wire::Duration;

pub use acknowledging::Acknowledging;
pub use controller::Controller;
pub use rounds::Round;
pub use window::WindowHistory;
pub use writing::Write;

use crate::words::cause::Side;
use crate::words::report::{Connection, Exchange, Rung, Vantage};
use seen::Seen;

/// How one end behaved on a connection, as far as its packets show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// How it acknowledges the other end's data.
    pub acknowledging: Option<Acknowledging>,
    /// The windows that it offers.
    pub window: Option<WindowHistory>,
    /// The sizes that its application writes most often, the most frequent first.
    pub writes: Vec<Write>,
    /// The congestion control that its reaction to losses looks like.
    pub controller: Option<Controller>,
}

impl Connection {
    /// How one end behaved. Empty if the connection has no ladder.
    pub fn conduct(&self, end: Side) -> Conduct {
        let seen = Seen { rungs: &self.ladder, end, tap_rtt: self.tap_rtt(end), segment: self.segment() };
        Conduct {
            acknowledging: acknowledging::of(&seen),
            window: window::of(&seen),
            writes: writing::of(&seen),
            controller: self.shows_flights(end).then(|| controller::of(&seen)).flatten(),
        }
    }

    /// The round trips of the longer part of one of its exchanges, each with its bytes in flight.
    /// Empty without a ladder.
    pub fn rounds(&self, exchange: &Exchange) -> Vec<Round> {
        self.rounds_in(&self.ladder, exchange)
    }

    /// The same with a ladder from elsewhere.
    pub fn rounds_in(&self, ladder: &[Rung], exchange: &Exchange) -> Vec<Round> {
        let [first, last] = exchange.packets;
        let from = ladder.partition_point(|rung| rung.packet < first);
        let to = ladder.partition_point(|rung| rung.packet <= last);
        let responder = if exchange.initiator == Side::Client { Side::Server } else { Side::Client };
        let end = if exchange.reply_bytes > exchange.request_bytes { responder } else { exchange.initiator };
        let rungs = ladder.get(from..to).unwrap_or_default();
        rounds::of(&Seen { rungs, end, tap_rtt: self.tap_rtt(end), segment: self.segment() })
    }

    /// Round trip between the capture and one end, estimated from the vantage.
    fn tap_rtt(&self, end: Side) -> Duration {
        let rtt = self.rtt_min.unwrap_or_default();
        match (self.vantage, end) {
            (Vantage::Client, Side::Client) | (Vantage::Server, Side::Server) | (Vantage::Unknown, _) => {
                Duration::ZERO
            }
            (Vantage::Client | Vantage::Server, _) => rtt,
            (Vantage::Middle, _) => rtt.divided_by(2),
        }
    }

    /// Whether the capture shows bytes in flight as this end sends them.
    fn shows_flights(&self, end: Side) -> bool {
        matches!((self.vantage, end), (Vantage::Client, Side::Client) | (Vantage::Server, Side::Server))
    }

    /// Approximately the largest payload of a packet: time stamps take twelve bytes of the
    /// announced MSS.
    fn segment(&self) -> u64 {
        self.mss.iter().flatten().min().map_or(DEFAULT_SEGMENT, |&mss| u64::from(mss)).max(1)
    }
}

/// That of Ethernet.
const DEFAULT_SEGMENT: u64 = 1460;
