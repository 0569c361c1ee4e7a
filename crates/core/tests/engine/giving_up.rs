//! Clients that give up: the data that had come until then is the reply they waited for.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence;
use tcpwhy_core::{Form, Mark, Role};

use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, each, log, ms, settled};
use crate::seen::Seen;
use crate::spoken::{read_marked, spent_on};

/// A server that takes 743 ms sends a part of its reply, pauses, and sends another part; then its
/// client gives up and closes. Data after the acknowledgement of that FIN does not make the first
/// part a premature one.
#[test]
fn an_answer_that_its_client_gives_up_had_begun() {
    let rtt = ms(0.4);
    let text = "handshake
         +0.1 C 93 #asked
         +0 S ack
         asked+743 S 1448x6
         +0 C ack
         +231 S 1448x4
         +0 C ack #read
         read+24 C fin #gone
         gone+53 S ack
         gone+224 S 1448x2
         +0 C rst";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        let thought = bill.of(Cause::ServerThink);
        assert!(thought.ns >= ms(742.5) && thought.ns <= ms(743.5), "{seen}");
        assert!(thought.confidence >= Confidence::Likely, "{seen}");
        // Data after its FIN met a reset: nobody waited for that.
        let paused = bill.ns(Cause::SenderThink, Server);
        assert!(paused >= ms(229) && paused <= ms(232), "{seen}");
        assert_eq!(bill.exchange.reply_bytes, 10 * 1448, "{seen}");
        assert_eq!(bill.ns(Cause::Rto, Path), ms(0), "{seen}");
    });
}

/// A server without a request gives up, says so, and closes at once: whether that message had been
/// lost before or its other connections had taken the missing numbers, nobody waits for a timer
/// (frames 6842 to 6870 of a web interface). Without a FIN the timer may have been waited for.
#[test]
fn nobody_waits_for_a_timer_before_last_words() {
    let ends = [("w+220 S 12000..12037\n +0.2 S fin", false), ("w+220 S 12000..12037\n +500 C ack", true)];
    for (end, waited) in ends {
        let text = settled(60) + "+14000 S 37 lost #w\n " + end;
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{end}: {seen}");
    }
}

/// A server repeats its alert and its FIN for a minute and a half to a client that is gone (frames
/// 2730 to 2748 of a game's shop): nobody waits for them. If the peer continues, it had waited.
#[test]
fn nobody_waits_for_copies_of_last_words() {
    for (end, waited) in [("w+0.02 S fin lost\n", false), ("", true)] {
        let copies = "w+600 S 12000..12037 lost\n w+1800 S 12000..12037 lost\n w+4200 S 12000..12037 lost";
        let text = settled(60) + "+14000 S 37 lost #w\n " + end + copies;
        let seen = log(text).rtt(ms(20)).seen_at(End::Server);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{end}: {seen}");
    }
}

/// A client closes right at the reply, and is gone when the server's alert and FIN come, 240 ms later and
/// seven times (frames 161 to 361 of a container's): nobody waits for them. A longer record may be the
/// reply's end.
#[test]
fn nobody_waits_for_copies_of_an_alert_for_a_fin() {
    for (bytes, waited) in [(31, false), (60, true)] {
        let copies = each([600, 1800, 4200], |after| format!("w+{after} S 12200..{} lost", 12_200 + bytes));
        let end =
            format!("+5 C 300\n +20 S 200\n +0.1 C fin\n +0 S ack\n +240 S {bytes} fin lost #w\n {copies}");
        let ends = [CLIENT, Endpoint::v4([10, 0, 0, 2], 443)];
        let seen = log(settled(60) + &end).rtt(ms(20)).between(ends).seen_at(End::Server);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{bytes}: {seen}");
    }
}

/// A client says goodbye long after its server's FIN, to a host that has forgotten the connection,
/// and repeats that for minutes (frames 1311 to 6930 of a television): nobody waits for it. If no
/// one has closed, its server may have been asked.
#[test]
fn nobody_waits_for_copies_of_a_word_behind_the_servers_end() {
    for (end, waited) in [("+240000 S fin\n +0 C ack\n", false), ("", true)] {
        let copies = "w+200 C 6000..6023 lost\n w+600 C 6000..6023 lost\n w+1400 C 6000..6023 lost\n w+3000 C 6000..6023 lost";
        let text = settled(60) + end + "+1500000 C 23 lost #w\n " + copies;
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{end}: {seen}");
    }
}

