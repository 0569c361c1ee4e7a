//! What does a user with a slow service see first?

use std::fmt::Write as _;

use tcpwhy_core::report::Report;
use tcpwhy_wire::Duration;

use super::bill::totals;
use super::findings::findings;
use super::layout::wrap;
use super::{Style, requests};
use crate::answer::{answer, nothing};
use crate::capture::{CaptureInfo, OneWay, OtherEnd, frame, total};
use crate::clock::moment;
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, time};

/// The report on one screen: answer, bill, findings, and limits. `again` is the command that reads
/// the same inputs again, for drilling down: `tcpwhy read client.pcapng`; empty if they cannot be
/// read again.
pub fn overview(report: &Report, files: &[CaptureInfo], again: &str, style: Style) -> String {
    let answer = answer_of(report, files);
    let mut out: Vec<String> =
        wrap(&answer, style.width, "", "").iter().map(|line| style.strong(line)).collect();
    out.push(String::new());
    out.extend(
        wrap(&what_was_read(report, files, style), style.width, "", "").iter().map(|line| style.faint(line)),
    );
    if !report.bill.is_empty() {
        out.push(String::new());
        out.extend(totals(&report.bill, report.elapsed, style));
    }
    let requests = requests::table(report, style);
    if !requests.is_empty() {
        out.push(String::new());
        out.extend(requests);
    }
    if !style.brief {
        out.extend(findings(report, files, again, style));
    }
    let limits = limits(report, files);
    if !limits.is_empty() {
        out.push(String::new());
        for limit in limits {
            out.extend(wrap(&limit, style.width, "note: ", "      "));
        }
    }
    out.push(String::new());
    style.finish(out).join("\n")
}

/// The first sentence.
pub(super) fn answer_of(report: &Report, files: &[CaptureInfo]) -> String {
    nothing(report, files).unwrap_or_else(|| answer(report))
}

pub(super) fn what_was_read(report: &Report, files: &[CaptureInfo], style: Style) -> String {
    let total = total(files);
    let name = match files {
        [] => "capture".to_owned(),
        [one] if one.path == "-" => "standard input".to_owned(),
        [one] => visible(&one.path).into_owned(),
        many => format!("{} files", many.len()),
    };
    let span = match (total.first, total.last) {
        (Some(first), Some(last)) => {
            format!(" in {} from {}", time(last - first), moment(first, style.offset_s))
        }
        _ => String::new(),
    };
    let mut billed = Vec::new();
    let kinds = [
        (report.exchanges, "exchange"),
        (report.subscriptions, "subscription"),
        (report.one_way, "one-way message"),
        (report.setups, "setup"),
    ];
    for (n, noun) in kinds {
        if n > 0 {
            billed.push(counted(n, noun));
        }
    }
    let by_clock = if report.by_clock < report.elapsed - report.elapsed.divided_by(20) {
        format!(" ({} of wall-clock time, as some waits overlap)", time(report.by_clock))
    } else {
        String::new()
    };
    let connections = report.connections.len() as u64 + report.omitted.connections;
    let billed = if billed.is_empty() { "nothing".to_owned() } else { billed.join(", ") };
    format!(
        "{name}: {}{span}; billed {}{by_clock}: {billed} on {}.",
        counted(total.packets.max(report.segments), "packet"),
        time(report.elapsed),
        counted(connections, "connection")
    )
}

