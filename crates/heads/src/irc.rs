//! Which IRC replies belong to which commands? (RFC 1459, 2.3 and 6; RFC 2812; IRCv3 message tags and capability negotiation)
//!
//! A command has no identifier, and not every command is answered: those that a server answers wait in a
//! queue. A numeric reply belongs to the oldest; an echo, or a PONG, to the oldest command of its name,
//! and those before it, which the server has read by then, need no answer. Each is identified by its place
//! in the client's stream. A mode that is set needs no answer if it is set already, and chat messages are
//! not requests.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text};
use crate::words::{Passed, Words, word_hash};

/// Commands that can wait for their replies at a time; further ones are not followed.
const OPEN_MAX: usize = 4;
/// Numeric replies are below this, and errors from 400 on (RFC 2812, 5).
const NUMERIC_END: u32 = 1000;
/// The server accepts the client (RPL_WELCOME).
const WELCOME: u32 = 1;
const ERRORS: std::ops::Range<u32> = 400..600;

/// The commands that a server always answers, and the numeric replies that end the answer; without
/// any, the first reply is all of it. A registration ends with the message of the day, or the note
/// that there is none.
const ASKED: [(&str, &[u32]); 27] = [
    (REGISTRATION, &[376, 422]),
    ("JOIN", &[366]),
    ("NAMES", &[366]),
    ("WHO", &[315]),
    ("WHOIS", &[318]),
    ("WHOWAS", &[369]),
    ("LIST", &[323]),
    ("LINKS", &[365]),
    ("STATS", &[219]),
    ("MOTD", &[376, 422]),
    ("INFO", &[374]),
    ("ADMIN", &[259]),
    ("LUSERS", &[255, 266]),
    ("PART", &[]),
    ("TOPIC", &[]),
    ("MODE", &[]),
    ("KICK", &[]),
    ("INVITE", &[]),
    ("AWAY", &[]),
    ("OPER", &[]),
    ("VERSION", &[]),
    ("TIME", &[]),
    ("ISON", &[]),
    ("USERHOST", &[]),
    ("CAP", &[]),
    ("AUTHENTICATE", &[]),
    ("PING", &[]),
];

const REGISTRATION: &str = "USER";

/// Arguments of MODE that ask for a channel's lists; others change a mode (RFC 2811, 4.3; RFC 2812, 3.2.3).
const LISTS: [&str; 6] = ["b", "+b", "e", "+e", "I", "+I"];
/// Errors that answer a PING: no such server, no origin (RFC 2812, 5.2).
const OF_PING: [u32; 2] = [402, 409];

/// What a client may say in the middle of a connection.
const TALK: [&[u8]; 4] = [b"PRIVMSG ", b"PING ", b"PONG ", b"JOIN "];

/// The progress of the client's registration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Stage {
    /// The beginning was not seen.
    #[default]
    Unknown,
    Fresh,
    /// It negotiates capabilities, and is not registered before it ends the negotiation.
    Negotiates,
    Registered,
}

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Irc {
    sides: [Words; 2],
    /// The commands that wait for their replies, oldest first: their index in [`ASKED`], from 1.
    open: [u8; OPEN_MAX],
    /// Where each of them is in the client's stream, modulo 2^16.
    places: [u16; OPEN_MAX],
    /// The oldest has begun to be answered.
    answering: bool,
    stage: Stage,
}