/// A server closes right behind its reply, and its client's alert is lost and repeated by a timer (frames 1158 to 1184 of a browser):
/// nobody waits for it. Anything else might be more of what the client has to say.
#[test]
fn nobody_waits_for_copies_of_a_goodbye_behind_the_servers_end() {
    for (bytes, waited) in [(31, false), (60, true)] {
        let copy = format!("w+300 C 6300..{}\n +0 S ack", 6300 + bytes);
        let end = format!("+5 C 300\n +20 S 200\n +0.1 S fin\n +0 C ack\n +0.1 C {bytes} lost #w\n {copy}");
        let ends = [CLIENT, Endpoint::v4([10, 0, 0, 2], 443)];
        let seen = log(settled(60) + &end).rtt(ms(20)).between(ends).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{bytes}: {seen}");
    }
}

/// A client's request is acknowledged, and nothing comes: it closes after 2.3 s (frames 60 to 86 of
/// an FTP server's capture). It waited that long for the server, also if the reply meets its reset,
/// or if the server closes instead. If nothing ever comes, the length is the client's own timeout:
/// a scanner's, 5.005 s for each of 21 ports (frames 4987 to 5056 of a laboratory's capture). A
/// client that asks nothing, by the bytes, waited for nobody.
#[test]
fn a_client_that_gives_up_had_waited_until_then() {
    let ends = [
        ("q+2300 C fin\n +0 S ack\n +100 S fin\n +0 C ack", 2300.0, Confidence::Possible),
        ("q+2300 C fin\n +0 S ack\n +1200 S 22 answers\n +0 C rst", 2300.0, Confidence::Likely),
        ("q+2300 C rst", 2300.0, Confidence::Possible),
        ("q+978 C fin\n +0 S ack\n +2100 S 681 answers\n +0 C rst", 978.0, Confidence::Likely),
        ("q+0.1 C fin\n +2300 S fin\n +0 C ack", 2320.1, Confidence::Likely),
        ("q+2300 S fin\n +0 C fin\n +0 S ack", 2320.0, Confidence::Likely),
    ];
    for (end, wait, sure) in ends {
        for (asks, waited) in [("asks", true), ("", false)] {
            let text = format!("{} +5 C 60 {asks} #q\n +0 S ack\n {end}", settled(4));
            log(text).rtt(ms(20)).both_ends(|seen| {
                let thought = seen.lines(Cause::ServerThink, Server);
                assert_eq!(thought.iter().any(|line| line.ns >= ms(wait - 41.0)), waited, "{end}: {seen}");
                if waited {
                    let elapsed = seen.exchange(5).exchange.elapsed;
                    assert!(
                        (elapsed - ms(wait)).max(ms(wait) - elapsed) <= ms(0.5),
                        "{end}: {elapsed}: {seen}"
                    );
                    assert_eq!(seen.exchange(5).of(Cause::ServerThink).confidence, sure, "{end}: {seen}");
                }
            });
        }
    }
}

/// A client's hello is acknowledged after 6 ms, and nothing comes for 10 s: it gives up, and the
/// reply after its FIN meets a reset (frames 1561 to 2074 of an office's capture, to a television).
/// It waited that long for the server, although a hello does not show that nothing follows.
#[test]
fn a_hello_that_nobody_answers_was_waited_for_until_its_client_gave_up() {
    for (session, says) in [(true, ""), (true, "mute"), (false, "")] {
        let text = format!(
            "handshake\n +0.3 C 517 asks opens #q\n +0 S ack\n q+9980 C fin\n +40 S 135 {says}\n +0 C rst"
        );
        for end in End::BOTH {
            let log = log(text.clone()).rtt(ms(6));
            let told = log.marks();
            let report = read_marked(&log.capture(end), |segment| {
                told(segment).into_iter().map(|mark| Mark { session, ..mark }).collect()
            });
            let exchanges = &report.connections[0].exchanges;
            let thought = exchanges.iter().map(|exchange| spent_on(exchange, Cause::ServerThink));
            let thought: Duration = thought.sum();
            assert_eq!(thought >= ms(9970), session, "{end:?} {says}: {thought}: {exchanges:#?}");
        }
    }
}

