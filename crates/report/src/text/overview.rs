//! What does somebody with a slow service see first?

use std::fmt::Write as _;

use tcpwhy_core::report::Report;
use tcpwhy_wire::Duration;

use super::bill::totals;
use super::findings::findings;
use super::layout::wrap;
use super::{Style, requests};
use crate::answer::{answer, nothing};
use crate::capture::{CaptureInfo, OneWay, OtherEnd, total};
use crate::clock::moment;
use crate::escape::visible;
use crate::quantity::{bytes, count, counted, time};

/// The report on one screen: answer, bill, findings, and what limits them. `again` is the command that reads the same
/// inputs once more, for drilling down: `tcpwhy read client.pcapng`.
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
        format!(" ({} by the clock: several waited at once)", time(report.by_clock))
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

/// Everything that limits what was said.
pub(super) fn limits(report: &Report, files: &[CaptureInfo]) -> Vec<String> {
    let mut out = Vec::new();
    for note in &report.notes {
        out.push(format!(
            "{} ({} times, first at packet {})",
            note_in_words(note.kind),
            count(note.count),
            note.first_packet
        ));
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
            out.push(format!("{path}: the capture itself lost {lost}: gaps are not losses of the network"));
        }
        if file.interrupted {
            out.push(format!("{path} was read up to where the signal came, and not to its end"));
        }
        if file.truncated {
            out.push(format!("{path} ends in the middle of a packet: it was billed as far as it goes"));
        }
        for (reason, n) in &file.skipped {
            out.push(format!("{path}: {}", skipped(reason, *n)));
        }
        if file.unread_bytes > 0 {
            out.push(format!("{path}: {} outside of the window were not read", bytes(file.unread_bytes)));
        } else if file.stopped {
            out.push(format!("{path}: reading stopped behind the window"));
        }
    }
    if files.iter().any(|file| file.is_renumbered) {
        out.push(
            "packet numbers count from the window's first packet, as in the file that `editcap -A FROM -B TO` writes: too many are in front of it"
                .to_owned(),
        );
    }
    if files.len() > 1 {
        out.push(
            "packet numbers of connections and ladders count over all files in time order, as in the file that mergecap writes; those of \
             findings are their file's"
                .to_owned(),
        );
    }
    if report.connections.iter().any(|connection| connection.assumed) {
        let n = report.connections.iter().filter(|connection| connection.assumed).count() as u64;
        out.push(format!(
            "{} without a handshake in the capture: who is client there is a guess",
            counted(n, "connection")
        ));
    }
    let omitted = report.omitted;
    if omitted.connections + omitted.exchanges > 0 {
        out.push(format!(
            "{} and {} are in the bill but not listed one by one",
            counted(omitted.connections, "connection"),
            counted(omitted.exchanges, "exchange")
        ));
    }
    out
}

/// Two places at the path of the same connections: which is billed, and how far they are apart.
fn both_ends(path: &str, of: &str, other: &OtherEnd) -> String {
    let (path, of) = (visible(path), visible(of));
    let OtherEnd { connections, clock, bill, .. } = other;
    let (them, come) = if *connections == 1 { ("it is", "it comes") } else { ("they are", "they come") };
    let mut text = format!(
        "{path} has {} that {of} has too, from another place on the path: {them} billed once, from {of}",
        counted(*connections, "connection")
    );
    let [here, there] = other.elapsed();
    let (there, here) = (time(there), time(here));
    let apart = if there == here { format!("{there} as well") } else { format!("{there} instead of {here}") };
    let _ = write!(text, ". From {path} {come} to {apart}");
    if let Some(line) = bill.first().filter(|line| line.here != line.there) {
        let (cause, there, here) = (line.cause, time(line.there), time(line.here));
        let _ = write!(text, "; most of the difference is {cause}, {there} instead of {here}");
    }
    if let Some([ahead, round_trip]) = clock {
        let way = if ahead.as_nanos() < 0 { "behind" } else { "ahead" };
        let by = time(Duration::from_nanos(ahead.as_nanos().abs()));
        let off = time(Duration::from_nanos(round_trip.as_nanos() / 2));
        let _ = write!(text, ". Its clock is {by} {way}, give or take {off}");
        if let Some(ppb) = other.drift_ppb {
            let (ppm, way) = (ppb.abs() as f64 / 1e3, if ppb < 0 { "loses" } else { "gains" });
            let _ = write!(text, ", and {way} {ppm:.1} µs a second");
        }
    }
    text
}

/// What happened to packets between two places, in each direction.
fn one_way([to_server, to_client]: &[OneWay; 2]) -> String {
    let way = |way: &OneWay| {
        let [median, p99, max] = [way.median, way.p99, way.max].map(time);
        let missing = way.missing.filter(|missing| *missing > 0);
        let lost = missing.map_or(String::new(), |missing| format!(", {missing} more lost on the way"));
        format!("median {median}, p99 {p99}, max {max} ({}{lost})", counted(way.packets, "packet"))
    };
    format!(
        "between these two places, delay above the fastest packet: client to server {}; server to client {}",
        way(to_server),
        way(to_client)
    )
}

/// A reason for which packets were not analysed, as a sentence.
fn skipped(reason: &str, n: u64) -> String {
    let what = match reason {
        "not-tcp" => "that are not TCP",
        "not-ip" => "that are not IP",
        "fragment" => {
            return format!(
                "{} of IP packets whose other fragments are not in the capture: what they carried is missing from the bill",
                counted(n, "fragment")
            );
        }
        "wrong-checksum" => {
            return format!(
                "{} with a wrong TCP checksum, though their sender fills it in: damaged on the way or made up. Nobody takes them, and \
                 what they carried counts as lost (Wireshark: tcp.checksum.status == \"Bad\", with its check turned on)",
                counted(n, "segment")
            );
        }
        "unsupported-link" => "of a link type that is not read",
        "truncated-header" => "cut before the end of the TCP header (a larger snap length keeps it)",
        "bad-ip-header" => "with an IP header that cannot be",
        "bad-tcp-header" => "with a TCP header that cannot be",
        "too-many-headers" => "with headers nested too deeply",
        "outside-window" => "outside of the window",
        "damaged" => return format!("{} could not be read", counted(n, "place")),
        other => return format!("{} passed over: {}", counted(n, "packet"), visible(other)),
    };
    format!("{} {what}: passed over", counted(n, "packet"))
}

/// A note's kind as a sentence; unknown kinds are shown by their name.
pub(super) fn note_in_words(kind: &str) -> String {
    match kind {
        "capture-drops" => "the capture itself dropped packets: gaps are not losses of the network",
        "one-direction" => "only one direction was captured: what the other did is inferred",
        "time-steps-back" => "time stamps step backwards: those intervals are counted as zero",
        "connections-over-limit" => {
            "connections were closed before their end because more were open than --memory and --max-connections allow: those that spoke \
             longest ago"
        }
        "finished-over-limit" => {
            "connections were forgotten as soon as they had ended because --memory has no room for more: what came late of \
             them counts as a connection of its own"
        }
        "refused-connections" => "connections were refused with a reset: nothing listens there, or a firewall says so",
        "unanswered-connections" => "connections never got an answer to their SYN",
        "duplicates" => "packets appear twice, as with `-i any`: the second sighting is passed over",
        other => return other.replace('-', " "),
    }
    .to_owned()
}
