//! A request turn and the reply turn that answers it, while it is under way.
//!
//! Two paths run through an exchange: the request's, from its first byte to its latest, and the reply's. A reply
//! segment continues the reply before it, or answers request bytes that came since; in the second case its account is
//! the request's account and the server's part. Every account spans the time from the exchange's first byte to its
//! path's last segment, so that whichever path the reply took, its lines sum to what passed.

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use crate::account::{Account, Split};
use crate::half::{Half, LastData, Queue};
use crate::report::Kind;

/// One direction's part of an exchange.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path {
    pub account: Account,
    pub last: Option<LastData>,
    /// Retransmissions since `last`, not yet known to have repaired anything.
    pending: Account,
    pending_last: Option<LastData>,
    /// Further writes so far.
    pub index: usize,
}

impl Path {
    pub(crate) fn clear(&mut self) {
        self.account.clear();
        self.pending.clear();
        self.last = None;
        self.pending_last = None;
        self.index = 0;
    }

    pub(crate) fn begin(&mut self, at: LastData) {
        self.last = Some(at);
    }

    /// Starts this path where another one is, and adds what happened since.
    pub(crate) fn branch(&mut self, from: &Self, split: &Split, at: LastData) {
        self.clear();
        self.account.copy_from(&from.account);
        self.account.charge_split(split);
        self.last = Some(at);
    }

    /// New data went out after `split`.
    pub(crate) fn advance(&mut self, split: &Split, at: LastData) {
        self.account.charge_split(split);
        self.last = Some(at);
        self.index += 1;
    }

    /// Data went out again after `split`: it counts only if it proves to have been needed.
    pub(crate) fn repair(&mut self, split: &Split, at: LastData) {
        self.pending.charge_split(split);
        self.pending_last = Some(at);
    }

    /// Where the next interval starts.
    pub(crate) fn frontier(&self) -> Option<LastData> {
        self.pending_last.or(self.last)
    }

    /// When the last retransmission went out that may have repaired nothing.
    pub(crate) fn repaired_at(&self) -> Option<Instant> {
        self.pending_last.map(|last| last.at)
    }

    /// The retransmissions were needed.
    pub(crate) fn commit(&mut self) {
        if let Some(last) = self.pending_last.take() {
            let una = self.last.and_then(|before| before.una);
            self.last = Some(LastData { una, ..last });
            for view in self.pending.summary() {
                for charge in view.charges() {
                    self.account.charge(&charge);
                }
            }
            self.pending.clear();
        }
    }

    /// The original had arrived: nothing waited for the retransmissions.
    pub(crate) fn discard(&mut self) {
        self.pending_last = None;
        self.pending.clear();
    }
}

/// An exchange, a greeting or a one-way message under way.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub n: u64,
    /// Index of the half that spoke first.
    pub initiator: usize,
    pub start: Instant,
    pub client_idle: Duration,
    pub request: Path,
    pub reply: Path,
    /// First byte of the reply, once there is one.
    pub reply_first: Option<Seq>,
    pub request_bytes: u64,
    pub reply_bytes: u64,
    pub packets: [u64; 2],
    /// When everything that the responder (in a one-way message: the initiator) sent was acknowledged, at the capture.
    pub acked_at: Option<Instant>,
    /// End of the initiator's data so far.
    pub request_end: Option<Seq>,
}

impl Open {
    pub(crate) fn new() -> Self {
        Self {
            n: 0,
            initiator: 0,
            start: Instant::MIN,
            client_idle: Duration::ZERO,
            request: Path::default(),
            reply: Path::default(),
            reply_first: None,
            request_bytes: 0,
            reply_bytes: 0,
            packets: [0; 2],
            acked_at: None,
            request_end: None,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.reply_first.is_some() { Kind::Exchange } else { Kind::OneWay }
    }

    /// The path that ends it.
    pub(crate) fn last_path(&mut self) -> &mut Path {
        if self.reply_first.is_some() { &mut self.reply } else { &mut self.request }
    }

    /// The half that has the last word so far.
    pub(crate) fn last_speaker(&self) -> usize {
        if self.reply_first.is_some() { 1 - self.initiator } else { self.initiator }
    }
}

/// The record of a data segment for the path it belongs to.
pub(crate) fn last_data(half: &Half, segment: &Segment) -> LastData {
    half.last_data.filter(|last| last.packet == segment.packet).unwrap_or(LastData {
        at: segment.at,
        packet: segment.packet,
        queue: Queue::Unknown,
        len: segment.payload_len,
        flight: half.outstanding(),
        una: half.view.una,
    })
}