/// A client answers its server's farewell with its own, 31 bytes and a FIN that are lost three
/// times (frames 1468 to 1754 of a download): nobody waits for the retransmissions. A client that
/// has not heard of any end may be waited for.
#[test]
fn nobody_waits_for_copies_of_a_farewell_that_is_answered() {
    for (first, waited) in [("+5 S 600 fin\n +0 C 31 lost #w", false), ("+5 S 600\n +0 C 31 lost #w", true)] {
        let copies = "w+384 C 6000..6031 lost\n w+841 C 6000..6031 lost\n w+1700 C 6000..6031\n +0 S ack";
        let text = format!("{} {first}\n w+0.1 C fin lost\n {copies}", settled(60));
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{seen}");
    }
}

/// A server gives up an idle TLS connection after ten seconds: GOAWAY, an alert, and a FIN that
/// crosses the client's own, which answers them (frames 298 to 1306 of a web page over IPv6).
/// Nobody had waited. If the FIN leaves a round trip later, the client's came first.
#[test]
fn a_farewell_whose_end_crosses_the_other_one_is_one() {
    for (fin, waited) in [(0.5, false), (30.0, true)] {
        let text = format!(
            "{} +5 C 38 #q\n +20 S ack\n q+10001 S 46 #bye\n bye+0.1 S 31\n +0 C ack\n +0.1 C fin\n bye+{fin} S fin\n +0 C ack",
            settled(4)
        );
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::ServerThink, Server).is_empty(), waited, "{fin}: {seen}");
    }
}

/// A capture begins with a client's alert and its FIN in one packet, 31 bytes retransmitted after
/// 7.5 and 22.6 s (frames 22 to 2669 of a phone): nobody waits.
#[test]
fn nobody_waits_for_copies_of_an_alert_with_which_a_capture_begins() {
    for (len, waited) in [(31, false), (310, true)] {
        let copies = format!("w+7535 C 0..{len} fin lost\n w+22592 C 0..{len} fin lost");
        let text = format!("handshake\n+5 C {len} fin lost #w\n {copies}");
        let ends = [CLIENT, Endpoint::v4([10, 0, 0, 2], 443)];
        let midway = log(text).rtt(ms(20)).between(ends).capture(End::Client).split_off(3);
        let seen = Seen::of(midway, "midway");
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{seen}");
    }
}

/// A server says goodbye after 30 s, and its client's GOAWAY and alert, with its FIN, are lost
/// until a box resets the connection 9.3 s later (frames 1228 to 1248 of a browser's capture):
/// nobody waits for these either.
#[test]
fn nobody_waits_for_copies_of_a_goodbye_to_a_goodbye() {
    for (len, waited) in [(39, false), (390, true)] {
        let copies: String =
            [441, 1013, 2133, 4569].map(|at| format!("w+{at} C 612..{} fin lost\n", 612 + len + 24)).concat();
        let text = format!(
            "handshake\n +5 C 517\n +0 S 3000\n +0 C ack\n +5 C 64\n +0 S 79\n +0 C ack\n +5 C 31\n +290 S 1400\n +0 C ack
             +30000 S 39\n +0 S 24\n +0 C ack\n +0.2 C {len} lost #w\n +0.2 C 24 lost\n +0.06 C fin lost\n {copies}"
        );
        let ends = [CLIENT, Endpoint::v4([10, 0, 0, 2], 443)];
        let seen = log(text).rtt(ms(65)).between(ends).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{seen}");
    }
}

/// The reply, and the exchanges after it, were sent but are in no packet: the server's farewell
/// shows that.
#[test]
fn an_answer_that_the_capture_dropped_was_not_waited_for_until_the_end() {
    let dropped = "\n +0 C 41 asks unseen\n +0.2 S 1448 answers unseen\n".repeat(6);
    let text = settled(4) + "+5 C 41 asks\n +0.2 S 1448 answers unseen" + &dropped + "+0 S fin\n +0 C ack";
    log(text).rtt(ms(40)).both_ends(|seen| {
        let thought = seen.longer(Cause::ServerThink, ms(50));
        assert!(thought.is_empty(), "{seen}");
    });
}

