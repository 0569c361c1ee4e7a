//! Where does each TLS record end, and what does the handshake show in clear? (RFC 8446, 5.1; RFC
//! 5246, 6.2)
//!
//! Only the five bytes before each record are needed, for which `tls-parser` requires whole
//! records. An encrypted record shows nothing but its length.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

const HEAD_LEN: usize = 5;
/// Level of an alert.
const FATAL: u8 = 2;
/// 2^14 bytes plus the expansion by encryption (RFC 5246, 6.2.3).
const RECORD_LEN_MAX: u16 = (1 << 14) + 2048;

const CHANGE_CIPHER_SPEC: u8 = 20;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;
const HEARTBEAT: u8 = 24;

/// Length of a record's header and of the header of the message that begins it.
const HELLO_HEAD_LEN: usize = HEAD_LEN + 4;

const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tls {
    sides: [Flight; 2],
}

/// One side's handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Flight {
    /// What follows is encrypted.
    encrypts: bool,
    /// Records of it were missed: whether it has ended is unknown.
    is_lost: bool,
    /// Bytes of a handshake message that continues in the next record.
    left: u32,
}

impl Talk for Tls {
    const FIRST: FirstBytes = FirstBytes::NONE.and_range(CHANGE_CIPHER_SPEC, APPLICATION_DATA);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let hello = |first: First<'_>, kind| is_hello(first.bytes, kind);
        let ciphertext = |first: First<'_>| {
            is_record(first.bytes)
                && first.bytes[..3] == [APPLICATION_DATA, 3, 3]
                && u16_at(first.bytes, 3).is_some_and(|len| len >= 17)
        };
        let (hello_of_client, hello_of_server) = (hello(client, CLIENT_HELLO), hello(server, SERVER_HELLO));
        if client.is_empty() || server.is_empty() {
            return hello_of_client || hello_of_server;
        }
        let answers = is_record(server.bytes);
        hello_of_client && answers || hello_of_server && is_record(client.bytes) || {
            ciphertext(client) && ciphertext(server)
        }
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&[kind, major, minor, a, b]) = bytes.first_chunk() else { return Step::Need };
        let record_len = u16::from_be_bytes([a, b]);
        if major != 3 || minor > 4 || record_len > RECORD_LEN_MAX {
            return Step::Wrong;
        }
        let len = u64::from(record_len) + HEAD_LEN as u64;
        let flight = &mut self.sides[side as usize];
        let role = if side.is_client() { Role::Asks } else { Role::Answers };
        if flight.is_lost && kind == HANDSHAKE && record_len >= 4 {
            if bytes.len() < HELLO_HEAD_LEN {
                return Step::Need;
            }
            // After a proxy's consent, for example, it begins in the middle of the stream, and
            // nothing of it was missed.
            if is_hello(bytes, if side.is_client() { CLIENT_HELLO } else { SERVER_HELLO }) {
                *flight = Flight::default();
            }
        }
        let head = match kind {
            HANDSHAKE if flight.is_lost => Head::piece(role, "handshake"),
            HANDSHAKE if flight.encrypts => Head::piece(role, "Finished"),
            HANDSHAKE if flight.left > 0 => {
                flight.left = flight.left.saturating_sub(u32::from(record_len));
                Head::piece(role, "handshake")
            }
            HANDSHAKE if record_len < 4 => Head::piece(role, "handshake"),
            HANDSHAKE => {
                let Some(&[begin, a, b, c]) = bytes[HEAD_LEN..].first_chunk() else { return Step::Need };
                flight.left = (u32::from_be_bytes([0, a, b, c]) + 4).saturating_sub(u32::from(record_len));
                let role = match begin {
                    CLIENT_HELLO => Role::Asks,
                    SERVER_HELLO => Role::Answers,
                    0 => Role::Neither,
                    _ => role,
                };
                let first = [CLIENT_HELLO, SERVER_HELLO].contains(&begin);
                Head { first, ..Head::piece(role, name_of(begin)) }
            }
            CHANGE_CIPHER_SPEC => {
                // TLS 1.3 sends a meaningless one (RFC 8446, D.4), and no handshake message in
                // clear after it except a second ClientHello.
                flight.encrypts = true;
                Head::piece(role, "ChangeCipherSpec")
            }
            // The first message of a server that refuses the client's session answers its hello
            // (RFC 8446, 6.2).
            ALERT if record_len == 2 && !side.is_client() && out.at == 0 => {
                let Some(&level) = bytes.get(HEAD_LEN) else { return Step::Need };
                let refuses = level == FATAL;
                let role = if refuses { Role::Answers } else { Role::Neither };
                Head { first: refuses, last: refuses, ..Head::piece(role, "Alert") }
            }
            ALERT => Head::piece(Role::Neither, "Alert"),
            APPLICATION_DATA => Head::piece(Role::Unknown, "ApplicationData"),
            HEARTBEAT => Head::piece(Role::Neither, "Heartbeat"),
            _ => return Step::Wrong,
        };
        let session = matches!(kind, HANDSHAKE | CHANGE_CIPHER_SPEC);
        out.put(Head { len: Some(len), session, ..head });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        // A record that ends with the segment or continues in the next one; five bytes of
        // ciphertext look like this once in 10^8.
        is_record(first.bytes) && first.bytes[2] == 3
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize].is_lost = true;
    }
}

