//! A capture with more servers than anybody looks at one by one.

use tcpwhy_core::report::{Report, Servers};
use tcpwhy_core::{Analysis, Cause, Form, Listing, Options};
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, Segment, Seq, TcpOptions};

use crate::distance::merged;
use crate::packet_log::{CLIENT, End, SERVER, log, ms};

/// One exchange with each server, which thinks for this many milliseconds. Nothing of it is listed.
fn ask(think_ms: impl IntoIterator<Item = i64>) -> Report {
    let mut analysis = Analysis::new(Options { listing: Listing::None, ..Options::default() });
    let (mut packet, mut now) = (0, Instant::from_nanos(0));
    for (n, think_ms) in think_ms.into_iter().enumerate() {
        let server = Endpoint::v4((0x0a01_0000 + n as u32).to_be_bytes(), 443);
        let client = Endpoint::v4([10, 0, 0, 1], 40_000);
        let mut say = |src: Endpoint, wait_us: i64, flags: u8, [seq, ack, len]: [u32; 3]| {
            packet += 1;
            now = now + Duration::from_micros(wait_us);
            analysis.on_segment(&Segment {
                packet,
                at: now,
                src,
                dst: if src == client { server } else { client },
                seq: Seq(seq),
                ack: Seq(ack),
                window: 64_000,
                flags: Flags(flags),
                payload_len: len,
                options: TcpOptions::default(),
                ip_id: None,
                ttl: 64,
                damaged: false,
            });
        };
        let (ack, push) = (Flags::ACK, Flags::ACK | Flags::PSH);
        say(client, 100, Flags::SYN, [0, 0, 0]);
        say(server, 20, Flags::SYN | ack, [0, 1, 0]);
        say(client, 5, push, [1, 1, 100]);
        say(server, 20, ack, [1, 101, 0]);
        say(server, think_ms * 1_000, push, [1, 101, 100]);
        say(client, 5, ack, [101, 101, 0]);
    }
    analysis.finish()
}

/// Servers, hits, exchanges and whole milliseconds billed to the servers' programs.
fn thought(report: &Report) -> Vec<(Servers, u64, u64, i64)> {
    let thought = report.findings.iter().filter(|finding| finding.cause == Cause::ServerThink);
    thought.map(|f| (f.servers, f.hits, f.of, f.ns.as_nanos() / 1_000_000)).collect()
}

fn server(n: u8) -> Servers {
    Servers::One(Endpoint::v4([10, 1, 0, n], 443))
}

#[test]
fn a_few_servers_are_shown_one_by_one() {
    let found = thought(&ask((1..=16).map(|n| n * 10)));
    assert_eq!(found.len(), 16);
    assert_eq!(found[0], (server(15), 1, 1, 160));
}

/// None of forty takes a twentieth of the time. Together they do, and the report must say so.
#[test]
fn many_servers_that_are_all_slow_share_a_finding() {
    let report = ask([40; 40]);
    assert_eq!(thought(&report), [(Servers::Several(40), 40, 40, 1_600)]);
    let finding = &report.findings[0];
    assert_eq!(finding.p50.as_nanos() / 1_000_000, 40);
    assert!(!finding.evidence.is_empty());
}

#[test]
fn one_slow_server_among_many_is_shown_by_itself() {
    let found = thought(&ask((0..40).map(|n| if n == 7 { 900 } else { 2 })));
    assert_eq!(found, [(server(7), 1, 1, 900), (Servers::Several(39), 39, 39, 78)]);
}

/// More than have their own findings: those discarded are in the sums.
#[test]
fn a_crawler_of_ten_thousand_servers_is_billed_in_full() {
    let report = ask((0..10_000).map(|n| if n == 9 { 9_000 } else { 5 }));
    assert_eq!(report.exchanges, 10_000);
    let found = thought(&report);
    assert_eq!(found[1], (server(9), 1, 1, 9_000));
    let (Servers::Several(count), hits, of, ms) = found[0] else { panic!("{found:?}") };
    assert!(count > Servers::COUNTED, "thousands");
    assert_eq!((hits, of, ms), (9_999, 9_999, 9_999 * 5));
    let billed: Duration = report.bill.iter().map(|line| line.ns).sum();
    assert_eq!(billed, report.elapsed);
}

/// Of two connections to a server, one gets its SYN-ACK after the second SYN and one never (frames 2065 to 2390 of a
/// browser): what is said of the more expensive one is not true of both.
#[test]
fn what_happened_to_one_of_two_is_not_said_of_both() {
    let unanswered = "@1 C syn lost\n @1014 C syn lost\n @3030 C syn lost";
    for (first, form) in [
        ("@0 C syn lost\n @1013 C syn\n +0 S syn\n +0 C ack", None),
        ("@0 C syn lost\n @1013 C syn lost\n @3029 C syn lost", Some(Form::Unanswered)),
    ] {
        let logs = [log(first), log(unanswered).between([Endpoint { port: 40_001, ..CLIENT }, SERVER])];
        let seen = merged(&logs.map(|log| log.rtt(ms(277))), End::Client);
        let waits = seen.report.findings.iter().find(|finding| finding.cause == Cause::SynRetransmit);
        let waits = waits.unwrap_or_else(|| panic!("{seen}"));
        assert_eq!((waits.hits, waits.detail.form), (2, form), "{seen}");
    }
}