/// A request that never arrives is retransmitted until its server, which has heard nothing, closes
/// after ten seconds, and then the client (frames 199 to 720 of a browser's connection): it was
/// waited for that long. Nobody waits for later retransmissions.
#[test]
fn a_question_that_never_arrives_is_waited_for_until_its_server_closes() {
    let text = "handshake
        @70 C 517 lost
        @370 C 0..517 lost
        @970 C 0..517 lost
        @2170 C 0..517 lost
        @4570 C 0..517 lost
        @9370 C 0..517 lost
        @10130 S fin
        +0 C ack
        +0.2 C fin lost
        @18970 C 0..517 fin lost
        @38170 C 0..517 fin lost";
    let seen = log(text).rtt(ms(60)).seen_at(End::Client);
    let timers: Duration = seen.lines(Cause::Rto, Path).iter().map(|line| line.ns).sum();
    assert!(timers >= ms(10_050) && timers <= ms(10_100), "{timers}: {seen}");
}

/// ... or until its client gives up with a reset, when the next retransmission would have been due
/// (frames 702 to 4147 of a home proxy, which accepts none).
#[test]
fn a_question_that_never_arrives_is_waited_for_until_its_client_resets() {
    for (end, waited) in [("@64300 C rst", 64_230.0), ("@64300 C fin", 64_230.0), ("", 37_870.0)] {
        let text = format!(
            "handshake\n @70 C 433 lost\n @370 C 0..433 lost\n @970 C 0..433 lost\n @2170 C 0..433 lost\n @9370 C 0..433 lost\n @37940 C 0..433 lost\n {end}"
        );
        let seen = log(text).rtt(ms(6)).seen_at(End::Client);
        let timers: Duration = seen.lines(Cause::Rto, Path).iter().map(|line| line.ns).sum();
        assert!(timers >= ms(waited - 50.0) && timers <= ms(waited + 50.0), "{end}: {timers}: {seen}");
    }
    // A client that resets has given up, however soon; one that closes may only have nothing more
    // to ask.
    for (end, waited) in [("@990 C rst", 920.0), ("@990 C fin", 300.0)] {
        let seen = log(format!("handshake\n @70 C 433 lost\n @370 C 0..433 lost\n {end}"))
            .rtt(ms(6))
            .seen_at(End::Client);
        let timers: Duration = seen.lines(Cause::Rto, Path).iter().map(|line| line.ns).sum();
        assert!(timers >= ms(waited - 20.0) && timers <= ms(waited + 20.0), "{end}: {timers}: {seen}");
    }
}

/// The same if the capture begins after the handshake and has no packet of the server's: as long as
/// the client acknowledges nothing more, nothing has come (frames 5 to 70 of a sensor, 153 to 1267
/// of a phone). What it acknowledges when it resets may be a reply that is in no packet.
#[test]
fn midway_a_question_that_nobody_acknowledges_is_waited_for_until_its_client_resets() {
    for (heard, waited) in [("", 38_109.0), ("+1 S 50\n +0 C ack", 31_731.0)] {
        let text = format!(
            "handshake
             @3968 C 174 lost
             @10313 C 0..174 lost
             @16659 C 0..174 lost
             @23036 C 0..174 lost
             @29347 C 0..174 lost
             @35699 C 0..174
             {heard}
             @42077 C rst"
        );
        let mut segments = log(text).rtt(ms(6)).capture(End::Client);
        segments.retain(|segment| segment.src == CLIENT && !segment.flags.syn());
        let seen = Seen::of(segments.split_off(1), "of the client alone, behind the handshake");
        let timers: Duration = seen.lines(Cause::Rto, Path).iter().map(|line| line.ns).sum();
        assert!(timers >= ms(waited - 50.0) && timers <= ms(waited + 50.0), "{heard}: {timers}: {seen}");
    }
}

/// Two segments under way when their client resets 240 ms later, with an RTT of 275 ms (frames 167
/// to 191 of an office's capture): no timer had retransmitted them.
#[test]
fn what_was_not_sent_again_waits_for_no_timer() {
    let seen =
        log("handshake\n +1 C 460 more #q\n q+0.1 C 832\n q+240 C rst").rtt(ms(275)).seen_at(End::Client);
    assert!(seen.lines(Cause::Rto, Path).is_empty(), "{seen}");
}

