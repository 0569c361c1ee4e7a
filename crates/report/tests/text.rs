//! What does a user read at a terminal?

mod common;

use common::{SERVER, capture, finding, of, stall, with_limits};
use tcpwhy_core::Form;
use tcpwhy_core::report::{Confidence, Detail, Finding, Report, Servers, SlowHits};
use tcpwhy_core::{Cause, Side};
use tcpwhy_report::{Style, answer, text};
use tcpwhy_wire::Duration;

const AGAIN: &str = "tcpwhy read client.pcapng";

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn the_first_line_is_the_answer_and_names_who_does_what_to_whom() {
    assert_eq!(
        answer(&stall()),
        "38 of 40 exchanges wait 43.8 ms for the server's delayed acknowledgement: the client writes each request \
         in pieces; the other 2 take 120 µs on average (client 10.0.0.1 -> server 10.0.0.2:8080)."
    );
    let shown = text::overview(&stall(), &[capture("client.pcapng")], AGAIN, Style::default());
    assert!(shown.starts_with("38 of 40 exchanges wait 43.8 ms for the server's delayed"), "{shown}");
}

#[test]
fn a_stall_in_the_servers_reply_blames_the_server() {
    let report = of(vec![finding(Cause::NagleDelayedAck, Side::Server, ms(44), 10, 10)]);
    assert_eq!(
        answer(&report),
        "All 10 exchanges wait 44.0 ms for the client's delayed acknowledgement: the server writes each reply in \
         pieces (server 10.0.0.2:8080)."
    );
}

/// One exchange of its server, and the only one of all.
#[test]
fn what_one_server_has_once_is_the_only_one_only_if_no_other_has_more() {
    let mut report = of(vec![finding(Cause::NagleDelayedAck, Side::Server, ms(44), 1, 1)]);
    for (exchanges, subject) in [(1, "The only exchange waits 44.0 ms"), (3, "One exchange waits 44.0 ms")] {
        report.exchanges = exchanges;
        let shown = text::overview(&report, &[capture("client.pcapng")], AGAIN, Style::default());
        assert!(
            answer(&report).starts_with(subject)
                && shown.contains(&format!("on {}", &subject.to_lowercase()[..8])),
            "{shown}"
        );
    }
}

#[test]
fn exchanges_that_take_as_long_without_the_wait_are_no_contrast() {
    let mut held = finding(Cause::Cork, Side::Server, ms(207), 13, 16);
    let said = |held: &Finding| answer(&of(vec![held.clone()]));
    for (without, contrast) in [(209, false), (190, false), (20, true), (400, false)] {
        held.without = Some(ms(without));
        assert_eq!(said(&held).contains("; the other 3 take "), contrast, "{without}: {}", said(&held));
    }
    // Of an exchange without anything to bill, there is nothing to say.
    let held = Finding { without: Some(Duration::ZERO), ..finding(Cause::Cork, Side::Server, ms(207), 4, 5) };
    assert!(!said(&held).contains("the other"), "{}", said(&held));
}

#[test]
fn what_many_servers_share_is_said_of_them_together() {
    let shared = |cause, side| {
        let several = Servers::Several(40);
        of(vec![Finding { servers: several, ..finding(cause, side, ms(44), 40, 40) }])
    };
    let shown =
        |report: &Report| text::overview(report, &[capture("client.pcapng")], AGAIN, Style::default());
    let held = shared(Cause::NagleDelayedAck, Side::Client);
    assert!(
        answer(&held).ends_with("the client writes each request in pieces (40 servers)."),
        "{}",
        answer(&held)
    );
    assert!(shown(&held).contains("1. nagle-delayed-ack, client of 40 servers\n"), "{}", shown(&held));
    let slow = shared(Cause::ServerThink, Side::Server);
    assert!(shown(&slow).contains("1. server-think, 40 servers\n"), "{}", shown(&slow));
}

