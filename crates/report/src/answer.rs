//! Where did the time go, in one sentence?
//!
//! TCP is blamed only where one of its mechanisms took a share that matters; otherwise the sentence says that nothing
//! in TCP is slow, and what the time is instead.

use std::collections::BTreeSet;

use tcpwhy_core::report::{Connection, Finding, Kind, Report, Servers};
use tcpwhy_core::{Cause, Side};
use tcpwhy_wire::Duration;

use crate::quantity::{bytes, count, counted, per_mille, percent, rate, time};

/// Below this share of the whole a mechanism is not what makes a service slow.
const MATTERS_PER_MILLE: u64 = 50;
/// Every connection needs its handshake; only this share says that connections are opened too often.
const HANDSHAKE_MATTERS_PER_MILLE: u64 = 200;

/// What kind of reason a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A rule of TCP made somebody wait who could have gone on.
    Mechanism,
    /// The network lost or delayed packets.
    Trouble,
    /// TCP waited for a program.
    Program,
    /// What any transfer over this path needs.
    Path,
    /// Nothing can be shown.
    Unknown,
}

/// The class of a cause.
pub const fn class(cause: Cause) -> Class {
    match cause {
        Cause::NagleDelayedAck
        | Cause::Nagle
        | Cause::Cork
        | Cause::DelayedAckCwnd
        | Cause::SlowStart
        | Cause::SlowStartAfterIdle
        | Cause::CongestionWindow
        | Cause::ReceiveWindow
        | Cause::SendBuffer
        | Cause::Pacing => Class::Mechanism,
        Cause::Loss | Cause::Rto | Cause::SynRetransmit | Cause::Queueing => Class::Trouble,
        Cause::ServerThink | Cause::SenderThink | Cause::ReceiverThink => Class::Program,
        Cause::RoundTrip | Cause::Bandwidth | Cause::Handshake => Class::Path,
        Cause::Unexplained => Class::Unknown,
    }
}

/// The answer to "where did the time go", one line of any length, with the addresses it concerns.
pub fn answer(report: &Report) -> String {
    if report.segments == 0 {
        return "No TCP in this capture: nothing to bill.".to_owned();
    }
    let Some(first) = report.findings.first() else {
        let refused = report.notes.iter().find(|note| note.kind == "refused-connections");
        if let Some(refused) = refused {
            let were = if refused.count == 1 { "was" } else { "were" };
            return format!(
                "Nothing to bill: {} {were} refused with a reset. Nothing listens there, or a firewall says so.",
                counted(refused.count, "connection")
            );
        }
        return format!(
            "Nothing to bill: {} without a request, a reply or a handshake.",
            counted(report.segments, "TCP segment")
        );
    };
    let said = |finding: &Finding| format!("{}{}", sentence(report, finding), place(report, finding));
    let culprit = report.findings.iter().find(|finding| matters(report, finding));
    match (class(first.cause), culprit) {
        // The program takes most of it, and TCP adds a share worth a word: both, the larger first.
        (Class::Program, Some(finding)) if finding != first => {
            format!(
                "Most of it is not TCP: {} ({}). TCP adds to it: {}.",
                sentence(report, first),
                percent(first.ns, report.elapsed),
                said(finding)
            )
        }
        (Class::Unknown, Some(finding)) => format!(
            "{}. These packets do not explain {} of the time.",
            capital(&said(finding)),
            percent(first.ns, report.elapsed)
        ),
        (_, Some(finding)) => format!("{}.", capital(&said(finding))),
        (Class::Unknown, None) => {
            format!("The packets do not show where most of the time goes: {}.", said(first))
        }
        (_, None) => format!("Nothing in TCP is slow here: {}.", said(first)),
    }
}

/// Whether a finding is a mechanism or trouble with a share that makes a service slow.
pub fn matters(report: &Report, finding: &Finding) -> bool {
    let share = per_mille(finding.ns, report.elapsed);
    match class(finding.cause) {
        Class::Mechanism | Class::Trouble => share >= MATTERS_PER_MILLE,
        Class::Program => finding.cause == Cause::ReceiverThink && share >= MATTERS_PER_MILLE,
        Class::Path => {
            finding.cause == Cause::Handshake && share >= HANDSHAKE_MATTERS_PER_MILLE && finding.hits > 1
        }
        Class::Unknown => false,
    }
}