/// A server has given up an idle connection, and its client, which has not noticed, sends 908 bytes
/// and closes at once, 54 s later; they are retransmitted for half a minute (frames 1454 to 2270 of
/// a camera). Nobody waits for them. If the server has not closed, somebody may.
#[test]
fn nobody_waits_for_copies_of_what_a_closed_server_is_told() {
    for (bye, waited) in [("+65000 S 31\n +0.7 S fin\n +0 C ack\n", false), ("", true)] {
        let copies =
            "w+300 C 6000..6908 fin lost\n w+900 C 6000..6908 fin lost\n w+2100 C 6000..6908 fin lost";
        let text = format!("{} {bye} +54500 C 908 lost #w\n w+0.1 C fin lost\n {copies}", settled(60));
        let seen = log(text).rtt(ms(90)).seen_at(End::Client);
        assert_eq!(!seen.lines(Cause::Rto, Path).is_empty(), waited, "{seen}");
    }
}

/// ... or closes ten seconds after it (frames 57 to 103 of a probe, whose hello is never received).
/// Nobody waits for retransmissions after that end; after a FIN that only says that no more will be
/// asked, somebody does.
#[test]
fn nobody_waits_for_copies_behind_the_end_of_a_client_that_has_given_up() {
    let copies = "\n @270 C 0..289 lost\n @870 C 0..289 lost\n @3300 C 0..289 lost\n @6600 C 0..289 lost";
    let later = "\n @13400 C 0..289 fin lost\n @26700 C 0..289 fin lost";
    for (first, closing, waited) in [("", "\n @10070 C fin lost", 10_000.0), (" fin", "", 26_630.0)] {
        let text = format!("handshake\n @70 C 289{first} lost{copies}{closing}{later}");
        let seen = log(text).rtt(ms(3)).seen_at(End::Client);
        let timers: Duration = seen.lines(Cause::Rto, Path).iter().map(|line| line.ns).sum();
        assert!(timers >= ms(waited - 50.0) && timers <= ms(waited + 50.0), "{closing}: {timers}: {seen}");
    }
}

/// The reply to a request that is retransmitted for nothing was lost on the path, as the number of
/// the retransmission's ACK shows; the client closes before its server's timer repeats it (frames
/// 785 to 1541 of a browser on a lossy link). The server was not thinking meanwhile.
#[test]
fn an_answer_that_left_and_was_lost_is_no_server_s_time() {
    for (answer, lost) in [("\n q+1 S 391 lost", true), ("", false)] {
        let text = format!(
            "handshake\n +5 C 280 asks=1\n +1 S 200 answers=1\n +0 C ack\n +5 C 1323 asks=2 #q{answer}\n q+593 C 280..1603 #c\n c+0 S ack\n q+2514 C fin\n +0 S ack"
        );
        let seen = log(text).rtt(ms(238)).seen_at(End::Client);
        let [timers, thought] = [(Cause::Rto, Path), (Cause::ServerThink, Server)]
            .map(|(cause, side)| seen.lines(cause, side).iter().map(|line| line.ns).sum::<Duration>());
        assert_eq!((timers >= ms(2_000), thought >= ms(2_000)), (lost, !lost), "{timers} {thought}: {seen}");
    }
}

/// A virtual machine's NAT accepts a connection once its own is open, 325 ms later, and
/// acknowledges at once (frames 124 to 154 of a browser's capture): if a client closes after its
/// request, its reply is refused that much later, and had been on the path all that time.
#[test]
fn what_a_nat_acknowledges_is_as_far_away_where_nobody_takes_the_answer() {
    let text = "@0 C syn\n +0 S syn late=324\n +0 C ack\n +546 C 317 asks #q\n q+0 S ack\n q+0.4 C fin\n +0 S ack\n q+327 S 1400 fin\n +0 C rst";
    let log = log(text).rtt(ms(0.3)).without_timestamps();
    let log = log.between([CLIENT, Endpoint::v4([44, 228, 249, 3], 80)]);
    let seen = Seen::of_marked(log.capture(End::Client), log.marks(), "the client, behind a NAT");
    let bill = seen.exchange(1);
    let way = bill.of(Cause::RoundTrip);
    assert!(way.ns >= ms(324) && bill.ns(Cause::ServerThink, Server) <= ms(4), "{seen}");
}

