//! What should be done about it? Each finding with its numbers, its packets, and the fixes.

use tcpwhy_core::report::{Confidence, Detail, Finding, Report, Servers};
use tcpwhy_core::{Cause, Side};
use tcpwhy_remedy::{How, Remedy, Saves, remedies_for};
use tcpwhy_wire::Duration;

use super::layout::{columns, left, wrap};
use super::{Stacks, Style};
use crate::answer::{Class, answer, class, kind, matters, noun, sentence};
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, per_mille, percent, rate, time};

/// So many findings fit a screen; the rest are counted.
const SHOWN: usize = 6;
/// Below this share, or where not one hit took this long, a finding is in the bill and nothing to act on.
const WORTH_PER_MILLE: u64 = 10;
const WORTH: Duration = Duration::from_millis(1);
/// Below this share there is no advice.
const ADVISED_PER_MILLE: u64 = 50;
/// Packet numbers in the display filter.
const PACKETS: usize = 8;
/// Where the text of a finding starts.
const INDENT: &str = "             ";

/// All findings, the most expensive first.
pub(super) fn findings(report: &Report, again: &str, style: Style) -> Vec<String> {
    let mut out = Vec::new();
    let answer = answer(report);
    let acted: Vec<&Finding> =
        report.findings.iter().filter(|finding| worth_showing(report, finding)).collect();
    for (i, finding) in acted.iter().take(SHOWN).enumerate() {
        out.push(String::new());
        out.extend(one(i, finding, report, &answer, again, style));
    }
    if acted.is_empty() && !report.findings.is_empty() {
        out.push(String::new());
        out.push("No finding is worth acting on.".to_owned());
    }
    let more = acted.len().saturating_sub(SHOWN);
    if more > 0 {
        out.push(String::new());
        out.push(format!("{more} smaller finding{}: --json lists them.", if more == 1 { "" } else { "s" }));
    }
    out
}

/// What any transfer needs is in the bill; it is a finding to act on only where it is too much.
fn worth_showing(report: &Report, finding: &Finding) -> bool {
    matters(report, finding)
        || (class(finding.cause) != Class::Path
            && finding.p99 >= WORTH
            && per_mille(finding.ns, report.elapsed) >= WORTH_PER_MILLE)
}

fn one(i: usize, finding: &Finding, report: &Report, answer: &str, again: &str, style: Style) -> Vec<String> {
    let whose = match (finding.side, finding.servers) {
        (Side::Server, Servers::Several(_)) => finding.servers.to_string(),
        (side, servers) => format!("{} of {servers}", side.name()),
    };
    let head = format!("{}. {}, {whose}", i + 1, finding.cause);
    let mut out = vec![style.strong(&head)];
    let mut field = |name: &str, text: &str| {
        out.extend(wrap(text, style.width, &format!("   {}", left(name, 10)), INDENT));
    };
    let what = sentence(report, finding);
    if !answer.to_lowercase().contains(&what.to_lowercase()) {
        field("what", &what);
    }
    let longest =
        if finding.max > finding.p99 { format!(", longest {}", time(finding.max)) } else { String::new() };
    field(
        "cost",
        &format!(
            "{} in all, {} of the time; median {}, p99 {}{}, on {} of {}; {}",
            time(finding.ns),
            percent(finding.ns, report.elapsed),
            time(finding.p50),
            time(finding.p99),
            longest,
            count(finding.hits),
            counted(finding.of, noun(kind(report, finding))),
            confidence(finding.confidence)
        ),
    );
    if let Some(measured) = measured(finding.cause, &finding.detail) {
        field("measured", &measured);
    }
    field("packets", &packets(finding));
    field("look", &look(finding, again));
    // A line that takes little is told, and not what to do: there is more to be had elsewhere.
    if matters(report, finding) || per_mille(finding.ns, report.elapsed) >= ADVISED_PER_MILLE {
        out.extend(fixes(finding, i == 0, style));
    }
    out
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "certain: the packets leave no other reading",
        Confidence::Likely => "likely: the usual reading of these packets",
        Confidence::Possible => "possible: something else would fit as well",
    }
}

