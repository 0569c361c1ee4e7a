//! What is this cause, which packets prove it, and how can it be checked by hand?
//!
//! One Markdown file per cause (`causes/`), with the same sections in each; the fixes between them come from the
//! catalogue, so that `read` and `explain` cannot contradict each other.

use std::fmt::Write as _;

use tcpwhy_core::Cause;
use tcpwhy_core::Side;

use crate::advise::{Who, plan, worded};
use crate::form::form_in_words;

/// The sections of every file, in order. The fixes are put in before `Check it yourself`.
pub const SECTIONS: [&str; 5] =
    ["Mechanism", "What proves it", "What refutes it", "Check it yourself", "Sources"];

/// Everything known about one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The cause.
    pub cause: Cause,
    /// One line: what the time was spent on.
    pub title: &'static str,
    /// Heading and text of each section, the fixes included; Markdown, at most 100 columns.
    pub sections: Vec<(&'static str, String)>,
}

/// Explains one cause.
pub fn explain(cause: Cause) -> Explanation {
    let file = file(cause);
    let title = file.lines().next().and_then(|line| line.split_once(": ")).map_or("", |(_, title)| title);
    let mut sections = Vec::with_capacity(SECTIONS.len() + 1);
    for heading in SECTIONS {
        if heading == "Check it yourself" {
            sections.push(("Fixes", fixes(cause)));
        }
        sections.push((heading, section(file, heading).to_owned()));
    }
    Explanation { cause, title, sections }
}

impl Explanation {
    /// As one Markdown document.
    pub fn markdown(&self) -> String {
        let mut out = format!("# {}: {}\n", self.cause, self.title);
        for (heading, text) in &self.sections {
            let _ = write!(out, "\n## {heading}\n\n{text}\n");
        }
        out
    }
}

/// The text between a heading and the next one.
fn section<'a>(file: &'a str, heading: &str) -> &'a str {
    file.split("\n## ")
        .skip(1)
        .find_map(|part| part.strip_prefix(heading)?.strip_prefix('\n'))
        .unwrap_or("")
        .trim_matches('\n')
}

/// The catalogue's fixes for every form and side of the cause.
fn fixes(cause: Cause) -> String {
    let mut out = String::new();
    // Which side is the sender is open here, so roles that depend on it are described for both.
    let named = cause.side(Side::Client);
    for (i, step) in plan(cause).iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        let who = match step.who {
            Who::Named if cause.side(Side::Client) == cause.side(Side::Server) => named.name(),
            Who::Named
                if matches!(cause, Cause::ReceiverThink | Cause::ReceiveWindow | Cause::DelayedAckCwnd) =>
            {
                "receiver"
            }
            Who::Named => "sender",
            Who::Peer if matches!(cause, Cause::DelayedAckCwnd) => "sender",
            Who::Peer => "receiver",
            Who::Client => "client",
            Who::Server => "server",
            Who::Path => "path",
        };
        let what = step.what().replace("{side}", who);
        let form = match step.forms {
            [] => String::new(),
            forms => {
                let words = forms.iter().map(|form| form_in_words(*form).unwrap_or(form.name()));
                format!(", where it says \"{}\"", words.collect::<Vec<_>>().join("\" or \""))
            }
        };
        let heading =
            format!("{}. `{}` ({who}{form}): {}.", i + 1, step.fix.id, worded(&what, Side::Unknown));
        wrap(&mut out, &heading, "", "   ");
        if step.is_told() {
            continue;
        }
        if let Some(caveat) = step.fix.caveat {
            wrap(&mut out, caveat, "   ", "   ");
        }
        for how in step.fix.how {
            let only = match how.only {
                Some(side) => format!(", as the {side}"),
                None => String::new(),
            };
            wrap(&mut out, &format!("- {}{only}: {}", how.stack, how.text), "   ", "     ");
        }
    }
    out.trim_end().to_owned()
}

/// Appends `text` in lines of at most 100 columns.
fn wrap(out: &mut String, text: &str, first: &str, rest: &str) {
    let mut column = first.len();
    out.push_str(first);
    let mut at_start = true;
    for word in text.split_whitespace() {
        if !at_start && column + 1 + word.len() > 100 {
            out.push('\n');
            out.push_str(rest);
            column = rest.len();
            at_start = true;
        }
        if !at_start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
        at_start = false;
    }
    out.push('\n');
}