/// A DNS client closes 86 ms after its request, and resets when its reply comes 3 s later, with the
/// FIN (frames 1627 to 2211 of a lookup over TCP) or before it: it had waited until it closed. One
/// that closes at once may only have said that it will ask no more.
#[test]
fn whoever_refuses_a_late_answer_had_waited_until_it_closed() {
    for (closes, waited) in [(86.0, 86.0), (0.2, 3_070.0)] {
        for answer in ["S 173 #a\n a+0 S fin", "S 173 fin #a"] {
            let text = format!(
                "handshake\n +0.1 C 35 asks #q\n q+0 S ack\n q+{closes} C fin\n +0 S ack\n q+3070 {answer}\n a+0 C rst"
            );
            let log = log(text).rtt(ms(1.6)).without_timestamps();
            let seen = Seen::of_marked(log.capture(End::Client), log.marks(), "the client");
            let bill = seen.exchange(1);
            let [way, thought] = [bill.ns(Cause::RoundTrip, Path), bill.ns(Cause::ServerThink, Server)];
            assert!(way + thought >= ms(waited - 2.0) && way + thought <= ms(waited + 4.0), "{seen}");
            assert!(bill.of(Cause::ServerThink).confidence <= Confidence::Likely, "{seen}");
        }
    }
}

/// A client closes three seconds after a request that never arrives, and its server, which has
/// heard nothing else, 19 s later (frames 1090 to 2020 of a browser whose uplink is dead): it was
/// waited for until the first of them.
#[test]
fn a_question_that_never_arrives_is_waited_for_until_the_first_end_closes() {
    let copies = "@70 C 166 lost\n @1277 C 0..166 lost\n @2487 C 0..166 lost";
    for (closing, waited) in
        [("@3070 C fin lost\n @5610 C 0..166 fin lost", 3_000.0), ("@5610 C 0..166 lost", 22_200.0)]
    {
        let text = format!("handshake\n {copies}\n {closing}\n @22240 S fin\n +0 C ack");
        let seen = log(text).rtt(ms(60)).seen_at(End::Client);
        let timers: Duration = seen.lines(Cause::Rto, Path).iter().map(|line| line.ns).sum();
        assert!(timers >= ms(waited - 70.0) && timers <= ms(waited + 70.0), "{closing}: {timers}: {seen}");
    }
}

/// A client resets its connection with 31 bytes of the server's on their way, and the server sends them again by a timer
/// that doubles, at last 6.1 s later (frames 331 to 403 of a browser's capture): nobody waits for these. New data between the
/// same ports, as late, is another connection's.
#[test]
fn what_repeats_data_of_a_reset_connection_is_no_other_connection() {
    let repeats = "+0 S 4400..4431\n +0.6 S 4400..4431\n +310 S 4400..4431\n +615 S 4400..4431\n +1541 S 4400..4431\n +2860 S 4400..4431\n +6142 S 4400..4431";
    for (last, more) in [("4400..4431", 0), ("9000..9500", 1)] {
        let repeats = repeats.replace("+6142 S 4400..4431", &format!("+6142 S {last}"));
        let text = format!("handshake\n +0 C 300\n +5 S 4400\n +0 C ack\n +1 C 31\n +1 C rst\n {repeats}");
        let seen = log(text).rtt(ms(57)).seen_at(End::Client);
        assert_eq!(seen.report.connections.len(), 1 + more, "{seen}");
    }
}

/// A request is lost, and its copy is met by a reset (frames 1391 to 1394 of a peer-to-peer program's
/// connection): the timer took 365 ms, and the reset's way is no part of it. A reset a second later ends
/// another wait for the timer.
#[test]
fn a_reset_that_answers_a_copy_ends_the_wait() {
    for (late, waited) in [(27.0, 365.3), (1000.0, 1486.9)] {
        let text = format!("handshake\n +0.2 C 12 lost\n +365.3 C 0..12\n +{late} S rst");
        let seen = log(text).rtt(ms(121.6)).without_timestamps().seen_at(End::Client);
        let rto = seen.spent(Cause::Rto, Path);
        assert!(rto >= ms(waited - 0.1) && rto <= ms(waited + 0.1), "{late}: {seen}");
    }
}