#[test]
fn a_slow_server_is_not_billed_to_tcp() {
    let report = of(vec![
        finding(Cause::ServerThink, Side::Server, Duration::from_micros(40_200), 20, 20),
        finding(Cause::RoundTrip, Side::Client, Duration::from_micros(100), 20, 20),
    ]);
    assert_eq!(
        answer(&report),
        "Nothing in TCP is slow here: the server takes 40.2 ms to answer, in all 20 exchanges (server 10.0.0.2:8080)."
    );
    let shown = text::overview(&report, &[capture("a.pcap")], AGAIN, Style::default());
    assert!(shown.contains("Profile the server"), "{shown}");
    for knob in ["TCP_NODELAY", "SO_RCVBUF", "TCP_QUICKACK"] {
        assert!(!shown.contains(knob), "{knob} in\n{shown}");
    }
}

#[test]
fn a_slow_server_with_a_stall_beside_it_gets_both_the_larger_first() {
    let report = of(vec![
        finding(Cause::ServerThink, Side::Server, ms(500), 20, 20),
        finding(Cause::NagleDelayedAck, Side::Client, ms(44), 20, 20),
    ]);
    let answer = answer(&report);
    let (first, second) = answer.split_once(". ").unwrap_or_default();
    assert!(
        first.starts_with("Most of the time (91.9 %) is not TCP: the server takes 500 ms to answer"),
        "{answer}"
    );
    assert!(second.starts_with("TCP adds to it: all 20 exchanges wait 44.0 ms"), "{answer}");
    assert_eq!(answer.matches("10.0.0.2:8080").count(), 1, "the place is said once: {answer}");
}

#[test]
fn a_trace_of_a_mechanism_does_not_make_it_the_answer() {
    let report = of(vec![
        finding(Cause::Bandwidth, Side::Server, ms(900), 1, 1),
        finding(Cause::SlowStart, Side::Server, ms(20), 1, 1),
    ]);
    assert!(answer(&report).starts_with("Nothing in TCP is slow here: transmitting the data takes 900 ms"));
}

#[test]
fn one_rare_timeout_that_takes_a_fifth_of_the_time_is_the_answer() {
    let report = of(vec![
        finding(Cause::RoundTrip, Side::Client, ms(1), 1_000, 1_000),
        finding(Cause::Rto, Side::Client, ms(248), 1, 1_000),
    ]);
    assert_eq!(
        answer(&report),
        "1 of 1,000 exchanges waits 248 ms for a retransmission timeout after a loss (server 10.0.0.2:8080). Most of \
         the time (80.1 %) is the network path: the path's round trip takes 1.00 ms of each of 1,000 exchanges."
    );
}

#[test]
fn the_slow_ones_are_told_apart_where_the_median_hides_them() {
    let mut tail = finding(Cause::ServerThink, Side::Server, ms(1), 200, 200);
    (tail.ns, tail.p50, tail.p99, tail.max) = (ms(20 * 211 + 180), ms(1), ms(211), ms(212));
    tail.slow = Some(SlowHits { hits: 20, p50: ms(211), rest_p50: Duration::from_micros(1_200) });
    assert_eq!(
        answer(&of(vec![tail.clone()])),
        "Nothing in TCP is slow here: the server takes 211 ms to answer, in 20 of 200 exchanges; 1.20 ms for \
         the other 180 (server 10.0.0.2:8080)."
    );
    tail.max = ms(3_000);
    assert!(
        answer(&of(vec![tail]))
            .starts_with("The server takes up to 3.00 s to answer, in 20 of 200 exchanges;")
    );
}