/// Everything that limits the results.
pub fn limits(report: &Report, files: &[CaptureInfo]) -> Vec<String> {
    let mut out = Vec::new();
    for note in &report.notes {
        let first = match frame(files, note.first_packet) {
            Some((file, frame)) if files.len() > 1 => format!("frame {frame} of {}", visible(&file.path)),
            Some((_, frame)) => format!("frame {frame}"),
            None => format!("frame {}", note.first_packet),
        };
        let times = if note.count == 1 { "once".to_owned() } else { format!("{} times", count(note.count)) };
        out.push(format!("{} ({times}, first at {first})", note_in_words(note.kind)));
    }
    for (file, other) in files.iter().filter_map(|file| Some((file, file.other_end.as_ref()?))) {
        let of = files.get(other.of).map_or("another file", |file| &file.path);
        out.push(both_ends(&file.path, of, other));
        out.extend(other.ways.as_ref().map(one_way));
    }
    for file in files {
        let path = visible(&file.path);
        if let Some(failure) = &file.failure {
            out.push(format!("{path} was not read: {}", visible(failure)));
        }
        if file.drops > 0 {
            let lost = counted(file.drops, "packet");
            out.push(format!("{path}: the capture dropped {lost}, so gaps in it are not network losses"));
        }
        if file.interrupted {
            out.push(format!("{path} was read only until the interrupt"));
        }
        if file.truncated {
            out.push(format!("{path} ends in the middle of a packet; everything before it was analysed"));
        }
        for (reason, n) in &file.skipped {
            out.push(format!("{path}: {}", skipped(reason, *n)));
        }
        if file.unread_bytes > 0 {
            out.push(format!("{path}: {} outside the time window not read", bytes(file.unread_bytes)));
        } else if file.stopped {
            out.push(format!("{path}: stopped reading after the time window"));
        }
    }
    if files.iter().any(|file| file.is_renumbered) {
        out.push(
            "packet numbers start at the time window, as in the output of `editcap -A FROM -B TO`: counting those before it would take too long"
                .to_owned(),
        );
    }
    if report.connections.iter().any(|connection| connection.assumed) {
        let n = report.connections.iter().filter(|connection| connection.assumed).count() as u64;
        out.push(format!(
            "{} without a captured handshake; client and server are a guess",
            counted(n, "connection")
        ));
    }
    let omitted = report.omitted;
    let left_out = [(omitted.connections, "connection"), (omitted.exchanges, "exchange")];
    let left_out: Vec<_> =
        left_out.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| counted(*n, noun)).collect();
    if !left_out.is_empty() {
        let is_one = omitted.connections + omitted.exchanges == 1;
        let verb = if is_one { "is" } else { "are" };
        out.push(format!("{} {verb} in the bill but not listed individually", left_out.join(" and ")));
    }
    out
}

/// Two capture points on the path of the same connections: which is billed, and how much their
/// bills differ.
fn both_ends(path: &str, of: &str, other: &OtherEnd) -> String {
    let (path, of) = (visible(path), visible(of));
    let OtherEnd { connections, clock, bill, .. } = other;
    let (them, come) = if *connections == 1 { ("it is", "it comes") } else { ("they are", "they come") };
    let mut text = format!(
        "{path} and {of} both have {}, captured at different points of the path: {them} billed once, from {of}",
        counted(*connections, "connection")
    );
    let [here, there] = other.elapsed();
    let (there, here) = (time(there), time(here));
    let apart =
        if there == here { format!("the same {there}") } else { format!("{there} instead of {here}") };
    let _ = write!(text, ". Billed from {path}, {come} to {apart}");
    if let Some(line) = bill.first().filter(|line| line.here != line.there) {
        let (cause, there, here) = (line.cause, time(line.there), time(line.here));
        let _ = write!(text, "; the largest difference is {cause}, {there} instead of {here}");
    }
    if let Some([ahead, round_trip]) = clock {
        let way = if ahead.as_nanos() < 0 { "behind" } else { "ahead" };
        let by = time(Duration::from_nanos(ahead.as_nanos().abs()));
        let off = time(Duration::from_nanos(round_trip.as_nanos() / 2));
        let _ = write!(text, ". The clock of {path} is {by} {way} (within {off})");
        if let Some(ppb) = other.drift_ppb {
            let (ppm, way) = (ppb.abs() as f64 / 1e3, if ppb < 0 { "loses" } else { "gains" });
            let _ = write!(text, ", and {way} {ppm:.1} µs a second");
        }
    }
    text
}

