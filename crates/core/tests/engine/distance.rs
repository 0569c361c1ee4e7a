//! How far away is an end? What shows it, what only bounds it, and what of a wait is the path's although no packet shows it.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::report::Exchange;
use tcpwhy_wire::{Duration, Endpoint, Instant, Segment};

use crate::packet_log::{CLIENT, End, PacketLog, SERVER, each, log, ms, settled};
use crate::seen::Seen;

fn of(exchange: &Exchange, cause: Cause) -> Duration {
    exchange.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum()
}

fn sure_of(exchange: &Exchange, cause: Cause) -> Confidence {
    let lines = exchange.bill.iter().filter(|line| line.cause == cause);
    lines.map(|line| line.confidence).max().unwrap_or(Possible)
}

/// The last exchanges of a long conversation, with these TTLs in both hosts' packets.
fn midway(talk: &PacketLog, end: End, ttl: [u8; 2]) -> Vec<Segment> {
    let mut segments = talk.capture(end).split_off(20);
    for segment in &mut segments {
        segment.ttl = ttl[usize::from(segment.src == SERVER || segment.src.port == SERVER.port)];
    }
    segments
}

/// A server of 30 ms whose every reply acknowledges the request, as it does within 40 ms.
fn thirty() -> PacketLog {
    log("handshake".to_owned() + &"\n +50 C 100\n +30 S 200\n +0 C ack".repeat(30))
}

/// No packet shows how far away the server is; but both have one address.
#[test]
fn one_host_is_no_path_of_30_ms() {
    let here = Endpoint::v4([127, 0, 0, 1], 40_000);
    let one_host = thirty().between([here, Endpoint { port: 80, ..here }]);
    for log in [one_host.clone(), one_host.without_timestamps()] {
        let seen = Seen::of(midway(&log, End::Client, [64; 2]), "one host, midway");
        for exchange in &seen.connection().exchanges {
            assert!(of(exchange, Cause::ServerThink) >= ms(29), "{seen}");
            assert_eq!(sure_of(exchange, Cause::ServerThink), Likely, "{seen}");
        }
    }
}

/// Nor here; but the server's packets have passed no router and the client's have: the capture is near the server.
#[test]
fn a_capture_beside_the_server_needs_no_acknowledgement_to_know_that() {
    let talk = thirty().rtt(ms(40));
    let beside = Seen::of(midway(&talk, End::Server, [51, 64]), "the server, midway");
    for exchange in &beside.connection().exchanges {
        assert!(of(exchange, Cause::ServerThink) >= ms(28), "{beside}");
    }
    // Near the client, the time of the server's replies may be the path's or the program's.
    let far = Seen::of(midway(&talk, End::Client, [64, 51]), "the client, midway");
    for exchange in &far.connection().exchanges {
        assert_eq!(sure_of(exchange, Cause::RoundTrip), Possible, "{far}");
    }
}

/// The client's ACKs ride on its next poll, 90 ms later: nobody waited, and no exchange took longer for it.
#[test]
fn the_pause_before_the_next_poll_is_no_way_back() {
    let polls = log("handshake".to_owned() + &"\n +90 C 100\n +30 S 200".repeat(30)).rtt(ms(2));
    for timestamps in [true, false] {
        let polls = if timestamps { polls.clone() } else { polls.clone().without_timestamps() };
        for end in End::BOTH {
            let seen = Seen::of(midway(&polls, end, [64; 2]), &format!("the {end:?}, midway"));
            for exchange in &seen.connection().exchanges {
                assert!(exchange.elapsed <= ms(33), "{seen}");
            }
        }
    }
}

/// The client's third packet is missing from the capture, and its polls are the first to acknowledge the server's data: the
/// pause before them is no RTT, and nobody waited for it. If captured, the packet shows the RTT.
#[test]
fn a_poll_in_the_place_of_the_third_packet_is_no_way_back() {
    for (third, timestamps) in [("unseen", true), ("unseen", false), ("", true), ("", false)] {
        let text = format!("@0 C syn\n +0 S syn\n +0 C ack {third}") + &"\n +161 C 100\n +5 S 200".repeat(6);
        let polls = log(text).rtt(ms(20));
        let polls = if timestamps { polls } else { polls.without_timestamps() };
        for end in End::BOTH {
            let seen = polls.seen_at(end);
            let setup = if end == End::Server && !third.is_empty() { ms(0) } else { ms(20) };
            assert_eq!(seen.setup().exchange.elapsed, setup, "{third}: {seen}");
            for n in 1..=6 {
                assert!(seen.exchange(n).exchange.elapsed <= ms(26), "{third}: {seen}");
                let server = seen.exchange(n).ns(Cause::ServerThink, Server);
                assert!(server >= ms(4.9) && server <= ms(5.1), "{third}: {seen}");
            }
        }
    }
}