#[test]
fn the_sentence_says_how_certain_it_is_and_what_is_only_possible_does_not_lead() {
    let with =
        |confidence, cause, each| Finding { confidence, ..finding(cause, Side::Server, ms(each), 20, 20) };
    let likely = answer(&of(vec![with(Confidence::Likely, Cause::Cork, 200)]));
    assert!(likely.starts_with("All 20 exchanges probably wait 200 ms for the cork's timer"), "{likely}");
    let alone = answer(&of(vec![with(Confidence::Possible, Cause::Cork, 200)]));
    assert!(
        alone.starts_with("Most of the time (100.0 %) has more than one possible explanation: all 20"),
        "{alone}"
    );
    assert!(alone.contains("exchanges possibly wait 200 ms"), "{alone}");
    let both = answer(&of(vec![
        with(Confidence::Possible, Cause::Cork, 200),
        with(Confidence::Certain, Cause::Rto, 100),
    ]));
    assert!(both.starts_with("All 20 exchanges wait 100 ms for a retransmission timeout"), "{both}");
    assert!(
        both.contains("Most of the time (66.7 %) has more than one possible explanation: all 20"),
        "{both}"
    );
    // A tenth that is known does not hide nine tenths that are not.
    let mostly = answer(&of(vec![
        with(Confidence::Possible, Cause::SendBuffer, 900),
        with(Confidence::Likely, Cause::SlowStart, 100),
    ]));
    assert!(
        mostly.starts_with("Most of the time (90.0 %) has more than one possible explanation: all 20")
            && mostly.contains(". In addition, all 20 exchanges probably wait 100 ms while"),
        "{mostly}"
    );
    let small = answer(&of(vec![
        with(Confidence::Certain, Cause::ServerThink, 900),
        with(Confidence::Possible, Cause::Cork, 100),
    ]));
    assert!(
        small.contains("is not TCP: the server takes 900 ms") && small.contains("TCP may add"),
        "{small}"
    );
}

/// Whoever only looks at the table must not take for known what is not.
#[test]
fn the_table_and_the_fixes_say_what_is_only_possible() {
    let cork =
        Finding { confidence: Confidence::Possible, ..finding(Cause::Cork, Side::Server, ms(200), 20, 20) };
    let rto = finding(Cause::Rto, Side::Server, ms(100), 20, 20);
    let shown =
        |report: &Report| text::overview(report, &[capture("client.pcapng")], AGAIN, Style::default());
    let both = shown(&of(vec![cork, rto.clone()]));
    let line =
        |cause: &str| both.lines().find(|line| line.trim_start().starts_with(cause)).map(str::to_owned);
    assert!(both.contains("share  possible  times"), "{both}");
    assert!(
        line("cork ").is_some_and(|line| line.contains("66.7 %    4.00 s ") && line.ends_with("░░░")),
        "{both}"
    );
    assert!(line("rto ").is_some_and(|line| line.ends_with("█▎") && !line.contains("░")), "{both}");
    assert!(both.contains("\n   if so     ") && both.contains("\n   fix       Find where"), "{both}");
    assert!(!shown(&of(vec![rto])).contains("possible"), "nothing is only possible");
}

#[test]
fn what_takes_a_hundredth_is_told_and_gets_no_advice() {
    let report = of(vec![
        finding(Cause::Nagle, Side::Client, ms(978), 20, 20),
        finding(Cause::SlowStart, Side::Server, ms(22), 20, 20),
    ]);
    let shown = text::overview(&report, &[capture("a.pcap")], AGAIN, Style::default());
    let (first, second) = shown.split_once("2. slow-start").unwrap_or_default();
    assert!(first.contains("   fix ") && second.contains("   cost "), "{shown}");
    assert!(!second.contains("   fix "), "{shown}");
}

#[test]
fn an_empty_capture_and_one_without_tcp_are_told_apart() {
    assert_eq!(answer(&Report::default()), "No TCP in this capture.");
    let acks = Report { segments: 7, ..Report::default() };
    assert!(answer(&acks).starts_with("Nothing to analyse: 7 TCP segments"));
}

#[test]
fn the_stall_fits_a_screen() {
    let shown = text::overview(
        &stall(),
        &[capture("client.pcapng")],
        AGAIN,
        Style { ascii: true, ..Style::default() },
    );
    let expected = include_str!("golden/stall.txt");
    assert_eq!(shown, expected, "the overview changed; new text:\n{shown}");
    assert!(shown.lines().count() <= 50);
}

#[test]
fn the_ladder_shows_the_wait_between_the_two_writes() {
    let style = Style { ascii: true, ..Style::default() };
    let Some(shown) = text::ladder(&stall(), &[], 1, Some(3), style) else { panic!("exchange 3 is listed") };
    assert_eq!(shown, include_str!("golden/ladder.txt"), "the ladder changed; new text:\n{shown}");
    assert_eq!(text::ladder(&stall(), &[], 1, Some(99), style), None);
    assert_eq!(text::ladder(&stall(), &[], 2, None, style), None);
}

