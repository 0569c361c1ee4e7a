//! What is said of a message, or of a piece of it?

/// What a message does to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Its sender waits for an answer.
    Asks,
    /// It asks to be told when there is news (a long poll): it is answered like a question, and nobody minds how late.
    Subscribes,
    /// It answers what was asked.
    Answers,
    /// It answers for the time being (100 Continue), or asks for what its sender goes on with (TLS): the answer proper is still to come.
    Interim,
    /// It says that the answer will come when there is news (SMB2's STATUS_PENDING).
    Defers,
    /// Nothing asked for it: a notification, an event.
    Pushes,
    /// It says who speaks, and the other side does the same before either goes on: whoever is first waits for that.
    Greets,
    /// It serves the protocol itself (pings, windows, settings): nobody's question and nobody's answer.
    Neither,
    /// Its bytes do not tell: ciphertext, or a protocol without questions.
    Unknown,
    /// Not captured from here on, up to where a segment begins with a head again: the rest of the message with this
    /// identifier, and whatever else.
    Cut,
}

/// The protocol's own flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credit {
    /// It takes so many bytes of its receiver's credit.
    Uses(u32),
    /// It gives the other side so many bytes more.
    Grants(u32),
    /// From now on a stream begins with so many bytes.
    Initial(u32),
}

/// Bytes of the slice that was handed to [`Conversation::on_bytes`](crate::Conversation::on_bytes), from `start` up to but
/// not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// The bytes themselves, of the same slice.
    pub fn of(self, captured: &[u8]) -> &[u8] {
        captured.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

/// The head of a message, or of a piece where a message comes in several: the header section and the body of HTTP/1, the frames of
/// HTTP/2. A piece that neither begins its message nor ends it is told only where it says something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Which side says it.
    pub from: usize,
    /// Where it begins in the stream. It may lie in front of the bytes at hand: a head that is spread over two segments is
    /// told with the second.
    pub at: u64,
    /// Its bytes, this head's own included, if it says so.
    pub len: Option<u64>,
    /// The number that the protocol gives to a question and its answer.
    pub id: Option<u64>,
    /// What its message does.
    pub role: Role,
    /// It begins a message.
    pub first: bool,
    /// It ends its message; an answer's end is the end of the exchange.
    pub last: bool,
    /// The protocol's own word for it.
    pub kind: &'static str,
    /// Method and path, command or topic, as far as the slice at hand has it.
    pub name: Option<Span>,
    /// What it does to flow control.
    pub credit: Option<Credit>,
    /// It sets up the session before anything is asked (a TLS handshake).
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
