//! What should be done about it? Each finding with its numbers, its packets, and the fixes.

use tcpwhy_core::report::{Confidence, Detail, Finding, Report, Servers};
use tcpwhy_core::{Cause, Side};
use tcpwhy_remedy::{Alternative, How, Remedy, Saves, Stack, alternatives, remedies_for};
use tcpwhy_wire::Duration;

use super::layout::{columns, left, wrap};
use super::{Stacks, Style};
use crate::answer::{Class, answer, class, has_one, kind, matters, noun, sentence};
use crate::capture::{CaptureInfo, frame};
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, per_mille, percent, rate, time};

/// Findings that fit a screen; the rest are counted.
pub(crate) const FINDINGS_SHOWN: usize = 6;
/// With a smaller share, or if no wait was this long, a finding is in the bill but not worth acting
/// on.
const WORTH_PER_MILLE: u64 = 10;
const WORTH: Duration = Duration::from_millis(1);
/// With a smaller share there is no advice.
const ADVISED_PER_MILLE: u64 = 50;
/// Number of stacks for which a fix is explained, unless others are asked for.
const STACKS: usize = 3;
/// Packet numbers in the display filter: three waits with the packets that released them.
const PACKETS: usize = 9;
/// Column at which the text of a finding starts.
const INDENT: &str = "             ";

/// One finding, for every form of text.
pub(super) struct Told {
    pub(super) cause: Cause,
    pub(super) head: String,
    /// Names and texts.
    pub(super) fields: Vec<(&'static str, String)>,
    /// Best first.
    pub(super) fixes: Vec<Advice>,
}

/// A fix, and how to apply it.
pub(super) struct Advice {
    /// The name of the field.
    pub(super) name: &'static str,
    pub(super) text: String,
    pub(super) how: Vec<How>,
    /// Number of further stacks with instructions.
    pub(super) more: usize,
}

/// The text of all findings.
pub(super) struct All {
    /// Most expensive first.
    pub(super) told: Vec<Told>,
    /// The text after them.
    pub(super) rest: Option<String>,
}

pub(super) fn all(report: &Report, files: &[CaptureInfo], again: &str, style: Style) -> All {
    let answer = answer(report).to_lowercase();
    let acted: Vec<&Finding> = report.findings.iter().filter(|finding| is_shown(report, finding)).collect();
    let shown = acted.iter().take(FINDINGS_SHOWN).enumerate();
    let told = shown.map(|(i, finding)| tell(i, finding, report, files, &answer, again, style)).collect();
    let more = acted.len().saturating_sub(FINDINGS_SHOWN);
    let rest = if acted.is_empty() && !report.findings.is_empty() {
        Some("No finding is worth acting on.".to_owned())
    } else {
        (more > 0)
            .then(|| format!("{} not shown; --json lists all.", counted(more as u64, "smaller finding")))
    };
    All { told, rest }
}

/// All findings for a terminal.
pub(super) fn findings(report: &Report, files: &[CaptureInfo], again: &str, style: Style) -> Vec<String> {
    let mut out = Vec::new();
    let All { told, rest } = all(report, files, again, style);
    for Told { cause, head, fields, fixes } in told {
        out.push(String::new());
        out.push(style.strong(&head));
        let name = |name: &str| format!("   {}", left(name, 10));
        for (field, text) in &fields {
            out.extend(wrap(text, style.width, &name(field), INDENT));
        }
        for fix in &fixes {
            out.extend(wrap(&fix.text, style.width, &name(fix.name), INDENT));
            out.extend(fix.how.iter().flat_map(|how| words(how, style)));
            if fix.more > 0 && !fix.how.is_empty() {
                out.push(format!("{INDENT}{}", style.faint(&format!("{} more with --all-stacks", fix.more))));
            }
        }
        if !fixes.is_empty() {
            out.push(format!("{INDENT}{}", style.faint(&format!("more: tcpwhy explain {cause}"))));
        }
    }
    if let Some(rest) = rest {
        out.push(String::new());
        out.push(rest);
    }
    out
}

/// Time that any transfer needs is in the bill; it is a finding to act on only if it is too much.
pub fn is_shown(report: &Report, finding: &Finding) -> bool {
    matters(report, finding)
        || (class(finding.cause) != Class::Path
            && finding.p99 >= WORTH
            && per_mille(finding.ns, report.elapsed) >= WORTH_PER_MILLE)
}

fn tell(
    i: usize,
    finding: &Finding,
    report: &Report,
    files: &[CaptureInfo],
    answer: &str,
    again: &str,
    style: Style,
) -> Told {
    let whose = match (finding.side, finding.servers) {
        (Side::Server, Servers::Several(_)) => finding.servers.to_string(),
        (Side::Unknown, servers) => format!("connections to {servers}"),
        (side, servers) => format!("{} of {servers}", side.name()),
    };
    let head = format!("{}. {}, {whose}", i + 1, finding.cause);
    let mut fields = Vec::new();
    let what = sentence(report, finding);
    if !answer.contains(&what.to_lowercase()) {
        fields.push(("what", what));
    }
    fields.push(("cost", cost(report, finding)));
    // Of several occurrences, the numbers are those of one.
    let is_of_one = finding.hits > 1 && finding.cause != Cause::Unexplained;
    let of = if is_of_one { " (in the slowest one)" } else { "" };
    fields.extend(measured(&finding.detail).map(|measured| ("measured", format!("{measured}{of}"))));
    let others = alternatives(finding.cause, finding.side, finding.confidence, &finding.detail);
    fields.extend(others.iter().map(|other| ("or maybe", instead(other))));
    if again.is_empty() {
        fields.push(("packets", "not kept; `tcpwhy live --write FILE` saves them".to_owned()));
    } else {
        fields.push(("packets", packets(finding, files)));
        fields.push(("details", look(finding, again)));
    }
    // A line that takes little is described without advice: there is more to gain elsewhere.
    let is_advised = matters(report, finding) || per_mille(finding.ns, report.elapsed) >= ADVISED_PER_MILLE;
    let fixes = if is_advised { fixes(finding, i == 0, style) } else { Vec::new() };
    Told { cause: finding.cause, head, fields, fixes }
}

/// The time it took, and its distribution; a single wait has none.
fn cost(report: &Report, finding: &Finding) -> String {
    let (ns, share) = (time(finding.ns), percent(finding.ns, report.elapsed));
    let kind = kind(report, finding);
    let noun = noun(kind);
    let whose = match (finding.hits, finding.of) {
        (1, 1) if has_one(report, kind) => format!("the only {noun}"),
        (1, 1) => format!("one {noun}"),
        (hits, of) => format!("{} of {}", count(hits), counted(of, noun)),
    };
    let spread = match finding.hits {
        1 => format!("{ns}, {share} of the time"),
        _ => format!(
            "{ns} in all, {share} of the time; median {}, p99 {}",
            time(finding.p50),
            time(finding.p99)
        ),
    };
    let longest =
        if finding.max > finding.p99 { format!(", longest {}", time(finding.max)) } else { String::new() };
    format!("{spread}{longest}, on {whose}; {}", confidence(finding.confidence))
}

/// Another reading, and how to decide between the two.
fn instead(other: &Alternative) -> String {
    let reading = match other.reading.side() {
        Some(Side::Unknown) => other.reading.name().to_owned(),
        Some(side) => format!("{} ({})", other.reading.name(), side.name()),
        None => "nothing anyone waits for".to_owned(),
    };
    format!("{reading}: {}", other.tell)
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "certain: the packets allow no other explanation",
        Confidence::Likely => "likely: the usual explanation of such packets",
        Confidence::Possible => "possible: other explanations fit as well",
    }
}

