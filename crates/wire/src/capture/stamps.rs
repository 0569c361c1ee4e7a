//! Is a packet's time stamp wrong? A stamp far after the previous packet's is, if the next packet's is
//! back before it: no clock does that. Such a packet gets its predecessor's time.

use crate::{Duration, Instant};

/// Stamps this far ahead are compared with the next one. Queues and interfaces of one capture differ by
/// seconds at most.
const AHEAD: Duration = Duration::from_secs(3_600);

/// The start of the next record or block that contains its time: of a pcapng block its type, length and
/// interface before it (draft-ietf-opsawg-pcapng section 4.3), of a pcap record less.
pub(super) const NEXT_LEN: usize = 20;

/// The time stamps so far.
#[derive(Clone, Debug)]
pub(super) struct Stamps {
    /// The previous packet's.
    pub last: Instant,
    /// Later ones are compared with the next one.
    pub until: Instant,
    /// Number of the last packet with a wrong one.
    pub wrong: u64,
}

impl Stamps {
    pub(super) const fn new() -> Self {
        Self { last: Instant::MIN, until: Instant::MIN, wrong: 0 }
    }

    /// Whether there is nothing to compare with yet.
    pub(super) fn is_first(&self) -> bool {
        self.until == Instant::MIN
    }

    /// Whether this time is wrong, if the next packet has that one.
    pub(super) fn is_wrong(&self, at: Instant, next: Instant) -> bool {
        at - self.last > AHEAD && at - next > AHEAD && self.last - next <= AHEAD
    }

    /// Time has come this far.
    pub(super) fn pass(&mut self, at: Instant) {
        self.until = at + AHEAD;
    }

    /// From here on no stamp is compared: what comes is not all of the capture.
    pub(super) fn end(&mut self) {
        self.until = Instant::MAX;
    }
}
