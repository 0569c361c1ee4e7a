//! Where did the time go, in one sentence?
//!
//! TCP is blamed only if one of its mechanisms took a share that matters; otherwise the sentence says that
//! nothing in TCP is slow, and what took the time instead.

use std::collections::BTreeSet;

use tcpwhy_core::Form;
use tcpwhy_core::report::{Confidence, Connection, Finding, Kind, Report, Servers};
use tcpwhy_core::{Cause, Side};
use tcpwhy_wire::Duration;

use crate::capture::{CaptureInfo, total};
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, per_mille, percent, rate, time};

/// With a smaller share of the whole, a mechanism is not what makes a service slow.
const MATTERS_PER_MILLE: u64 = 50;
/// Every connection needs its handshake; only this share shows that connections are opened too often.
const HANDSHAKE_MATTERS_PER_MILLE: u64 = 200;

/// A wait of this length is slow, whatever takes it.
const SLOW_MIN: Duration = Duration::from_secs(1);
/// How many times larger than the shown finding a merely possible cause must be to be named first.
const DWARFS: i64 = 4;

/// The kind of reason that a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A rule of TCP made a sender wait that could have continued.
    Mechanism,
    /// The network lost or delayed packets.
    Trouble,
    /// TCP waited for a program.
    Program,
    /// The time that any transfer over this path needs.
    Path,
    /// The reason is unknown.
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
        | Cause::ApplicationWindow
        | Cause::SendBuffer
        | Cause::Pacing => Class::Mechanism,
        Cause::Loss | Cause::Rto | Cause::SynRetransmit | Cause::Queueing => Class::Trouble,
        Cause::ServerThink | Cause::SenderThink | Cause::ReceiverThink => Class::Program,
        Cause::RoundTrip | Cause::Bandwidth | Cause::Handshake | Cause::TlsHandshake => Class::Path,
        Cause::Unexplained => Class::Unknown,
    }
}

/// The answer to "where did the time go", a single line of any length, with the addresses that it concerns.
pub fn answer(report: &Report) -> String {
    if report.segments == 0 {
        return "No TCP in this capture.".to_owned();
    }
    let Some(first) = report.findings.first() else {
        let refused = report.notes.iter().find(|note| note.kind == "refused-connections");
        if let Some(refused) = refused {
            let were = if refused.count == 1 { "was" } else { "were" };
            return format!(
                "Nothing to analyse: {} {were} refused with a reset; nothing listens on that port, or a firewall rejects it.",
                counted(refused.count, "connection")
            );
        }
        return format!(
            "Nothing to analyse: {} without a request, a reply or a handshake.",
            counted(report.segments, "TCP segment")
        );
    };
    let culprit = |possible: bool| {
        report.findings.iter().find(|finding| {
            matters(report, finding) && (finding.confidence == Confidence::Possible) == possible
        })
    };
    told(report, first, culprit(false), culprit(true))
}

