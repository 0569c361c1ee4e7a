//! Are the same heads found in a conversation however it is cut, and none out of place?
//!
//! The first byte names the protocol, or none. Then pieces: a byte with the side, whether bytes are
//! missing or not captured, and the length, then that many bytes.

use tcpwhy_heads::{Conversation, Head, Protocol};

struct Piece<'a> {
    from: usize,
    at: u64,
    bytes: &'a [u8],
    captured: usize,
}

pub(super) fn conversation(data: &[u8]) {
    let [which, rest @ ..] = data else { return };
    let pieces = pieces(rest);
    let protocol = Protocol::ALL.get(usize::from(*which));
    let begin = || protocol.map_or_else(Conversation::new, |protocol| Conversation::speaking(*protocol, 0));
    let mut conversation = begin();
    for piece in &pieces {
        read(&mut conversation, piece);
    }
    let Some(protocol) = protocol else { return };
    // Whole pieces one after the other, and byte by byte: while the protocol is the same, no head
    // may differ.
    let (mut whole, mut bytewise) = (begin(), begin());
    for piece in &pieces {
        let piece = Piece { captured: piece.bytes.len(), ..*piece };
        let told = read(&mut whole, &piece);
        let mut each = Vec::new();
        for (at, byte) in (piece.at..).zip(piece.bytes) {
            let bytes = std::slice::from_ref(byte);
            each.extend(read(&mut bytewise, &Piece { from: piece.from, at, bytes, captured: 1 }));
        }
        // A side whose next head is unknown looks for it at the start of a segment: then the cuts
        // matter.
        let lost = [0, 1].iter().any(|from| whole.is_lost(*from) || bytewise.is_lost(*from));
        if whole.protocol() != Some(*protocol) || bytewise.protocol() != whole.protocol() || lost {
            break;
        }
        assert_eq!(told, each, "cut to bytes at {} of side {}", piece.at, piece.from);
    }
}

fn pieces(mut rest: &[u8]) -> Vec<Piece<'_>> {
    let mut at = [0_u64; 2];
    let mut pieces = Vec::new();
    while let [control, more @ ..] = rest {
        let from = usize::from(control & 1);
        let len = usize::from(control >> 3) * 8 + 1;
        let (bytes, more) = more.split_at(len.min(more.len()));
        let captured = if control & 2 == 0 { bytes.len() } else { bytes.len() / 2 };
        // Some bytes before it are missing.
        at[from] += u64::from(control & 6 == 6) * 10;
        pieces.push(Piece { from, at: at[from], bytes, captured });
        at[from] += bytes.len() as u64;
        rest = more;
    }
    pieces
}

fn read(conversation: &mut Conversation, piece: &Piece<'_>) -> Vec<Head> {
    let (end, captured) = (piece.at + piece.bytes.len() as u64, &piece.bytes[..piece.captured]);
    let known = conversation.protocol().is_some();
    let over = known && conversation.next_at(piece.from) >= end;
    let mut told: Vec<Head> = Vec::new();
    conversation.on_bytes(piece.from, piece.at, captured, piece.bytes.len() as u32, |head, of| {
        assert!(head.name.is_none_or(
            |name| name.start < name.end && name.of(of).len() == (name.end - name.start) as usize
        ));
        assert!(head.len.is_none_or(|len| len > 0), "{head:?} has no bytes");
        told.push(Head { name: None, ..head });
    });
    assert!(!over || told.is_empty(), "heads in front of the next byte of interest");
    for from in [0, 1] {
        let at = told.iter().filter(|head| head.from == from).map(|head| head.at);
        assert!(at.is_sorted(), "heads go back: {told:?}");
    }
    let from_here = |head: &&Head| head.from == piece.from && known;
    assert!(told.iter().filter(from_here).all(|head| head.at < end), "heads behind the segment: {told:?}");
    told
}
