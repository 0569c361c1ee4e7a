//! Connections that are never established: a server that is down, a full queue, a firewall.

use tcpwhy_core::report::{Confidence, Kind, Report, TotalLine};
use tcpwhy_core::{Analysis, Cause, Form, Listing, Options, Side};
use tcpwhy_wire::{Duration, Endpoint, Flags, Instant, Segment, Seq, TcpOptions};

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

const CLIENT: Endpoint = Endpoint::v4([10, 0, 0, 1], 40_000);

const SERVER: Endpoint = Endpoint::v4([10, 0, 0, 2], 80);

/// A segment without data.
fn bare(n: usize, at_us: i64, [src, dst]: [Endpoint; 2], seq: u32, flags: u8) -> Segment {
    Segment {
        packet: n as u64 + 1,
        at: Instant::from_nanos(at_us * 1_000),
        src,
        dst,
        seq: Seq(seq),
        ack: Seq(1),
        window: 64_000,
        flags: Flags(flags),
        payload_len: 0,
        options: TcpOptions::default(),
        ip_id: None,
        ttl: 64,
        damaged: false,
    }
}

/// Which end sends which flags after how many milliseconds.
fn segments(passed: &[(Endpoint, i64, u8)]) -> Vec<Segment> {
    let segment = |(n, &(src, at_ms, flags)): (usize, &(Endpoint, i64, u8))| {
        bare(n, at_ms * 1_000, [src, if src == CLIENT { SERVER } else { CLIENT }], 0, flags)
    };
    passed.iter().enumerate().map(segment).collect()
}

fn report(passed: &[(Endpoint, i64, u8)]) -> Report {
    let mut analysis = Analysis::new(Options { listing: Listing::UpTo(10), ..Options::default() });
    for segment in segments(passed) {
        analysis.on_segment(&segment);
    }
    analysis.finish()
}

fn notes(report: &Report) -> Vec<(&str, u64)> {
    report.notes.iter().map(|note| (note.kind, note.count)).collect()
}

/// The client waits from its first SYN on; only its program knows until when: at least until the
/// last one.
#[test]
fn a_syn_that_nobody_answers_is_waited_for() {
    let report = report(&[
        (CLIENT, 0, Flags::SYN),
        (CLIENT, 1_000, Flags::SYN),
        (CLIENT, 3_000, Flags::SYN),
        (CLIENT, 7_000, Flags::SYN),
    ]);
    let ns = Duration::from_secs(7);
    assert_eq!(report.bill, [total(ns)]);
    assert_eq!((report.elapsed, report.setups), (ns, 1));
    let finding = &report.findings[0];
    assert_eq!((finding.detail.form, finding.detail.retransmits), (Some(Form::Unanswered), Some(3)));
    assert_eq!(finding.evidence, [1, 4]);
    assert_eq!(notes(&report), [("unanswered-connections", 1)]);
}

#[test]
fn a_connection_that_is_refused_costs_nothing_and_is_said() {
    let refused = report(&[(CLIENT, 0, Flags::SYN), (SERVER, 1, Flags::RST | Flags::ACK)]);
    assert_eq!((refused.setups, notes(&refused)), (0, vec![("refused-connections", 1)]));
}

/// Windows retransmits its SYN half a second after a refusal, with the same sequence number; what
/// follows is a connection. A duplicate of the first one is not.
#[test]
fn a_client_that_was_refused_may_try_again() {
    let again = report(&[
        (CLIENT, 0, Flags::SYN),
        (SERVER, 1, Flags::RST | Flags::ACK),
        (CLIENT, 2, Flags::SYN),
        (CLIENT, 500, Flags::SYN),
        (SERVER, 501, Flags::RST | Flags::ACK),
        (CLIENT, 1_000, Flags::SYN),
        (SERVER, 1_001, Flags::SYN | Flags::ACK),
        (CLIENT, 1_002, Flags::ACK),
    ]);
    assert_eq!((again.setups, notes(&again)), (1, vec![("refused-connections", 2)]));
    assert_eq!(again.connections.len(), 3);
}