/// The third packet is missing, and the client delays each ACK by 161 ms: longer than a prompt one. A bare ACK shows it.
#[test]
fn a_held_back_acknowledgement_in_the_place_of_the_third_packet_is_likely_at_most() {
    let held = "@0 C syn\n +0 S syn\n +0 C ack unseen\n +161 S 50\n +161 C ack\n".to_owned()
        + &"+700 C 100\n +5 S 200\n +161 C ack\n".repeat(6);
    for timestamps in [true, false] {
        let held = if timestamps { log(held.clone()) } else { log(held.clone()).without_timestamps() };
        let seen = held.rtt(ms(2)).seen_at(End::Server);
        for exchange in &seen.connection().exchanges {
            let path = [Cause::RoundTrip, Cause::Handshake]
                .map(|cause| (of(exchange, cause), sure_of(exchange, cause)));
            assert!(path.iter().all(|(ns, sure)| *ns <= ms(3) || *sure <= Likely), "{seen}");
        }
    }
}

/// Only timed ACKs of the client: 40 ms, or an RTT of 40 ms; or 51.5 ms, as Windows takes (frames 145 to 148 of one).
#[test]
fn a_way_as_long_as_a_timer_is_no_more_than_possible() {
    for timer in [40.0, 51.5] {
        let turn = format!("\n +150 C 100\n +40 S ack\n +80 S 200\n +{timer} C ack");
        let talk = log("handshake".to_owned() + &turn.repeat(30));
        let seen = Seen::of(midway(&talk.rtt(ms(0.2)), End::Client, [64; 2]), "the client, midway");
        for exchange in seen.connection().exchanges.iter().skip(1) {
            assert!(exchange.elapsed <= ms(121), "{seen}");
            assert_eq!(sure_of(exchange, Cause::RoundTrip), Possible, "{seen}");
            assert!(of(exchange, Cause::ServerThink) >= ms(79), "{seen}");
        }
    }
}

/// Another connection between the two hosts has a handshake, which shows the RTT.
#[test]
fn what_a_sibling_knows_of_the_way_holds() {
    let sibling = thirty().rtt(ms(2)).between([Endpoint { port: 40_001, ..CLIENT }, SERVER]);
    let mut segments = midway(&thirty().rtt(ms(2)), End::Client, [64; 2]);
    let early = Duration::from_millis(200);
    let first = segments[0].at;
    segments.extend(sibling.capture(End::Client).into_iter().take(3).map(|segment| Segment {
        at: first - early + (segment.at - sibling.capture(End::Client)[0].at),
        ..segment
    }));
    segments.sort_by_key(|segment| segment.at);
    let seen = Seen::of(segments, "the client, beside a handshake");
    let longest = seen.report.connections.iter().max_by_key(|connection| connection.packets).expect("two");
    for exchange in &longest.exchanges {
        assert!(of(exchange, Cause::ServerThink) >= ms(29), "{seen}");
    }
}

/// Two streams of small messages cross, without time stamps, 48 ms apart: one 0.1 ms after the peer's answers an earlier one
/// (frames 2559 to 2645 of a remote desktop). A handshake between the same hosts shows the RTT.
#[test]
fn what_crosses_is_no_round_trip() {
    let crossing = each(1..=20, |n| format!("@{} C 83\n @{}.1 S 14", 130 + 30 * n, 106 + 30 * n));
    let text = format!(
        "handshake\n +5 C 100\n +1 S 200\n +0 C ack\n {crossing}\n @1000 C 90 #q\n q+30 S 200\n +0 C ack"
    );
    let talk = log(text).rtt(ms(48)).without_timestamps().capture(End::Client).split_off(9);
    let sibling = log("handshake\n +5 C 100\n +20 S 200\n +0 C ack").rtt(ms(48)).without_timestamps();
    let sibling = sibling.between([Endpoint { port: 40_001, ..CLIENT }, SERVER]).capture(End::Client);
    for late in [-150, 250] {
        let mut segments = talk.clone();
        let late = Duration::from_millis(late);
        segments.extend(sibling.iter().map(|segment| Segment { at: segment.at + late, ..*segment }));
        segments.sort_by_key(|segment| segment.at);
        let seen = Seen::of(segments, "the client, beside a handshake");
        let crossed = seen.report.connections.iter().find(|connection| connection.assumed).expect("a talk");
        let last = crossed.exchanges.last().expect("an answer");
        assert!(of(last, Cause::RoundTrip) >= ms(47) && of(last, Cause::ServerThink) <= ms(31), "{seen}");
    }
}

