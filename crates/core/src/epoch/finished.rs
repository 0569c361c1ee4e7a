//! What is remembered of a connection that has finished, and which later segments still belong to it?

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use crate::flow::both_ends::BothEnds;
use crate::flow::duplicate_filter::DuplicateFilter;
use crate::flow::ends::{CLIENT, SERVER};

/// How long a finished connection is remembered, so that its last stragglers do not look like a new
/// one.
pub(super) const LINGER: Duration = Duration::from_secs(5);
/// A timer is doubled for each retransmission (RFC 6298, 5.5), and may be late.
const NEXT_TIMER: i64 = 3;
/// No timer is longer (TCP_RTO_MAX, include/net/tcp.h).
const RTO_MAX: Duration = Duration::from_secs(120);
/// A SYN this long after its refusal is no duplicate of the refused one: Windows retries twice, half a
/// second apart, with the same sequence number.
const TRIES_AGAIN: Duration = Duration::from_millis(100);

/// What is remembered of a finished connection.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    pub(super) ends: BothEnds,
    /// Sequence number of each end's first payload byte.
    pub(super) first: [Option<Seq>; 2],
    pub(super) hash: u32,
    /// It is remembered for [`LINGER`] after this: when it finished by the capture's clock, which does not run
    /// back, or later, if the timer of a straggler goes on.
    pub(super) clock: Instant,
    pub(super) duplicates: Option<DuplicateFilter>,
    /// The server refused it.
    pub(super) refused: bool,
    /// Tells it from others in the same place; 0 once it is forgotten.
    pub(super) generation: u64,
    /// Where it is listed, unless a reset ended it: its stragglers are still counted there.
    pub(super) listed: Option<usize>,
    /// The last data that came since, and when.
    pub(super) again: Option<Seq>,
    pub(super) again_at: Instant,
}

impl Finished {
    /// Whether this segment starts a new connection between the same ends.
    pub(super) fn is_other_incarnation(&self, segment: &Segment, clock: Instant) -> bool {
        let from = if segment.src == self.ends.end(CLIENT) { CLIENT } else { SERVER };
        let new = segment.flags.syn() && !segment.flags.ack();
        let tries_again = self.refused && clock - self.clock >= TRIES_AGAIN;
        // What does not repeat that data is on no timer.
        let since = if self.repeats(segment) { self.clock } else { self.clock.min(self.again_at) };
        clock - since >= LINGER
            || (new && (tries_again || self.first[from].is_none_or(|first| segment.seq + 1 != first)))
    }

    /// A straggler came. One that repeats the last one's data is on a timer, which goes on doubling.
    pub(super) fn on_straggler(&mut self, segment: &Segment, clock: Instant) {
        if segment.payload_len > 0 {
            if self.repeats(segment) {
                let next = (clock - self.again_at).times(NEXT_TIMER).clamp(LINGER, RTO_MAX);
                self.clock = clock + (next - LINGER);
            }
            (self.again, self.again_at) = (Some(segment.seq), clock);
        }
    }

    fn repeats(&self, segment: &Segment) -> bool {
        segment.payload_len > 0 && self.again == Some(segment.seq)
    }
}
