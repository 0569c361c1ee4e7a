//! Where does the answer to a MySQL command end? (MySQL Internals: Client/Server Protocol)
//!
//! Packets are numbered from 0 within a command; answers carry no identifier, as only one command
//! is open at a time. Rows are skipped.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{CARRY, First, FirstBytes, Out, Side, Step, Talk, is_text, u32_le};

const HEAD_LEN: usize = 4;
const PACKET_LEN_MAX: u32 = 0xff_ffff;

const CLIENT_COMPRESS: u32 = 1 << 5;
const CLIENT_SSL: u32 = 1 << 11;
const CLIENT_DEPRECATE_EOF: u32 = 1 << 24;
const CLIENT_QUERY_ATTRIBUTES: u32 = 1 << 27;
const SSL_REQUEST_LEN: u32 = 32;

const SERVER_MORE_RESULTS_EXISTS: u16 = 8;
const SERVER_STATUS_CURSOR_EXISTS: u16 = 64;

const COM_QUIT: u8 = 1;
const COM_FIELD_LIST: u8 = 4;
const COM_STATISTICS: u8 = 9;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_SEND_LONG_DATA: u8 = 0x18;
const COM_STMT_CLOSE: u8 = 0x19;

const OK: u8 = 0;
const LOCAL_INFILE: u8 = 0xfb;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct MySql {
    /// The client's capabilities; unknown in the middle of a connection.
    capabilities: Option<u32>,
    /// The command phase: the client has been authenticated.
    commands: bool,
    command: u8,
    answer: Answer,
    /// The previous packet had the maximum length: its message continues.
    goes_on: [bool; 2],
}

/// The server's position in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Answer {
    /// No command is open, or it is unknown which: nothing is reported.
    #[default]
    Unknown,
    First,
    /// Of another result of the same answer.
    Again,
    Columns,
    Rows,
    /// This many packets of a prepared statement.
    Definitions(u32),
}

impl Talk for MySql {
    // A length.
    const FIRST: FirstBytes = FirstBytes::ANY;

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        if is_greeting(server) {
            return client.is_empty() || client.bytes.get(3) == Some(&1);
        }
        is_command(client) && is_answer(server)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        let Some(&[a, b, c, number]) = bytes.first_chunk() else { return Step::Need };
        let len = u32::from_le_bytes([a, b, c, 0]);
        let all = u64::from(len) + HEAD_LEN as u64;
        let window = all.min(CARRY as u64) as usize;
        if bytes.len() < window {
            return Step::Need;
        }
        let went_on = std::mem::replace(&mut self.goes_on[side as usize], len == PACKET_LEN_MAX);
        if !went_on {
            let payload = &bytes[HEAD_LEN..window];
            match side {
                Side::Client => return self.on_client(number, len, payload, bytes, out),
                Side::Server if !self.commands => self.on_login(number, payload, all, out),
                Side::Server => self.on_answer(payload, len, out),
            }
        }
        Step::Skip(all)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn && if side.is_client() { is_command(first) } else { is_answer(first) }
    }

    fn lose(&mut self, side: Side) {
        self.commands = true;
        self.goes_on[side as usize] = false;
        self.answer = Answer::Unknown;
    }
}

impl MySql {
    fn can(&self, capability: u32) -> Option<bool> {
        self.capabilities.map(|capabilities| capabilities & capability != 0)
    }