impl Talk for Irc {
    const FIRST: FirstBytes = FirstBytes::of(b"NCP:J");

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let (registers, greets) = (registers(client.bytes), greets(server.bytes));
        let (talks, pings) = (is_line(client.bytes, &TALK), is_line(server.bytes, &[b"PING :"]));
        registers && (server.is_empty() || greets) || greets && (client.is_empty() || talks) || pings && talks
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if bytes[0] == 0x16 && self.sides[side as usize].len == 0 {
            // What follows STARTTLS.
            return Step::Other(Protocol::Tls);
        }
        let (used, words) = match self.sides[side as usize].pass(bytes) {
            Passed::All => return Step::Skip(bytes.len() as u64),
            Passed::TooLong => return Step::Wrong,
            Passed::Line(used, words) => (used, words),
        };
        let begin = out.at + used as u64 - u64::from(words.len);
        let head = match side {
            _ if words.count == 0 => None,
            Side::Client => {
                if begin == 0 {
                    self.stage = Stage::Fresh;
                }
                self.asked(&words, begin)
            }
            Side::Server => self.told(&words),
        };
        if let Some(head) = head {
            let is_whole = words.len as usize == used && head.role == Role::Asks;
            // A channel's key, or a password, may come after the first two words.
            let is_secret = ["OPER", "AUTHENTICATE"].contains(&head.kind);
            let name = if is_whole && !is_secret { out.span(0, two_words(&bytes[..used])) } else { None };
            out.put_at(begin, Head { name, len: Some(u64::from(words.len)), ..head });
        }
        Step::Skip(used as u64)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        match side {
            Side::Client => registers(first.bytes) || is_line(first.bytes, &TALK),
            Side::Server => greets(first.bytes) || is_line(first.bytes, &[b"PING "]),
        }
    }

    fn lose(&mut self, side: Side) {
        self.sides[side as usize] = Words::default();
        self.open = [0; OPEN_MAX];
        self.answering = false;
        if self.stage != Stage::Registered {
            self.stage = Stage::Unknown;
        }
    }
}

impl Irc {
    /// The role of the client's line.
    fn asked(&mut self, words: &Words, begin: u64) -> Option<Head> {
        let at = usize::from(words.begins_with(b'@') || words.begins_with(b':'));
        let command = words.word(at)?;
        let is = |word: &str| command == word_hash(word.as_bytes());
        if is("CAP") && words.word(at + 1) == Some(word_hash(b"END")) {
            return match self.stage {
                Stage::Unknown => None,
                Stage::Negotiates => {
                    self.stage = Stage::Fresh;
                    Some(self.wait(REGISTRATION, begin))
                }
                Stage::Fresh | Stage::Registered => Some(line(Role::Neither, "CAP END")),
            };
        }
        if let Some(kind) = ["PRIVMSG", "NOTICE"].into_iter().find(|word| is(word)) {
            return Some(line(Role::Pushes, kind));
        }
        if is("MODE") && words.count as usize > at + 2 && !is_list(words, at) {
            return Some(line(Role::Neither, "mode"));
        }
        let kind = ASKED.iter().map(|(kind, _)| *kind).find(|word| is(word)).unwrap_or("command");
        if self.stage == Stage::Unknown && kind == REGISTRATION {
            return None;
        }
        if kind == "CAP" && self.stage == Stage::Fresh {
            self.stage = Stage::Negotiates;
        }
        // The registration asks once the negotiation is over.
        let within = kind == REGISTRATION && self.stage == Stage::Negotiates;
        Some(if within || kind == "command" { line(Role::Neither, kind) } else { self.wait(kind, begin) })
    }

    /// Queues the command at this place, if there is room.
    fn wait(&mut self, kind: &'static str, begin: u64) -> Head {
        let place = ASKED.iter().position(|(word, _)| *word == kind).map_or(0, |at| at as u8 + 1);
        if let Some(free) = self.open.iter().position(|open| *open == 0) {
            (self.open[free], self.places[free]) = (place, begin as u16);
        }
        Head { id: Some(u64::from(begin as u16)), ..line(Role::Asks, kind) }
    }

    /// The oldest command needs no answer any more.
    fn close(&mut self) {
        self.open.rotate_left(1);
        self.places.rotate_left(1);
        self.open[OPEN_MAX - 1] = 0;
        self.answering = false;
    }

    /// Whether the server's line with this `command` answers an open command by its name: those before it
    /// are over.
    fn echoes(&mut self, command: u32) -> bool {
        let named = |open: &u8| {
            let asked = usize::from(*open).checked_sub(1).map(|at| ASKED[at].0);
            let word = asked.map(|asked| if asked == "PING" { "PONG" } else { asked });
            word.is_some_and(|word| command == word_hash(word.as_bytes()))
        };
        let Some(place) = self.open.iter().position(named) else { return false };
        if place > 0 && self.answering {
            return false;
        }
        (0..place).for_each(|_| self.close());
        true
    }