/// A firewall refuses a SYN that it has left unanswered for some time (frames 126 to 1821 of a
/// browser's capture): until then the client waits, and a server that refuses the second SYN at
/// once is waited for no longer than that.
#[test]
fn a_client_waits_until_it_is_refused() {
    const RESET: u8 = Flags::RST | Flags::ACK;
    let asked = [(CLIENT, 0, Flags::SYN), (CLIENT, 1_000, Flags::SYN), (CLIENT, 3_000, Flags::SYN)];
    let late = report(&[&asked[..], &[(SERVER, 21_000, RESET)]].concat());
    let ns = Duration::from_secs(21);
    assert_eq!(late.bill, [total(ns)]);
    assert_eq!(late.findings[0].evidence, [1, 4]);
    let soon = report(&[&asked[..], &[(SERVER, 3_020, RESET)]].concat());
    assert_eq!((soon.elapsed, soon.bill[0].ns), (ms(3_020), ms(3_000)));
}

/// A reset that acknowledges nothing, or not the SYN, is no answer to a SYN (RFC 9293, 3.10.7.3):
/// the client retransmits its SYN and is answered (frames 753 to 1986 of a browser's capture).
#[test]
fn a_reset_that_acknowledges_no_syn_ends_nothing() {
    const SYN_ACK: u8 = Flags::SYN | Flags::ACK;
    for reset in [Flags::RST, Flags::RST | Flags::ACK] {
        let asked = [(CLIENT, 0, Flags::SYN), (CLIENT, 1_000, Flags::SYN), (SERVER, 2_900, reset)];
        let answered = [(CLIENT, 3_000, Flags::SYN), (SERVER, 3_060, SYN_ACK), (CLIENT, 3_060, Flags::ACK)];
        let mut analysis = Analysis::new(Options { listing: Listing::UpTo(10), ..Options::default() });
        for segment in segments(&[&asked[..], &answered[..]].concat()) {
            let ack =
                if segment.flags.ack() && segment.flags.rst() { Seq(u32::MAX - 700) } else { segment.ack };
            analysis.on_segment(&Segment { ack, ..segment });
        }
        let report = analysis.finish();
        assert_eq!((report.connections.len(), report.elapsed), (1, ms(3_060)), "{report:#?}");
        assert_eq!(notes(&report), [], "{report:#?}");
    }
}

/// A SYN at the end of a capture says nothing, and a late answer is an answer.
#[test]
fn a_connection_that_comes_about_has_not_failed() {
    assert_eq!(notes(&report(&[(CLIENT, 0, Flags::SYN)])), []);
    let late = report(&[
        (CLIENT, 0, Flags::SYN),
        (CLIENT, 1_000, Flags::SYN),
        (SERVER, 1_001, Flags::SYN | Flags::ACK),
        (CLIENT, 1_002, Flags::ACK),
        (SERVER, 1_003, Flags::RST | Flags::ACK),
    ]);
    assert_eq!((late.setups, notes(&late)), (1, vec![]));
}

/// A client that does not repeat its SYN has given up when the answer comes 13 s later, which it
/// never accepts.
#[test]
fn an_answer_to_a_client_that_has_given_up_is_nobody_s_wait() {
    const SYN_ACK: u8 = Flags::SYN | Flags::ACK;
    let late = report(&[(CLIENT, 0, Flags::SYN), (SERVER, 13_000, SYN_ACK), (SERVER, 17_400, SYN_ACK)]);
    assert_eq!(late.elapsed, Duration::ZERO, "{late:#?}");
    let taken = report(&[(CLIENT, 0, Flags::SYN), (SERVER, 2_000, SYN_ACK), (CLIENT, 2_000, Flags::ACK)]);
    assert_eq!(taken.elapsed, Duration::from_millis(2_000), "{taken:#?}");
}

