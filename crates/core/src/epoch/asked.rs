//! What does a request ask for, in the words of its protocol?

use tcpwhy_heads::{Head, Role as Said};
use tcpwhy_wire::{Endpoint, Segment};

/// A request in the words of its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The requester.
    pub from: Endpoint,
    /// The responder.
    pub to: Endpoint,
    /// The packet that completes the request's head, or that shows which protocol it is.
    pub packet: u64,
    /// The protocol's own word, with method and path, statement or topic as far as they were captured.
    pub text: String,
}

/// A request line is kept up to this many bytes.
const WORDS_MAX: usize = 160;

/// The words of a head, if it asks for something.
pub(crate) fn words(head: &Head, bytes: &[u8], segment: &Segment, by_peer: bool) -> Option<Asked> {
    if !head.first || !matches!(head.role, Said::Asks | Said::Subscribes) {
        return None;
    }
    let name = head.name.map(|name| String::from_utf8_lossy(name.of(bytes)).into_owned()).unwrap_or_default();
    let mut text = match head.kind {
        kind if name.starts_with(kind) => name,
        "command" | "request" if !name.is_empty() => name,
        kind if name.is_empty() => kind.to_owned(),
        kind => format!("{kind} {name}"),
    };
    let end = (0..=WORDS_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    let (from, to) = if by_peer { (segment.dst, segment.src) } else { (segment.src, segment.dst) };
    Some(Asked { from, to, packet: segment.packet, text })
}