/// The detail in words; `None` if the cause measured nothing.
pub(super) fn measured(detail: &Detail) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(held) = detail.held_bytes {
        parts.push(format!("{} held", bytes(u64::from(held))));
    }
    if let Some(delay) = detail.ack_delay {
        parts.push(format!("acknowledgement delayed by {}", time(delay)));
    }
    if let Some(window) = detail.window_bytes {
        parts.push(format!("window {}", bytes(window)));
    }
    if let Some(flight) = detail.flight_bytes {
        parts.push(format!("{} in flight", bytes(flight)));
    }
    if let Some(waits) = detail.waits.filter(|&waits| waits > 1) {
        parts.push(counted(u64::from(waits), "wait"));
    }
    if let Some(resent) = detail.retransmits {
        parts.push(counted(u64::from(resent), "retransmission"));
    }
    if let Some(timer) = detail.timer {
        parts.push(format!("timer {}", time(timer)));
    }
    if let Some(bps) = detail.rate_bps {
        parts.push(format!("bottleneck {}", rate(bps)));
    }
    if let Some(form) = detail.form {
        parts.extend(tcpwhy_remedy::form_in_words(form).map(str::to_owned));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A Wireshark display filter for each file with cited packets; packets beyond the limit are left
/// out.
fn packets(finding: &Finding, files: &[CaptureInfo]) -> String {
    if finding.evidence.is_empty() {
        return "not kept".to_owned();
    }
    let told = |(path, filter): (Option<&str>, String)| {
        let of = path.map_or_else(String::new, |path| format!(" of {}", visible(path)));
        format!("{filter}{of}")
    };
    let shown: Vec<String> = packets_by_file(finding, files, PACKETS).into_iter().map(told).collect();
    let more = finding.evidence.len().saturating_sub(PACKETS);
    let more = if more > 0 { format!("; {more} more in --json") } else { String::new() };
    format!("{}{more}", shown.join("; "))
}

/// The display filters that show the first `most` packets of a finding, each with the name of the
/// file whose numbers it uses, if there are several.
pub fn packets_by_file<'a>(
    finding: &Finding,
    files: &'a [CaptureInfo],
    most: usize,
) -> Vec<(Option<&'a str>, String)> {
    let mut by_file: Vec<(Option<&str>, Vec<String>)> = Vec::new();
    for packet in finding.evidence.iter().take(most) {
        let (path, frame) = match frame(files, *packet) {
            Some((file, frame)) => (Some(file.path.as_str()), frame),
            None => (None, *packet),
        };
        match by_file.iter_mut().find(|(of, _)| *of == path) {
            Some((_, frames)) => frames.push(frame.to_string()),
            None => by_file.push((path, vec![frame.to_string()])),
        }
    }
    let filter = |frames: Vec<String>| format!("frame.number in {{{}}}", frames.join(","));
    by_file.into_iter().map(|(path, frames)| (path, filter(frames))).collect()
}