/// The cause's own file.
const fn file(cause: Cause) -> &'static str {
    match cause {
        Cause::RoundTrip => include_str!("../causes/round-trip.md"),
        Cause::Bandwidth => include_str!("../causes/bandwidth.md"),
        Cause::Queueing => include_str!("../causes/queueing.md"),
        Cause::Loss => include_str!("../causes/loss.md"),
        Cause::Rto => include_str!("../causes/rto.md"),
        Cause::SynRetransmit => include_str!("../causes/syn-retransmit.md"),
        Cause::Handshake => include_str!("../causes/handshake.md"),
        Cause::TlsHandshake => include_str!("../causes/tls-handshake.md"),
        Cause::ServerThink => include_str!("../causes/server-think.md"),
        Cause::SenderThink => include_str!("../causes/sender-think.md"),
        Cause::ReceiverThink => include_str!("../causes/receiver-think.md"),
        Cause::NagleDelayedAck => include_str!("../causes/nagle-delayed-ack.md"),
        Cause::Nagle => include_str!("../causes/nagle.md"),
        Cause::Cork => include_str!("../causes/cork.md"),
        Cause::DelayedAckCwnd => include_str!("../causes/delayed-ack-cwnd.md"),
        Cause::SlowStart => include_str!("../causes/slow-start.md"),
        Cause::SlowStartAfterIdle => include_str!("../causes/slow-start-after-idle.md"),
        Cause::CongestionWindow => include_str!("../causes/congestion-window.md"),
        Cause::ReceiveWindow => include_str!("../causes/receive-window.md"),
        Cause::ApplicationWindow => include_str!("../causes/application-window.md"),
        Cause::SendBuffer => include_str!("../causes/send-buffer.md"),
        Cause::Pacing => include_str!("../causes/pacing.md"),
        Cause::Unexplained => include_str!("../causes/unexplained.md"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_file_with_every_section_and_at_most_100_columns() {
        for cause in Cause::ALL {
            let explanation = explain(cause);
            let first = file(cause).lines().next().unwrap_or_default();
            assert_eq!(first, format!("# {cause}: {}", explanation.title));
            assert!(!explanation.title.is_empty(), "{cause} has no title");
            let headings: Vec<&str> =
                file(cause).lines().filter_map(|line| line.strip_prefix("## ")).collect();
            assert_eq!(headings, SECTIONS, "sections of {cause}");
            for (heading, text) in &explanation.sections {
                assert!(text.len() > 40, "{cause}: section {heading:?} says nothing");
                for line in text.lines() {
                    assert!(line.chars().count() <= 100, "{cause}, {heading}: {line}");
                }
            }
        }
    }

    #[test]
    fn fixes_name_the_languages_where_a_program_must_change() {
        for cause in [
            Cause::NagleDelayedAck,
            Cause::Nagle,
            Cause::Cork,
            Cause::ReceiveWindow,
            Cause::SendBuffer,
            Cause::Handshake,
            Cause::ServerThink,
            Cause::SenderThink,
            Cause::ReceiverThink,
        ] {
            let fixes = fixes(cause);
            for stack in ["C", "Java", "Go", "Python", "Node", "Rust", "nginx"] {
                assert!(
                    fixes.contains(&format!("- {stack}: ")) || fixes.contains(&format!("- {stack}, as the")),
                    "{cause} has no words for {stack}"
                );
            }
        }
    }

    #[test]
    fn sources_name_an_rfc_or_a_kernel_function_and_by_hand_names_a_command() {
        for cause in Cause::ALL {
            let sources = section(file(cause), "Sources");
            assert!(sources.contains("RFC ") || sources.contains("net/ipv4/"), "{cause}: {sources}");
            let by_hand = section(file(cause), "Check it yourself");
            assert!(
                ["tshark", "ss -", "nstat", "tcpdump", "strace"].iter().any(|tool| by_hand.contains(tool)),
                "{cause}: {by_hand}"
            );
        }
    }
}
