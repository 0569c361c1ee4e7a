//! What is a data segment to the message under way: what does it follow, and does the silence before it end something?

/// What a segment follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follows {
    /// What its sender sent before.
    Own,
    /// The latest byte of the request that it answers.
    Request,
    /// The first piece of that request: what came later delayed nothing.
    Beginning,
    /// Nothing of the message under way.
    Nothing,
}

/// What the silence before a segment of the same sender means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    /// The message goes on.
    None,
    /// The message goes on if it is answered in the end; else this begins the next one.
    Piece,
    /// The next message begins.
    Message,
    /// It began some segments ago, and has been sent by a timer since.
    Stream,
}

/// What is known of which message answers which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Paired {
    /// One question is under way at a time, or its protocol says so.
    Known,
    /// One is, for all that its lengths tell: no bytes were captured.
    Unread,
    /// One was as long as its protocol was read: behind the keys of SSH nothing is (RFC 4253, 7.3).
    Before,
    /// Several were.
    Guess,
}
