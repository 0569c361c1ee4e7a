//! What is a rule told that asks about both ends of a connection, and not about one sender's wait?

use tcpwhy_wire::{Duration, Instant, Segment};

use super::proxy::Beyond;
use super::sender_model::SenderModel;
use crate::bill::charge::Charge;
use crate::bill::exchange::Open;
use crate::flow::direction::Flow;
use crate::flow::ends::{CLIENT, SERVER, side};
use crate::flow::handshake::Setup;
use crate::flow::path_memory::PathMemory;

/// Both ends, client and server, and the way between them.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Pair<'a> {
    pub flows: &'a [Flow; 2],
    pub models: &'a [SenderModel; 2],
    /// The largest payload of one packet of each end.
    pub sizes: [u32; 2],
    /// Round trip between the capture and each end; nothing where nothing shows it yet.
    pub tap_rtt: [Duration; 2],
    /// What all connections between these hosts know.
    pub path_memory: &'a PathMemory,
    pub now: Instant,
    /// The connection's beginning is not in the capture.
    pub midway: bool,
    /// Nothing but who was heard first says which end asks.
    pub heard_first: bool,
    /// The capture's clock counts less than milliseconds.
    pub fine: bool,
    /// The handshake has shown how far away an end is.
    pub shown: [bool; 2],
    /// The handshake, where the capture has some of it.
    pub setup: &'a Option<Setup>,
    /// How far away an end is is known from above only.
    pub bound: [bool; 2],
    /// Whoever asks keeps the stream of its question open, and may say more on it: nothing is owed there.
    pub dialogue: bool,
    /// Whoever acknowledges for the server stands nearer.
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

    /// Whether the capture stands nearer to the other end than to this one, which is on another host.
    pub(crate) fn is_far(&self, end: usize) -> bool {
        self.tap_rtt[end] > self.tap_rtt[1 - end] && !self.flows[1 - end].on_one_host
    }

    /// What of `left` is the way behind whoever acknowledges for this end.
    pub(crate) fn way_beyond(&self, end: usize, left: Duration) -> Option<Charge> {
        self.beyond.filter(|_| end == SERVER).and_then(|way| way.charge(left, side(end)))
    }

    /// When the question's acknowledgement passed, if that was another packet than its answer.
    pub(crate) fn acked_by_itself(&self, open: &Open, answer: &Segment) -> Option<Instant> {
        let asked = &self.flows[open.initiator];
        let last = open.request.last?;
        let known = asked.view.clocking_ack().filter(|ack| ack.packet != answer.packet);
        let known = known.map(|ack| ack.earliest_departure).filter(|&at| at > last.at);
        asked.acked_before(answer).or(known)
    }
}