/// A host that thinks acknowledges when its timer runs out. This one is known to, after 40 ms.
fn shown_timer() -> String {
    settled(4) + &"+5 C 100\n +40 S ack\n +20 S 200\n +0 C ack\n".repeat(3)
}

/// A reply 150 ms late, with no acknowledgement before it: the request had been on the path.
#[test]
fn a_reply_that_comes_unacknowledged_was_not_thought_about() {
    let text = shown_timer() + "+5 C 100 late=150\n +1 S 200\n +0 C ack";
    for timestamps in [true, false] {
        let log = log(text.clone()).rtt(ms(20));
        let log = if timestamps { log } else { log.without_timestamps() };
        let seen = log.seen_at(End::Client);
        let bill = seen.exchange(8);
        assert!(bill.ns(Cause::Queueing, Path) >= ms(85), "{seen}");
        assert!(bill.ns(Cause::ServerThink, Server) <= ms(66), "{seen}");
    }
    let seen = log(text).rtt(ms(20)).seen_at(End::Server);
    assert!(seen.exchange(8).ns(Cause::Queueing, Path) >= ms(148), "{seen}");
}

/// The same server takes 150 ms, as its timed ACK shows; or its program is quicker than its timer.
#[test]
fn a_server_that_acknowledged_first_was_thinking() {
    let text =
        shown_timer() + "+5 C 100\n +40 S ack\n +110 S 200\n +0 C ack\n +5 C 100\n +35 S 200\n +0 C ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        seen.exchange(8).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(150))]);
        seen.exchange(9).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(35))]);
    });
}

/// An upload at 10 Mbit/s keeps a queue of 60 ms, 50 packets, filled while small requests use another connection.
fn beside_an_upload(requests: &str) -> [PacketLog; 2] {
    let upload = each(0..700, |n| {
        let at = 100.0 + 1.2 * f64::from(n);
        // For the first numbers: a packet enters every 1.2 ms and leaves 60 ms later, once the queue stands.
        let late = (0.6 * f64::from(n)).min(60.0);
        format!("@{at} C 1448x2 more late={late}\n +0 S ack")
    });
    let upload = log(format!("handshake\n{upload}")).rtt(ms(20));
    let other = [Endpoint { port: 40_001, ..CLIENT }, SERVER];
    [upload, log(requests.to_owned()).rtt(ms(20)).between(other)]
}

pub(crate) fn merged(logs: &[PacketLog; 2], end: End) -> Seen {
    let mut segments: Vec<Segment> = logs.iter().flat_map(|log| log.capture(end)).collect();
    segments.sort_by_key(|segment| segment.at); // stable
    Seen::of(segments, &format!("the {end:?}, both connections"))
}

/// The queue that the upload's acknowledgements show delays the requests as well.
#[test]
fn a_queue_that_another_connection_fills_delays_requests_and_not_the_server() {
    let requests = each(0..5, |n| format!("@{} C 100 late=60\n +2 S 200\n +0 C ack", 260 + 110 * n));
    let logs = beside_an_upload(&format!("handshake\n +5 C 100\n +2 S 200\n +0 C ack\n {requests}"));
    for end in End::BOTH {
        let seen = merged(&logs, end);
        let asking = &seen.report.connections[1];
        for exchange in asking.exchanges.iter().skip(3) {
            assert!(of(exchange, Cause::Queueing) >= ms(55), "{seen}");
            assert!(of(exchange, Cause::ServerThink) <= ms(7), "{seen}");
        }
    }
}

