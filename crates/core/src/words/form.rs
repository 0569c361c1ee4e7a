//! In which form does a cause appear? The cause's own sub-form, a name for programs and words for
//! people.

/// A sub-form of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// A host dropped data that had arrived: its program does not accept connections.
    AcceptQueue,
    /// A congestion window that a loss has reduced.
    AfterLoss,
    /// A congestion window in congestion avoidance (RFC 5681, 3.1).
    Avoidance,
    /// A writer that was blocked on a full send buffer after a tail that Nagle held.
    BehindTail,
    /// What looks held may be the next request of a client that reads before it writes again.
    BesideAnswer,
    /// The path loses all large packets and no small one (RFC 2923, 2.1).
    BlackHole,
    /// A receive window that has stopped growing.
    Capped,
    /// A sender that let acknowledgements pass until a third of its buffer was free.
    Drained,
    /// Repaired by duplicate or selective acknowledgements.
    Fast,
    /// A receive window that is still growing.
    Growing,
    /// No copy of it was ever acknowledged.
    Ignored,
    /// A receive window that never grew.
    Locked,
    /// A tail loss probe that took new data: nothing was retransmitted.
    NewDataProbe,
    /// Packets that would explain it are missing from the capture.
    NotCaptured,
    /// A cork's timer would look the same.
    OrCork,
    /// A first transmission that was lost, and repaired by a timer, would look the same.
    OrLost,
    /// What follows may be a message of its own.
    OrMessages,
    /// A request that is answered when there is news would look the same.
    OrNews,
    /// Messages that nobody asked for would look the same.
    OrPushes,
    /// What was held may be a message of its own, not the rest of one.
    OwnMessage,
    /// A growing window whose segments are paced.
    Paced,
    /// The host that acknowledges is nearer than the host that answers.
    Proxy,
    /// A queue that delayed other connections at the time.
    Queue,
    /// A recovery from a loss is under way.
    Recovery,
    /// Packets were reordered.
    Reordered,
    /// The reply was late.
    Reply,
    /// The request was late.
    Request,
    /// Nagle's rule as in RFC 896: anything unacknowledged holds a small segment.
    Rfc896,
    /// The application reads slowly.
    SlowReader,
    /// A window smaller than a segment, until the probe's timer (RFC 9293, 3.8.6.2.1).
    SmallWindow,
    /// Many small writes fill the buffer by what the kernel spends on each.
    SmallWrites,
    /// A queue that lasted for the whole connection.
    Standing,
    /// The SYN was lost.
    Syn,
    /// The SYN-ACK was lost.
    SynAck,
    /// Repaired by a tail loss probe (RFC 8985, 7).
    TailProbe,
    /// Repaired by the retransmission timer.
    Timeout,
    /// A host acknowledges before a slow program answers: so the request had just arrived.
    Unacknowledged,
    /// No answer ever came.
    Unanswered,
    /// Flights of unequal size, unlike any window's.
    Uneven,
    /// The bytes never came.
    Unrepaired,
    /// A window at its maximum without window scaling (RFC 7323, 2).
    Unscaled,
    /// The first transmission was lost before the capture point.
    UnseenFirstCopy,
    /// MSG_MORE: held until all before it was acknowledged.
    UntilAcknowledged,
    /// A cork held the reply as a whole.
    WholeReply,
    /// A window without room for a segment.
    ZeroWindow,
}

impl Form {
    /// Every form, by its name.
    pub const ALL: [Self; 45] = [
        Self::AcceptQueue,
        Self::AfterLoss,
        Self::Avoidance,
        Self::BehindTail,
        Self::BesideAnswer,
        Self::BlackHole,
        Self::Capped,
        Self::Drained,
        Self::Fast,
        Self::Growing,
        Self::Ignored,
        Self::Locked,
        Self::NewDataProbe,
        Self::NotCaptured,
        Self::OrCork,
        Self::OrLost,
        Self::OrMessages,
        Self::OrNews,
        Self::OrPushes,
        Self::OwnMessage,
        Self::Paced,
        Self::Proxy,
        Self::Queue,
        Self::Recovery,
        Self::Reordered,
        Self::Reply,
        Self::Request,
        Self::Rfc896,
        Self::SlowReader,
        Self::SmallWindow,
        Self::SmallWrites,
        Self::Standing,
        Self::Syn,
        Self::SynAck,
        Self::TailProbe,
        Self::Timeout,
        Self::Unacknowledged,
        Self::Unanswered,
        Self::Uneven,
        Self::Unrepaired,
        Self::Unscaled,
        Self::UnseenFirstCopy,
        Self::UntilAcknowledged,
        Self::WholeReply,
        Self::ZeroWindow,
    ];

    /// The name in JSON and in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::AcceptQueue => "accept-queue",
            Self::AfterLoss => "after-loss",
            Self::Avoidance => "avoidance",
            Self::BehindTail => "behind-tail",
            Self::BesideAnswer => "beside-answer",
            Self::BlackHole => "black-hole",
            Self::Capped => "capped",
            Self::Drained => "drained",
            Self::Fast => "fast",
            Self::Growing => "growing",
            Self::Ignored => "ignored",
            Self::Locked => "locked",
            Self::NewDataProbe => "new-data-probe",
            Self::NotCaptured => "not-captured",
            Self::OrCork => "or-cork",
            Self::OrLost => "or-lost",
            Self::OrMessages => "or-messages",
            Self::OrNews => "or-news",
            Self::OrPushes => "or-pushes",
            Self::OwnMessage => "own-message",
            Self::Paced => "paced",
            Self::Proxy => "proxy",
            Self::Queue => "queue",
            Self::Recovery => "recovery",
            Self::Reordered => "reordered",
            Self::Reply => "reply",
            Self::Request => "request",
            Self::Rfc896 => "rfc896",
            Self::SlowReader => "slow-reader",
            Self::SmallWindow => "small-window",
            Self::SmallWrites => "small-writes",
            Self::Standing => "standing",
            Self::Syn => "syn",
            Self::SynAck => "syn-ack",
            Self::TailProbe => "tail-probe",
            Self::Timeout => "timeout",
            Self::Unacknowledged => "unacknowledged",
            Self::Unanswered => "unanswered",
            Self::Uneven => "uneven",
            Self::Unrepaired => "unrepaired",
            Self::Unscaled => "unscaled",
            Self::UnseenFirstCopy => "unseen-first-copy",
            Self::UntilAcknowledged => "until-acknowledged",
            Self::WholeReply => "whole-reply",
            Self::ZeroWindow => "zero-window",
        }
    }
}
