//! Which classes of time can be told apart from path, kernels and applications, without the engine?

use tcpwhy_core::Cause;

/// Classes that can be told apart from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Trip,
    Bandwidth,
    Queueing,
    Repair,
    Window,
    Receiver,
    SendBuffer,
    App,
    Held,
    Unexplained,
}

impl Class {
    pub(crate) const ALL: [Self; 10] = [
        Self::Trip,
        Self::Bandwidth,
        Self::Queueing,
        Self::Repair,
        Self::Window,
        Self::Receiver,
        Self::SendBuffer,
        Self::App,
        Self::Held,
        Self::Unexplained,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Trip => "round-trip",
            Self::Bandwidth => "bandwidth",
            Self::Queueing => "queueing",
            Self::Repair => "repair",
            Self::Window => "congestion",
            Self::Receiver => "receiver",
            Self::SendBuffer => "send-buffer",
            Self::App => "application",
            Self::Held => "held",
            Self::Unexplained => "unexplained",
        }
    }

    pub(crate) const fn of(cause: Cause) -> Self {
        match cause {
            Cause::RoundTrip | Cause::Handshake | Cause::TlsHandshake => Self::Trip,
            Cause::Bandwidth => Self::Bandwidth,
            Cause::Queueing => Self::Queueing,
            Cause::Loss | Cause::Rto | Cause::SynRetransmit => Self::Repair,
            Cause::SlowStart
            | Cause::SlowStartAfterIdle
            | Cause::CongestionWindow
            | Cause::DelayedAckCwnd
            | Cause::Pacing => Self::Window,
            Cause::ReceiveWindow | Cause::ReceiverThink | Cause::ApplicationWindow => Self::Receiver,
            Cause::SendBuffer => Self::SendBuffer,
            Cause::ServerThink | Cause::SenderThink => Self::App,
            Cause::NagleDelayedAck | Cause::Nagle | Cause::Cork => Self::Held,
            Cause::Unexplained => Self::Unexplained,
        }
    }

    pub(crate) const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The set of all classes.
pub(crate) const ANY: u16 = (1 << Class::ALL.len()) - 1;