/// With the same upload, requests on another path are answered at once, and one that is acknowledged is thought about.
#[test]
fn a_server_that_thinks_beside_an_upload_thinks() {
    let requests = each(0..5, |n| {
        format!(
            "@{} C 100 late=60\n +40 S ack\n +60 S 200\n +0 C ack\n +5 C 100\n +2 S 200\n +0 C ack",
            260 + 200 * n
        )
    });
    let logs = beside_an_upload(&format!("handshake\n +5 C 100\n +2 S 200\n +0 C ack\n {requests}"));
    let seen = merged(&logs, End::Client);
    for exchange in seen.report.connections[1].exchanges.iter().filter(|exchange| exchange.elapsed > ms(60)) {
        assert!(of(exchange, Cause::ServerThink) >= ms(99), "{seen}");
    }
    for exchange in seen.report.connections[1].exchanges.iter().filter(|exchange| exchange.elapsed < ms(60)) {
        assert!(of(exchange, Cause::Queueing) < ms(1), "{seen}");
    }
}

/// A virtual machine's user network opens a connection once its own is open, after 23 ms, acknowledges after 3 and answers
/// after 38 (frames 168 to 173 of one): no router has touched packets from a public address to a private one, so a host must
/// be in between, with the rest of the path beyond it.
#[test]
fn a_host_that_must_be_in_between_hides_a_way() {
    let private = Endpoint::v4([10, 0, 2, 15], 50_156);
    let server = Endpoint::v4([116, 203, 91, 91], 80);
    for (client, hidden) in [(private, true), (Endpoint::v4([116, 203, 91, 7], 50_156), false)] {
        let text = "@0 C syn\n +20 S syn\n +0 C ack\n +1 C 98 #q\n q+0 S ack\n q+35 S 219\n +0 C ack";
        let seen = log(text).rtt(ms(3)).between([client, server]).seen_at(End::Client);
        let way = seen.spent(Cause::RoundTrip, Path);
        assert_eq!(way >= ms(20), hidden, "{seen}");
        let sure =
            [Cause::RoundTrip, Cause::ServerThink].map(|cause| sure_of(seen.exchange(1).exchange, cause));
        assert!(sure == [Likely; 2] || !hidden, "{seen}");
    }
}

/// With a NAT that terminates TCP, one reply comes sooner than the handshake took, and a request in pieces is answered soon
/// after the last (frames 37 to 509, and 346 to 580, of virtual machines): the first bounds the RTT, the second does not.
#[test]
fn a_way_behind_a_host_is_as_short_as_its_quickest_answer() {
    let ends = [Endpoint::v4([10, 0, 2, 15], 50_156), Endpoint::v4([116, 203, 91, 91], 80)];
    let ask =
        |waits: f64| format!("+20 C 98 #q{waits}\n q{waits}+0 S ack\n q{waits}+{waits} S 219\n +0 C ack\n");
    for (first, least, most) in
        [(ask(5.1), 5.0, 5.2), ("+20 C 98 #a\n +4 C 98\n a+7.6 S 219\n +0 C ack\n".to_owned(), 7.0, 7.4)]
    {
        let text = format!("@0 C syn\n @7.2 S syn\n +0 C ack\n {} {first} {}", ask(7.6), ask(30.0));
        let seen = log(text).rtt(ms(0.1)).between(ends).seen_at(End::Client);
        let bill = seen.exchange(3);
        let way = bill.of(Cause::RoundTrip);
        assert!((ms(least)..=ms(most)).contains(&way.ns) && way.confidence == Likely, "{seen}");
    }
}

/// A network's box takes over a connection after the SYN-ACK: that came after 19 ms over nine routers; later ACKs and replies
/// come over one, after 2 and 35 ms (frames 308 to 314 of a campus). Over as many routers as before, a handshake nine times
/// as long may have waited for something else; over more, the path has changed.
#[test]
fn who_takes_a_connection_over_comes_over_fewer_hops() {
    let text = "@0 C syn\n @19 S syn\n +0 C ack\n +1 C 517 #q\n q+0 S ack\n q+33 S 1400\n +0 C ack";
    for (ttl, taken_over) in [(63, true), (55, false), (50, false)] {
        let mut segments = log(text).rtt(ms(2.1)).capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| segment.src.port == 80) {
            segment.ttl = if segment.flags.syn() { 55 } else { ttl };
        }
        let seen = Seen::of(segments, "another host's");
        let bill = seen.exchange(1);
        let way = bill.of(Cause::RoundTrip);
        assert_eq!(way.ns >= ms(19), taken_over, "{seen}");
        assert!(way.confidence == Likely || !taken_over, "{seen}");
    }
}