/// An answer whose length is not told, as its head is read, and a close after ten seconds (frames 4603 to
/// 4614 of a web accelerator's connection): the answer may have been whole, and its connection idle. After
/// 7.3 s it was likely the close that ended the answer.
#[test]
fn a_close_after_whole_seconds_may_end_no_answer() {
    for (closes_ms, confidence) in [(10_000.2, Confidence::Possible), (7_300.0, Confidence::Likely)] {
        let text = format!(
            "handshake\n +1 C 299 asks\n +0 S ack\n +160 S 270 answers #said\n +0 C ack\n said+{closes_ms} S fin\n +0 C ack"
        );
        let log = log(text).rtt(ms(20));
        let told = log.marks();
        let report = read_marked(&log.capture(End::Client), |segment| {
            let open = |mark: Mark| Mark { end: None, last: false, ..mark };
            let heads = told(segment).into_iter();
            heads
                .flat_map(|mark| match mark.role {
                    Role::Answers => vec![open(mark), Mark { first: false, ..open(mark) }],
                    _ => vec![mark],
                })
                .collect()
        });
        let bill = &report.connections[0].exchanges[1].bill;
        let paused = bill.iter().find(|line| line.cause == Cause::SenderThink);
        assert_eq!(paused.map(|line| line.confidence), Some(confidence), "{closes_ms}: {bill:#?}");
    }
}

/// Four copies of a message leave beside their sender, and nothing acknowledges one of them until the capture ends (frames 7 to 55 of a
/// phone's capture): their receiver responds no longer, and nothing shows that the path drops packets. Beside that receiver, they are copies
/// of what it had: it waits for none. Copies of which the last one is acknowledged repair a loss.
#[test]
fn who_acknowledges_none_of_many_copies_responds_no_longer() {
    for (lost, end, form) in
        [("", "", Form::Ignored), ("lost", "", Form::Ignored), ("lost", "+0 C ack", Form::Timeout)]
    {
        let copies = [5300, 5900, 7100].map(|at| format!("@{at} S 200..230 {lost}\n")).concat();
        let text = format!(
            "handshake\n +1 C 100\n +1 S 200\n +0 C ack\n @5000 S 30 {lost}\n {copies} @9500 S 200..230\n {end}"
        );
        for at in End::BOTH {
            let seen = log(&text).rtt(ms(40)).seen_at(at);
            let forms = seen.lines(Cause::Rto, Path).into_iter().map(|line| line.detail.form);
            let forms: Vec<_> = forms.collect();
            let had = at == End::Client && lost.is_empty() && end.is_empty();
            assert!(
                at == End::Client && lost == "lost" || had != (forms == [Some(form)]),
                "{forms:?}: {seen}"
            );
        }
    }
}

/// A reply passes beside a client that says nothing any more, and its last copy a minute before the server gives up and closes (frames 1304
/// to 1371 of a capture whose host changed its route to a tunnel): the client had the reply, and nobody waits for what comes later. A
/// client that goes on had lost its acknowledgements.
#[test]
fn who_falls_silent_beside_the_capture_waits_for_no_copies() {
    for goes_on in [false, true] {
        let ack = if goes_on { "+0 C ack\n" } else { "" };
        let text = format!(
            "handshake\n +1 C 100 #q\n q+240 S 154\n +0 S 1400x2\n @1400 S 200..354\n @3200 S 200..354\n @15000 S 200..354\n {ack} \
             @60000 S 1377 fin\n"
        );
        let seen = log(text.replace("200..354", "0..154")).rtt(ms(200)).seen_at(End::Client);
        let until = if goes_on { ms(59_900) } else { ms(440) };
        seen.exchange(1).elapsed(until, ms(300));
    }
}

/// A client's first data is not acknowledged, nor any of four copies, although its handshake has just passed (frames 451 to 491 of a client whose server
/// answers so many requests a minute): whoever answered the SYN may drop it. After an answer, the path has likely failed.
#[test]
fn who_ignores_the_first_data_behind_a_handshake_may_drop_it() {
    for (before, sure) in
        [("", Confidence::Possible), ("+1 C 100\n +0 S 100\n +0 C ack\n", Confidence::Likely)]
    {
        let text = format!(
            "handshake\n {before} +1 C 193 lost #q\n q+540 C again lost\n q+1400 C again lost\n q+2920 C again lost\n q+5760 C again lost\n q+6700 C fin"
        );
        let again = if before.is_empty() { "0..193" } else { "100..293" };
        let seen = log(text.replace("again", again)).rtt(ms(200)).seen_at(End::Client);
        let line = seen.lines(Cause::Rto, Path)[0];
        assert_eq!((line.detail.form, line.confidence), (Some(Form::Ignored), sure), "{seen}");
    }
}
