//! What does a rule answer: how an interval splits, and what released the segment?

use tcpwhy_wire::Instant;

use crate::bill::split::Split;
use crate::flow::segment_class::LastData;
use crate::words::cause::Cause;
use crate::words::form::Form;
use crate::words::limits::BURST_GAP;
use crate::words::report::{Confidence, Trigger};

/// The split of one interval, and what released the segment.
pub(crate) struct Verdict {
    pub split: Split,
    pub trigger: Trigger,
}

/// What held a sender, in which form, and with what confidence.
pub(super) type Held = (Cause, Option<Form>, Confidence);

/// The earlier packet that a segment after `at` responds to, for the ladder.
pub(crate) fn burst(last: &LastData, at: Instant) -> Trigger {
    if at - last.at < BURST_GAP { Trigger::Burst } else { Trigger::Write }
}