/// A mail server's SYN-ACK takes 221 ms over 24 routers; an ACK 27 ms after the request, with its stamp, comes over nine, and
/// the reply after 216 (frames 13 to 20 of a small site): the path's part of the handshake is unknown.
#[test]
fn the_way_to_who_was_taken_over_from_is_not_certain() {
    let text = "@0 C syn\n @208 S syn\n +0 C ack\n +5 C 36 #q\n q+0 S ack\n q+189 S 177\n +0 C ack\n +1400 C 12\n +200 S 18\n +0 C ack";
    for (ttl, most) in [(119, Likely), (40, Certain)] {
        let mut segments = log(text).rtt(ms(27)).capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| segment.src.port == 80) {
            segment.ttl = if segment.flags.syn() { 40 } else { ttl };
        }
        let stamps = segments[1].options.timestamps.expect("a stamp");
        segments[4].options.timestamps.as_mut().expect("a stamp").val = stamps.val;
        let seen = Seen::of(segments, "a mail client's");
        assert_eq!(seen.setup().of(Cause::Handshake).confidence, most, "{seen}");
    }
}

/// Captured from the middle on, replies without bare ACKs come within 0.2 ms, then one that does not: a request acknowledged
/// after 42 ms, and answered after 80, had arrived (frames 146 to 153 of a core network's database). One that is not
/// acknowledged before its reply may have been on the path.
#[test]
fn an_acknowledgement_by_itself_shows_that_the_question_had_arrived() {
    let calls = each(1..=5, |_| "+5 C 209\n +0.1 S 647".to_owned());
    for (slow, sure) in [("q+42 S ack\n q+80 S 60", Likely), ("q+80 S 60", Possible)] {
        let text = format!("handshake\n {calls}\n +5 C 665 #q\n {slow}\n +5 C 100\n +0.1 S 200");
        for end in End::BOTH {
            let capture = log(text.clone()).rtt(ms(0.06)).capture(end).split_off(3);
            let seen = Seen::of(capture, "midway");
            assert_eq!(sure_of(seen.number(5).exchange, Cause::ServerThink), sure, "{seen}");
        }
    }
}

/// A millisecond clock shows no shorter distance: what is certain near a server is only likely there.
#[test]
fn a_clock_of_milliseconds_shows_nobody_beside_it() {
    let talk = log("handshake".to_owned() + &"\n +5 C 100\n +30 S 200\n +0 C ack".repeat(4)).rtt(ms(0.4));
    for (tick_ns, sure) in [(1, Certain), (1_000_000, Likely)] {
        let mut segments = talk.capture(End::Client);
        for segment in &mut segments {
            segment.at = Instant::from_nanos(segment.at.as_nanos() / tick_ns * tick_ns);
        }
        let seen = Seen::of(segments, "a clock of milliseconds");
        assert_eq!(sure_of(seen.exchange(3).exchange, Cause::ServerThink), sure, "{seen}");
    }
}

/// A virtual machine's user network acknowledges at once, and replies come a server round trip later, as the SYN-ACK had
/// (frames 1 to 19 of a machine behind VirtualBox's NAT).
#[test]
fn who_acknowledges_may_be_nearer_than_who_answers() {
    let turns = "+1 C 246 #q\n +0 S ack\n q+{} S 1440 more\n +0 S 1400\n +0 C ack\n";
    let text = |waits: [u32; 3]| {
        let turns: String = waits.iter().map(|wait| turns.replace("{}", &wait.to_string())).collect();
        format!("@0 C syn\n @195 S syn\n +0 C ack\n {turns}")
    };
    let seen = log(text([222, 196, 191])).rtt(ms(0.4)).seen_at(End::Client);
    for (n, wait, most) in [(1, 222.0, Possible), (2, 196.0, Likely), (3, 191.0, Likely)] {
        let bill = seen.exchange(n);
        let (way, think) =
            (bill.of(Cause::RoundTrip).ns, bill.exchange.elapsed - bill.of(Cause::RoundTrip).ns);
        assert!(way >= ms(190) && think <= ms(wait - 190.0), "{n}: {way}, {think}: {seen}");
        assert_eq!(bill.of(Cause::RoundTrip).confidence, most, "{seen}");
    }
    // A server that takes longer than the RTT, and a handshake that waited for something else.
    let seen = log(text([900, 700, 800])).rtt(ms(0.4)).seen_at(End::Client);
    let think = seen.exchange(2);
    assert!(think.of(Cause::ServerThink).ns >= ms(500), "{seen}");
    assert_eq!(think.of(Cause::ServerThink).confidence, Likely, "{seen}");
    assert_eq!(think.of(Cause::RoundTrip).confidence, Possible, "no answer came as soon: {seen}");
    let seen = log(text([5, 196, 191])).rtt(ms(0.4)).seen_at(End::Client);
    for (n, wait) in [(1, 5), (2, 196), (3, 191)] {
        let bill = seen.exchange(n);
        let line = bill.of(Cause::ServerThink);
        assert!(line.ns >= ms(wait - 1) && line.confidence == Certain, "{n}: {seen}");
    }
}

