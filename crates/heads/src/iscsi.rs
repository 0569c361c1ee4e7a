//! Which response of a disk belongs to which command, and when is it done? (RFC 7143, 11)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u32_at};

/// Basic header segment.
const HEADER_LEN: u64 = 48;
/// The part of it that identifies the PDU: up to the initiator task tag and the expected transfer
/// length.
const READ_LEN: usize = 24;
const OPCODE: u8 = 0x3f;
const IMMEDIATE: u8 = 0x40;
/// The last PDU of a sequence; and its data carry the status.
const FINAL: u8 = 0x80;
const WITH_STATUS: u8 = 0x01;
/// A command that writes.
const WRITES: u8 = 0x20;
/// The word that holds the data length also holds the length of additional header segments.
const DATA_LEN: u32 = 0x00ff_ffff;
const LOGIN: u8 = 0x03;
/// Reserved flags of a login; its data are at most 8 KB unless another length was negotiated
/// before.
const RESERVED: u8 = 0x30;
const LOGIN_LEN_MAX: u64 = 8192;
const LOGIN_RESPONSE: u8 = 0x23;
const DATA_IN: u8 = 0x25;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Iscsi {
    /// The task whose data are arriving.
    reading: Option<u32>,
}

impl Talk for Iscsi {
    const FIRST: FirstBytes = FirstBytes::of(&[LOGIN, LOGIN | IMMEDIATE, LOGIN_RESPONSE]);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let key = client.bytes.get(HEADER_LEN as usize..HEADER_LEN as usize + 4);
        is_login(client, LOGIN)
            && key.is_some_and(|key| key.iter().all(u8::is_ascii_alphabetic))
            && (server.is_empty() || is_login(server, LOGIN_RESPONSE))
    }

    // Digests, which a login may negotiate (RFC 7143, 13.1), are not supported: the next bytes are
    // then not a valid header.
    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if bytes.len() < READ_LEN {
            return Step::Need;
        }
        let (opcode, flags) = (bytes[0] & OPCODE, bytes[1]);
        let Some((kind, role)) = named(side, opcode, bytes[0]) else { return Step::Wrong };
        let (Some(len), Some(task)) = (length(bytes), u32_at(bytes, 16)) else { return Step::Wrong };
        let head = Head { id: Some(u64::from(task)), ..Head::whole(role, kind, len) };
        let head = match opcode {
            // The data to write may follow when the target asks for them (RFC 7143, 11.3.4 and
            // 11.8).
            0x01 if flags & WRITES != 0 => {
                let (data, all) = (u32_at(bytes, 4).unwrap_or(0) & DATA_LEN, u32_at(bytes, 20).unwrap_or(0));
                Head { last: data >= all, ..head }
            }
            0x05 => Head { first: false, last: flags & FINAL != 0, ..head },
            DATA_IN => {
                let last = flags & WITH_STATUS != 0;
                let first = self.reading.replace(task) != Some(task);
                if last {
                    self.reading = None;
                }
                Head { first, last, ..head }
            }
            0x21 => {
                let reading = self.reading == Some(task);
                self.reading = self.reading.filter(|_| !reading);
                Head { first: !reading, ..head }
            }
            _ => head,
        };
        out.put(head);
        Step::Skip(len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        let Some(&[begin, _]) = first.bytes.first_chunk() else { return false };
        let whole = length(first.bytes).is_some_and(|len| len == u64::from(first.len));
        whole && named(side, begin & OPCODE, begin).is_some()
    }

    fn lose(&mut self, side: Side) {
        if !side.is_client() {
            self.reading = None;
        }
    }
}

/// The header, additional header segments, and the data, padded to whole words.
fn length(bytes: &[u8]) -> Option<u64> {
    let lengths = u32_at(bytes, 4)?;
    let (added, data) = (u64::from(lengths >> 24) * 4, u64::from(lengths & DATA_LEN));
    Some(HEADER_LEN + added + data.next_multiple_of(4))
}

/// A login or its response of the existing version, which the segment contains, or which begins
/// there.
fn is_login(first: First<'_>, opcode: u8) -> bool {
    let Some(&[begin, flags, version, least]) = first.bytes.first_chunk() else { return false };
    // Only an initiator sets the immediate flag.
    let begins = begin == opcode || opcode == LOGIN && begin == LOGIN | IMMEDIATE;
    begins
        && flags & RESERVED == 0
        && [version, least] == [0, 0]
        && length(first.bytes).is_some_and(|len| {
            (HEADER_LEN..=HEADER_LEN + LOGIN_LEN_MAX).contains(&len) && len >= u64::from(first.len)
        })
}

/// The PDUs (RFC 7143, 11.2.1.2). Only an initiator sets the immediate flag.
const fn named(side: Side, opcode: u8, begin: u8) -> Option<(&'static str, Role)> {
    let known = match (side, opcode) {
        (Side::Client, 0x00) => ("NOP-Out", Role::Neither),
        (Side::Client, 0x01) => ("SCSI Command", Role::Asks),
        (Side::Client, 0x02) => ("Task Management", Role::Asks),
        (Side::Client, 0x03) => ("Login", Role::Asks),
        (Side::Client, 0x04) => ("Text", Role::Asks),
        (Side::Client, 0x05) => ("Data-Out", Role::Asks),
        (Side::Client, 0x06) => ("Logout", Role::Asks),
        (Side::Client, 0x10) => ("SNACK", Role::Neither),
        (Side::Server, 0x20) => ("NOP-In", Role::Neither),
        (Side::Server, 0x21) => ("SCSI Response", Role::Answers),
        (Side::Server, 0x22) => ("Task Management Response", Role::Answers),
        (Side::Server, 0x23) => ("Login Response", Role::Answers),
        (Side::Server, 0x24) => ("Text Response", Role::Answers),
        (Side::Server, 0x25) => ("Data-In", Role::Answers),
        (Side::Server, 0x26) => ("Logout Response", Role::Answers),
        (Side::Server, 0x31) => ("R2T", Role::Interim),
        (Side::Server, 0x32) => ("Asynchronous Message", Role::Pushes),
        (Side::Server, 0x3f) => ("Reject", Role::Neither),
        _ => return None,
    };
    let marks = begin & !OPCODE;
    if marks == 0 || marks == IMMEDIATE && side.is_client() { Some(known) } else { None }
}
