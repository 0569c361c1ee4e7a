//! Up to where is an SSH connection readable? (RFC 4253, 4.2, 6 and 7)
//!
//! Versions and the key exchange are in clear; after NEWKEYS even the lengths are encrypted.

use crate::head::{Head, Role};
use crate::talk::{FOR_EVER, First, FirstBytes, Out, Side, Step, Talk, line, rest_of_line, u32_at};

const NEWKEYS: u8 = 21;
/// RFC 4253, 6.1 requires support for 35,000; OpenSSH accepts 256 KB.
const PACKET_LEN_MAX: u32 = 1 << 18;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ssh {
    sides: [Place; 2],
    /// Which sides have asked in the key exchange: version lines are alike, and either side may
    /// send its own first.
    asked: [bool; 2],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Version,
    InLine {
        /// It is the version, and not a line before it.
        is_version: bool,
    },
    Packets,
    Encrypted,
}

impl Talk for Ssh {
    const FIRST: FirstBytes = FirstBytes::of(b"S");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let version =
            |first: First<'_>| first.bytes.starts_with(b"SSH-2.0-") || first.bytes.starts_with(b"SSH-1.99-");
        let known = |first: First<'_>| first.is_empty() || version(first);
        known(client) && known(server) && !(client.is_empty() && server.is_empty())
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let place = &mut self.sides[side as usize];
        match *place {
            Place::Version => {
                let Some(line) = line(bytes) else { return Step::Need };
                let is_version = line.text.starts_with(b"SSH-");
                *place = match line.is_cut {
                    true => Place::InLine { is_version },
                    false if is_version => Place::Packets,
                    false => Place::Version,
                };
                if is_version {
                    let name = out.span(0, line.text.len());
                    out.put(Head { first: true, last: true, name, ..Head::piece(Role::Greets, "version") });
                }
                Step::Skip(line.len)
            }
            Place::InLine { is_version } => {
                let (step, ends) = rest_of_line(bytes);
                if ends {
                    *place = if is_version { Place::Packets } else { Place::Version };
                }
                step
            }
            Place::Packets => {
                let (Some(packet_len), Some(&message)) = (u32_at(bytes, 0), bytes.get(5)) else {
                    return Step::Need;
                };
                if !(2..=PACKET_LEN_MAX).contains(&packet_len) {
                    return Step::Wrong;
                }
                let len = u64::from(packet_len) + 4;
                let kind = match message {
                    1 => "DISCONNECT",
                    2..=4 => "message",
                    20 => "KEXINIT",
                    NEWKEYS => "NEWKEYS",
                    30..=49 => "key exchange",
                    _ => return Step::Wrong,
                };
                if message == NEWKEYS {
                    *place = Place::Encrypted;
                }
                // Among the methods in clear, the client's have even numbers and the server's odd
                // ones (RFC 4253, 8; RFC 4419, 5; RFC 5656, 7.1).
                let asks = message.is_multiple_of(2);
                self.asked[side as usize] |= kind == "key exchange" && asks;
                let role = match kind {
                    "key exchange" if asks => Role::Asks,
                    "key exchange" => Role::Answers,
                    // Its first encrypted request follows this; an old client's is held until this
                    // is acknowledged (RFC 4253, 7.3).
                    "NEWKEYS" if self.asked[side as usize] => Role::Unknown,
                    _ => Role::Neither,
                };
                out.put(Head::whole(role, kind, len));
                Step::Skip(len)
            }
            Place::Encrypted => {
                out.put(Head::piece(Role::Unknown, "encrypted"));
                FOR_EVER
            }
        }
    }

    fn begins(&self, _: Side, _: First<'_>, _: bool) -> bool {
        false
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Place::Encrypted;
    }
}