/// A box on the path acknowledges within 5 ms, and replies come as late as the SYN-ACK did, twice (frames 56 to 91 of a web
/// page in a campus network): that is the RTT. With the same box, a server whose replies never come so soon may take the
/// rest, and so may one whose replies come sooner.
#[test]
fn answers_as_late_as_the_handshake_show_the_way() {
    let text = |waits: [f64; 2]| {
        let [one, two] = waits.map(|wait| format!("+1 C 471 #q\n +0 S ack\n q+{wait} S 1406\n +0 C ack\n"));
        format!("@0 C syn\n @39 S syn\n +0 C ack\n {one} {two}")
    };
    let seen = log(text([41.0, 39.0])).rtt(ms(5)).seen_at(End::Client);
    for (n, most) in [(1, Possible), (2, Likely)] {
        let bill = seen.exchange(n);
        let way = bill.of(Cause::RoundTrip);
        assert!(way.ns >= ms(41) && way.confidence <= most, "{n}: {seen}");
        assert!(sure_of(bill.exchange, Cause::ServerThink) <= most, "{seen}");
    }
    for waits in [[80.0, 95.0], [15.0, 39.0]] {
        let seen = log(text(waits)).rtt(ms(5)).seen_at(End::Client);
        assert!(seen.exchange(2).of(Cause::ServerThink).ns >= ms(waits[1] - 2.0), "{seen}");
    }
}

/// A NAT that terminates TCP acknowledges within half a millisecond; its SYN was sent three times, so the time of opening is
/// unknown, and no reply ever came within 60 ms (frames 1495 to 1899 of a VMware guest). The server's time is only likely,
/// and apparent pauses of its program may be rounds beyond the NAT. A server whose replies come as soon as its ACKs thinks.
#[test]
fn behind_whoever_acknowledges_nothing_is_sure() {
    for (answer, sure) in [(300.0, false), (1.2, true)] {
        let rounds = "+30 S 1440 more\n +0 S 1000\n +0 C ack\n".repeat(4);
        let text = format!(
            "@0 C syn lost\n @3000 C syn lost\n @9000 C syn\n +253 S syn\n +0 C ack\n +1 C 246 #q\n +0 S ack\n q+{answer} S 1440 more\n \
             +0 S 1400\n +0 C ack\n {rounds}"
        );
        let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
        let think = seen.lines(Cause::ServerThink, Server);
        assert_eq!(think.iter().any(|line| line.confidence == Certain), sure, "{answer}: {seen}");
        let pauses = seen.lines(Cause::SenderThink, Server);
        assert_eq!(pauses.iter().any(|line| line.confidence > Possible), sure, "{answer}: {seen}");
    }
}

/// A user network acknowledges at once for a server 280 ms away, and the capture begins after the handshake (frames 1 to 3 of
/// a mirror's FTP): an untouched TTL does not come from a public address to a private one.
#[test]
fn who_cannot_be_the_server_acknowledges_for_it() {
    let private = Endpoint::v4([192, 168, 85, 132], 32_936);
    let server = Endpoint::v4([209, 51, 188, 20], 21);
    for (client, sure) in [(private, Possible), (Endpoint::v4([209, 51, 188, 77], 32_936), Likely)] {
        let text = "@0 C 31 #asked\n asked+0 S ack #taken\n asked+279 S 51\n +0 C ack\n +1 C 6\n +0 S ack";
        let seen = log(text).rtt(ms(0.6)).between([client, server]).without_timestamps().seen_at(End::Client);
        let waited = seen.lines(Cause::ServerThink, Server);
        assert!(waited[0].ns >= ms(270) && waited[0].confidence == sure, "{seen}");
    }
}