    fn on_client(&mut self, number: u8, len: u32, payload: &[u8], bytes: &[u8], out: &mut Out<'_>) -> Step {
        let all = u64::from(len) + HEAD_LEN as u64;
        // A login's packets continue the numbers of the greeting.
        self.commands |= number == 0;
        if !self.commands {
            let kind = if self.capabilities.is_none() { "login" } else { "authentication" };
            if self.capabilities.is_none() {
                let capabilities = u32_le(payload, 0).unwrap_or(0);
                if capabilities & CLIENT_SSL != 0 && len == SSL_REQUEST_LEN {
                    out.turn = Some(crate::talk::Turn::Into(Protocol::Tls));
                    out.put(Head::whole(Role::Interim, "SSLRequest", all));
                    return Step::Skip(all);
                }
                self.capabilities = Some(capabilities);
            }
            out.put(Head::whole(Role::Asks, kind, all));
            return Step::Skip(all);
        }
        let Some(&command) = payload.first().filter(|_| number == 0) else {
            // A file that the server has asked for, which an empty packet ends, or another packet
            // of a login.
            let last = len == 0;
            out.put(Head { len: Some(all), last, ..Head::piece(Role::Asks, "data") });
            return Step::Skip(all);
        };
        if command > 0x20 {
            return Step::Wrong;
        }
        let answered = ![COM_QUIT, COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE].contains(&command);
        if answered {
            // A command before the previous one was answered: which definitions and rows belong to
            // which is unknown.
            let alone = self.answer == Answer::Unknown;
            (self.command, self.answer) = (command, if alone { Answer::First } else { Answer::Unknown });
        }
        let role = if answered { Role::Asks } else { Role::Neither };
        let name = (command == 3 || command == COM_STMT_PREPARE).then(|| {
            // The number of attributes and of their sets precedes a query
            // (CLIENT_QUERY_ATTRIBUTES).
            let attributes = command == 3 && self.can(CLIENT_QUERY_ATTRIBUTES) == Some(true);
            let begin = HEAD_LEN + 1 + 2 * usize::from(attributes);
            out.span(begin, bytes.len().min(usize::try_from(all).unwrap_or(usize::MAX)))
        });
        out.put(Head { name: name.flatten(), ..Head::whole(role, name_of(command), all) });
        Step::Skip(all)
    }

    /// The greeting, and what follows until the client is accepted or refused.
    fn on_login(&mut self, number: u8, payload: &[u8], all: u64, out: &mut Out<'_>) {
        let kind = match payload.first() {
            _ if number == 0 => "greeting",
            Some(&OK) => {
                // With compression, packets have different headers from here on.
                self.commands = self.can(CLIENT_COMPRESS) != Some(true);
                "OK"
            }
            Some(&ERR) => "ERR",
            _ => "authentication",
        };
        if kind == "OK" && !self.commands {
            out.turn = Some(crate::talk::Turn::Anew);
        }
        // "More data" and "fast authentication succeeded" are not requests.
        let last = payload.first_chunk() != Some(&[1, 3]);
        out.put(Head { last, ..Head::whole(Role::Answers, kind, all) });
    }

    fn on_answer(&mut self, payload: &[u8], len: u32, out: &mut Out<'_>) {
        let kind = payload.first().copied().unwrap_or(OK);
        let deprecates = self.can(CLIENT_DEPRECATE_EOF);
        let is_end = kind == EOF && (if deprecates == Some(true) { len < PACKET_LEN_MAX } else { len < 9 });
        let has = |flag| status(kind, payload, deprecates).is_some_and(|status| status & flag != 0);
        let first = self.answer == Answer::First;
        let (word, last) = match self.answer {
            Answer::First | Answer::Again => {
                let word = match kind {
                    _ if self.command == COM_STATISTICS => "statistics",
                    OK => "OK",
                    ERR => "ERR",
                    LOCAL_INFILE => "LOCAL INFILE",
                    EOF => "EOF",
                    _ => "result",
                };
                (word, self.on_first(kind, payload, deprecates))
            }
            Answer::Unknown => return,
            Answer::Definitions(left) => {
                self.answer = Answer::Definitions(left.saturating_sub(1));
                if left > 1 {
                    return;
                }
                ("definition", true)
            }
            _ if kind == ERR => ("ERR", true),
            // Without EOF packets, nothing separates columns and rows.
            Answer::Columns if is_end && !has(SERVER_STATUS_CURSOR_EXISTS) => {
                self.answer = Answer::Rows;
                return;
            }
            Answer::Columns | Answer::Rows if is_end => ("EOF", !has(SERVER_MORE_RESULTS_EXISTS)),
            Answer::Columns | Answer::Rows => return,
        };
        if last {
            // The server goes on after the file.
            self.answer = if word == "LOCAL INFILE" { Answer::First } else { Answer::Unknown };
        } else if is_end {
            self.answer = Answer::Again;
        }
        let all = u64::from(len) + HEAD_LEN as u64;
        out.put(Head { len: Some(all), first, last, ..Head::piece(Role::Answers, word) });
    }

