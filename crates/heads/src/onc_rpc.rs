//! Which reply belongs to which remote procedure call (NFS, mounting, locks)? (RFC 5531, 8, 9 and
//! 11; the calls of NFS: RFC 1813, 3; RFC 8881, 16)

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, u32_at};

/// In a fragment's length: it is the last of its record.
const LAST: u32 = 1 << 31;
const FRAGMENT_LEN_MAX: u32 = (64 << 20) - 1;
/// The first byte of the length of a last fragment, and of the longest one.
const LAST_BYTE: u8 = LAST.to_be_bytes()[0];
const MAX_BYTE: u8 = FRAGMENT_LEN_MAX.to_be_bytes()[0];
const CALL: u32 = 0;
const REPLY: u32 = 1;
const VERSION: u32 = 2;
/// A call up to its procedure, and a reply up to whether it was accepted; both after the fragment's
/// length.
const CALL_LEN: u32 = 40;
const REPLY_LEN: u32 = 12;
const NFS: u32 = 100_003;

/// State of each side: identifier and direction of the record that continues in the next fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct OncRpc {
    open: [Option<(u32, bool)>; 2],
}

impl Talk for OncRpc {
    const FIRST: FirstBytes =
        FirstBytes::NONE.and_range(0, MAX_BYTE).and_range(LAST_BYTE, LAST_BYTE | MAX_BYTE);

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let (asked, answered) = (is_call(client), is_reply(server));
        let same = u32_at(client.bytes, 4) == u32_at(server.bytes, 4);
        asked && (server.is_empty() || answered && same)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(mark) = u32_at(bytes, 0) else { return Step::Need };
        let (size, ends) = (mark & !LAST, mark & LAST != 0);
        if size > FRAGMENT_LEN_MAX {
            return Step::Wrong;
        }
        let len = u64::from(size) + 4;
        let open = &mut self.open[side as usize];
        if let Some((id, asks)) = *open {
            if ends {
                *open = None;
            }
            let role = if asks { Role::Asks } else { Role::Answers };
            let part = Head::piece(role, "fragment");
            out.put(Head { id: Some(u64::from(id)), len: Some(len), last: ends, ..part });
            return Step::Skip(len);
        }
        let (Some(id), Some(kind)) = (u32_at(bytes, 4), u32_at(bytes, 8)) else { return Step::Need };
        let (asks, name) = match kind {
            CALL if size >= CALL_LEN => {
                let words = [12, 16, 20, 24].map(|at| u32_at(bytes, at));
                let [Some(version), Some(program), Some(edition), Some(procedure)] = words else {
                    return Step::Need;
                };
                if version != VERSION {
                    return Step::Wrong;
                }
                (true, name_of(program, edition, procedure))
            }
            REPLY if size >= REPLY_LEN => (false, "reply"),
            _ => return Step::Wrong,
        };
        if !ends {
            *open = Some((id, asks));
        }
        let role = if asks { Role::Asks } else { Role::Answers };
        out.put(Head { id: Some(u64::from(id)), last: ends, ..Head::whole(role, name, len) });
        Step::Skip(len)
    }

    fn begins(&self, _: Side, first: First<'_>, _: bool) -> bool {
        is_call(first) || is_reply(first)
    }

    fn lose(&mut self, side: Side) {
        self.open[side as usize] = None;
    }
}

/// The first fragment of a record, which the segment contains, or which begins there.
fn is_fragment(first: First<'_>, least: u32) -> bool {
    let size = u32_at(first.bytes, 0).map_or(0, |mark| mark & !LAST);
    (least..=FRAGMENT_LEN_MAX).contains(&size) && size.saturating_add(4) >= first.len
}

/// A call of the existing RPC version.
fn is_call(first: First<'_>) -> bool {
    is_fragment(first, CALL_LEN)
        && u32_at(first.bytes, 8) == Some(CALL)
        && u32_at(first.bytes, 12) == Some(VERSION)
        // The program numbers that are assigned, and those of users (RFC 5531, 13).
        && u32_at(first.bytes, 16).is_some_and(|program| (100_000..0x6000_0000).contains(&program))
}

/// A reply, accepted or denied.
fn is_reply(first: First<'_>) -> bool {
    is_fragment(first, REPLY_LEN)
        && u32_at(first.bytes, 8) == Some(REPLY)
        && u32_at(first.bytes, 12).is_some_and(|status| status <= 1)
}

const fn name_of(program: u32, edition: u32, procedure: u32) -> &'static str {
    match (program, edition, procedure) {
        (NFS, 4, 1) => "COMPOUND",
        (NFS, 3, 1) => "GETATTR",
        (NFS, 3, 2) => "SETATTR",
        (NFS, 3, 3) => "LOOKUP",
        (NFS, 3, 4) => "ACCESS",
        (NFS, 3, 5) => "READLINK",
        (NFS, 3, 6) => "READ",
        (NFS, 3, 7) => "WRITE",
        (NFS, 3, 8) => "CREATE",
        (NFS, 3, 9) => "MKDIR",
        (NFS, 3, 10) => "SYMLINK",
        (NFS, 3, 11) => "MKNOD",
        (NFS, 3, 12) => "REMOVE",
        (NFS, 3, 13) => "RMDIR",
        (NFS, 3, 14) => "RENAME",
        (NFS, 3, 15) => "LINK",
        (NFS, 3, 16) => "READDIR",
        (NFS, 3, 17) => "READDIRPLUS",
        (NFS, 3, 18) => "FSSTAT",
        (NFS, 3, 19) => "FSINFO",
        (NFS, 3, 20) => "PATHCONF",
        (NFS, 3, 21) => "COMMIT",
        (_, _, 0) => "NULL",
        _ => "call",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call whose first fragment has this length; `last` says whether more follow.
    fn call(size: u32, last: u32) -> Vec<u8> {
        let program = [VERSION, NFS, 3, 1];
        let words = [size | last, 7, CALL].into_iter().chain(program).chain([0; 4]);
        words.flat_map(u32::to_be_bytes).collect()
    }

    #[test]
    fn a_call_begins_with_one_of_its_bytes_however_long_its_first_fragment_is() {
        for last in [0, LAST] {
            for size in [CALL_LEN, 1 << 20, 1 << 24, 3 << 24, FRAGMENT_LEN_MAX, FRAGMENT_LEN_MAX + 1] {
                let bytes = call(size, last);
                let fits = OncRpc::fits(First::whole(&bytes), First::whole(&[]));
                assert_eq!(fits, size <= FRAGMENT_LEN_MAX, "{size:#x}");
                assert!(!fits || OncRpc::FIRST.has(usize::from(bytes[0])), "{size:#x}");
            }
        }
    }
}