/// In the middle of a download with an RTT of 330 ms the client delays ACKs by 280 and 140 ms, so that data released by the
/// ACK of two rounds ago comes soon after the latest one (frames 38 to 78 of a search): the server need not be so near.
#[test]
fn what_comes_soon_behind_an_acknowledgement_may_follow_an_earlier_one() {
    let text = "@0 C 1007 #asked
         +154 S 1448x2 more #one
         one+0.2 S 1183 #rest
         one+0 C ack
         rest+279 C ack #held
         one+331 S 1448x2 more #two
         two+6 S 1448 more #three
         two+0 C ack
         three+136 C ack
         held+0 S 1355 #last
         last+170 C ack
         last+867 C 1020
         +35 S 215
         +146 C ack";
    let seen = log(text).rtt(ms(331)).without_timestamps().seen_at(End::Client);
    let last = seen.connection().exchanges.last().unwrap_or_else(|| panic!("{seen}"));
    let own = last.bill.iter().find(|line| line.cause == Cause::ServerThink && line.ns > ms(60));
    assert_eq!(own.map(|line| line.confidence), Some(Possible), "{seen}");
}

/// Heartbeats over a phone's network are answered after 153, 290 and 120 ms, and the server sends no bare ACK (frames 76 to
/// 237 of a client): a host that takes its time acknowledges first, within 40 ms (TCP_DELACK_MIN, include/net/tcp.h, Linux
/// 6.12), so the path was as likely late.
#[test]
fn who_never_acknowledges_before_it_answers_may_be_behind_a_late_path() {
    for (late, sure) in [(137, Possible), (30, Likely)] {
        let beat = |wait: i64| format!("+40000 C 50 #b{wait}\n b{wait}+{wait} S 39\n +54 C ack\n");
        let text = format!("@0 C 50 #b\n b+33 S 39\n +54 C ack\n {}{}", beat(1), beat(i64::from(late)));
        let beats = log(text).rtt(ms(119));
        for log in [beats.clone(), beats.without_timestamps()] {
            let seen = log.seen_at(End::Client);
            let own = seen.lines(Cause::ServerThink, Server);
            let surest = own.iter().filter(|line| line.ns > ms(20)).map(|line| line.confidence).max();
            assert_eq!(surest, Some(sure), "{late}: {seen}");
        }
    }
}

/// Another connection between the same hosts is 4 ms or 40 ms longer throughout, and varies by at most 2 ms in the first case
/// and not at all in the second: a path longer by a fifth is no queue, and one that never varies is another path.
#[test]
fn a_longer_way_is_no_queue_that_stood() {
    for (rtt, late) in [(24, 2), (60, 0)] {
        let text = settled(4)
            + &format!("+5 C 100\n +0 S 200 late={late}\n +0 C ack\n")
            + &"+5 C 100\n +0 S 200\n +0 C ack\n".repeat(3);
        let other = [Endpoint { port: 40_001, ..CLIENT }, SERVER];
        let logs = [log(settled(8)).rtt(ms(20)), log(text).rtt(ms(rtt)).between(other)];
        for end in End::BOTH {
            let seen = merged(&logs, end);
            let last = seen.report.connections.iter().map(|connection| connection.exchanges.last());
            let billed: Vec<Duration> =
                last.flatten().map(|exchange| of(exchange, Cause::RoundTrip)).collect();
            assert_eq!(billed, [ms(20), ms(rtt)], "{seen}");
        }
    }
}

/// A forwarding host takes 3.7 ms for the first packet (frames 20 to 32 of a capture with each packet twice), and a reply
/// comes 1.2 ms after its request: the path's part is only likely. A handshake as quick as the rest proves it.
#[test]
fn a_handshake_that_took_longer_proves_no_round_trip() {
    for (late, sure) in [(3.7, Likely), (0.0, Certain)] {
        let text = format!("@0 C syn\n +{late} S syn\n +0 C ack\n +0.1 C 119\n +1 S 1448x2\n +0 C ack");
        let seen = log(text).rtt(ms(0.2)).seen_at(End::Client);
        assert_eq!(seen.exchange(1).of(Cause::RoundTrip).confidence, sure, "{late}: {seen}");
    }
}

