//! Which causes hold a sender, and which of them are in doubt until more is known?

use crate::words::cause::Cause;

/// What holds a sender that has more to send.
pub(crate) const HOLDS: u32 = Cause::DelayedAckCwnd.bit()
    | Cause::SlowStart.bit()
    | Cause::SlowStartAfterIdle.bit()
    | Cause::CongestionWindow.bit()
    | Cause::ReceiveWindow.bit()
    | Cause::SendBuffer.bit()
    | Cause::Pacing.bit();

/// These, and what an application took beside the link.
pub(crate) const KEPT: u32 = HOLDS | Cause::SenderThink.bit();

/// What a slackened start was charged to until it shows that no window held it.
pub(crate) const DOUBTED: u32 = Cause::SlowStart.bit() | Cause::CongestionWindow.bit();