/// The detail in words; `None` where the cause measured nothing.
pub(super) fn measured(cause: Cause, detail: &Detail) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(held) = detail.held_bytes {
        parts.push(format!("{} held", bytes(u64::from(held))));
    }
    if let Some(delay) = detail.ack_delay {
        parts.push(format!("acknowledgement held back {}", time(delay)));
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
        parts.extend(in_words(form).map(str::to_owned));
    }
    if parts.is_empty() {
        return None;
    }
    let of = if cause == Cause::Unexplained { "" } else { " (the most expensive one)" };
    Some(format!("{}{of}", parts.join(", ")))
}

/// What a form adds to the name of its cause; nothing where the sentence or the numbers say it.
fn in_words(form: &str) -> Option<&'static str> {
    Some(match form {
        "or-cork" => "a cork's timer would look the same",
        "or-news" => "a question that is answered when there is news would look the same",
        "or-pushes" => "messages that nobody asked for, each of its own, would look the same",
        "or-messages" => "what follows may be a message of its own that nobody waits for",
        "whole-reply" => "the whole reply was held",
        "until-acknowledged" => "held until all before it was acknowledged",
        "uneven" => "rounds of unequal size",
        "timeout" => "as after a timeout",
        "request" => "in the request",
        "reply" => "in the reply",
        "tail-probe" => "repaired by a tail loss probe",
        "new-data-probe" => "a tail loss probe took new data; nothing was sent twice",
        "tail" => "the end of a message was lost",
        "small-writes" => "many small writes fill the buffer",
        "recovery" => "during recovery from a loss",
        "paced" => "the segments are paced",
        "slow-reader" => "the program reads slowly",
        "small-window" => "the window is below two segments",
        "not-captured" => "the segment is not in the capture",
        "drained" => "the flight drained before more was sent",
        "avoidance" => "in congestion avoidance",
        "after-loss" => "after a loss",
        "unseen-first-copy" => "the first copy was lost before the capture saw it",
        "standing" => "the queue stood before",
        "rfc896" => "Nagle's rule as in RFC 896",
        "reordered" => "others overtook it",
        "unanswered" => "no answer ever came",
        "locked" => "the window never grows",
        "unscaled" => "without window scaling",
        "capped" => "the window is at its limit",
        "growing" => "the window is still growing",
        _ => return None,
    })
}

/// Evidence as a display filter that Wireshark and tshark take as it stands.
fn packets(finding: &Finding) -> String {
    if finding.evidence.is_empty() {
        return "none kept".to_owned();
    }
    let shown: Vec<String> = finding.evidence.iter().take(PACKETS).map(u64::to_string).collect();
    let more = finding.evidence.len().saturating_sub(PACKETS);
    let more = if more > 0 { format!("  and {more} more in --json") } else { String::new() };
    format!("frame.number in {{{}}}{more}", shown.join(","))
}

/// The command that shows the most expensive hit.
fn look(finding: &Finding, again: &str) -> String {
    let (connection, exchange) = finding.worst;
    format!("{} --connection {connection} --exchange {exchange}", visible(again))
}

/// The fixes: the first in the words of every language for the first finding, the others as a line each.
fn fixes(finding: &Finding, in_full: bool, style: Style) -> Vec<String> {
    let mut out = Vec::new();
    for (i, remedy) in remedies_for(finding).iter().enumerate() {
        let name = if i == 0 { "fix" } else { "or" };
        let text = format!("{}{}.", remedy.what, saving(remedy));
        out.extend(wrap(&text, style.width, &format!("   {}", left(name, 10)), INDENT));
        if i > 0 {
            continue;
        }
        let told: Vec<&How> = remedy.how.iter().filter(|how| style.stacks.has(how.stack)).collect();
        if in_full || style.stacks != Stacks::default() {
            out.extend(told.iter().flat_map(|how| words(how, style)));
        } else if let [how] = told.as_slice() {
            out.extend(words(how, style));
        }
    }
    out.push(format!("{INDENT}{}", style.faint(&format!("tcpwhy explain {} tells more", finding.cause))));
    out
}

fn words(how: &How, style: Style) -> Vec<String> {
    let first = format!("{INDENT}{}", left(how.stack.name(), 12));
    let rest = " ".repeat(columns(&first));
    wrap(how.text, style.width, &first, &rest)
}

fn saving(remedy: &Remedy) -> String {
    match remedy.saves {
        Saves::Estimate(span) if span.is_positive() => format!(" (saves about {})", time(span)),
        Saves::AtMost(span) if span.is_positive() => format!(" (saves at most {})", time(span)),
        _ => String::new(),
    }
}