/// One finding as a sentence without its full stop; starts in lower case where it starts with a word.
pub fn sentence(report: &Report, finding: &Finding) -> String {
    let Finding { cause, side, detail, .. } = finding;
    let (side, peer) = (*side, side.peer());
    let wait = time(finding.p50);
    let who = Subject::of(report, finding);
    let spend = |rest: String| format!("{who} {} {wait} {rest}", who.verb("wait", "waits"));
    match cause {
        Cause::NagleDelayedAck => spend(format!(
            "for the {peer}'s delayed acknowledgement: the {side} writes each {} in pieces",
            message(side, finding, report)
        )),
        Cause::Nagle => spend(format!(
            "for an acknowledgement before the rest may leave: the {side} writes each {} in pieces and Nagle holds \
             the last",
            message(side, finding, report)
        )),
        Cause::Cork => spend(format!(
            "for the cork's timer: the {side} leaves TCP_CORK or MSG_MORE set at the end of its {}",
            message(side, finding, report)
        )),
        Cause::DelayedAckCwnd => {
            let flight =
                detail.flight_bytes.map_or_else(String::new, |flight| format!(" at {}", bytes(flight)));
            spend(format!(
                "for the {side}'s delayed acknowledgement: the {peer}'s congestion window is used up{flight}"
            ))
        }
        Cause::SlowStart => {
            spend(format!("while the {side}'s congestion window grows from its initial size"))
        }
        Cause::SlowStartAfterIdle => {
            spend(format!("while the {side}'s congestion window grows again: it was reset while idle"))
        }
        Cause::CongestionWindow => {
            let why = if detail.form == Some("after-loss") { ", which losses keep small" } else { "" };
            spend(format!("for room in the {side}'s congestion window{why}"))
        }
        Cause::ReceiveWindow => spend(receive_window(finding)),
        Cause::ReceiverThink => {
            spend(format!("until the {side}'s program reads: it let the receive window close"))
        }
        Cause::SendBuffer => {
            let flight = detail
                .flight_bytes
                .map_or_else(String::new, |flight| format!(", {} in flight", bytes(flight)));
            spend(format!("because the {side}'s send buffer is used up{flight}"))
        }
        Cause::Pacing => {
            format!("the {side} spaces its segments: {wait} more than windows and path need, in {who}")
        }
        Cause::Loss => spend(format!("for lost segments to be sent again{}", resent(finding))),
        Cause::Rto => spend(format!("for a retransmission timeout after a loss{}", resent(finding))),
        Cause::SynRetransmit if detail.form == Some("unanswered") => {
            spend(
                "for an answer to the SYN, which never comes: the server is down or its queue is full, or a firewall \
                 drops it"
                    .to_owned(),
            )
        }
        Cause::SynRetransmit => spend("for a lost SYN or SYN-ACK to be sent again".to_owned()),
        Cause::Queueing if detail.form == Some("reordered") => {
            spend("for segments that others overtook on the path".to_owned())
        }
        Cause::Queueing => spend("in queues on the path that this traffic did not fill".to_owned()),
        Cause::Handshake if finding.hits > 1 => {
            format!("opening a connection takes {wait}, and the client opened {}", count(finding.hits))
        }
        Cause::Handshake => format!("opening the connection takes {wait}"),
        Cause::ServerThink => format!("the server takes {wait} to answer, in {who}"),
        Cause::SenderThink => {
            format!(
                "the {side}'s program pauses {wait} in the middle of its {}, in {who}",
                message(side, finding, report)
            )
        }
        Cause::RoundTrip => format!("the path's round trip takes {wait} of {}", each(&who)),
        Cause::Bandwidth => {
            let at = detail.rate_bps.map_or_else(String::new, |bps| format!(" at {}", rate(bps)));
            format!("the bytes themselves take {wait} on the slowest link{at}, in {who}")
        }
        Cause::Unexplained => {
            format!("{who} {} {wait} that nothing accounts for", who.verb("spend", "spends"))
        }
    }
}

