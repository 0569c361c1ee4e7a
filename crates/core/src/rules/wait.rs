//! What is a rule asked about: an interval, what its sender knew by its end, and how exactly that is known?

use tcpwhy_wire::{Duration, Segment};

use super::sender_model::SenderModel;
use crate::flow::direction::Flow;
use crate::flow::segment_class::{LastData, SegmentClass};
use crate::flow::view::ClockingAck;
use crate::words::limits::{BESIDE, HOST_VARIATION, LATE_SHARE};

/// The time a slow host takes to answer an acknowledgement with the next segment.
pub(super) const SLOW_HOST: Duration = Duration::from_millis(4);

/// Upper bound of the host's part of [`Wait::tolerance`], however long the wait was. Source: none
/// written down.
const TOLERANCE_MAX: Duration = Duration::from_millis(1);

/// A path varies by one part in this many of its round trip. Source: none written down.
const PATH_VARIATION: i64 = 16;

/// An interval in which a sender in the middle of a message sent nothing.
#[expect(clippy::struct_excessive_bools, reason = "each says something of its own")]
pub(crate) struct Wait<'a> {
    pub flow: &'a Flow,
    /// The other direction.
    pub peer: &'a Flow,
    /// The packet that the segment before answers, if that is its message's first: it had arrived by then, with all that
    /// it acknowledges, and releases nothing any more.
    pub asked: u64,
    /// The segment that ended the wait.
    pub segment: &'a Segment,
    pub class: SegmentClass,
    /// The segment before it on the path.
    pub last: &'a LastData,
    pub gap: Duration,
    /// The largest payload of one packet of this sender.
    pub mss: u32,
    /// Round trip between the capture and the sender.
    pub rtt_to_sender: Duration,
    /// Round trip between the capture and the peer.
    pub rtt_to_receiver: Duration,
    /// What is known of this sender from earlier in the connection.
    pub model: &'a SenderModel,
    /// The index of this gap in its message, from 0.
    pub index: usize,
    /// The segment continues a request although part of the answer had arrived.
    pub beside_answer: bool,
    /// The capture lacks the start of the connection, and the distance to the sender was still
    /// unknown when the acknowledgements passed that it may have waited for.
    pub far_unknown: bool,
    /// A host that terminates TCP is in front of the sender, and nothing has shown how near it is.
    pub behind_host: bool,
    /// The connection's beginning is not in the capture.
    pub midway: bool,
    /// The capture's clock counts milliseconds: it cannot show what closely follows what.
    pub coarse: bool,
    /// The same end of another connection to this server does without Nagle's algorithm.
    pub nodelay_beside: bool,
    /// The sender often says something that nobody has asked for.
    pub speaks_unasked: bool,
}

impl Wait<'_> {
    /// How closely a segment follows what released it: the host's own latency near the sender, plus
    /// the variation of the path far from it.
    pub(crate) fn tolerance(&self) -> Duration {
        let host = self.gap.divided_by(LATE_SHARE).max(HOST_VARIATION).min(TOLERANCE_MAX);
        host + self.rtt_to_sender.divided_by(PATH_VARIATION)
    }

    /// Whether this acknowledgement had not certainly arrived before the wait.
    pub(super) fn may_wait_for(&self, ack: &ClockingAck) -> bool {
        ack.packet > self.asked
    }

    /// Whether the segment left because `ack` reached its sender.
    pub(crate) fn follows(&self, ack: &ClockingAck) -> bool {
        let after = self.segment.at - ack.earliest_departure;
        let not_before = HOST_VARIATION + self.rtt_to_sender.divided_by(PATH_VARIATION);
        // The segment's own delay on the way to the capture says nothing about when it left.
        let queued = self.flow.queued_on_way.get().unwrap_or_default();
        self.may_wait_for(ack)
            && ack.earliest_departure > self.last.at - not_before
            && after >= -not_before
            && after <= self.tolerance() + queued
    }

    /// Whether the segment is of full size.
    pub(crate) fn is_full(&self) -> bool {
        self.flow.is_full(self.segment.payload_len, self.mss)
    }

    /// Whether everything sent before was acknowledged, as seen at the capture point.
    pub(super) fn has_nothing_under_way(&self) -> bool {
        self.flow.highest_ack == Some(self.segment.seq)
    }

    /// By how much the peer held back this acknowledgement.
    pub(crate) fn ack_delay(&self, ack: &ClockingAck) -> Option<Duration> {
        ack.rtt.get().map(|rtt| (rtt - self.rtt_to_receiver).at_least_zero())
    }

    pub(crate) fn rtt(&self) -> Duration {
        self.rtt_to_sender + self.rtt_to_receiver
    }

    /// Whether the capture is nearer to the sender than to its peer.
    pub(crate) fn near_sender(&self) -> bool {
        self.rtt_to_sender <= self.rtt_to_receiver
    }

    /// Whether the capture is beside the peer.
    pub(super) fn beside_receiver(&self) -> bool {
        self.rtt_to_receiver.times(BESIDE) <= self.rtt()
    }

    /// Whether a loss was signalled within the last round trip.
    pub(super) fn recovering(&self) -> bool {
        self.flow
            .view
            .loss_signal
            .get()
            .is_some_and(|at| at + self.rtt() + self.tolerance() >= self.segment.at)
    }
}
