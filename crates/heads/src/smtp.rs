//! Which SMTP and FTP replies belong to which commands? (RFC 5321, 4.2; RFC 959, 4.2 and 5.4; RFC 2920 for pipelining)
//!
//! Both use lines: a command word from the client, three digits from the server, and the last line
//! of a reply has no hyphen after them. The server speaks first. Names are the command words only:
//! their arguments may be secret.

use crate::head::{Head, Role};
use crate::protocol::Protocol;
use crate::talk::{First, FirstBytes, Line, Out, Side, Step, Talk, is_text, line, number, rest_of_line};

const SMTP: [&str; 14] = [
    "EHLO", "HELO", "LHLO", "MAIL", "RCPT", "DATA", "RSET", "NOOP", "QUIT", "VRFY", "AUTH", "STARTTLS",
    "BDAT", "HELP",
];
/// The service is not available, and closes the connection.
const CLOSING: u16 = 421;
/// A transfer begins on the data connection; the next reply says that it has ended (RFC 959, 5.4).
const TRANSFERS: [u16; 2] = [125, 150];
/// Replies that end one.
const ENDS_TRANSFER: [u16; 6] = [226, 250, 425, 426, 451, 552];
/// Words that other protocols use too come last.
const FTP: [&str; 36] = [
    "USER", "PASS", "ACCT", "CWD", "CDUP", "PORT", "PASV", "EPSV", "EPRT", "TYPE", "STRU", "RETR", "STOR",
    "APPE", "REST", "RNFR", "RNTO", "ABOR", "DELE", "RMD", "MKD", "PWD", "NLST", "MLSD", "SYST", "FEAT",
    "OPTS", "PBSZ", "PROT", "SIZE", "MODE", "LIST", "SITE", "STAT", "AUTH", "QUIT",
];

/// SMTP.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Smtp(Replies);

/// The control connection of FTP.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Ftp(Replies);

/// What both sides have said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Replies {
    /// The rest of this line does not matter.
    in_line: [bool; 2],
    /// The code of a reply that has more lines.
    code: Option<u16>,
    /// Lines were missed: this may be the middle of a reply.
    resumed: bool,
    /// The client's lines are a message, up to a line with a single dot; and whether it has begun.
    message: Option<bool>,
    /// The server asks for a secret.
    challenged: bool,
    /// A transfer is under way on the data connection.
    transfers: bool,
    /// How many commands have no reply yet, as far as they were seen.
    commands: u8,
}

/// Service ready: sent once, unasked (RFC 959, 5.4; RFC 5321, 3.1).
const READY: u16 = 220;

impl Talk for Smtp {
    // The server greets, or replies.
    const FIRST: FirstBytes = FirstBytes::NONE.and_range(b'1', b'5');

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let greets = greeting(server, b"SMTP");
        greets && client.is_empty()
            || (greets || is_reply(server.bytes)) && is_command(client.bytes, &SMTP[..5])
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        self.0.step(&SMTP, true, side, bytes, out)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn && if side.is_client() { is_command(first.bytes, &SMTP) } else { is_reply(first.bytes) }
    }

    fn lose(&mut self, side: Side) {
        self.0.lose(side);
    }
}

impl Talk for Ftp {
    // The server greets, or replies.
    const FIRST: FirstBytes = FirstBytes::NONE.and_range(b'1', b'5');

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let greets = greeting(server, b"FTP");
        greets && client.is_empty()
            || (greets || is_reply(server.bytes)) && is_command(client.bytes, &FTP[..30])
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        self.0.step(&FTP, false, side, bytes, out)
    }

    fn begins(&self, side: Side, first: First<'_>, is_turn: bool) -> bool {
        is_turn && if side.is_client() { is_command(first.bytes, &FTP) } else { is_reply(first.bytes) }
    }

    fn lose(&mut self, side: Side) {
        self.0.lose(side);
    }
}

