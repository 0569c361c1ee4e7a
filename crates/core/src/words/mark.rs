//! What does the head of a message say, where a capture has its bytes?
//!
//! A mark stands where a part of a message begins: the whole message where its protocol sends it in one piece, a frame where it
//! divides them.

use tcpwhy_wire::Seq;

/// A part of a message begins here.
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
}

impl Mark {
    /// From here on nothing is known.
    pub(crate) const fn lost(seq: Seq) -> Self {
        let (end, id) = (None, None);
        Self { seq, end, role: Role::Lost, id, first: false, last: false, by_peer: false }
    }
}

/// What a part of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It asks for an answer.
    Asks,
    /// It answers.
    Answers,
    /// Nobody waits for it: a protocol's own frames, a notification.
    Neither,
    /// From here on nothing is known of this connection's messages.
    Lost,
}