#[test]
fn exchanges_that_no_list_has_are_counted() {
    let mut report = stall();
    report.connections[0].billed += 19_801;
    let shown = text::connection(&report, &[], 1, Some(3), Style::default()).unwrap_or_default();
    assert!(shown.contains("... and 38 faster ones"), "{shown}");
    assert!(shown.contains("... and 19,801 only in the bill"), "{shown}");
}

#[test]
fn a_connection_is_a_table_of_its_exchanges() {
    let Some(shown) = text::connection(&stall(), &[], 1, None, Style::default()) else {
        panic!("connection 1 is listed")
    };
    assert!(shown.starts_with("Connection 1: 10.0.0.1:40000 -> 10.0.0.2:8080\n"), "{shown}");
    assert!(shown.contains("captured at the client"), "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains(" exchange ")).count(), 40, "{shown}");
    assert_eq!(text::connection(&stall(), &[], 7, None, Style::default()), None);
}

#[test]
fn every_cause_side_and_form_has_a_sentence_within_the_width() {
    let forms = [None].into_iter().chain(Form::ALL.map(Some));
    for cause in Cause::ALL {
        for sender in [Side::Client, Side::Server] {
            for form in forms.clone() {
                for (hits, of_all) in [(1, 1), (1, 40), (39, 40), (40, 40)] {
                    let mut one = finding(cause, sender, ms(123), hits, of_all);
                    one.detail = Detail {
                        held_bytes: Some(100),
                        ack_delay: Some(ms(40)),
                        window_bytes: Some(64_240),
                        flight_bytes: Some(14_480),
                        waits: Some(3),
                        retransmits: Some(1),
                        timer: Some(ms(200)),
                        rate_bps: Some(100_000_000),
                        round: Some(ms(40)),
                        form,
                    };
                    let report = of(vec![one]);
                    let answer = answer(&report);
                    assert!(answer.ends_with('.') && !answer.contains('{'), "{answer}");
                    assert!(answer.contains("123 ms"), "{answer}");
                    for style in [Style::default(), Style { ascii: true, ..Style::default() }] {
                        let shown = text::overview(&report, &[capture("a.pcap")], AGAIN, style);
                        fits(&shown);
                        assert!(!style.ascii || shown.is_ascii(), "{shown}");
                    }
                }
            }
        }
    }
}

#[test]
fn limits_are_told_and_nothing_from_a_capture_or_a_name_acts_on_the_terminal() {
    let mut file = capture("evil\x1b[2J\u{202e}.pcap");
    file.truncated = true;
    file.skipped.insert("not TCP \x07".to_owned(), 2);
    let report = with_limits(stall());
    let shown = text::overview(&report, &[file], AGAIN, Style::default());
    assert!(shown.contains("the capture dropped packets"), "{shown}");
    assert!(shown.contains("only one direction was captured"), "{shown}");
    assert!(shown.contains("2 packets skipped: not TCP \\u{7}"), "{shown}");
    assert!(shown.contains("2 connections and 5,000 exchanges are in the bill but not listed"), "{shown}");
    let mut exchanges = report.clone();
    exchanges.omitted.connections = 0;
    let few = text::overview(&exchanges, &[], AGAIN, Style::default());
    assert!(few.contains("note: 5,000 exchanges are in the bill but not listed"), "{few}");
    assert!(shown.contains("evil\\u{1b}[2J\\u{202e}.pcap ends in the middle of a packet"), "{shown}");
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
    fits(&shown);
}

#[test]
fn colour_only_where_it_was_asked_for() {
    let plain = text::overview(&stall(), &[capture("a.pcap")], AGAIN, Style::default());
    let color =
        text::overview(&stall(), &[capture("a.pcap")], AGAIN, Style { color: true, ..Style::default() });
    assert!(!plain.contains('\x1b') && color.contains('\x1b'));
    assert!(plain.contains(&SERVER.to_string()));
}

fn fits(shown: &str) {
    for line in shown.lines() {
        assert!(line.chars().count() <= 100, "{} columns: {line}", line.chars().count());
    }
}
