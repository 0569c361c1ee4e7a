//! What did the path do to each packet? The truth that captures are compared with.

use tcpwhy_wire::{Duration, Instant};

use super::{MAX_ELEMENTS, Packet, TcpHead};

/// How long a packet spent in each element so far, in the order of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits([Duration; MAX_ELEMENTS]);

impl Waits {
    /// Time spent in element `n`, counted from 0 at the sending host.
    pub fn in_element(&self, n: usize) -> Duration {
        self.0.get(n).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, n: usize, wait: Duration) {
        self.0[n] += wait;
    }
}

/// The same, no longer than necessary: millions of records are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitsKept(Box<[Duration]>);

impl WaitsKept {
    /// Time spent in element `n`, counted from 0 at the sending host.
    pub fn in_element(&self, n: usize) -> Duration {
        self.0.get(n).copied().unwrap_or_default()
    }
}

impl From<&Waits> for WaitsKept {
    fn from(waits: &Waits) -> Self {
        let len = waits.0.iter().rposition(|wait| wait.is_positive()).map_or(0, |last| last + 1);
        Self(waits.0[..len].into())
    }
}

/// Why an element dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// CoDel found a standing queue (RFC 8289).
    Codel,
    /// Chosen by the random stream.
    Random,
    /// The bad state of a Gilbert-Elliott channel.
    Burst,
    /// It was larger than the next link's MTU.
    TooLarge,
    /// The scenario named this segment.
    Named,
    /// A receiver with another acknowledgement policy would not have sent it.
    AckThinned,
}

impl DropReason {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::Codel => "codel",
            Self::Random => "random",
            Self::Burst => "burst",
            Self::TooLarge => "too-large",
            Self::Named => "named",
            Self::AckThinned => "ack-thinned",
        }
    }
}

/// What happened to one packet, written when it leaves the path or is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number in the order of entry into its direction, from 1.
    pub id: u64,
    /// The packet that this one is a duplicate of.
    pub copy_of: Option<u64>,
    /// When it entered the path.
    pub entered: Instant,
    /// When it was due to leave the path; for a dropped packet, when it was dropped.
    pub left: Instant,
    /// Length on the wire in bytes, from the IP header on.
    pub len: u32,
    /// The TCP header, if it has one.
    pub tcp: Option<TcpHead>,
    /// Time spent in each element.
    pub waits: WaitsKept,
    /// Which element dropped it, counted from 0 at the sending host, and why.
    pub dropped: Option<(usize, DropReason)>,
}

impl Record {
    /// The record of a packet that left the path at `packet.at`, or was dropped then.
    pub fn of(packet: &Packet) -> Self {
        Self {
            id: packet.id,
            copy_of: packet.copy_of,
            entered: packet.entered,
            left: packet.at,
            len: packet.len,
            tcp: packet.tcp,
            waits: (&packet.waits).into(),
            dropped: packet.dropped,
        }
    }
}
