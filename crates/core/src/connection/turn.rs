//! How does a data segment relate to the message under way: what does it follow, and does the silence
//! before it end something?

use tcpwhy_wire::Duration;

/// A reply of at least this many pieces, each written by itself, may be a stream that nobody waits for (media
/// sent as it comes, RFC 2326, 10.12). Source: none written down.
pub(super) const STREAM_PIECES: usize = 32;
/// ... and one that lasts at least this long. Source: none written down.
pub(super) const STREAM_MIN: Duration = Duration::from_secs(1);

/// What a segment follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// Its sender's previous segment.
    Own,
    /// The last byte of the request that it answers.
    Request,
    /// The first piece of that request: later pieces delayed nothing.
    Beginning,
    /// Nothing of the message under way.
    Nothing,
}

/// What the silence before a segment of the same sender means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The message goes on.
    None,
    /// The message goes on if it is answered eventually; otherwise this begins the next one.
    Piece,
    /// The next message begins.
    Message,
    /// The next message began some segments ago, and a timer has sent it since.
    Stream,
}

/// How reliably replies are paired with requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Paired {
    /// One request is under way at a time, or the protocol pairs them.
    Known,
    /// One at a time, judging by lengths alone: no bytes were captured.
    Unread,
    /// One at a time while the protocol was readable: after SSH's key exchange it is not (RFC 4253,
    /// 7.3).
    Before,
    /// Several at a time.
    Guess,
}
