//! Which OPC UA response belongs to which request? (OPC 10000-6, 7.1.2 and 6.7.2)
//!
//! A client leaves requests for news with its server (Publish), which are answered when there is
//! any. In encrypted messages the identifier that pairs them is encrypted too, and they are
//! reported without it.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_le, u32_le};

/// Type, chunk type, length.
const HEADER_LEN: u32 = 8;
/// Before a message's body: header, channel, token, sequence number and request identifier.
const REQUEST: usize = 20;
const BODY: usize = 24;
/// The encoding of a body's type: namespace 0 and two bytes.
const TWO_BYTES: &[u8] = &[1, 0];
const NEEDED: usize = 28;
const LEN_MAX: u32 = 64 << 20;
/// The encodings of PublishRequest and PublishResponse.
const PUBLISH: u16 = 826;
const PUBLISHED: u16 = 829;

/// The role of the message that each side continues.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OpcUa {
    open: [Option<Role>; 2],
}

impl Talk for OpcUa {
    const FIRST: FirstBytes = FirstBytes::of(b"HAEROMC");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        // In the middle of a connection, only the message type shows which side asks.
        let greets =
            client.bytes.starts_with(b"HEL") && is_chunk(client) && (server.is_empty() || is_chunk(server));
        greets || what(client).is_some_and(is_request) && what(server).is_some_and(is_response)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some((kind, chunk, len)) = header(bytes) else {
            return if bytes.len() < HEADER_LEN as usize { Step::Need } else { Step::Wrong };
        };
        let is_message = kind == b"MSG";
        if is_message && bytes.len() < NEEDED && len as usize >= NEEDED {
            return Step::Need;
        }
        let plain = is_message && bytes.get(BODY..BODY + TWO_BYTES.len()) == Some(TWO_BYTES);
        let what = u16_le(bytes, BODY + TWO_BYTES.len()).filter(|_| plain);
        let open = &mut self.open[side as usize];
        let first = open.is_none();
        let last = chunk != b'C';
        let role = open.unwrap_or(match (side, kind, what) {
            (_, b"CLO", _) => Role::Neither,
            (Side::Client, _, Some(PUBLISH)) => Role::Subscribes,
            (Side::Client, ..) => Role::Asks,
            (Side::Server, ..) => Role::Answers,
        });
        *open = (!last).then_some(role);
        // Chunks after the first carry no type, and are reported only if they end their message.
        let id = u32_le(bytes, REQUEST).filter(|_| is_message && (plain || !first)).map(u64::from);
        if first || last {
            out.put(Head {
                id,
                len: Some(u64::from(len)),
                first,
                last,
                ..Head::piece(role, name_of(kind, what))
            });
        }
        Step::Skip(u64::from(len))
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        // The last chunk of a message looks like a message of its own, except for the type before
        // its body.
        let of_message = first.bytes.starts_with(b"MSG");
        is_chunk(first) && (!of_message || first.bytes.get(BODY..BODY + TWO_BYTES.len()) == Some(TWO_BYTES))
    }

    fn lose(&mut self, side: Side) {
        self.open[side as usize] = None;
    }
}

fn header(bytes: &[u8]) -> Option<(&[u8], u8, u32)> {
    let (kind, chunk, len) = (bytes.get(..3)?, *bytes.get(3)?, u32_le(bytes, 4)?);
    let known = [&b"HEL"[..], b"ACK", b"ERR", b"RHE", b"OPN", b"MSG", b"CLO"].contains(&kind);
    (known && b"FCA".contains(&chunk) && (HEADER_LEN..=LEN_MAX).contains(&len)).then_some((kind, chunk, len))
}

fn is_chunk(first: First<'_>) -> bool {
    header(first.bytes).is_some()
}

/// A message's type, if it is not encrypted.
fn what(first: First<'_>) -> Option<u16> {
    let plain =
        first.bytes.starts_with(b"MSG") && first.bytes.get(BODY..BODY + TWO_BYTES.len()) == Some(TWO_BYTES);
    u16_le(first.bytes, BODY + TWO_BYTES.len()).filter(|_| plain && is_chunk(first))
}

const fn is_request(what: u16) -> bool {
    matches!(what, PUBLISH | 527 | 631 | 673 | 712)
}

/// The encoding numbers of responses are three above those of their requests.
const fn is_response(what: u16) -> bool {
    what > 3 && is_request(what - 3)
}

const fn name_of(kind: &[u8], what: Option<u16>) -> &'static str {
    match (kind, what) {
        (b"HEL", _) => "Hello",
        (b"ACK", _) => "Acknowledge",
        (b"ERR", _) => "Error",
        (b"OPN", _) => "OpenSecureChannel",
        (b"CLO", _) => "CloseSecureChannel",
        (_, Some(PUBLISH | PUBLISHED)) => "Publish",
        (_, Some(631 | 634)) => "Read",
        (_, Some(673 | 676)) => "Write",
        (_, Some(527 | 530)) => "Browse",
        (_, Some(712 | 715)) => "Call",
        _ => "message",
    }
}
