//! What does a screen viewer ask, and what is shown to it? (RFC 6143; its extensions in the
//! rfbproto document)
//!
//! The handshake consists of requests and answers. After it, the server sends updates when
//! something has changed; only a decoder knows how long a rectangle is. If both sides support
//! continuous updates, everything that the server sends is a push, and nothing shows that the
//! viewer waits for anything. If a viewer requests each update, nothing is reported: the order of
//! the packets says as much. If the capture begins later, with a viewer's request for the next
//! change (7.5.3), all pictures follow it: that request stays open until something changes, and
//! nobody waits.

use crate::head::{Head, Role};
use crate::talk::{FOR_EVER, First, FirstBytes, Out, Side, Step, Talk, u16_at, u32_at};

const VERSION_LEN: usize = 12;
const REQUEST_LEN: usize = 10;
/// Security without authentication (7.2.1), and a challenge (7.2.2).
const NONE: u8 = 1;
const CHALLENGE: u8 = 2;
const CHALLENGE_LEN: u64 = 16;
const SERVER_INIT_LEN: usize = 24;
/// Length of names and of cut text.
const TEXT_LEN_MAX: u32 = 1 << 24;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Rfb {
    sides: [Place; 2],
    /// The last digit of the version that the client chooses.
    version: u8,
    security: u8,
    /// The server sends changes without being asked.
    continuous: bool,
}

/// The next message of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Version,
    /// The version, and more, may have come before the capture begins.
    Missed,
    /// The server's offer, and the client's choice.
    Security,
    /// The challenge, and the client's response.
    Challenge,
    Result,
    Init,
    Talks,
    /// The same, from the middle of a connection.
    Shows,
    /// Some of it was missed.
    Unknown,
}

impl Talk for Rfb {
    const FIRST: FirstBytes = FirstBytes::of(b"R\x03");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let is_version = |first: First<'_>| first.bytes.len() >= VERSION_LEN && digit(first.bytes).is_some();
        is_version(server) && (client.is_empty() || is_version(client)) || stands(client)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let told = if side.is_client() { self.on_client(bytes) } else { self.on_server(bytes) };
        let head = match told {
            Ok(head) => head,
            Err(step) => return step,
        };
        out.put(head);
        head.len.map_or(FOR_EVER, Step::Skip)
    }

    fn begins(&self, _: Side, _: First<'_>, _: bool) -> bool {
        false
    }

    fn lose(&mut self, side: Side) {
        let place = &mut self.sides[side as usize];
        *place = if *place == Place::Version { Place::Missed } else { Place::Unknown };
    }
}

impl Rfb {
    fn on_server(&mut self, bytes: &[u8]) -> Result<Head, Step> {
        let (place, version) = (self.sides[Side::Server as usize], self.version);
        let (next, kind, len) = match place {
            Place::Version | Place::Missed if bytes[0] != b'R' => {
                self.begin_later();
                return self.on_update(bytes);
            }
            Place::Version if bytes.len() < VERSION_LEN => return Err(Step::Need),
            Place::Version => {
                digit(bytes).ok_or(Step::Wrong)?;
                (Place::Security, "version", VERSION_LEN as u64)
            }
            // The client's choice is missing.
            Place::Security if version == 0 => return Err(Step::Wrong),
            // Up to version 3.3, the server decides.
            Place::Security if version < 7 => {
                self.security = u32_at(bytes, 0).ok_or(Step::Need)?.try_into().unwrap_or(0);
                (Place::Challenge, "security", 4)
            }
            // None offered, followed by the reason.
            Place::Security if bytes[0] == 0 => return Err(Step::Wrong),
            Place::Security => (Place::Challenge, "security", 1 + u64::from(bytes[0])),
            Place::Challenge => match self.security {
                CHALLENGE => (Place::Result, "challenge", CHALLENGE_LEN),
                NONE => {
                    self.sides[Side::Server as usize] = if version < 8 { Place::Init } else { Place::Result };
                    return self.on_server(bytes);
                }
                // Another type with messages of its own, such as TLS.
                _ => return Err(Step::Wrong),
            },
            Place::Result => match u32_at(bytes, 0).ok_or(Step::Need)? {
                0 => (Place::Init, "result", 4),
                _ => return Err(Step::Wrong),
            },
            Place::Init if bytes.len() < SERVER_INIT_LEN => return Err(Step::Need),
            Place::Init => {
                let name = u32_at(bytes, SERVER_INIT_LEN - 4).filter(|&len| len <= TEXT_LEN_MAX);
                (Place::Talks, "screen", SERVER_INIT_LEN as u64 + u64::from(name.ok_or(Step::Wrong)?))
            }
            Place::Talks | Place::Shows => return self.on_update(bytes),
            Place::Missed | Place::Unknown => return Err(Step::Lose),
        };
        self.sides[Side::Server as usize] = next;
        Ok(Head::whole(Role::Answers, kind, len))
    }