/// The command that shows the most expensive occurrence.
fn look(finding: &Finding, again: &str) -> String {
    let (connection, exchange) = finding.worst;
    format!("{} --connection {connection} --exchange {exchange}", visible(again))
}

/// The fixes: the first one of the first finding with instructions for some stacks, the others as a
/// line each.
fn fixes(finding: &Finding, in_full: bool, style: Style) -> Vec<Advice> {
    let advice = |(i, remedy): (usize, Remedy)| {
        let text = format!("{}{}.", remedy.what, saving(&remedy));
        let mut how: Vec<How> = remedy.how.into_iter().filter(|how| style.stacks.has(how.stack)).collect();
        let (mut more, is_chosen) = (0, style.stacks != Stacks::default());
        if i > 0 || !(in_full || is_chosen || how.len() == 1) {
            how.clear();
        } else if !is_chosen {
            more = fitting(finding, &mut how);
        }
        let name = match finding.confidence {
            _ if i > 0 => "or",
            Confidence::Possible => "if so",
            Confidence::Certain | Confidence::Likely => "fix",
        };
        Advice { name, text, how, more }
    };
    remedies_for(finding).into_iter().enumerate().map(advice).collect()
}

/// Keeps the three stacks that best fit the server's port, and returns how many others there were.
fn fitting(finding: &Finding, how: &mut Vec<How>) -> usize {
    let port = match finding.servers {
        Servers::One(endpoint) => endpoint.port,
        Servers::Several(_) => 0,
    };
    let of_port: &[Stack] = match port {
        6379 => &[Stack::Redis],
        5432 | 6432 => &[Stack::Postgres],
        80 | 443 => &[Stack::Nginx, Stack::Apache, Stack::Haproxy],
        8000..=8999 | 3000..=3999 | 9000..=9999 => &[Stack::Java, Stack::Go, Stack::Node],
        _ => &[],
    };
    // Stacks that are certainly there come before those that may be.
    let usual = [Stack::Linux, Stack::C, Stack::Java, Stack::Go, Stack::Python];
    let order: Vec<Stack> = of_port.iter().chain(&usual).copied().collect();
    let rank = |how: &How| order.iter().position(|stack| *stack == how.stack).unwrap_or(usize::MAX);
    how.sort_by_key(rank);
    let more = how.len().saturating_sub(STACKS);
    how.truncate(STACKS);
    more
}

fn words(how: &How, style: Style) -> Vec<String> {
    let first = format!("{INDENT}{}", left(how.stack.name(), 12));
    let rest = " ".repeat(columns(&first));
    wrap(how.text, style.width, &first, &rest)
}

fn saving(remedy: &Remedy) -> String {
    match remedy.saves {
        Saves::Estimate(span) if span.is_positive() => format!(" (saves about {})", time(span)),
        Saves::Between(least, most) if least.is_positive() => {
            format!(" (saves {} to {})", time(least), time(most))
        }
        Saves::AtMost(span) | Saves::Between(_, span) if span.is_positive() => {
            format!(" (saves at most {})", time(span))
        }
        _ => String::new(),
    }
}
