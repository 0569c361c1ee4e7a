//! What does the head of a message say, where a capture has its bytes?
//!
//! A mark stands where a part of a message begins: the whole message where its protocol sends it in one piece, a frame where it
//! divides them.

use tcpwhy_wire::Seq;

/// A part of a message begins here.
#[expect(clippy::struct_excessive_bools, reason = "facts of a head that do not exclude each other")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its first byte.
    pub seq: Seq,
    /// The byte behind it, where its head says how long it is.
    pub end: Option<Seq>,
    /// What it is to whom.
    pub role: Role,
    /// The identifier that a question and its answer share; without one, answers come in the order of the questions.
    pub id: Option<u64>,
    /// Its message begins with it.
    pub first: bool,
    /// Nothing of this message comes behind this part.
    pub last: bool,
    /// It is the other end's, and passed before: only now it is known what is spoken.
    pub by_peer: bool,
    /// It sets up the session before anything is asked: a TLS handshake.
    pub session: bool,
    /// What it does to the protocol's own flow control.
    pub credit: Option<Credit>,
}

impl Mark {
    /// Whether it is none of a question and its answer, one after the other.
    pub(crate) fn stands_alone(&self) -> bool {
        let alone =
            [Role::Subscribes, Role::Defers, Role::Tells, Role::Greets, Role::Neither].contains(&self.role);
        alone && !self.by_peer
    }

    /// Whether its own end asks.
    pub(crate) fn asks(&self) -> bool {
        self.role == Role::Asks && !self.by_peer
    }

    /// Whether an exchange of its own begins with it, where several are under way.
    pub(crate) fn begins_exchange(&self) -> bool {
        self.first && matches!(self.role, Role::Asks | Role::Subscribes | Role::Tells)
    }

    /// Nothing will be known.
    pub(crate) const fn unread(seq: Seq) -> Self {
        Self { role: Role::Unread, ..Self::lost(seq) }
    }

    /// From here on nothing is known.
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
            credit: None,
        }
    }
}

/// The protocol's own flow control, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// It takes so many.
    Uses(u32),
    /// It gives the other end so many more.
    Grants(u32),
    /// Streams of the other end begin with so many.
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
    /// It says who speaks, and the other end does the same before either goes on.
    Greets,
    /// It serves the protocol alone: pings, settings, windows.
    Neither,
    /// Not captured from here on, up to the next mark: the rest of the message with this identifier, and whatever else.
    Cut,
    /// From here on messages are whole frames of either side, which do not say who asks (WebSocket).
    Framed,
    /// From here on nothing is known of this connection's messages.
    Lost,
    /// No bytes of this connection's messages were captured, only how many they are.
    Unread,
}