    /// The capture begins when the screen has long been shown.
    fn begin_later(&mut self) {
        self.sides = [Place::Talks, Place::Shows];
        self.continuous = true;
    }

    /// The server's messages during updates, up to the first picture.
    fn on_update(&mut self, bytes: &[u8]) -> Result<Head, Step> {
        Ok(match bytes[0] {
            // The capture begins in the middle of a picture.
            _ if self.sides[Side::Server as usize] == Place::Shows => {
                Head { first: true, ..Head::piece(Role::Pushes, "updates") }
            }
            2 => Head::whole(Role::Neither, "Bell", 1),
            // It is sent to clients that have declared support for it.
            150 => {
                self.continuous = true;
                Head::whole(Role::Neither, "EndOfContinuousUpdates", 1)
            }
            248 => {
                let len = *bytes.get(8).ok_or(Step::Need)?;
                Head::whole(Role::Neither, "ServerFence", 9 + u64::from(len))
            }
            _ if self.continuous => Head { first: true, ..Head::piece(Role::Pushes, "updates") },
            _ => return Err(FOR_EVER),
        })
    }

    fn on_client(&mut self, bytes: &[u8]) -> Result<Head, Step> {
        let (next, kind, len) = match self.sides[Side::Client as usize] {
            Place::Version | Place::Missed if bytes[0] != b'R' => {
                self.begin_later();
                return self.on_client(bytes);
            }
            Place::Version if bytes.len() < VERSION_LEN => return Err(Step::Need),
            Place::Version => {
                self.version = digit(bytes).ok_or(Step::Wrong)?;
                let next = if self.version < 7 { Place::Challenge } else { Place::Security };
                (next, "version", VERSION_LEN as u64)
            }
            Place::Security => {
                self.security = bytes[0];
                (Place::Challenge, "security", 1)
            }
            Place::Challenge if self.security == CHALLENGE => (Place::Init, "response", CHALLENGE_LEN),
            Place::Challenge if self.security != NONE => return Err(Step::Wrong),
            Place::Challenge | Place::Result | Place::Init => (Place::Talks, "share", 1),
            Place::Talks | Place::Shows => {
                let (kind, len) = message(bytes)?;
                if !self.continuous {
                    return Err(Step::Skip(len));
                }
                return Ok(Head::whole(Role::Neither, kind, len));
            }
            Place::Missed | Place::Unknown => return Err(Step::Lose),
        };
        self.sides[Side::Client as usize] = next;
        Ok(Head::whole(Role::Asks, kind, len))
    }
}

/// A viewer's message (7.5), and its length.
fn message(bytes: &[u8]) -> Result<(&'static str, u64), Step> {
    let byte = |at: usize| bytes.get(at).map(|byte| u64::from(*byte)).ok_or(Step::Need);
    Ok(match bytes[0] {
        0 => ("SetPixelFormat", 20),
        2 => ("SetEncodings", 4 + 4 * u64::from(u16_at(bytes, 2).ok_or(Step::Need)?)),
        3 => ("FramebufferUpdateRequest", 10),
        4 => ("KeyEvent", 8),
        5 => ("PointerEvent", 6),
        6 => {
            // A negative length marks the extended clipboard.
            let len = (u32_at(bytes, 4).ok_or(Step::Need)? as i32).unsigned_abs();
            if len > TEXT_LEN_MAX {
                return Err(Step::Wrong);
            }
            ("ClientCutText", 8 + u64::from(len))
        }
        150 => ("EnableContinuousUpdates", 10),
        248 => ("ClientFence", 9 + byte(8)?),
        251 => ("SetDesktopSize", 8 + 16 * byte(6)?),
        255 if byte(1)? == 0 => ("key", 12),
        _ => return Err(Step::Lose),
    })
}

/// Whether a viewer begins with an incremental request for a screen from its upper left corner,
/// alone or followed by other messages.
fn stands(client: First<'_>) -> bool {
    let is_message = |kind: Option<&u8>| kind.is_none_or(|kind| (3..=5).contains(kind));
    let Some((&[3, 1, 0, 0, 0, 0, width, _, height, _], rest)) =
        client.bytes.split_first_chunk::<REQUEST_LEN>()
    else {
        return false;
    };
    (1..0x40).contains(&width) && (1..0x40).contains(&height) && is_message(rest.first())
}

/// The last digit of a version.
fn digit(bytes: &[u8]) -> Option<u8> {
    let digits = bytes.strip_prefix(b"RFB 003.00")?;
    match digits {
        [digit @ b'0'..=b'9', b'\n', ..] => Some(digit - b'0'),
        _ => None,
    }
}