/// A meter's modem tries every three seconds for 18 s, in vain, and begins again with the same
/// number five minutes later (frames 261 to 790 of its capture): no timer ran meanwhile.
/// Retransmissions with a doubling timer, or with one missing from the capture, are still
/// recognised.
#[test]
fn a_syn_that_its_program_sends_anew_waits_for_none_of_those_before() {
    const SYN_ACK: u8 = Flags::SYN | Flags::ACK;
    let mut segments: Vec<_> = (0..7).map(|n| (CLIENT, n * 3_000, Flags::SYN)).collect();
    segments.extend([
        (CLIENT, 283_000, Flags::SYN),
        (SERVER, 283_090, SYN_ACK),
        (CLIENT, 283_095, Flags::ACK),
    ]);
    let anew = report(&segments);
    assert_eq!((anew.setups, anew.elapsed), (2, Duration::from_millis(18_095)), "{anew:#?}");
    let doubled = [0, 1_000, 3_000, 15_000].map(|at| (CLIENT, at, Flags::SYN));
    assert_eq!(report(&doubled).elapsed, Duration::from_secs(15));
}

/// A server on the capture's host answers within 50 us, and then no more (frames 212 to 224 of
/// one): its host accepted no SYN, for all had arrived there. If other connections show it to be
/// far away, it is unknown where they were dropped.
#[test]
fn syns_that_reach_their_server_s_host_are_its_host_s_to_answer() {
    for (server_us, whose) in [(50, Side::Server), (9_000, Side::Path)] {
        let mut analysis = Analysis::new(Options { listing: Listing::UpTo(10), ..Options::default() });
        let said = [
            (40_000, 0, Flags::SYN),
            (0, server_us, Flags::SYN | Flags::ACK),
            (40_000, server_us + 1_100, Flags::ACK),
            (40_001, 2_000_000, Flags::SYN),
            (40_001, 5_000_000, Flags::SYN),
        ];
        for (n, &(port, at_us, flags)) in said.iter().enumerate() {
            let client = Endpoint::v4([10, 0, 0, 1], if port == 0 { 40_000 } else { port });
            let ends = if port == 0 { [SERVER, client] } else { [client, SERVER] };
            analysis.on_segment(&bare(n, at_us, ends, u32::from(flags == Flags::ACK), flags));
        }
        let report = analysis.finish();
        let lost =
            report.bill.iter().find(|line| line.cause == Cause::SynRetransmit).expect("a wait for SYNs");
        assert_eq!((lost.side, lost.ns), (whose, Duration::from_secs(3)), "{report:#?}");
    }
}

/// A controller asks the host of the capture, which answers neither of its SYNs, while that host's own connection to it is under way
/// (packets 1 to 31 of a laboratory's capture): all had arrived there. If the answers from the controller were as near, the capture may have
/// been taken anywhere between.
#[test]
fn syns_that_reach_a_host_which_connects_the_other_way_itself_are_its_host_s_to_answer() {
    for (taken_us, whose) in [(20, Side::Server), (700, Side::Path)] {
        let mut analysis = Analysis::new(Options { listing: Listing::UpTo(10), ..Options::default() });
        let here = |port| Endpoint { port, ..SERVER };
        let there = |port| Endpoint { port, ..CLIENT };
        let said = [
            (there(40_000), here(102), 0, Flags::SYN),
            (here(41_000), there(102), 2_000_000, Flags::SYN),
            (there(102), here(41_000), 2_000_700, Flags::SYN | Flags::ACK),
            (here(41_000), there(102), 2_000_700 + taken_us, Flags::ACK),
            (there(40_000), here(102), 5_998_000, Flags::SYN),
        ];
        for (n, &(src, dst, at_us, flags)) in said.iter().enumerate() {
            analysis.on_segment(&bare(n, at_us, [src, dst], u32::from(flags == Flags::ACK), flags));
        }
        let report = analysis.finish();
        let lost =
            report.bill.iter().find(|line| line.cause == Cause::SynRetransmit).expect("a wait for SYNs");
        assert_eq!((lost.side, lost.ns), (whose, Duration::from_millis(5_998)), "{report:#?}");
    }
}

/// A scan sends one SYN and never accepts the answer, which its target repeats for half a minute:
/// nobody waits for that.
#[test]
fn a_syn_that_is_not_repeated_waits_for_nothing() {
    let repeats = "@1008 S syn\n @3024 S syn\n @7216 S syn\n @15408 S syn\n @31536 S syn";
    log(format!("@0 C syn\n +0 S syn\n {repeats}")).rtt(ms(0.1)).both_ends(|seen| {
        assert!(seen.report.elapsed <= ms(1), "{}: {seen}", seen.report.elapsed);
    });
}

