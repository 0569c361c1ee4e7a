//! How is a conversation written down, and read as a capture would contain it?

use tcpwhy_heads::{Conversation, Credit, Head, Protocol, Role};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;

/// Data that one side sent at once.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) from: usize,
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Lines of `>` (client) and `<` (server) followed by the data: text with escapes.
pub(crate) fn pieces(log: &str) -> Vec<Piece> {
    let mut at = [0; 2];
    let mut pieces = Vec::new();
    for line in log.lines().map(str::trim_start).filter(|line| !line.is_empty()) {
        let (mark, text) = line.split_at(2);
        let from = match mark {
            "> " => CLIENT,
            "< " => SERVER,
            _ => panic!("neither > nor <: {line}"),
        };
        let bytes = unescape(text);
        pieces.push(Piece { from, at: at[from], bytes });
        at[from] += pieces.last().map_or(0, |piece| piece.bytes.len() as u64);
    }
    pieces
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'\\' => escaped(&mut rest),
            byte => byte,
        };
        bytes.push(byte);
    }
    bytes
}

fn escaped(rest: &mut impl Iterator<Item = u8>) -> u8 {
    match rest.next() {
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b'\\') => b'\\',
        Some(b'x') => {
            let digits = [rest.next(), rest.next()].map(|digit| char::from(digit.expect("two digits")));
            u8::from_str_radix(&String::from_iter(digits), 16).expect("hexadecimal digits")
        }
        other => panic!("no escape: {other:?}"),
    }
}

/// A head without its name, which depends on how much has been captured.
pub(crate) type Told = Head;

/// Reads all pieces.
pub(crate) fn read(conversation: &mut Conversation, pieces: &[Piece]) -> Vec<Told> {
    let mut told = Vec::new();
    for piece in pieces {
        read_piece(conversation, piece, piece.bytes.len(), &mut told);
    }
    told
}

/// Reads a piece of which this many bytes were captured.
pub(crate) fn read_piece(
    conversation: &mut Conversation,
    piece: &Piece,
    captured: usize,
    told: &mut Vec<Told>,
) {
    let captured = &piece.bytes[..captured.min(piece.bytes.len())];
    let before = conversation.next_at(piece.from);
    let copy = conversation.clone();
    let count = told.len();
    conversation.on_bytes(piece.from, piece.at, captured, piece.bytes.len() as u32, |head, of| {
        if head.kind == "cut" {
            assert!(captured.len() < piece.bytes.len(), "all of it was captured");
            return; // it marks where nothing more is reported
        }
        assert!(head.name.is_none_or(|name| name.end as usize <= of.len()), "a name beyond what is at hand");
        told.push(Head { name: None, ..head });
    });
    if before >= piece.at + piece.bytes.len() as u64 && copy.protocol().is_some() {
        assert_eq!(told.len(), count, "a head in front of {before}");
    }
}

/// Each head as a line: where, what, and what else is known of it; with its name if that was
/// captured.
pub(crate) fn shown(log: &str, snap: usize) -> Vec<String> {
    let mut conversation = Conversation::new();
    let mut lines = Vec::new();
    let mut last = None;
    for piece in pieces(log) {
        let captured = &piece.bytes[..snap.min(piece.bytes.len())];
        conversation.on_bytes(piece.from, piece.at, captured, piece.bytes.len() as u32, |head, of| {
            let name = head.name.map(|name| String::from_utf8_lossy(name.of(of)).into_owned());
            lines.push(format!("{} {}", [">", "<"][head.from], show(&head, name)));
        });
        if conversation.protocol() != last {
            last = conversation.protocol();
            lines.push(last.map_or("?".to_owned(), |protocol| format!("= {}", protocol.name())));
        }
    }
    lines
}

fn show(head: &Head, name: Option<String>) -> String {
    let mut words = vec![head.at.to_string(), head.kind.to_owned()];
    words.extend(name.map(|name| format!("[{name}]")));
    let role = match head.role {
        Role::Asks => "asks",
        Role::Subscribes => "subscribes",
        Role::Answers => "answers",
        Role::Interim => "interim",
        Role::Defers => "defers",
        Role::Pushes => "pushes",
        Role::Greets => "greets",
        Role::Neither => "neither",
        Role::Unknown => "unknown",
        Role::Cut => "cut",
    };
    words.push(role.to_owned());
    words.extend(head.id.map(|id| format!("#{id}")));
    words.extend(head.len.map(|len| format!("len {len}")));
    words.extend(head.first.then(|| "first".to_owned()));
    words.extend(head.last.then(|| "last".to_owned()));
    words.extend(head.credit.map(|credit| match credit {
        Credit::Uses(bytes) => format!("uses {bytes}"),
        Credit::Grants(bytes) => format!("grants {bytes}"),
        Credit::Initial(bytes) => format!("initial {bytes}"),
    }));
    words.join(" ")
}

/// What a log must report, line by line; the protocol line (`=`) is where it became known.
#[track_caller]
pub(crate) fn tells(log: &str, expected: &str) {
    tells_cut(log, usize::MAX, expected);
}

/// The same if this many bytes of each segment were captured.
#[track_caller]
pub(crate) fn tells_cut(log: &str, snap: usize, expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let shown = shown(log, snap);
    assert!(shown == expected, "told:\n{}\nexpected:\n{}", shown.join("\n"), expected.join("\n"));
}

/// Every conversation at hand, with the protocol that it begins with.
pub(crate) fn all() -> Vec<(&'static str, Protocol, Vec<Piece>)> {
    let sources = [
        crate::http::LOGS,
        crate::tls::LOGS,
        crate::redis::LOGS,
        crate::postgresql::LOGS,
        crate::databases::LOGS,
        crate::brokers::LOGS,
        crate::lines::LOGS,
        crate::calls::LOGS,
        crate::numbered::LOGS,
        crate::either::LOGS,
        crate::told::LOGS,
    ]
    .concat();
    sources.into_iter().map(|(name, protocol, log)| (name, protocol, pieces(log))).collect()
}
