//! Which causes hold a sender, and which of them are in doubt until more is known?

use crate::words::cause::Cause;

/// Causes that hold a sender with more to send.
pub(crate) const HOLDS: u32 = Cause::DelayedAckCwnd.bit()
    | Cause::SlowStart.bit()
    | Cause::SlowStartAfterIdle.bit()
    | Cause::CongestionWindow.bit()
    | Cause::ReceiveWindow.bit()
    | Cause::SendBuffer.bit()
    | Cause::Pacing.bit();

/// Those, and the application's time beside the link's.
pub(crate) const KEPT: u32 = HOLDS | Cause::SenderThink.bit();

/// What a slackening slow start is charged to until it shows that no window held it.
pub(crate) const DOUBTED: u32 = Cause::SlowStart.bit() | Cause::CongestionWindow.bit();