/// Half-open connections of a flood, 5.6 ms away (frames 1806, 1807 and 2186 of one): the first of
/// two answers had passed, and none was accepted.
#[test]
fn who_takes_neither_of_two_answers_waits_for_none() {
    log("@0 C syn\n +0 S syn\n @1065 S syn").rtt(ms(5.6)).both_ends(|seen| {
        assert!(seen.report.bill.is_empty(), "{seen}");
    });
    // A client whose first answer was lost accepts the next one.
    log("@0 C syn\n +0 S syn lost\n @1065 S syn\n +0 C ack").rtt(ms(5.6)).both_ends(|seen| {
        assert!(seen.report.elapsed >= ms(1_065), "{seen}");
    });
}

/// A host that accepts no SYN with time stamps from a NAT, and the one without at once (frames 255
/// to 697 of a web server's capture): all had arrived there. Near the client it is unknown where
/// they were dropped.
#[test]
fn syns_that_pass_beside_the_server_were_dropped_by_its_host() {
    let text = "@0 C syn #s\n @1000 C syn\n @3000 C syn #l\n l+0 S syn\n +0 C ack\n +1 C 100\n +0 S ack\n +9 S 100\n +0 C ack";
    for (end, whose) in [(End::Server, Side::Server), (End::Client, Side::Path)] {
        let seen = log(text).rtt(ms(12)).without_timestamps().seen_at(end);
        let lost = seen.setup().ns(Cause::SynRetransmit, whose);
        assert!(lost >= ms(2_980) && lost <= ms(3_020), "{seen}");
    }
}

/// A student-written stack that never sets PSH sends a message and another 4 s later, which its
/// peer acknowledges but does not answer (frames 188 to 217): neither Nagle nor a cork holds
/// anything for so long, and nobody waits.
#[test]
fn words_of_a_stack_that_does_not_push_are_messages_of_their_own() {
    let text = "handshake\n +5 C 4 more\n +0.5 S ack\n +3950 C 7 more\n +0.5 S ack";
    for end in End::BOTH {
        let seen = log(text).rtt(ms(1)).seen_at(end);
        let words = seen.connection().exchanges.iter().filter(|exchange| exchange.kind == Kind::OneWay);
        assert_eq!(words.map(|word| word.elapsed < ms(3)).collect::<Vec<_>>(), [true; 2], "{seen}");
    }
}

/// A server reports its state every second, with 44 encrypted bytes, and its client's host
/// acknowledges them within 50 us (frames 106 to 382 of a session). The capture, near the client,
/// begins in the middle: only these messages show the server's distance. Nagle holds nothing while
/// nothing is in flight, and nobody waits.
#[test]
fn words_by_the_second_do_not_wait_for_each_other() {
    let text = format!(
        "handshake\n{}",
        each([872.4, 1_872.5, 2_872.4, 3_872.5, 4_872.5, 5_872.3], |at| format!("@{at} S 44\n +0.05 C ack"))
    );
    let segments = log(text).rtt(ms(0.2)).capture(End::Client)[3..].to_vec();
    let seen = Seen::of(segments, "the client, midway");
    assert_eq!(seen.count(Kind::OneWay), 6, "{seen}");
    assert!(
        seen.longer(Cause::SenderThink, ms(10)).is_empty() && seen.longer(Cause::Nagle, ms(10)).is_empty(),
        "{seen}"
    );
}

/// A shell echoes keys, and a started program prints its head line at once and then the same 100
/// bytes every second (frames 99 to 238 of a session, `ping`): its user has the first of them, and
/// waits for none.
#[test]
fn a_program_that_repeats_its_line_each_second_is_not_waited_for() {
    for (next, waited) in [(100, false), (52, true)] {
        let keys = "+200 C 36\n +0.6 S 36\n +0 C ack\n".repeat(8);
        let text = format!(
            "handshake\n {keys} +500 C 36\n +0.7 S 36\n +0 C ack\n +4 S 92\n +0 C ack\n +0.2 S 100\n +0 C ack\n +1013 S {next}\n +0 C ack\n +1024 S {next}\n +0 C ack"
        );
        let segments = log(text).rtt(ms(0.1)).capture(End::Client)[3..].to_vec();
        let seen = Seen::of(segments, "the client, midway");
        assert_eq!(seen.spent(Cause::SenderThink, Side::Server) > ms(1_000), waited, "{next}: {seen}");
    }
}