/// Words the largest finding, the largest trouble that is more than possible, and the largest that is only
/// possible. The finding with most of the time is always named; a merely possible one leads only if it dwarfs
/// the rest, and then as one of several explanations.
fn told(report: &Report, first: &Finding, shown: Option<&Finding>, possible: Option<&Finding>) -> String {
    let bare = |finding: &Finding| sentence(report, finding);
    let said = |finding: &Finding| format!("{}{}", bare(finding), place(report, finding));
    // The second of two findings is at the first one's place, or says where it is.
    let also = |finding: &Finding, before: &Finding| {
        if finding.servers == before.servers { bare(finding) } else { said(finding) }
    };
    let share = percent(first.ns, report.elapsed);
    let is_most = per_mille(first.ns, report.elapsed) >= 500;
    let most = if is_most { "Most of the time" } else { "The largest part" };
    let most = format!("{most} ({share})");
    match (class(first.cause), shown) {
        (_, Some(finding)) if finding == first => format!("{}.", capital(&said(first))),
        (Class::Unknown, Some(finding)) => {
            format!("{}. {share} of the time is unexplained.", capital(&said(finding)))
        }
        (Class::Unknown, None) => {
            format!("The packets do not show where most of the time goes: {}.", said(first))
        }
        // The known finding is small beside it.
        (_, Some(finding))
            if first.confidence == Confidence::Possible
                && is_most
                && first.ns >= finding.ns.times(DWARFS) =>
        {
            format!(
                "{most} has more than one possible explanation: {}. In addition, {}.",
                said(first),
                also(finding, first)
            )
        }
        (_, Some(finding)) if first.confidence == Confidence::Possible => format!(
            "{}. {most} has more than one possible explanation: {}.",
            capital(&said(finding)),
            also(first, finding)
        ),
        (_, None) if first.confidence == Confidence::Possible => {
            format!("{most} has more than one possible explanation: {}.", said(first))
        }
        // The path takes most of it, necessarily; TCP takes a share worth mentioning.
        (Class::Path, Some(finding)) => {
            format!("{}. {most} is the network path: {}.", capital(&said(finding)), also(first, finding))
        }
        // The program takes most of it, and TCP adds a share worth mentioning: both, larger first.
        (_, Some(finding)) => {
            format!("{most} is not TCP: {}. TCP adds to it: {}.", said(first), also(finding, first))
        }
        (_, None) => match possible {
            Some(finding) => {
                format!("{most} is not TCP: {}. TCP may add to it: {}.", said(first), also(finding, first))
            }
            // What takes seconds is slow, and is said first.
            None if class(first.cause) == Class::Program && named(first) >= SLOW_MIN => {
                format!("{}. Nothing in TCP is slow here.", capital(&said(first)))
            }
            None => format!("Nothing in TCP is slow here: {}.", said(first)),
        },
    }
}