/// A SYN-ACK comes after 1.8 s, and echoes the first of two SYNs: the RTT is that long, and not the server's in the next reply.
#[test]
fn a_way_of_more_than_a_second_is_one_where_its_syn_went_out_twice() {
    let text = "@0 C syn #first
         first+0 S syn #both
         @1000 C syn
         both+0 C ack
         +10 C 500 #asked
         asked+0 S 200 #answer
         answer+0 C ack";
    let seen = log(text).rtt(ms(1800)).seen_at(End::Client);
    seen.exchange(1).is_within(ms(0.1), &[(Cause::RoundTrip, Path, ms(1800))]);
}

/// The first SYN-ACK is lost, and the one triggered by the second SYN echoes the first: the RTT is 20 ms, not the echo's
/// 1,020, and 300 ms of the next reply are not the path's, as far as can be known.
#[test]
fn what_a_repeated_answer_to_a_syn_echoes_is_no_distance_for_certain() {
    let text = "@0 C syn #first
         first+0 S syn lost
         @1000 C syn #second
         second+0 S syn
         +0 C ack
         +10 C 500
         +300 S 200
         +0 C ack";
    let mut segments = log(text).rtt(ms(20)).capture(End::Client);
    let first = segments[0].options.timestamps.expect("a stamp").val;
    let answer = segments.iter_mut().find(|segment| segment.flags.syn() && segment.flags.ack());
    answer.and_then(|answer| answer.options.timestamps.as_mut()).expect("a stamp").ecr = first;
    let seen = Seen::of(segments, "the client");
    let way = seen.lines(Cause::RoundTrip, Path).into_iter().filter(|line| line.ns > ms(30));
    let surest = way.map(|line| line.confidence).max();
    assert!(surest <= Some(Possible), "{seen}");
    assert!(seen.lines(Cause::Queueing, Path).iter().all(|line| line.confidence == Possible), "{seen}");
}

/// A request and its retransmission are delayed on the path for seconds, and the first is answered: a host that had it would
/// have acknowledged it before. Who took the time is at most possible.
#[test]
fn a_question_that_was_needlessly_sent_again_was_not_there_for_certain() {
    let text = "handshake
         +5 C 500 late=1500 #asked
         asked+50 S 300 #answer
         @1105 C 0..500 late=600
         answer+0 C ack";
    let seen = log(text).rtt(ms(100)).seen_at(End::Client);
    let own = seen.lines(Cause::ServerThink, Server);
    let surest = own.iter().filter(|line| line.ns > ms(100)).map(|line| line.confidence).max();
    assert_eq!(surest, Some(Possible), "{seen}");
}

/// A SYN-ACK comes 997 ms after the SYN, where another handshake between the hosts takes 0.3, or the next ACK comes so soon:
/// the first one was lost before the capture, and the server, having sent two, measures no RTT (frames 99 to 525 of a browser
/// in a virtual machine). Data 3 s later, by its initial timer, may have been lost as well.
#[test]
fn the_answer_to_a_copied_syn_ack_is_no_way() {
    for wait in [3_020, 2_000] {
        for (beside, ack) in [(true, "q+0 S ack\n"), (false, "q+0 S ack\n"), (true, "")] {
            let log = |text: String| log(text).rtt(ms(0.3)).without_timestamps();
            let mut segments = log(format!(
                "@0 C syn\n +996.6 S syn\n +0 C ack\n +0.8 C 184 #q\n {ack} q+{wait} S 1460 more\n +0 S 670\n +0 C ack"
            ))
            .capture(End::Client);
            if beside {
                let sibling = log("handshake\n +1 C 100\n +20 S 700\n +0 C ack".to_owned());
                segments.extend(
                    sibling.between([Endpoint { port: 40_001, ..CLIENT }, SERVER]).capture(End::Client),
                );
            }
            segments.sort_by_key(|segment| segment.at);
            let seen = Seen::of(segments, "the client");
            let mut exchanges = seen.report.connections.iter().flat_map(|connection| &connection.exchanges);
            let exchange = exchanges.rfind(|exchange| exchange.request_bytes == 184).expect("a question");
            assert!(of(exchange, Cause::RoundTrip) <= ms(1), "{seen}");
            assert!(of(exchange, Cause::ServerThink) >= ms(wait - 1), "{seen}");
            assert_eq!(sure_of(exchange, Cause::ServerThink) == Possible, wait > 3_000, "{seen}");
            assert!(sure_of(exchange, Cause::RoundTrip) < Certain || !ack.is_empty(), "{seen}");
        }
    }
}
