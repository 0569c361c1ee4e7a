//! Which result of SQL Server belongs to which batch? (\[MS-TDS\] 2.2.3: packets and their headers; results come in the order of the
//! requests, one at a time)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_at};

/// Type, status, length, process, packet, window.
const HEADER_LEN: u16 = 8;
/// 512 to 32,767 may be negotiated.
const LEN_MAX: u16 = 32_767;
const ENDS: u8 = 1;
const BATCH: u8 = 1;
const RPC: u8 = 3;
const RESULT: u8 = 4;
const ATTENTION: u8 = 6;
const TRANSACTION: u8 = 14;
const LOGIN: u8 = 16;
const PRELOGIN: u8 = 18;
/// An encrypted login comes in TLS records; messages after it may be unencrypted again.
const TLS_RECORD: u8 = 0x17;
const TLS_ALERT: u8 = 0x15;
const RECORD_HEADER_LEN: u64 = 5;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tds {
    /// A message has more packets to come.
    open: [bool; 2],
    /// The side whose encrypted records came last.
    encrypted: Option<Side>,
}

impl Talk for Tds {
    const FIRST: FirstBytes = FirstBytes::of(&[BATCH, RPC, RESULT, TRANSACTION, LOGIN, PRELOGIN]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let asks = |first: First<'_>| {
            matches!(first.bytes.first(), Some(&(BATCH | RPC | TRANSACTION | LOGIN | PRELOGIN)))
                && is_packet(first)
        };
        // The first option is the version, with six bytes.
        let begins = client.bytes.starts_with(&[PRELOGIN, ENDS])
            && client.bytes.get(8) == Some(&0)
            && client.bytes.get(11..13) == Some(&[0, 6]);
        let told = server.bytes.first() == Some(&RESULT) && is_packet(server);
        asks(client) && (told || begins && server.is_empty())
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if matches!(bytes[0], TLS_RECORD | TLS_ALERT) {
            let Some(len) = u16_at(bytes, 3) else { return Step::Need };
            let role = if side.is_client() { Role::Asks } else { Role::Answers };
            let all = RECORD_HEADER_LEN + u64::from(len);
            // One message may be several records, and they do not show where it ends.
            if self.encrypted.replace(side) != Some(side) {
                out.put(Head { first: true, ..Head::piece(role, "encrypted") });
            }
            return Step::Skip(all);
        }
        let (Some(&status), Some(len)) = (bytes.get(1), u16_at(bytes, 2)) else { return Step::Need };
        let Some((role, kind)) = named(side, bytes[0]).filter(|_| (HEADER_LEN..=LEN_MAX).contains(&len))
        else {
            return Step::Wrong;
        };
        let open = &mut self.open[side as usize];
        let (first, last) = (!*open, status & ENDS != 0);
        *open = !last;
        if first || last {
            out.put(Head { len: Some(u64::from(len)), first, last, ..Head::piece(role, kind) });
        }
        Step::Skip(u64::from(len))
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn && is_packet(first) && first.bytes.first().is_some_and(|kind| named(side, *kind).is_some())
    }

    fn lose(&mut self, side: Side) {
        self.open[side as usize] = false;
    }
}

/// A whole packet that ends its message, or one that fills at least the segment.
fn is_packet(first: First<'_>) -> bool {
    let (Some(&status), Some(len), Some(0)) =
        (first.bytes.get(1), u16_at(first.bytes, 2), first.bytes.get(7))
    else {
        return false;
    };
    let all = u32::from(len);
    status < 0x20
        && (HEADER_LEN + 1..=LEN_MAX).contains(&len)
        && if status & ENDS != 0 { all == first.len } else { all >= 512 }
}

const fn named(side: Side, kind: u8) -> Option<(Role, &'static str)> {
    Some(match (side, kind) {
        (Side::Client, BATCH) => (Role::Asks, "batch"),
        (Side::Client, RPC) => (Role::Asks, "rpc"),
        (Side::Client, TRANSACTION) => (Role::Asks, "transaction"),
        (Side::Client, 7) => (Role::Asks, "bulk load"),
        (Side::Client, 2 | LOGIN | 17) => (Role::Asks, "login"),
        // The answer to the cancelled request confirms it.
        (Side::Client, ATTENTION) => (Role::Neither, "attention"),
        (Side::Client, PRELOGIN) => (Role::Asks, "prelogin"),
        (Side::Server, PRELOGIN) => (Role::Answers, "prelogin"),
        (Side::Server, RESULT) => (Role::Answers, "result"),
        _ => return None,
    })
}