/// Why nothing was analysed, if so: the capture has no packets, none of TCP, or none that match.
pub fn nothing(report: &Report, files: &[CaptureInfo]) -> Option<String> {
    if report.segments > 0 || files.is_empty() {
        return None;
    }
    let all = total(files);
    let cut = all.skipped.get("truncated-header").copied().unwrap_or(0);
    let outside = all.skipped.get("outside-window").copied().unwrap_or(0);
    let why = if all.segments > 0 {
        format!("the filter matches none of {}", counted(all.segments, "TCP segment"))
    } else if all.packets > 0 {
        let reasons: Vec<String> = all
            .skipped
            .iter()
            .filter(|(reason, _)| !["outside-window", "truncated-header"].contains(&reason.as_str()))
            .map(|(reason, n)| format!("{} {}", count(*n), visible(reason)))
            .collect();
        let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        let packets = counted(all.packets, "packet");
        if cut > 0 {
            format!(
                "{} of {packets} are cut off within the TCP header{reasons}; capture with a larger snap length",
                count(cut)
            )
        } else {
            format!("no TCP in {packets}{reasons}")
        }
    } else if all.unread_bytes > 0 {
        format!(
            "no packets in the time window; {} and {} of the capture are outside it",
            counted(outside, "packet"),
            bytes(all.unread_bytes)
        )
    } else if outside > 0 {
        format!(
            "no packets in the time window; all {} of the capture are outside it",
            counted(outside, "packet")
        )
    } else if all.interrupted {
        "interrupted before the first packet".to_owned()
    } else {
        "the capture contains no packets".to_owned()
    };
    Some(format!("Nothing analysed: {why}."))
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

/// A finding as a sentence without its full stop; it starts in lower case if it starts with a word. It says
/// how certain the finding is, and separates the slow exchanges if they are the point.
pub fn sentence(report: &Report, finding: &Finding) -> String {
    format!("{}{}", clause(report, finding), rest(finding))
}

/// The wait that a finding's sentence names.
fn named(finding: &Finding) -> Duration {
    match finding.slow {
        None => finding.p50,
        Some(slow) if finding.max > slow.p50.times(2) => finding.max,
        Some(slow) => slow.p50,
    }
}

/// What the slow exchanges, or all affected ones, wait for.
fn clause(report: &Report, finding: &Finding) -> String {
    let Finding { cause, side, detail, .. } = finding;
    let (side, peer) = (*side, side.peer());
    let wait = match finding.slow {
        None => time(finding.p50),
        // If the slow ones vary in length, the longest is the one that users notice.
        Some(slow) if finding.max > slow.p50.times(2) => format!("up to {}", time(finding.max)),
        Some(_) => time(named(finding)),
    };
    let who = Subject::of(report, finding);
    let hedge = hedge(finding.confidence);
    let spend = |rest: &str| format!("{who} {hedge}{} {wait} {rest}", who.verb("wait", "waits"));
    match cause {
        Cause::NagleDelayedAck if detail.form == Some(Form::OwnMessage) => spend(&format!(
            "for the {peer}'s delayed acknowledgement: until it comes, Nagle's algorithm holds the {side}'s next write"
        )),
        Cause::Nagle if detail.form == Some(Form::OwnMessage) => spend(&format!(
            "for an acknowledgement: until it comes, Nagle's algorithm holds the {side}'s next write"
        )),
        Cause::NagleDelayedAck => spend(&format!(
            "for the {peer}'s delayed acknowledgement: the {side} writes each {} in pieces",
            message(side, finding, report)
        )),
        Cause::Nagle => spend(&format!(
            "for an acknowledgement: the {side} writes each {} in pieces, and Nagle's algorithm holds the last one",
            message(side, finding, report)
        )),
        Cause::Cork => spend(&format!(
            "for the cork's timer: the {side} leaves TCP_CORK or MSG_MORE set at the end of its {}",
            message(side, finding, report)
        )),
        Cause::DelayedAckCwnd => {
            let flight =
                detail.flight_bytes.map_or_else(String::new, |flight| format!(" at {}", bytes(flight)));
            spend(&format!(
                "for the {side}'s delayed acknowledgement: the {peer}'s congestion window is used up{flight}"
            ))
        }
        Cause::SlowStart => {
            spend(&format!("while the {side}'s congestion window grows from its initial size"))
        }
        Cause::SlowStartAfterIdle => spend(&format!(
            "while the {side}'s congestion window grows again after it was reset for being idle"
        )),
        Cause::CongestionWindow => {
            let why = if detail.form == Some(Form::AfterLoss) { ", kept small by losses" } else { "" };
            spend(&format!("for room in the {side}'s congestion window{why}"))
        }
        Cause::ReceiveWindow => spend(&receive_window(finding)),
        Cause::ReceiverThink => {
            spend(&format!("for the {side}'s application to read: it let the receive window close"))
        }
        Cause::ApplicationWindow => spend(&format!(
            "for flow-control credit from the {side}'s application: the application protocol's window is used up"
        )),
        Cause::SendBuffer => {
            let flight = detail
                .flight_bytes
                .map_or_else(String::new, |flight| format!(", {} in flight", bytes(flight)));
            spend(&format!("because the {side}'s send buffer is used up{flight}"))
        }
        Cause::Pacing => {
            format!(
                "the {side} {hedge}paces its segments: {wait} longer than the windows and the path require, in {who}"
            )
        }
        Cause::Loss | Cause::Rto | Cause::SynRetransmit if detail.form == Some(Form::AcceptQueue) => {
            spend(&format!(
                "for the {side} to accept the connection: its accept queue is full, so it drops packets"
            ))
        }
        Cause::Rto if detail.form == Some(Form::BlackHole) => spend(
            "for large packets that never arrive although small ones do: the path drops packets of this size without an ICMP error (a path MTU black hole)",
        ),
        Cause::Rto if detail.form == Some(Form::Unrepaired) => {
            spend("for lost segments that are not retransmitted before one side gives up")
        }
        Cause::Rto if detail.form == Some(Form::Ignored) => spend(&format!(
            "for an acknowledgement that never comes{}: the other end no longer responds, or the way to it or back is down",
            resent(finding)
        )),
        Cause::Loss => spend(&format!("for lost segments to be retransmitted{}", resent(finding))),
        Cause::Rto => spend(&format!("for a retransmission timeout after a loss{}", resent(finding))),
        Cause::SynRetransmit if detail.form == Some(Form::Unanswered) => spend(
            "for a SYN-ACK that never comes: the server is down, its queue is full, or a firewall drops the SYN",
        ),
        Cause::SynRetransmit => spend("for a lost SYN or SYN-ACK to be retransmitted"),
        Cause::Queueing if detail.form == Some(Form::Reordered) => {
            spend("for segments that were reordered on the path")
        }
        Cause::Queueing => spend("in queues on the path that this connection did not fill"),
        Cause::Handshake if finding.hits > 1 => {
            format!("opening a connection {hedge}takes {wait}, and the client opened {}", count(finding.hits))
        }
        Cause::Handshake => format!("opening the connection {hedge}takes {wait}"),
        Cause::TlsHandshake => format!("setting up TLS {hedge}takes {wait} of round trips, in {who}"),
        Cause::ServerThink => format!("the {side} {hedge}takes {wait} to answer, in {who}"),
        Cause::SenderThink if kind(report, finding) == Kind::OneWay => {
            format!("the {side}'s application {hedge}pauses for {wait} in the middle of {who}")
        }
        Cause::SenderThink => {
            format!(
                "the {side}'s application {hedge}pauses for {wait} in the middle of its {}, in {who}",
                message(side, finding, report)
            )
        }
        Cause::RoundTrip => format!("the path's round trip {hedge}takes {wait} of {}", each(&who)),
        Cause::Bandwidth => {
            let at = detail.rate_bps.map_or_else(String::new, |bps| format!(" at {}", rate(bps)));
            format!("transmitting the data {hedge}takes {wait} on the slowest link{at}, in {who}")
        }
        Cause::Unexplained => {
            format!("{who} {} {wait} that cannot be explained", who.verb("spend", "spends"))
        }
    }
}

/// The certainty, as a word before a verb.
const fn hedge(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Certain => "",
        Confidence::Likely => "probably ",
        Confidence::Possible => "possibly ",
    }
}

