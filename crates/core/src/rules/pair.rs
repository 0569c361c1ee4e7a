//! What is a rule told that asks about both ends of a connection, not about one sender's wait?

use tcpwhy_wire::{Duration, Instant, Segment};

use super::proxy::Beyond;
use super::sender_model::SenderModel;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::handshake::Setup;
use crate::flow::path_memory::PathMemory;
use crate::words::limits::NEAR_MAX;

/// Both ends, client and server, and the path between them.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Pair<'a> {
    pub flows: &'a [Flow; 2],
    pub models: &'a [SenderModel; 2],
    /// The largest payload of one packet of each end.
    pub sizes: [u32; 2],
    /// Round trip between the capture and each end; zero while unknown.
    pub tap_rtt: [Duration; 2],
    /// What is known from all connections between these hosts.
    pub path_memory: &'a PathMemory,
    pub now: Instant,
    /// The capture lacks the start of the connection.
    pub midway: bool,
    /// Which end makes the requests is only guessed, from which spoke first.
    pub heard_first: bool,
    /// The server spoke first, and nothing else says which end asks.
    pub greeted: bool,
    /// The capture's clock is finer than milliseconds.
    pub fine: bool,
    /// The handshake has shown the distance to an end.
    pub shown: [bool; 2],
    /// The handshake, where the capture has some of it.
    pub setup: &'a Option<Setup>,
    /// The distance to an end is only an upper bound.
    pub bound: [bool; 2],
    /// It has become shorter and may do so again, or no other round trip agrees with the least.
    pub varies: [bool; 2],
    /// The requester keeps the stream of its request open and may say more on it: nothing is owed
    /// there.
    pub dialogue: bool,
    /// What another connection brought to the responder may have released the reply: it had waited for news.
    pub released: bool,
    /// Something nearer acknowledges for the server.
    pub beyond: Option<Beyond>,
}

impl Pair<'_> {
    /// [`Setup::is_unproven`].
    #[inline]
    pub(crate) fn is_unproven(&self) -> bool {
        self.setup
            .as_ref()
            .is_some_and(|setup| setup.is_unproven(self.flows[CLIENT].acked_bare, self.tap_rtt[SERVER]))
    }

    /// [`Setup::is_ambiguous`], of this end's distance.
    #[inline]
    pub(crate) fn is_ambiguous(&self, end: usize) -> bool {
        let ambiguous = |setup: &Setup| setup.is_ambiguous(self.flows[CLIENT].acked_bare);
        end == SERVER && !self.shown[SERVER] && self.setup.as_ref().is_some_and(ambiguous)
    }

    /// Whether nothing has timed the path to a client that answered one of several SYN-ACKs: the
    /// round trip at the capture may be a small part of the path.
    #[inline]
    pub(crate) fn is_client_untimed(&self) -> bool {
        !self.shown[CLIENT] && self.setup.as_ref().is_some_and(Setup::is_taken_behind_a_timer)
    }

    /// Whether this end is farther from the capture than the other one, and not in the same network.
    pub(crate) fn is_beyond_lan(&self, end: usize) -> bool {
        self.is_far(end) && self.tap_rtt[end] >= NEAR_MAX
    }

    /// Whether this end is farther from the capture than the other one, and on another host.
    pub(crate) fn is_far(&self, end: usize) -> bool {
        self.tap_rtt[end] > self.tap_rtt[1 - end] && !self.flows[1 - end].on_one_host
    }

    /// The part of `left` that is the path beyond whatever acknowledges for this end.
    pub(crate) fn way_beyond(&self, end: usize, left: Duration) -> Option<Charge> {
        self.beyond.filter(|_| end == SERVER).and_then(|way| way.charge(left, side(end)))
    }

    /// When the request's acknowledgement passed, if it came before the answer in a separate
    /// packet.
    pub(crate) fn acked_by_itself(&self, open: &Open, answer: &Segment) -> Option<Instant> {
        let asked = &self.flows[open.initiator];
        let last = open.request.last?;
        let known = asked.view.clocking_ack().filter(|ack| ack.packet != answer.packet);
        let known = known.map(|ack| ack.earliest_departure).filter(|&at| at > last.at);
        asked.acked_before(answer).or(known)
    }
}
