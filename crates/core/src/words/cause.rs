//! What can time be spent on, and who could change it?

use std::fmt;
use std::str::FromStr;

/// What an interval of an exchange was spent on. The kebab-case names are the contract with JSON, the command line
/// and the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// The one round trip that any exchange needs, at the path's minimum.
    RoundTrip,
    /// Serialisation at the bottleneck, its queue filled by this transfer included.
    Bandwidth,
    /// Delay above the minimum round trip that this transfer did not cause.
    Queueing,
    /// Waiting for a fast repair: duplicate acknowledgements, SACK, RACK or a tail loss probe.
    Loss,
    /// Waiting for a retransmission timeout of data.
    Rto,
    /// Waiting for the retransmission of a SYN or SYN-ACK.
    SynRetransmit,
    /// The connection's own round trip.
    Handshake,
    /// The round trips of setting up TLS.
    TlsHandshake,
    /// Request complete at the server, first reply byte not written yet.
    ServerThink,
    /// The sending application had not written the next byte yet, in the middle of a message.
    SenderThink,
    /// The receiving application did not read: the window closed.
    ReceiverThink,
    /// A small write held by Nagle while the peer delayed its acknowledgement.
    NagleDelayedAck,
    /// A small write held by Nagle until a prompt acknowledgement.
    Nagle,
    /// A partial segment held by TCP_CORK or MSG_MORE until the timer.
    Cork,
    /// The sender's congestion window was used up and the receiver delayed its acknowledgement.
    DelayedAckCwnd,
    /// Congestion window used up while it grows from its initial value.
    SlowStart,
    /// The same, after the window was reset because the connection was idle.
    SlowStartAfterIdle,
    /// Congestion window used up at any other time.
    CongestionWindow,
    /// The advertised window was used up.
    ReceiveWindow,
    /// The application protocol's own window was used up.
    ApplicationWindow,
    /// The sending socket's buffer was used up.
    SendBuffer,
    /// The sender spaced segments below what windows and path allowed.
    Pacing,
    /// None of the above can be shown.
    Unexplained,
}

impl Cause {
    /// How many causes there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Every cause, in the order of the documentation.
    pub const ALL: [Self; 23] = [
        Self::RoundTrip,
        Self::Bandwidth,
        Self::Queueing,
        Self::Loss,
        Self::Rto,
        Self::SynRetransmit,
        Self::Handshake,
        Self::TlsHandshake,
        Self::ServerThink,
        Self::SenderThink,
        Self::ReceiverThink,
        Self::NagleDelayedAck,
        Self::Nagle,
        Self::Cork,
        Self::DelayedAckCwnd,
        Self::SlowStart,
        Self::SlowStartAfterIdle,
        Self::CongestionWindow,
        Self::ReceiveWindow,
        Self::ApplicationWindow,
        Self::SendBuffer,
        Self::Pacing,
        Self::Unexplained,
    ];

    /// Its bit in a set of causes.
    pub(crate) const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The name in JSON, on the command line and in the documentation.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RoundTrip => "round-trip",
            Self::Bandwidth => "bandwidth",
            Self::Queueing => "queueing",
            Self::Loss => "loss",
            Self::Rto => "rto",
            Self::SynRetransmit => "syn-retransmit",
            Self::Handshake => "handshake",
            Self::TlsHandshake => "tls-handshake",
            Self::ServerThink => "server-think",
            Self::SenderThink => "sender-think",
            Self::ReceiverThink => "receiver-think",
            Self::NagleDelayedAck => "nagle-delayed-ack",
            Self::Nagle => "nagle",
            Self::Cork => "cork",
            Self::DelayedAckCwnd => "delayed-ack-cwnd",
            Self::SlowStart => "slow-start",
            Self::SlowStartAfterIdle => "slow-start-after-idle",
            Self::CongestionWindow => "congestion-window",
            Self::ReceiveWindow => "receive-window",
            Self::ApplicationWindow => "application-window",
            Self::SendBuffer => "send-buffer",
            Self::Pacing => "pacing",
            Self::Unexplained => "unexplained",
        }
    }

    /// Who could change it, when `sender` was sending.
    pub const fn side(self, sender: Side) -> Side {
        match self {
            Self::RoundTrip
            | Self::Bandwidth
            | Self::Queueing
            | Self::Loss
            | Self::Rto
            | Self::SynRetransmit => Side::Path,
            Self::Handshake | Self::TlsHandshake => Side::Client,
            Self::ServerThink
            | Self::SenderThink
            | Self::NagleDelayedAck
            | Self::Nagle
            | Self::Cork
            | Self::SlowStart
            | Self::SlowStartAfterIdle
            | Self::CongestionWindow
            | Self::SendBuffer
            | Self::Pacing => sender,
            // The receiver delays its acknowledgement; the detail names the sender's window of one
            // or two segments.
            Self::ReceiverThink | Self::ReceiveWindow | Self::ApplicationWindow | Self::DelayedAckCwnd => {
                sender.peer()
            }
            Self::Unexplained => Side::Unknown,
        }
    }
}

// Checking the last one suffices: it is in its place only if `ALL` has all others; a set of causes
// has 32 bits.
const _: () = assert!(Cause::Unexplained as usize + 1 == Cause::COUNT && Cause::COUNT <= 32);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Cause {
    type Err = UnknownCause;

    fn from_str(name: &str) -> Result<Self, UnknownCause> {
        Self::ALL.into_iter().find(|cause| cause.name() == name).ok_or(UnknownCause)
    }
}

/// The name is none of [`Cause::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCause;

impl fmt::Display for UnknownCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such cause; `tcpwhy explain` lists them")
    }
}

impl std::error::Error for UnknownCause {}

/// Who could change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Side {
    /// The end that sent the SYN.
    Client,
    /// The end that accepted it.
    Server,
    /// The network between them.
    Path,
    /// Nobody can be named.
    Unknown,
}

impl Side {
    /// The name in JSON and in text.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Path => "path",
            Self::Unknown => "unknown",
        }
    }

    /// The other end; path and unknown have none and stay.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
            other => other,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_stands_in_the_order_of_the_discriminants_and_names_parse_back() {
        for (i, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, i);
            assert_eq!(cause.name().parse(), Ok(cause));
        }
        assert_eq!("jitter".parse::<Cause>(), Err(UnknownCause));
    }
}