/// What the others take: those that are not slow, or those not affected.
fn rest(finding: &Finding) -> String {
    let others = |n: u64| if n == 1 { "the other".to_owned() } else { format!("the other {}", count(n)) };
    let without = finding.of.saturating_sub(finding.hits);
    // Only if an exchange without the wait takes less than the wait itself does the contrast show its effect.
    let takes_less = |span: &Duration| span.is_positive() && span.times(10) < finding.p50.times(9);
    let contrast = finding.without.filter(takes_less);
    match (finding.slow, contrast) {
        (Some(slow), _) => {
            let n = finding.hits - slow.hits;
            let who = if without == 0 { others(n) } else { format!("{} more", count(n)) };
            format!("; {} for {who}", time(slow.rest_p50))
        }
        (None, Some(span)) if without > 1 => {
            format!("; {} take {} on average", others(without), time(span))
        }
        (None, Some(span)) if without == 1 => format!("; the other takes {}", time(span)),
        _ => String::new(),
    }
}

fn receive_window(finding: &Finding) -> String {
    let side = finding.side;
    let size = finding.detail.window_bytes.map(bytes);
    let of_size = size.as_ref().map_or_else(String::new, |size| format!(" of {size}"));
    match finding.detail.form {
        Some(Form::Locked) => {
            format!(
                "for the {side}'s receive window{of_size}, which does not grow: SO_RCVBUF is set, or the maximum of tcp_rmem is small"
            )
        }
        Some(Form::Unscaled) => {
            format!("for the {side}'s receive window{of_size}: the connection has no window scaling")
        }
        Some(Form::Capped) => {
            format!(
                "for the {side}'s receive window{of_size}, which has stopped growing: the maximum of tcp_rmem, or SO_RCVBUF"
            )
        }
        Some(Form::Growing) => format!("for the {side}'s receive window, which is still opening"),
        _ => format!("for room in the {side}'s receive window{of_size}"),
    }
}

fn resent(finding: &Finding) -> String {
    match (finding.detail.form, finding.detail.retransmits) {
        (Some(Form::TailProbe), _) => ": the end of a message was lost".to_owned(),
        (_, Some(n)) if n > 0 => {
            let of = if finding.hits > 1 { " in the slowest" } else { "" };
            format!(" ({}{of})", counted(u64::from(n), "retransmission"))
        }
        _ => String::new(),
    }
}

/// What a sender sends: a request, a reply, or a one-way message.
fn message(side: Side, finding: &Finding, report: &Report) -> &'static str {
    match (kind(report, finding), side) {
        (Kind::OneWay, _) => "message",
        (_, Side::Client) => "request",
        (_, Side::Server) => "reply",
        _ => "message",
    }
}

