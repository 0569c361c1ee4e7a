//! What is known of a message, or of a piece of it?

/// The effect of a message on its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its sender waits for an answer.
    Asks,
    /// It asks for news (a long poll): it is answered like a request, but however late the answer,
    /// nobody is kept waiting.
    Subscribes,
    /// It answers a request.
    Answers,
    /// It is a provisional answer (100 Continue), or asks for what its sender goes on with (TLS):
    /// the final answer is still to come.
    Interim,
    /// It announces that the answer will come when there is news (SMB2's STATUS_PENDING).
    Defers,
    /// It was not asked for: a notification, an event.
    Pushes,
    /// It introduces its sender, and the other side does the same before either goes on: the first
    /// one waits for that.
    Greets,
    /// It serves the protocol itself (pings, windows, settings): neither request nor answer.
    Neither,
    /// Its bytes do not show it: ciphertext, or a protocol without requests.
    Unknown,
    /// Not captured from here on, until a segment begins with a head again: the rest of the message
    /// with this identifier, and anything after it.
    Cut,
}

/// The protocol's own flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// It consumes this many bytes of its receiver's credit.
    Uses(u32),
    /// It grants the other side this many more bytes.
    Grants(u32),
    /// From now on a stream begins with this many bytes.
    Initial(u32),
}

/// Bytes of the slice passed to [`Conversation::on_bytes`](crate::Conversation::on_bytes), from
/// `start` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// These bytes of the same slice.
    pub fn of(self, captured: &[u8]) -> &[u8] {
        captured.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The head of a message, or of a piece of one: the header section and the body of HTTP/1, the
/// frames of HTTP/2. A piece that neither begins nor ends its message is reported only if it
/// carries other information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The side that sent it.
    pub from: usize,
    /// Its offset in the stream. It may be before the bytes of the current segment: a head spread
    /// over two segments is reported with the second.
    pub at: u64,
    /// Its length with this head, if it is given.
    pub len: Option<u64>,
    /// The identifier that the protocol gives to a request and its answer.
    pub id: Option<u64>,
    /// The role of its message.
    pub role: Role,
    /// It is the first piece of a message.
    pub first: bool,
    /// It is the last piece of its message; the end of an answer ends the exchange.
    pub last: bool,
    /// The protocol's own name for it.
    pub kind: &'static str,
    /// Method and path, command or topic, as far as the current slice has it.
    pub name: Option<Span>,
    /// Its effect on flow control.
    pub credit: Option<Credit>,
    /// It sets up the session before any request (a TLS handshake).
    pub session: bool,
}

impl Head {
    /// A piece that neither begins nor ends its message.
    pub(crate) const fn piece(role: Role, kind: &'static str) -> Self {
        let (len, id, name, credit) = (None, None, None, None);
        Self { from: 0, at: 0, len, id, role, first: false, last: false, kind, name, credit, session: false }
    }

    /// A message in one piece.
    pub(crate) const fn whole(role: Role, kind: &'static str, len: u64) -> Self {
        Self { len: Some(len), first: true, last: true, ..Self::piece(role, kind) }
    }
}