/// Whether so many bytes, of which these were captured, are one record that holds an encrypted alert and nothing else: up to TLS
/// 1.2, records tell their type (RFC 5246, 6.2.1 and 7.2).
#[inline]
pub fn is_alert(captured: &[u8], len: u32) -> bool {
    captured.first() == Some(&ALERT) && is_whole_alert(captured, len)
}

#[cold]
fn is_whole_alert(captured: &[u8], len: u32) -> bool {
    let whole = |record: u16| u32::from(record) + HEAD_LEN as u32 == len;
    is_record(captured) && u16_at(captured, 3).is_some_and(whole)
}

/// Whether the record begins with a hello whose own length agrees with the record's (RFC 8446, 4).
fn is_hello(bytes: &[u8], kind: u8) -> bool {
    let Some(&[HANDSHAKE, 3, 0..=4, _, _, begin, a, b, c]) = bytes.first_chunk::<HELLO_HEAD_LEN>() else {
        return false;
    };
    let (record, message) = (u16_at(bytes, 3), u32::from_be_bytes([0, a, b, c]) + 4);
    let fits = record.is_some_and(|len| match kind {
        CLIENT_HELLO => u32::from(len) == message || (message > 1 << 14 && message < 1 << 17),
        _ => u32::from(len) >= message,
    });
    begin == kind && fits
}

fn is_record(bytes: &[u8]) -> bool {
    let sound = |&[kind, major, minor, a, b]: &[u8; HEAD_LEN]| {
        let len = u16::from_be_bytes([a, b]);
        let fits = match kind {
            CHANGE_CIPHER_SPEC => len == 1,
            ALERT => len == 2 || (16..=64).contains(&len),
            HANDSHAKE | APPLICATION_DATA => (4..=RECORD_LEN_MAX).contains(&len),
            _ => false,
        };
        major == 3 && minor <= 4 && fits
    };
    bytes.first_chunk().is_some_and(sound)
}

/// Handshake messages (RFC 8446, B.3; RFC 5246, 7.4).
const fn name_of(kind: u8) -> &'static str {
    match kind {
        0 => "HelloRequest",
        CLIENT_HELLO => "ClientHello",
        SERVER_HELLO => "ServerHello",
        4 => "NewSessionTicket",
        11 => "Certificate",
        12 => "ServerKeyExchange",
        13 => "CertificateRequest",
        14 => "ServerHelloDone",
        15 => "CertificateVerify",
        16 => "ClientKeyExchange",
        20 => "Finished",
        22 => "CertificateStatus",
        _ => "handshake",
    }
}
