//! Where does each line of a forwarded log begin? (RFC 6587, 3.4; RFC 5424, 6.2.1) There are no
//! answers, and no receiver waits for the next line.

use crate::head::{Head, Role};
use crate::talk::{First, FirstBytes, Out, Side, Step, Talk, is_text, line, number, rest_of_line};

/// Facility and severity in one number.
const PRIORITY_MAX: u64 = 191;
const LENGTH_DIGITS_MAX: usize = 7;
/// This many digits, a space, and a priority in angle brackets.
const BEGIN_LEN: usize = 13;
/// A message with its length before it may have any length; receivers accept 2 KB to 64 KB.
const LEN_MAX: u64 = 1 << 20;

/// What the client has said so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Syslog {
    /// The rest of this line does not matter.
    in_line: bool,
}

impl Talk for Syslog {
    // A priority, or the message's length.
    const FIRST: FirstBytes = FirstBytes::of(b"<").and_range(b'1', b'9');

    fn fits(client: First<'_>, server: First<'_>) -> bool {
        let line = &client.bytes[..client.bytes.len().min(32)];
        let text = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        server.is_empty() && begin(client.bytes).is_some() && is_text(text)
    }

    fn step(&mut self, side: Side, bytes: &[u8], out: &mut Out<'_>) -> Step {
        if !side.is_client() {
            return Step::Wrong;
        }
        if self.in_line {
            let (step, ends) = rest_of_line(bytes);
            self.in_line = !ends;
            return step;
        }
        let Some((counted, digits)) = begin(bytes) else {
            // A line break inside a message, as in stack traces.
            return if bytes.len() < BEGIN_LEN { Step::Need } else { Step::Lose };
        };
        if let Some(len) = counted {
            let all = digits + 1 + len;
            out.put(Head::whole(Role::Pushes, "message", all));
            return Step::Skip(all);
        }
        let Some(line) = line(bytes) else { return Step::Need };
        self.in_line = line.is_cut;
        let len = (!line.is_cut).then_some(line.len);
        out.put(Head { len, first: true, last: true, ..Head::piece(Role::Pushes, "message") });
        Step::Skip(line.len)
    }

    fn begins(&self, side: Side, first: First<'_>, _: bool) -> bool {
        side.is_client() && begin(first.bytes).is_some()
    }

    fn lose(&mut self, _: Side) {
        self.in_line = false;
    }
}

/// `<13>`, or `72 <13>`: the length before it, and the number of its digits.
fn begin(bytes: &[u8]) -> Option<(Option<u64>, u64)> {
    let digits = bytes.iter().position(|byte| !byte.is_ascii_digit())?;
    if digits > LENGTH_DIGITS_MAX || bytes[0] == b'0' {
        return None;
    }
    let counted = if digits == 0 { None } else { Some(number(&bytes[..digits])?) };
    let rest = match counted {
        None => bytes,
        Some(len) if (4..=LEN_MAX).contains(&len) => bytes[digits..].strip_prefix(b" ")?,
        Some(_) => return None,
    };
    let rest = rest.strip_prefix(b"<")?;
    let end = rest.iter().position(|byte| *byte == b'>').filter(|end| (1..=3).contains(end))?;
    let priority = number(&rest[..end]).filter(|priority| *priority <= PRIORITY_MAX)?;
    let written = priority.checked_ilog10().unwrap_or(0) as usize + 1 == end;
    written.then_some((counted, digits as u64))
}