/// What a finding counts: the kind of its most expensive occurrence, if that is listed.
pub fn kind(report: &Report, finding: &Finding) -> Kind {
    if matches!(finding.cause, Cause::Handshake | Cause::SynRetransmit) {
        return Kind::Setup;
    }
    let listed = report
        .connection(finding.worst.0)
        .and_then(|connection| connection.exchanges.iter().find(|exchange| exchange.n == finding.worst.1));
    match listed {
        Some(exchange) => exchange.kind,
        None if report.exchanges > 0 => Kind::Exchange,
        None if report.one_way > 0 => Kind::OneWay,
        None if report.subscriptions > 0 => Kind::Subscription,
        None => Kind::Setup,
    }
}

/// The noun for a kind of billed item.
pub const fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Setup => "connection",
        Kind::Exchange => "exchange",
        Kind::OneWay => "message",
        Kind::Subscription => "subscription",
    }
}

/// Whether a capture has one item of this kind in all: a server may have one, and others more.
pub(crate) fn has_one(report: &Report, kind: Kind) -> bool {
    let all = match kind {
        Kind::Setup => report.setups,
        Kind::Exchange => report.exchanges,
        Kind::OneWay => report.one_way,
        Kind::Subscription => report.subscriptions,
    };
    all == 1
}

/// `38 of 40 exchanges`, `all 40 exchanges`, `the only exchange`; `one exchange` of a server that has no
/// more, where others do.
struct Subject {
    hits: u64,
    of: u64,
    noun: &'static str,
    is_only: bool,
}

impl Subject {
    fn of(report: &Report, finding: &Finding) -> Self {
        let hits = finding.slow.map_or(finding.hits, |slow| slow.hits);
        let kind = kind(report, finding);
        Self { hits, of: finding.of, noun: noun(kind), is_only: has_one(report, kind) }
    }

    fn verb(&self, many: &'static str, one: &'static str) -> &'static str {
        if self.hits == 1 { one } else { many }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.hits, self.of) {
            (1, 1) if self.is_only => write!(f, "the only {}", self.noun),
            (1, 1) => write!(f, "one {}", self.noun),
            (2, 2) => write!(f, "both {}s", self.noun),
            (hits, of) if hits == of => write!(f, "all {}", counted(of, self.noun)),
            (hits, of) => {
                write!(f, "{} of {}", count(hits), counted(of, self.noun))
            }
        }
    }
}

/// `each of 40 exchanges`, `the only exchange`.
fn each(who: &Subject) -> String {
    match (who.hits, who.of) {
        (1, 1) => who.to_string(),
        (hits, of) if hits == of => format!("each of {}", counted(of, who.noun)),
        _ => who.to_string(),
    }
}

/// ` (client 10.0.0.1 -> server 10.0.0.2:8080)`, with the number of listed clients.
fn place(report: &Report, finding: &Finding) -> String {
    let by_themselves: BTreeSet<Servers> = report.findings.iter().map(|finding| finding.servers).collect();
    let is_meant = |connection: &&Connection| match (Servers::One(connection.server), finding.servers) {
        (one, Servers::One(_)) => one == finding.servers,
        (one, Servers::Several(_)) => !by_themselves.contains(&one),
    };
    let server = match finding.servers {
        Servers::One(endpoint) => format!("server {endpoint}"),
        several @ Servers::Several(_) => several.to_string(),
    };
    let mut clients: Vec<_> =
        report.connections.iter().filter(is_meant).map(|connection| connection.client.ip()).collect();
    clients.sort_unstable();
    clients.dedup();
    let guessed = report.connections.iter().filter(is_meant).all(|connection| connection.assumed);
    let guessed = if guessed { "; roles guessed, no handshake captured" } else { "" };
    // A thinned list is incomplete.
    let counted = match finding.servers {
        Servers::One(endpoint) => report.clients.get(&endpoint).copied(),
        Servers::Several(_) => None,
    };
    let count = counted.unwrap_or(clients.len() as u64);
    match clients.first() {
        None => format!(" ({server})"),
        Some(one) if count == 1 => format!(" (client {one} -> {server}{guessed})"),
        _ if counted.is_none() && report.omitted.connections > 0 => {
            format!(" (many clients -> {server}{guessed})")
        }
        _ => format!(" ({count} clients -> {server}{guessed})"),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Time taken by mechanisms and trouble, over the whole capture.
pub fn avoidable(report: &Report) -> Duration {
    report
        .bill
        .iter()
        .filter(|line| matches!(class(line.cause), Class::Mechanism | Class::Trouble))
        .map(|line| line.ns)
        .sum()
}