    /// The role of the server's line.
    fn told(&mut self, words: &Words) -> Option<Head> {
        let tagged = usize::from(words.begins_with(b'@'));
        let at = tagged + usize::from(tagged == 1 || words.begins_with(b':'));
        let numeric = words.number(at as u8).filter(|numeric| *numeric < NUMERIC_END);
        let command = words.word(at)?;
        let is = |word: &str| command == word_hash(word.as_bytes());
        if numeric == Some(WELCOME) {
            self.stage = Stage::Registered;
        }
        let echoes = numeric.is_none() && self.echoes(command);
        if let Some(kind) = ["PING", "ERROR"].into_iter().find(|word| is(word)) {
            return Some(line(Role::Neither, kind));
        }
        let of_oldest = |asked: &str, numeric: u32| asked != "PING" || OF_PING.contains(&numeric);
        let open = usize::from(self.open[0]).checked_sub(1).map(|at| ASKED[at]);
        let answers = |asked: &str| echoes || numeric.is_some_and(|numeric| of_oldest(asked, numeric));
        let Some((asked, ends)) = open.filter(|(asked, _)| answers(asked)) else {
            // It may answer a command that was missed.
            let may_answer = numeric.is_some() || is("PONG") || ASKED.iter().any(|(word, _)| is(word));
            return (!may_answer).then(|| line(Role::Pushes, "message"));
        };
        let id = Some(u64::from(self.places[0]));
        let first = !std::mem::replace(&mut self.answering, true);
        // A nickname in use does not end a registration (433): the client asks for another one. Nor
        // does an unknown nickname end the answer about it (401, 406 come before its end).
        let refused = numeric.is_some_and(|numeric| ERRORS.contains(&numeric))
            && ![REGISTRATION, "WHOIS", "WHOWAS"].contains(&asked);
        let last = refused || ends.is_empty() || numeric.is_some_and(|numeric| ends.contains(&numeric));
        if last {
            self.close();
        }
        let kind = if numeric.is_some() { "numeric" } else { "echo" };
        (first || last).then_some(Head { id, first, last, ..Head::piece(Role::Answers, kind) })
    }
}

/// A line that is a whole message.
fn line(role: Role, kind: &'static str) -> Head {
    Head { first: true, last: true, ..Head::piece(role, kind) }
}

/// Whether a MODE asks for a list of a channel, its third word.
fn is_list(words: &Words, at: usize) -> bool {
    let third = words.word(at + 2);
    words.count as usize == at + 3 && LISTS.iter().any(|list| third == Some(word_hash(list.as_bytes())))
}

/// How a client begins: with a nickname, or a request for capabilities.
fn registers(bytes: &[u8]) -> bool {
    is_line(bytes, &[b"NICK ", b"CAP LS"]) || bytes.starts_with(b"PASS ") && has_nick(bytes)
}

fn has_nick(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|window| window == b"\nNICK ")
}

/// A server's first line, in a form that no other protocol has.
fn greets(bytes: &[u8]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    let from = || {
        let source = line.strip_prefix(b":")?;
        let space = source.iter().position(|byte| *byte == b' ').filter(|space| *space > 0)?;
        Some(&source[space + 1..])
    };
    let says = |rest: &[u8]| {
        let numeric = rest.len() > 4 && rest[..3].iter().all(u8::is_ascii_digit) && rest[3] == b' ';
        numeric || [&b"NOTICE "[..], b"PRIVMSG ", b"CAP "].iter().any(|word| rest.starts_with(word))
    };
    is_text(line) && (line.starts_with(b"NOTICE AUTH :") || from().is_some_and(says))
}

fn is_line(bytes: &[u8], begins: &[&[u8]]) -> bool {
    let line = bytes.split(|byte| *byte == b'\r' || *byte == b'\n').next().unwrap_or_default();
    is_text(line) && begins.iter().any(|begin| line.starts_with(begin))
}

/// Where the first two words of a line end.
fn two_words(line: &[u8]) -> usize {
    let text = line.trim_ascii_end();
    text.iter().enumerate().filter(|(_, byte)| **byte == b' ').nth(1).map_or(text.len(), |(at, _)| at)
}