fn receive_window(finding: &Finding) -> String {
    let side = finding.side;
    let size = finding.detail.window_bytes.map(bytes);
    let of_size = size.as_ref().map_or_else(String::new, |size| format!(" of {size}"));
    match finding.detail.form {
        Some("locked") => {
            format!(
                "for the {side}'s receive window{of_size}, which does not grow: SO_RCVBUF is set, or the maximum of tcp_rmem is small"
            )
        }
        Some("unscaled") => {
            format!("for the {side}'s receive window{of_size}: the connection has no window scaling")
        }
        Some("capped") => {
            format!("for the {side}'s receive window{of_size}, which has met its ceiling (tcp_rmem)")
        }
        Some("growing") => format!("for the {side}'s receive window, which is still opening"),
        _ => format!("for room in the {side}'s receive window{of_size}"),
    }
}

fn resent(finding: &Finding) -> String {
    match (finding.detail.form, finding.detail.retransmits) {
        (Some("tail" | "tail-probe"), _) => ": the end of a message was lost".to_owned(),
        (_, Some(n)) if n > 0 => format!(" ({} in the worst)", counted(u64::from(n), "retransmission")),
        _ => String::new(),
    }
}

/// What a sender sends: a request, a reply, or a message that nobody answers.
fn message(side: Side, finding: &Finding, report: &Report) -> &'static str {
    match (kind(report, finding), side) {
        (Kind::OneWay, _) => "message",
        (_, Side::Client) => "request",
        (_, Side::Server) => "reply",
        _ => "message",
    }
}

/// The kind of what a finding counts: that of its most expensive hit, where it is listed.
pub fn kind(report: &Report, finding: &Finding) -> Kind {
    if matches!(finding.cause, Cause::Handshake | Cause::SynRetransmit) {
        return Kind::Setup;
    }
    let listed =
        report.connections.iter().find(|connection| connection.id == finding.worst.0).and_then(
            |connection| connection.exchanges.iter().find(|exchange| exchange.n == finding.worst.1),
        );
    match listed {
        Some(exchange) => exchange.kind,
        None if report.exchanges > 0 => Kind::Exchange,
        None if report.one_way > 0 => Kind::OneWay,
        None => Kind::Setup,
    }
}

/// What a kind of billed thing is called.
pub const fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Setup => "connection",
        Kind::Exchange => "exchange",
        Kind::OneWay => "message",
    }
}

/// `38 of 40 exchanges`, `all 40 exchanges`, `the one exchange`.
struct Subject {
    hits: u64,
    of: u64,
    noun: &'static str,
}

impl Subject {
    fn of(report: &Report, finding: &Finding) -> Self {
        Self { hits: finding.hits, of: finding.of, noun: noun(kind(report, finding)) }
    }

    fn verb(&self, many: &'static str, one: &'static str) -> &'static str {
        if self.hits == 1 { one } else { many }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.hits, self.of) {
            (1, 1) => write!(f, "the one {}", self.noun),
            (hits, of) if hits == of => write!(f, "all {}", counted(of, self.noun)),
            (hits, of) => {
                write!(f, "{} of {}", count(hits), counted(of, self.noun))
            }
        }
    }
}

/// `each of 40 exchanges`, `the one exchange`.
fn each(who: &Subject) -> String {
    match (who.hits, who.of) {
        (1, 1) => who.to_string(),
        (hits, of) if hits == of => format!("each of {}", counted(of, who.noun)),
        _ => who.to_string(),
    }
}

/// ` (10.0.0.1 -> 10.0.0.2:8080)`, with as many clients as are listed.
fn place(report: &Report, finding: &Finding) -> String {
    let by_themselves: BTreeSet<Servers> = report.findings.iter().map(|finding| finding.servers).collect();
    let is_meant = |connection: &&Connection| match (Servers::One(connection.server), finding.servers) {
        (one, Servers::One(_)) => one == finding.servers,
        (one, Servers::Several(_)) => !by_themselves.contains(&one),
    };
    let mut clients: Vec<_> =
        report.connections.iter().filter(is_meant).map(|connection| connection.client.ip()).collect();
    clients.sort_unstable();
    clients.dedup();
    match clients.as_slice() {
        [] => format!(" ({})", finding.servers),
        [one] => format!(" ({one} -> {})", finding.servers),
        _ if report.omitted.connections > 0 => format!(" (many clients -> {})", finding.servers),
        many => format!(" ({} clients -> {})", many.len(), finding.servers),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Time that a mechanism or trouble took, over the whole capture.
pub fn avoidable(report: &Report) -> Duration {
    report
        .bill
        .iter()
        .filter(|line| matches!(class(line.cause), Class::Mechanism | Class::Trouble))
        .map(|line| line.ns)
        .sum()
}
