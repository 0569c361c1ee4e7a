//! What does the head of a message say, where a capture has its bytes?
//!
//! A mark stands at the start of a part of a message: the whole message if its protocol sends it in
//! one piece, a frame if it divides messages.

use tcpwhy_wire::Seq;

/// A part of a message begins here.
#[expect(clippy::struct_excessive_bools, reason = "facts of a head that do not exclude each other")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its first byte.
    pub seq: Seq,
    /// The sequence number after it, if its head gives its length.
    pub end: Option<Seq>,
    /// Its role in the conversation.
    pub role: Role,
    /// The identifier that a request and its answer share; without one, answers come in the order
    /// of the requests.
    pub id: Option<u64>,
    /// The message begins with it.
    pub first: bool,
    /// Nothing of this message follows this part.
    pub last: bool,
    /// It belongs to the other end and passed earlier: the protocol has only now been recognised.
    pub by_peer: bool,
    /// It sets up the session before any request: a TLS handshake.
    pub session: bool,
    /// It answers late, and what released it may have come from elsewhere.
    pub released: bool,
    /// Its effect on the protocol's own flow control.
    pub credit: Option<Credit>,
}

impl Mark {
    /// Whether it is not part of a request or of its answer.
    pub(crate) fn stands_alone(&self) -> bool {
        let alone =
            [Role::Subscribes, Role::Defers, Role::Tells, Role::Greets, Role::Neither].contains(&self.role);
        alone && !self.by_peer
    }

    /// Whether its own end makes a request.
    pub(crate) fn asks(&self) -> bool {
        self.role == Role::Asks && !self.by_peer
    }

    /// Whether it begins an exchange of its own, when several are under way.
    pub(crate) fn begins_exchange(&self) -> bool {
        self.first && matches!(self.role, Role::Asks | Role::Subscribes | Role::Tells)
    }

    /// Nothing of the connection's messages will be known.
    pub(crate) const fn unread(seq: Seq) -> Self {
        Self { role: Role::Unread, ..Self::lost(seq) }
    }

    /// A TLS alert on a connection whose messages are not known.
    pub(crate) const fn alert(seq: Seq) -> Self {
        Self { role: Role::Alert, ..Self::lost(seq) }
    }

    /// Nothing is known from here on.
    pub(crate) const fn lost(seq: Seq) -> Self {
        let (end, id) = (None, None);
        Self {
            seq,
            end,
            role: Role::Lost,
            id,
            first: false,
            last: false,
            by_peer: false,
            session: false,
            released: false,
            credit: None,
        }
    }
}

/// The marks of a segment without what is told behind an answer in it, which nobody waits for by itself.
pub(crate) fn without_news(marks: &[Mark]) -> &[Mark] {
    let told = |mark: &Mark| mark.role == Role::Tells && !mark.by_peer;
    match marks {
        [answer, rest @ ..] if answer.role == Role::Answers && rest.iter().all(told) => &marks[..1],
        _ => marks,
    }
}

/// The protocol's own flow control, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// Uses this much.
    Uses(u32),
    /// Grants the other end this much more.
    Grants(u32),
    /// Streams of the other end start with this much.
    Initial(u32),
}

/// What a part of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asks for an answer.
    Asks,
    /// It asks to be told when there is news, and nobody minds how late.
    Subscribes,
    /// It answers.
    Answers,
    /// It says that the answer will come when there is news.
    Defers,
    /// Nobody asked for it and nobody answers it: a notification, a one-way call.
    Tells,
    /// It introduces its sender, and the other end does the same before either continues.
    Greets,
    /// It serves only the protocol: pings, settings, windows.
    Neither,
    /// Not captured from here on, up to the next mark: the rest of the message with this
    /// identifier, and anything else.
    Cut,
    /// From here on messages are whole frames of either side, which do not tell who asks
    /// (WebSocket).
    Framed,
    /// Nothing is known of this connection's messages from here on.
    Lost,
    /// Of this connection's messages no bytes were captured, only their lengths.
    Unread,
    /// The connection is encrypted, and its beginning was not captured.
    Sealed,
    /// An alert of TLS, on an encrypted connection whose records tell their type.
    Alert,
}