impl Replies {
    fn step(
        &mut self,
        verbs: &[&'static str],
        mails: bool,
        side: Side,
        bytes: &[u8],
        out: &mut Out<'_>,
    ) -> Step {
        let in_line = &mut self.in_line[side as usize];
        if *in_line {
            let (step, ends) = rest_of_line(bytes);
            *in_line = !ends;
            return step;
        }
        if bytes[0] == 0x16 && self.message.is_none() {
            // STARTTLS (RFC 3207), AUTH TLS (RFC 4217).
            return Step::Other(Protocol::Tls);
        }
        let Some(line) = line(bytes) else { return Step::Need };
        *in_line = line.is_cut;
        match side {
            Side::Client => self.on_client(verbs, mails, &line, out),
            Side::Server => self.on_server(mails, &line, out),
        }
    }

    fn on_client(&mut self, verbs: &[&'static str], mails: bool, line: &Line<'_>, out: &mut Out<'_>) -> Step {
        let len = (!line.is_cut).then_some(line.len);
        if let Some(begun) = self.message {
            let last = line.text == b"." && !line.is_cut;
            self.message = if last { None } else { Some(true) };
            if !begun || last {
                self.commands = self.commands.saturating_add(u8::from(!begun));
                out.put(Head { len, first: !begun, last, ..Head::piece(Role::Asks, "message") });
            }
            return Step::Skip(line.len);
        }
        let word_len =
            line.text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(line.text.len());
        let word = &line.text[..word_len];
        let secret = std::mem::take(&mut self.challenged);
        let known = verbs.iter().copied().find(|verb| verb.as_bytes().eq_ignore_ascii_case(word));
        if known.is_none() && !secret && (mails || word_len != line.text.len() || word_len == 0) {
            // Possibly a message whose 354 was missed. An unknown command gets a reply too, in a
            // protocol without other lines (RFC 959, 4.2).
            return Step::Lose;
        }
        let kind = known.filter(|_| !secret).unwrap_or("command");
        // A chunk follows its command (RFC 3030).
        let chunk = if kind == "BDAT" {
            let size = line.text[word_len..].trim_ascii_start();
            let end = size.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(size.len());
            number(&size[..end]).unwrap_or(0)
        } else {
            0
        };
        let len = len.map(|len| len.saturating_add(chunk));
        self.commands = self.commands.saturating_add(1);
        out.put(Head { len, first: true, last: true, ..Head::piece(Role::Asks, kind) });
        Step::Skip(line.len.saturating_add(chunk))
    }

    fn on_server(&mut self, mails: bool, line: &Line<'_>, out: &mut Out<'_>) -> Step {
        let code = line.text.get(..3).and_then(number).map(|code| code as u16);
        let goes_on = line.text.get(3) == Some(&b'-');
        let (first, last, code) = match (self.code, code) {
            // Inside a reply a line may be anything; its code and a space end it (RFC 959, 4.2).
            (Some(open), code) => (false, code == Some(open) && !goes_on, open),
            (None, Some(code @ 100..=599)) => (true, !goes_on, code),
            _ => return Step::Wrong,
        };
        self.code = (!last).then_some(code);
        // Behind a gap, a transfer may have begun in it.
        let unknown = self.resumed && !mails && ENDS_TRANSFER.contains(&code);
        let first = first && !self.resumed;
        self.resumed &= !last;
        if last {
            self.challenged = code == 334;
            if code == 354 {
                self.message = Some(false);
            }
        }
        // A server that closes the connection says so, with or without a command (RFC 959, 5.4; RFC
        // 5321, 3.8).
        let closing = code == CLOSING && self.commands == 0;
        // A client that asked before it was greeted has no answer yet.
        let greets = code == READY && self.commands > 0 && out.at == 0;
        let begins_transfer = TRANSFERS.contains(&code) && !mails;
        let ends_transfer = self.transfers && code >= 200;
        if last {
            self.transfers = begins_transfer || self.transfers && code < 200;
        }
        if last && (code >= 200 || begins_transfer) && !greets && !ends_transfer {
            self.commands = self.commands.saturating_sub(1);
        }
        let (role, kind) = match code / 100 {
            4 if closing => (Role::Pushes, "closing"),
            2 if greets => (Role::Pushes, "greeting"),
            _ if ends_transfer => (Role::Pushes, "transfer"),
            1 if begins_transfer => (Role::Answers, "1xx"),
            1 => (Role::Interim, "1xx"),
            2 => (Role::Answers, "2xx"),
            3 => (Role::Answers, "3xx"),
            4 => (Role::Answers, "4xx"),
            _ => (Role::Answers, "5xx"),
        };
        if (first || last) && !unknown {
            let len = (!line.is_cut).then_some(line.len);
            out.put(Head { len, first, last, ..Head::piece(role, kind) });
        }
        Step::Skip(line.len)
    }

    fn lose(&mut self, side: Side) {
        self.in_line[side as usize] = false;
        match side {
            Side::Client => self.message = None,
            Side::Server => (self.code, self.resumed, self.transfers) = (None, true, false),
        }
    }
}

/// 220 and the protocol's own name.
fn greeting(server: First<'_>, name: &[u8]) -> bool {
    if !server.bytes.starts_with(b"220") || !is_reply(server.bytes) {
        return false;
    }
    let text = server.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    text.windows(name.len()).any(|word| word == name)
}

/// One of these words, followed by a space or the end of the line.
fn is_command(bytes: &[u8], verbs: &[&str]) -> bool {
    let word_len = bytes.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(0);
    let ends = bytes
        .get(word_len..)
        .is_some_and(|rest| rest.starts_with(b" ") || rest.starts_with(b"\r\n") || rest.starts_with(b"\n"));
    // Simple programs end lines with a bare line feed, which servers accept.
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    ends && is_text(line) && verbs.iter().any(|verb| verb.as_bytes().eq_ignore_ascii_case(&bytes[..word_len]))
}

/// Three digits that are a reply code, and text.
fn is_reply(bytes: &[u8]) -> bool {
    if !matches!(bytes, [b'1'..=b'5', b'0'..=b'5', ..]) {
        return false;
    }
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
    matches!(line, [b'1'..=b'5', b'0'..=b'5', b'0'..=b'9', b' ' | b'-', ..]) && is_text(line)
}
