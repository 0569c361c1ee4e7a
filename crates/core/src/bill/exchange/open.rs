//! What is under way: who asked, what has passed of the question and of its answer, and since when?

use tcpwhy_wire::{Duration, Instant, Segment, Seq};

use super::Path;
use crate::bill::account::Account;
use crate::bill::charge::Charge;
use crate::bill::split::Split;
use crate::words::limits::SEND_BUFFER_MIN;
use crate::words::report::Kind;

/// How an answer lies to the pieces of its request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// From the first piece to the last.
    pub pieces: Duration,
    /// From the first piece to the answer.
    pub answer: Duration,
}

/// A part of a message that is a message of its own if no answer comes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub account: Account,
    pub start: Instant,
    pub bytes: u64,
    pub packets: [u64; 2],
    /// The sender's pause behind it.
    pub silence: Split,
}

/// An exchange, a greeting or a one-way message under way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Open {
    pub n: u64,
    /// Index of the end that spoke first.
    pub initiator: usize,
    pub start: Instant,
    /// When its first segment passed: it may have been late.
    pub passed: Instant,
    pub client_idle: Duration,
    pub request: Path,
    pub reply: Path,
    /// Earlier pieces of the request.
    pub pieces: Vec<Piece>,
    /// Where the request's present piece began: time, first packet, bytes so far.
    pub piece: (Instant, u64, u64),
    /// How long after the request's last segment the reply's first one passed.
    pub waited: Duration,
    /// Who answers whom is a guess.
    pub is_guess: bool,
    /// What the initiator acknowledged when it sent last.
    pub request_acks: Option<Seq>,
    /// First byte of the reply, once there is one.
    pub reply_first: Option<Seq>,
    pub request_bytes: u64,
    pub reply_bytes: u64,
    pub packets: [u64; 2],
    /// The initiator's first byte.
    pub request_first: Option<Seq>,
    /// End of the initiator's data so far.
    pub request_end: Option<Seq>,
    /// What the wait of its first segment on its way here was counted from, where that can be told.
    pub way_base: Option<Duration>,
    /// What that wait came to by its time stamp, until it is settled.
    pub late: Option<Charge>,
}

impl Open {
    pub(crate) fn new() -> Self {
        Self {
            n: 0,
            initiator: 0,
            start: Instant::MIN,
            passed: Instant::MIN,
            client_idle: Duration::ZERO,
            request: Path::default(),
            reply: Path::default(),
            pieces: Vec::new(),
            piece: (Instant::MIN, 0, 0),
            waited: Duration::ZERO,
            is_guess: false,
            request_acks: None,
            reply_first: None,
            request_bytes: 0,
            reply_bytes: 0,
            packets: [0; 2],
            request_first: None,
            request_end: None,
            way_base: None,
            late: None,
        }
    }

    /// See `flow/direction/touch.rs`.
    #[inline]
    pub(crate) fn touch(&self) -> u64 {
        let paths = [&self.request, &self.reply].map(|path| {
            let last = path.last.as_ref().map_or(0, |last| last.packet);
            path.account.touch() ^ last ^ u64::from(path.blocked_bytes)
        });
        self.n ^ self.packets[0] ^ paths[0] ^ paths[1]
    }

    /// Bytes that it takes in all.
    pub(crate) fn memory(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.account.heap()).sum::<usize>();
        let kept = self.pieces.capacity() * size_of::<Piece>();
        size_of::<Self>() + self.request.heap() + self.reply.heap() + kept + pieces
    }

    /// Begins anew with this segment, keeping the memory.
    pub(crate) fn restart(
        &mut self,
        n: u64,
        initiator: usize,
        start: Instant,
        idle: Duration,
        (passed, packet): (Instant, u64),
    ) {
        self.n = n;
        self.initiator = initiator;
        (self.start, self.passed) = (start, passed);
        self.client_idle = idle;
        self.request.clear();
        self.reply.clear();
        self.pieces.clear();
        self.piece = (start, packet, 0);
        self.reply_first = None;
        self.waited = Duration::ZERO;
        self.is_guess = false;
        self.request_bytes = 0;
        self.reply_bytes = 0;
        self.packets = [packet; 2];
        self.request_acks = None;
        self.request_first = None;
        self.request_end = None;
        self.way_base = None;
        self.late = None;
    }

    /// Whether the responder sent this before any of the request had reached it.
    pub(crate) fn crosses(&self, segment: &Segment) -> bool {
        self.reply_first.is_none()
            && segment.flags.ack()
            && self.request_first.is_some_and(|first| segment.ack.at_or_before(first))
    }

    /// When the request's latest bytes passed.
    pub(crate) fn request_at(&self) -> Instant {
        self.request.last.map_or(self.start, |last| last.at)
    }

    pub(crate) fn kind(&self) -> Kind {
        if self.reply_first.is_some() { Kind::Exchange } else { Kind::OneWay }
    }

    /// The path that ends it.
    pub(crate) fn last_path(&mut self) -> &mut Path {
        if self.reply_first.is_some() { &mut self.reply } else { &mut self.request }
    }

    /// The end that has the last word so far.
    pub(crate) fn last_speaker(&self) -> usize {
        if self.reply_first.is_some() { 1 - self.initiator } else { self.initiator }
    }

    /// How long the first answer to a request in pieces took, where nothing happened before its first piece.
    pub(crate) fn timing(&self, answer: &Segment) -> Option<Timing> {
        let last = self.request.last.filter(|_| self.request.index > 0 && self.pieces.is_empty())?;
        // What fits no send buffer leaves as the path takes it: its pieces say nothing of an application.
        let short = self.request_bytes < u64::from(SEND_BUFFER_MIN);
        let first = short && self.reply.last.is_none() && self.start == self.piece.0;
        first.then(|| Timing { pieces: last.at - self.passed, answer: answer.at - self.passed })
    }

    /// Takes a segment's bytes into the sums.
    pub(crate) fn count(&mut self, segment: &Segment, from: usize, new_bytes: u64) {
        self.packets[1] = segment.packet;
        if from == self.initiator {
            self.request_acks = segment.flags.ack().then_some(segment.ack);
            self.request_bytes += new_bytes;
            self.piece.2 += new_bytes;
            self.request_end = Some(segment.seq + segment.payload_len);
        } else {
            self.reply_bytes += new_bytes;
        }
    }
}
