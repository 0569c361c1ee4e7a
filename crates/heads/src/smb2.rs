//! Which SMB response belongs to which request? (MS-SMB2, 2.1 and 2.2.1; MS-CIFS, 2.2.3.1)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u16_le, u32_le};

/// Transport header: a zero and three bytes of length.
const FRAME_LEN: usize = 4;
/// Up to the end of the message identifier.
const NEEDED: usize = 32;
const STATUS_PENDING: u32 = 0x0000_0103;
const SERVER_TO_REDIR: u32 = 1;
const LOCK: u16 = 0xa;
const CANCEL: u16 = 0xc;
const CHANGE_NOTIFY: u16 = 0xf;
/// MessageId of an unsolicited oplock break.
const UNSOLICITED: u64 = u64::MAX;

/// The length of an SMB1 header, and the reply bit in its flags.
const SMB1_LEN: usize = 32;
const SMB1_REPLY: u8 = 0x80;
/// The most parameter words, and those of a change notification request (MS-CIFS, 2.2.4.62.1).
const SMB1_WORDS: usize = 32;
const NOTIFY_WORDS: u8 = 23;
const NT_TRANSACT: u8 = 0xa0;
const NT_CANCEL: u8 = 0xa4;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Smb2 {
    /// Bytes of the frame that hold further messages (a compound).
    left: [u32; 2],
}

impl Talk for Smb2 {
    const FIRST: FirstBytes = FirstBytes::of(b"\0");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let old = |first: First<'_>| first.bytes.get(FRAME_LEN..FRAME_LEN + 5) == Some(b"\xffSMBr");
        let asks = is_framed(client) && (old(client) || is_response(client) == Some(false));
        let answers = is_response(server) == Some(true) || is_smb1(server) == Some(true);
        let asks = asks || is_framed(client) && is_smb1(client) == Some(false);
        asks && (server.is_empty() || is_framed(server) && answers)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let left = self.left[side as usize];
        let begin = if left > 0 { 0 } else { FRAME_LEN };
        let Some(&[zero, a, b, c]) = bytes.first_chunk() else { return Step::Need };
        let len = if left > 0 { left } else { u32::from_be_bytes([0, a, b, c]) };
        if left == 0 && (zero != 0 || len < 4) {
            return Step::Wrong;
        }
        let Some(magic) = bytes.get(begin..).and_then(|rest| rest.first_chunk()) else { return Step::Need };
        let all = u64::from(len) + begin as u64;
        match magic {
            b"\xfeSMB" if len as usize >= NEEDED => {}
            b"\xfdSMB" | b"\xfcSMB" => {
                let kind = if magic[0] == 0xfd { "encrypted" } else { "compressed" };
                self.left[side as usize] = 0;
                out.put(Head::whole(Role::Unknown, kind, all));
                return Step::Skip(all);
            }
            b"\xffSMB" => return smb1(&bytes[begin..], len, all, out),
            _ => return Step::Wrong,
        }
        let Some(header) = bytes.get(begin..begin + NEEDED) else { return Step::Need };
        let word = |at| u32_le(header, at).unwrap_or(0);
        let (status, flags, next) = (word(8), word(16), word(20));
        let command = u16_le(header, 12).unwrap_or(0);
        let id = u64::from(word(24)) | u64::from(word(28)) << 32;
        let role = match flags & SERVER_TO_REDIR != 0 {
            true if id == UNSOLICITED => Role::Pushes,
            true if status == STATUS_PENDING && waits_for_news(command) => Role::Defers,
            true if status == STATUS_PENDING => Role::Interim,
            true => Role::Answers,
            false if command == CANCEL => Role::Neither,
            false if command == CHANGE_NOTIFY => Role::Subscribes,
            false => Role::Asks,
        };
        // The next message of a compound is within the frame.
        let used = if next >= NEEDED as u32 && next < len { next } else { len };
        self.left[side as usize] = len - used;
        let all = u64::from(used) + begin as u64;
        out.put(Head { id: Some(id), ..Head::whole(role, name_of(command), all) });
        Step::Skip(all)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_framed(first) && is_response(first).or(is_smb1(first)).is_some()
    }

    fn lose(&mut self, side: Side) {
        self.left[side as usize] = 0;
    }
}

/// Multiplex identifier and direction (MS-CIFS, 2.2.3.1).
fn smb1(message: &[u8], len: u32, all: u64, out: &mut Out<'_>) -> Step {
    if (len as usize) < SMB1_LEN {
        return Step::Wrong;
    }
    let (Some(&command), Some(&flags), Some(id)) = (message.get(4), message.get(9), u16_le(message, 30))
    else {
        return Step::Need;
    };
    let words = message.get(SMB1_WORDS).copied();
    if words.is_none() && len as usize > SMB1_WORDS {
        return Step::Need;
    }
    let role = match flags & SMB1_REPLY != 0 {
        // An unsolicited oplock break.
        true if id == u16::MAX => Role::Pushes,
        true => Role::Answers,
        false if id == u16::MAX => Role::Neither,
        false if command == NT_TRANSACT && words == Some(NOTIFY_WORDS) => Role::Subscribes,
        false if command == NT_CANCEL => Role::Neither,
        false => Role::Asks,
    };
    out.put(Head { id: Some(u64::from(id)), ..Head::whole(role, "SMB1", all) });
    Step::Skip(all)
}

fn is_framed(first: First<'_>) -> bool {
    let Some(&[0, a, b, c]) = first.bytes.first_chunk() else { return false };
    let len = u32::from_be_bytes([0, a, b, c]);
    (32..1 << 23).contains(&len) && len + FRAME_LEN as u32 >= first.len
}

/// Whether an SMB1 header has the reply bit.
fn is_smb1(first: First<'_>) -> Option<bool> {
    let header = first.bytes.get(FRAME_LEN..FRAME_LEN + SMB1_LEN)?;
    (header.starts_with(b"\xffSMB")).then_some(header[9] & SMB1_REPLY != 0)
}

/// Whether an SMB2 header has the response flag.
fn is_response(first: First<'_>) -> Option<bool> {
    let header = first.bytes.get(FRAME_LEN..FRAME_LEN + NEEDED)?;
    let sound = header.starts_with(b"\xfeSMB") && u16_le(header, 4) == Some(64);
    sound.then_some(u32_le(header, 16)? & SERVER_TO_REDIR != 0)
}

/// Any request may get a pending response, even a READ from a disk (MS-SMB2, 3.3.4.4). These ones
/// are answered when another client acts: releases a lock, changes a directory.
const fn waits_for_news(command: u16) -> bool {
    matches!(command, LOCK | CHANGE_NOTIFY)
}

/// MS-SMB2, 2.2.1.2.
const fn name_of(command: u16) -> &'static str {
    match command {
        0 => "NEGOTIATE",
        1 => "SESSION_SETUP",
        2 => "LOGOFF",
        3 => "TREE_CONNECT",
        4 => "TREE_DISCONNECT",
        5 => "CREATE",
        6 => "CLOSE",
        7 => "FLUSH",
        8 => "READ",
        9 => "WRITE",
        LOCK => "LOCK",
        0xb => "IOCTL",
        CANCEL => "CANCEL",
        0xd => "ECHO",
        0xe => "QUERY_DIRECTORY",
        CHANGE_NOTIFY => "CHANGE_NOTIFY",
        0x10 => "QUERY_INFO",
        0x11 => "SET_INFO",
        0x12 => "OPLOCK_BREAK",
        _ => "command",
    }
}