    /// Whether an answer ends with its first packet; sets what follows if not.
    fn on_first(&mut self, kind: u8, payload: &[u8], deprecates: Option<bool>) -> bool {
        match kind {
            OK if self.command == COM_STMT_PREPARE && payload.len() >= 9 => {
                let count = |at: usize| u32::from(u16::from_le_bytes([payload[at], payload[at + 1]]));
                let (columns, parameters) = (count(5), count(7));
                // Each list ends with an EOF packet unless those are deprecated.
                let ends = match deprecates {
                    Some(true) => 0,
                    Some(false) => u32::from(columns > 0) + u32::from(parameters > 0),
                    None => {
                        self.answer = Answer::Unknown;
                        return columns + parameters == 0;
                    }
                };
                self.answer = Answer::Definitions(columns + parameters + ends);
                columns + parameters == 0
            }
            _ if self.command == COM_STATISTICS => true,
            OK | EOF => {
                let more = status(kind, payload, deprecates)
                    .is_some_and(|status| status & SERVER_MORE_RESULTS_EXISTS != 0);
                self.answer = Answer::Again;
                !more
            }
            ERR | LOCAL_INFILE => true,
            _ => {
                self.answer = match deprecates {
                    None => Answer::Unknown,
                    Some(false) if self.command != COM_FIELD_LIST => Answer::Columns,
                    _ => Answer::Rows,
                };
                false
            }
        }
    }
}

/// The server's status, in OK and EOF packets.
fn status(kind: u8, payload: &[u8], deprecates: Option<bool>) -> Option<u16> {
    let at = if kind == EOF && deprecates != Some(true) {
        3
    } else {
        // Affected rows and last insert identifier, of variable length.
        let first = 1 + len_of_integer(*payload.get(1)?)?;
        first + len_of_integer(*payload.get(first)?)?
    };
    Some(u16::from_le_bytes(*payload.get(at..)?.first_chunk()?))
}

/// Length of a length-encoded integer that begins with this byte.
const fn len_of_integer(begin: u8) -> Option<usize> {
    match begin {
        0..=0xfa => Some(1),
        0xfc => Some(3),
        0xfd => Some(4),
        0xfe => Some(9),
        _ => None,
    }
}

const fn name_of(command: u8) -> &'static str {
    match command {
        COM_QUIT => "COM_QUIT",
        2 => "COM_INIT_DB",
        3 => "COM_QUERY",
        COM_FIELD_LIST => "COM_FIELD_LIST",
        COM_STATISTICS => "COM_STATISTICS",
        0x0e => "COM_PING",
        0x11 => "COM_CHANGE_USER",
        0x12 => "COM_BINLOG_DUMP",
        COM_STMT_PREPARE => "COM_STMT_PREPARE",
        0x17 => "COM_STMT_EXECUTE",
        COM_STMT_SEND_LONG_DATA => "COM_STMT_SEND_LONG_DATA",
        COM_STMT_CLOSE => "COM_STMT_CLOSE",
        0x1a => "COM_STMT_RESET",
        0x1c => "COM_STMT_FETCH",
        0x1f => "COM_RESET_CONNECTION",
        _ => "command",
    }
}

fn packet_len(first: First<'_>) -> Option<u64> {
    let &[a, b, c, _] = first.bytes.first_chunk()?;
    Some(u64::from(u32::from_le_bytes([a, b, c, 0])) + HEAD_LEN as u64)
}

/// Version 10 of the handshake, and the server's version as text.
fn is_greeting(first: First<'_>) -> bool {
    let Some([_, _, _, 0, 10, version @ ..]) = first.bytes.get(..12) else { return false };
    let version = version.split(|byte| *byte == 0).next().unwrap_or_default();
    let digits = version.len() >= 3 && version[0].is_ascii_digit() && is_text(version);
    digits && packet_len(first) == Some(u64::from(first.len)) && first.len < 512
}

/// A single command in its segment.
fn is_command(first: First<'_>) -> bool {
    let Some(&[_, _, _, 0, command]) = first.bytes.first_chunk() else { return false };
    let sound = match command {
        3 | COM_STMT_PREPARE => {
            first.bytes.len() > 12 && first.bytes[7..12].iter().all(|byte| (9..=126).contains(byte))
        }
        0x17 => first.len >= 14,
        0x0e | COM_QUIT | 0x1f => first.len == 5,
        _ => false,
    };
    sound && packet_len(first) == Some(u64::from(first.len))
}

/// The first packet of an answer, alone or followed by the second.
fn is_answer(first: First<'_>) -> bool {
    let Some(len) = packet_len(first) else { return false };
    let next = usize::try_from(len).ok().and_then(|len| first.bytes.get(len + 3));
    let bears_out =
        len == u64::from(first.len) || (len < u64::from(first.len) && next.is_none_or(|number| *number == 2));
    first.bytes[3] == 1 && bears_out && (HEAD_LEN as u64 + 1..1 << 14).contains(&len)
}
