//! Which LDAP response belongs to which request, and is it the last? (RFC 4511, 4.1.1 and 4.2 to 4.14)

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk};

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 2;
const MESSAGE_LEN_MAX: u64 = 1 << 26;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ldap {
    /// The search whose entries are arriving.
    search: Option<u32>,
    /// Messages were missed: the next one may be in the middle of a search.
    resumed: bool,
}

/// The beginning of a message.
#[derive(Clone, Copy, Debug)]
struct Message {
    len: u64,
    id: u32,
    /// The tag of its operation.
    operation: u8,
}

impl Message {
    /// `None` if more bytes are needed, an error if it is not a message.
    fn read(bytes: &[u8]) -> Result<Option<Self>, ()> {
        if bytes.first().is_some_and(|tag| *tag != SEQUENCE) {
            return Err(());
        }
        let Some((len, at)) = length(bytes, 1)? else { return Ok(None) };
        if bytes.get(at).is_some_and(|tag| *tag != INTEGER) {
            return Err(());
        }
        let Some((id_len, id_at)) = length(bytes, at + 1)? else { return Ok(None) };
        if !(1..=4).contains(&id_len) || len > MESSAGE_LEN_MAX {
            return Err(());
        }
        let end = id_at + id_len as usize;
        let (Some(id), Some(&operation)) = (bytes.get(id_at..end), bytes.get(end)) else { return Ok(None) };
        let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
        Ok(Some(Self { len: at as u64 + len, id, operation }))
    }
}

/// A length at this offset, and where it ends (X.690, 8.1.3; RFC 4511, 5.1 forbids the indefinite
/// form).
fn length(bytes: &[u8], at: usize) -> Result<Option<(u64, usize)>, ()> {
    let Some(&begin) = bytes.get(at) else { return Ok(None) };
    match begin {
        0..=0x7f => Ok(Some((u64::from(begin), at + 1))),
        0x81..=0x84 => {
            let end = at + 1 + usize::from(begin & 0x7f);
            let Some(digits) = bytes.get(at + 1..end) else { return Ok(None) };
            Ok(Some((digits.iter().fold(0, |len, byte| len << 8 | u64::from(*byte)), end)))
        }
        _ => Err(()),
    }
}

impl Talk for Ldap {
    const FIRST: FirstBytes = FirstBytes::of(&[SEQUENCE]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = is_message(client).is_some_and(|message| named(message.operation).1 == Role::Asks);
        let answers = is_message(server).is_some_and(|message| named(message.operation).1 == Role::Answers);
        asks && (server.is_empty() || answers)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if bytes[0] == 0x16 {
            // StartTLS (RFC 4511, 4.14).
            return Step::Other(Protocol::Tls);
        }
        let message = match Message::read(bytes) {
            Ok(Some(message)) => message,
            Ok(None) => return Step::Need,
            Err(()) => return Step::Wrong,
        };
        let (kind, role) = named(message.operation);
        let head = Head { id: Some(u64::from(message.id)), ..Head::whole(role, kind, message.len) };
        let head = match message.operation {
            _ if side.is_client() => head,
            // Unsolicited notifications have no request (RFC 4511, 4.4).
            _ if message.id == 0 => Head { role: Role::Pushes, ..head },
            // Entries, references and intermediate responses, until the search is done.
            0x64 | 0x73 | 0x79 => {
                let first = self.search.replace(message.id) != Some(message.id) && !self.resumed;
                Head { first, last: false, ..head }
            }
            _ => {
                let other = self.search != Some(message.id);
                self.search = self.search.filter(|_| other);
                let first = other && !std::mem::replace(&mut self.resumed, false);
                Head { first, ..head }
            }
        };
        out.put(head);
        Step::Skip(message.len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_message(first).is_some()
    }

    fn lose(&mut self, side: Side) {
        if !side.is_client() {
            (self.search, self.resumed) = (None, true);
        }
    }
}

/// A message with a known operation, which the segment contains, or which begins there.
fn is_message(first: First<'_>) -> Option<Message> {
    let message = Message::read(first.bytes).ok()??;
    let known = named(message.operation).0 != "operation";
    (known && (8..1 << 22).contains(&message.len) && message.id < 1 << 24).then_some(message)
}

/// The protocol's operations (RFC 4511, 4.2 ff.; appendix B).
const fn named(operation: u8) -> (&'static str, Role) {
    use Role::{Answers, Asks, Neither};
    match operation {
        0x60 => ("bindRequest", Asks),
        0x61 => ("bindResponse", Answers),
        0x42 => ("unbindRequest", Neither),
        0x63 => ("searchRequest", Asks),
        0x64 => ("searchResEntry", Answers),
        0x65 => ("searchResDone", Answers),
        0x66 => ("modifyRequest", Asks),
        0x67 => ("modifyResponse", Answers),
        0x68 => ("addRequest", Asks),
        0x69 => ("addResponse", Answers),
        0x4a => ("delRequest", Asks),
        0x6b => ("delResponse", Answers),
        0x6c => ("modDNRequest", Asks),
        0x6d => ("modDNResponse", Answers),
        0x6e => ("compareRequest", Asks),
        0x6f => ("compareResponse", Answers),
        0x50 => ("abandonRequest", Neither),
        0x73 => ("searchResRef", Answers),
        0x77 => ("extendedReq", Asks),
        0x78 => ("extendedResp", Answers),
        0x79 => ("intermediateResponse", Answers),
        _ => ("operation", Neither),
    }
}