/// Only the client's packets are captured: five SYNs 455 ms apart, as from a program that is
/// refused each time, or that retries itself. A client's own timer leaves open who dropped them.
#[test]
fn syns_that_come_sooner_than_a_timer_may_have_been_refused() {
    for (apart, sure) in [(455, Confidence::Possible), (1_000, Confidence::Likely)] {
        let syns: Vec<_> = (0..5).map(|n| (CLIENT, n * apart, Flags::SYN)).collect();
        let report = report(&syns);
        let line = &report.connections[0].exchanges[0].bill[0];
        let expected = (Cause::SynRetransmit, Duration::from_millis(4 * apart), sure);
        assert_eq!((line.cause, line.ns, line.confidence), expected, "{report:#?}");
    }
}

/// The only SYN-ACK comes after 1,047 ms, and is refused: a client that had not given up would have
/// retransmitted after a second (frames 14 to 71 of a scanner's capture).
#[test]
fn who_does_not_ask_again_and_takes_no_late_answer_waits_for_none() {
    for (late, billed) in [(1_047, 0), (200, 1)] {
        let report = report(&[
            (CLIENT, 0, Flags::SYN),
            (SERVER, late, Flags::SYN | Flags::ACK),
            (CLIENT, late, Flags::RST),
        ]);
        assert_eq!(report.bill.len(), billed, "{report:#?}");
    }
}

/// The second SYN is answered, and the client never accepts the answer, which its server
/// retransmits 2 s later (frames 4716 to 5500 of a phone's capture).
#[test]
fn who_never_takes_a_syn_ack_does_not_wait_for_its_copy() {
    let report = report(&[
        (CLIENT, 0, Flags::SYN),
        (CLIENT, 1_001, Flags::SYN),
        (SERVER, 2_067, Flags::SYN | Flags::ACK),
        (SERVER, 4_056, Flags::SYN | Flags::ACK),
    ]);
    let ns: Duration = report.bill.iter().map(|line| line.ns).sum();
    assert_eq!(ns, Duration::from_millis(2_067), "{report:#?}");
}

/// A SYN is answered at once, and comes again after a second, seen at a resolver (frames 3190 to 8766): the client had no answer.
/// Another client begins anew sooner than its timer.
#[test]
fn who_asks_again_has_not_had_the_answer() {
    for (again, waited) in [(1_000, 1_000), (300, 0)] {
        let report = report(&[
            (CLIENT, 0, Flags::SYN),
            (SERVER, 0, Flags::SYN | Flags::ACK),
            (CLIENT, again, Flags::SYN),
            (SERVER, again, Flags::SYN | Flags::ACK),
        ]);
        let lost = report.bill.iter().find(|line| line.cause == Cause::SynRetransmit);
        assert_eq!(lost.map_or(Duration::ZERO, |line| line.ns), Duration::from_millis(waited), "{report:#?}");
    }
}

/// A SYN comes again after five seconds with the identification that it had (frames 7472 and 8135 of a flood, each address of which sends
/// one or two): a host's timer would have sent it under another one.
#[test]
fn a_syn_that_comes_again_as_it_was_is_no_certain_copy() {
    for (ids, sure) in
        [([7, 7], Confidence::Possible), ([7, 8], Confidence::Likely), ([0, 0], Confidence::Likely)]
    {
        let mut analysis = Analysis::new(Options { listing: Listing::UpTo(10), ..Options::default() });
        for (n, id) in ids.into_iter().enumerate() {
            let syn = bare(n, n as i64 * 5_452_000, [CLIENT, SERVER], 0, Flags::SYN);
            analysis.on_segment(&Segment { ip_id: Some(id), ..syn });
        }
        let report = analysis.finish();
        let bill = &report.connections[0].exchanges[0].bill;
        assert_eq!(bill[0].confidence, sure, "{bill:#?}");
    }
}

fn total(ns: Duration) -> TotalLine {
    TotalLine { cause: Cause::SynRetransmit, side: Side::Path, ns, possible: Duration::ZERO, hits: 1 }
}