/// What happened to packets between the two points, in each direction.
fn one_way([to_server, to_client]: &[OneWay; 2]) -> String {
    let way = |way: &OneWay| {
        let [median, p99, max] = [way.median, way.p99, way.max].map(time);
        let missing = way.missing.filter(|missing| *missing > 0);
        let lost = missing.map_or(String::new(), |missing| format!(", {missing} more lost on the way"));
        format!("median {median}, p99 {p99}, max {max} ({}{lost})", counted(way.packets, "packet"))
    };
    format!(
        "delay between these two captures, above that of the fastest packet: client to server {}; server to client {}",
        way(to_server),
        way(to_client)
    )
}

/// The reason why packets were not analysed, as a sentence.
fn skipped(reason: &str, n: u64) -> String {
    let what = match reason {
        "not-tcp" => "that are not TCP",
        "not-ip" => "that are not IP",
        "fragment" => {
            return format!(
                "{} of IP packets whose other fragments are not in the capture: their data is missing from the bill",
                counted(n, "fragment")
            );
        }
        "wrong-checksum" => {
            return format!(
                "{} with a wrong TCP checksum, although their sender computes it: damaged in transit or forged. Receivers discard them, and \
                 their data counts as lost (Wireshark: tcp.checksum.status == \"Bad\", with its check turned on)",
                counted(n, "segment")
            );
        }
        "wrong-time" => {
            return format!(
                "{} with a wrong time stamp, long after the packets before and after: counted at the time of the packet before",
                counted(n, "packet")
            );
        }
        "wrong-clock" => {
            return "the time of a packet has a fraction of more than its second: what wrote this capture had no valid clock, and all times are possible at most".to_owned();
        }
        "whole-seconds" => {
            return "all times are whole seconds: what lies between two packets may be a second longer or shorter, and all times are possible at most".to_owned();
        }
        "equal-distances" => {
            return "packets lie at equal distances, whoever sent them: what wrote this capture made its times up, and all are possible at most".to_owned();
        }
        "unsupported-link" => "of an unsupported link type",
        "truncated-header" => "cut off within the TCP header (capture with a larger snap length)",
        "bad-ip-header" => "with an invalid IP header",
        "bad-tcp-header" => "with an invalid TCP header",
        "too-many-headers" => "with too many nested headers",
        "encrypted" => {
            "encrypted by Wi-Fi (airdecap-ng decrypts them with the network's name and passphrase)"
        }
        "outside-window" => "outside the time window",
        "damaged" => return format!("{} could not be read", counted(n, "place")),
        other => return format!("{} skipped: {}", counted(n, "packet"), visible(other)),
    };
    format!("skipped {} {what}", counted(n, "packet"))
}

/// A note's kind as a sentence; an unknown kind is shown by its name.
pub(super) fn note_in_words(kind: &str) -> String {
    match kind {
        "capture-drops" => "the capture dropped packets, so gaps in it are not network losses",
        "one-direction" => "only one direction was captured; the other is inferred",
        "time-steps-back" => "time stamps go backwards; such intervals count as zero",
        "connections-over-limit" => {
            "connections were dropped before their end, those idle for longest first, because of --memory or --max-connections"
        }
        "finished-over-limit" => {
            "connections were dropped as soon as they had ended because of --memory; their late packets count as new connections"
        }
        "words-over-limit" => "requests are shown without their text because of --memory",
        "refused-connections" => "connections were refused with a reset: nothing listens on that port, or a firewall rejects it",
        "cut-options" => {
            "connections have a SYN that is cut off within its options, so MSS, window scale or time stamps are unknown (capture with a larger snap length)"
        }
        "too-large-packets" => {
            "a router says by ICMP that a packet is too large for its next link, and drops it: set this MTU at the sender, or clamp the MSS at the router (Wireshark: icmp.mtu || icmpv6.mtu)"
        }
        "unanswered-connections" => "connections got no answer to their SYN",
        "sums-over-limit" => {
            "all times together are more than the 292 years that a sum holds: sums end there, and shares of them are not exact"
        }
        "duplicates" => "packets were captured twice, as with `-i any`; the second copy is ignored",
        other => return other.replace('-', " "),
    }
    .to_owned()
}
