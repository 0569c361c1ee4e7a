//! Was a small write held, or did its program pause, and how certain is that? The same two pieces a
//! few ms apart, with one thing changed.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_core::{Analysis, Form, Options};
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::invariants::EVERYTHING;
use crate::packet_log::{CLIENT, End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

/// A request in two pieces, the second released by an ACK that the server delays by this long.
fn held(delay_ms: u32) -> String {
    format!("+5 C 20\n +{delay_ms} S ack\n +0 C 100\n +0 S 64\n +0 C ack\n")
}

/// A request in two other pieces, the second this long after the first.
fn apart(acked_ms: u32, pause_ms: f64) -> String {
    format!("+5 C 400 #odd\n odd+{acked_ms} S ack\n odd+{pause_ms} C 70\n +0 S 64\n +0 C ack\n")
}

fn confidence(seen: &Seen, exchange: usize, cause: Cause) -> Confidence {
    seen.exchange(exchange).of(cause).confidence
}

/// The first exchange shows how long the program pauses itself, the second that Nagle is on.
/// Without either, another reading remains.
#[test]
fn a_hold_is_certain_where_its_sender_has_shown_what_it_does_otherwise() {
    let text = format!("handshake\n {}{}", held(0), held(40).repeat(2));
    log(text).rtt(ms(2)).both_ends(|seen| {
        let sure = [2, 3].map(|n| confidence(seen, n, Cause::NagleDelayedAck));
        assert_eq!(sure, [Likely, Certain], "{seen}");
    });
    log(format!("handshake\n {}", held(40))).rtt(ms(2)).both_ends(|seen| {
        assert_eq!(confidence(seen, 1, Cause::NagleDelayedAck), Likely, "{seen}");
    });
    // Without the handshake, the first exchanges in the capture may not have been the first ones.
    let midway = log(format!("handshake\n {}{}", held(0).repeat(3), held(40).repeat(3))).rtt(ms(2));
    for end in End::BOTH {
        let seen = Seen::of(midway.capture(end).split_off(3), "midway");
        assert_eq!(confidence(&seen, 6, Cause::NagleDelayedAck), Likely, "{seen}");
    }
}

/// 276 ms away, the acknowledgement of 21 bytes comes 31 ms after a round trip (Vietanh02's 3.pcap, 165 to 172: by the server's
/// clock, it left at once): the rest is held by Nagle's algorithm alone. A timer's 40 ms can be told at any distance.
#[test]
fn an_acknowledgement_late_by_an_eighth_of_its_way_was_held_back_by_nobody() {
    for (late, held) in [(31, Cause::Nagle), (41, Cause::NagleDelayedAck)] {
        let text = format!("handshake\n {}", self::held(late));
        log(text).rtt(ms(276)).both_ends(|seen| {
            let rest = [Cause::Nagle, Cause::NagleDelayedAck].map(|cause| seen.exchange(1).ns(cause, Client));
            assert_eq!(rest.map(|ns| ns >= ms(306)), [held == Cause::Nagle, held != Cause::Nagle], "{seen}");
        });
    }
}

/// Far from its sender, a write that was late on the path was held all the same, and the lateness
/// is the path's. Later than an eighth of the whole, it may have been written then.
#[test]
fn a_held_write_that_was_late_on_its_way_was_held_and_late() {
    for (late, sure) in [(3, Certain), (8, Possible)] {
        let last = format!("+5 C 20\n +40 S ack\n +0 C 100 late={late}\n +0 S 64\n +0 C ack\n");
        let text = format!("handshake\n {}{}{last}", held(0), held(40).repeat(3));
        let seen = log(text).rtt(ms(2)).without_timestamps().seen_at(End::Server);
        let bill = seen.exchange(5).is(&[
            (Cause::RoundTrip, Path, ms(2)),
            (Cause::NagleDelayedAck, Client, ms(42)),
            (Cause::Queueing, Path, ms(late)),
        ]);
        assert_eq!(bill.of(Cause::NagleDelayedAck).confidence, sure, "{seen}");
    }
}

/// A sender known to use Nagle: a write of other pieces that follows a delayed ACK a little late
/// was late on the path. If it has never shown that, the program paused.
#[test]
fn a_late_write_was_held_where_its_sender_minds_nagle() {
    let rtt = ms(2);
    let late = "+5 C 400\n +40 S ack\n +0 C 70 late=3\n +0 S 64\n +0 C ack\n";
    let seen = log(format!("handshake\n {}{}{late}", held(0), held(40).repeat(2)))
        .rtt(rtt)
        .without_timestamps()
        .seen_at(End::Server);
    seen.exchange(4).is(&[
        (Cause::RoundTrip, Path, rtt),
        (Cause::NagleDelayedAck, Client, ms(42)),
        (Cause::Queueing, Path, ms(3)),
    ]);
    let seen =
        log(format!("handshake\n {}", apart(40, 45.0))).rtt(rtt).without_timestamps().seen_at(End::Server);
    seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(45))]);
}

/// If the second piece comes long after the ACK, its program paused, with the usual pieces or
/// others.
#[test]
fn a_write_long_behind_its_release_came_by_itself() {
    let rtt = ms(2);
    for pause in [60.0, 90.0] {
        let usual = format!("+5 C 20 #head\n head+40 S ack\n head+{pause} C 100\n +0 S 64\n +0 C ack\n");
        for last in [usual, apart(40, pause)] {
            let text = format!("handshake\n {}{}{last}", held(0), held(40).repeat(2));
            log(text).rtt(rtt).both_ends(|seen| {
                let own = seen.exchange(4).ns(Cause::SenderThink, Client);
                assert!(own >= ms(pause - 1.0), "{seen}");
            });
        }
    }
    // Near the sender, for other pieces a little lateness is enough.
    let text = format!("handshake\n {}{}{}", held(0), held(40).repeat(2), apart(40, 45.0));
    let seen = log(text).rtt(rtt).seen_at(End::Client);
    seen.exchange(4).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(45))]);
}

/// The first piece was acknowledged at once, and the second follows some ms later: nothing held it.
#[test]
fn a_write_behind_a_prompt_acknowledgement_came_by_itself() {
    let rtt = ms(40);
    for pause in [45.0, 50.0] {
        log(format!("handshake\n {}", apart(0, pause))).rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(pause))]);
        });
    }
}

/// Near a program that pauses within its reply, nothing is more certain, except for a small write so soon after a
/// delayed ACK that a busy host may have been that late with it. What an end asks in two writes may be two questions.
#[test]
fn a_pause_is_certain_unless_it_ends_with_a_held_back_acknowledgement() {
    let rtt = ms(2);
    let doubt = |what: &str, acked: u32, pause: f64| {
        let text = format!(
            "handshake\n +5 C 30\n +0 S 20 #head\n head+{acked} C ack\n head+{pause} S {what}\n +0 C ack"
        );
        let seen = log(text).rtt(rtt).seen_at(End::Server);
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Server, ms(pause))]);
        confidence(&seen, 1, Cause::SenderThink)
    };
    assert_eq!(doubt("100", 40, 44.5), Possible);
    assert_eq!(doubt("100", 40, 47.5), Possible, "a while behind it, but a message of its own");
    assert_eq!(doubt("100", 40, 25.0), Likely, "before it, the first beside a small one");
    assert_eq!(doubt("100", 0, 44.5), Possible, "it came at once");
    assert_eq!(doubt("1448", 40, 44.5), Certain, "full segments are not held");
    assert_eq!(doubt("100 fin", 40, 44.5), Certain, "nor the last one");
    let far = format!("handshake\n {}", apart(0, 42.2));
    let seen = log(far).rtt(ms(40)).seen_at(End::Client);
    assert_eq!(confidence(&seen, 1, Cause::SenderThink), Possible, "{seen}");
}

/// A program that writes two full segments every 208 ms with more to follow: a cork does not hold
/// full segments.
#[test]
fn full_segments_are_not_corked() {
    let text =
        settled(20) + "+5 C 100\n +0 S 1448x2 more\n +0 C ack\n +208 S 1448x2 more\n +0 S 100\n +0 C ack";
    log(text).rtt(ms(4)).both_ends(|seen| {
        let bill = seen.exchange(21).never(Cause::Cork);
        let paused = bill.ns(Cause::SenderThink, Server);
        assert!(bill.exchange.elapsed >= ms(208), "{paused}{seen}");
    });
}

/// The first small segment in flight with another one shows that Nagle is off, or that the ACK that
/// released it is missing from the capture. From the second on it is known.
#[test]
fn a_pause_beside_a_small_segment_is_certain_from_the_second_on() {
    let head = |delay: u32| format!("+5 C 30\n +0 S 20\n +{delay} C ack\n +0 S 100\n +0 C ack\n");
    let beside = "+5 C 30\n +0 S 20 #head\n head+25 S 100\n +0 C ack\n";
    let text = format!("handshake\n {}{}", head(0), beside.repeat(2));
    let seen = log(text).rtt(ms(2)).seen_at(End::Server);
    let sure = [2, 3].map(|n| confidence(&seen, n, Cause::SenderThink));
    assert_eq!(sure, [Likely, Certain], "{seen}");
}

/// A full segment released by a delayed ACK was not held by Nagle: the first that Nagle holds does
/// not count as the second.
#[test]
fn a_full_segment_does_not_show_that_its_sender_minds_nagle() {
    let full = "+5 C 20\n +40 S ack\n +0 C 1448\n +0 S 64\n +0 C ack\n";
    let text = format!("handshake\n {}{full}{}", held(0), held(40));
    log(text).rtt(ms(2)).both_ends(|seen| {
        assert_eq!(confidence(seen, 3, Cause::NagleDelayedAck), Likely, "{seen}");
    });
}

/// An ACK missing from the capture, with packets without numbers, makes the sender look as if Nagle
/// were off. The next hold shows that it is on, and the one after that is billed again.
#[test]
fn a_hold_refutes_that_its_sender_ignores_nagle() {
    let missed = "+5 C 20\n +0 S ack unseen\n +0 C 100\n +0 S 64\n +0 C ack\n";
    let text = format!("handshake\n {}{missed}{}", held(0), held(40).repeat(3));
    log(text).rtt(ms(2)).without_ip_ids().both_ends(|seen| {
        for n in [4, 5] {
            assert!(seen.exchange(n).ns(Cause::NagleDelayedAck, Client) >= ms(38), "{n}{seen}");
        }
    });
}

/// RFC 896 holds a tail while anything is outstanding, also after two full segments, if their
/// receiver delays the ACK of both.
#[test]
fn a_tail_is_held_behind_two_full_segments_on_other_stacks() {
    let rtt = ms(20);
    log("handshake\n +5 C 100\n +0 S 1448x2\n +200 C ack\n +0 S 100\n +0 C ack").rtt(rtt).both_ends(|seen| {
        let bill =
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Server, ms(220))]);
        assert_eq!(bill.of(Cause::NagleDelayedAck).detail.form, Some(Form::Rfc896), "{seen}");
    });
}

/// A full segment is shorter than the MSS by its options other than time stamps (AccECN, RFC 6824's
/// DSS, SACK blocks on data) (RFC 6691).
#[test]
fn segments_are_full_that_their_options_make_shorter() {
    let flights = each(0..40, |_| "+0 S ack\n +0 C 1432x2 more".to_owned());
    let log = log(format!("handshake\n +5 C 1432x2 more\n {flights}\n +0 C 700\n +0 S 10")).rtt(ms(20));
    for end in [End::Client, End::Server] {
        let mut analysis = Analysis::new(Options { ..EVERYTHING });
        for mut segment in log.capture(end) {
            segment.options.beside_stamps = if segment.payload_len == 1432 { 16 } else { 0 };
            analysis.on_segment(&segment);
        }
        let report = analysis.finish();
        let held = [Cause::Cork, Cause::Nagle, Cause::NagleDelayedAck, Cause::SenderThink];
        let wrong: Vec<_> = report.bill.iter().filter(|line| held.contains(&line.cause)).collect();
        assert!(wrong.is_empty(), "{end:?}: {wrong:?}");
    }
}

/// An FTP server greets in two writes, the second waiting for the client's timer; the clocks of
/// both hosts count milliseconds and tick every 500 of them, so all stamps are equal (frames 1 to 6
/// of an OS/400's session): they do not show when it left.
#[test]
fn stamps_that_are_alike_do_not_date_what_an_acknowledgement_let_go() {
    let greeting =
        log("handshake\n +60 S 36 #first\n first+215 C ack #held\n held+0 S 56\n +0 C ack").rtt(ms(0.5));
    let mut segments = greeting.capture(End::Client);
    for stamps in segments.iter_mut().filter_map(|segment| segment.options.timestamps.as_mut()) {
        (stamps.val, stamps.ecr) = (stamps.val / 500 * 500, stamps.ecr / 500 * 500);
    }
    let seen = Seen::of(segments, "a greeting in two writes");
    assert!(seen.spent(Cause::NagleDelayedAck, Server) >= ms(210), "{seen}");
}

/// Telnet options cross: the client's three bytes leave before the server's last fifteen arrive,
/// whose ACK it delays, and 26 us after that the server's eighteen follow (frames 8 to 12 of a
/// login): Nagle held them, though they look like a reply. If the request acknowledges everything,
/// it is the server's own time.
#[test]
fn an_answer_is_held_beside_what_was_said_before_its_question() {
    for (crosses, held) in [(true, true), (false, false)] {
        let (asks, released) =
            if crosses { ("a+0.03", "tail+41.2 C ack\n +0.03") } else { ("tail+0.01", "late+0.2") };
        let text = format!(
            "handshake\n +4 C 24\n +0.05 S ack\n +0.6 S 12\n +0.05 C ack #a\n +0.02 S 15 #tail\n {asks} C 3 #ask\n \
             ask+41 S ack #late\n {released} S 18\n +0.01 C 9"
        );
        let seen = log(text).rtt(ms(0.6)).seen_at(End::Server);
        assert_eq!(seen.spent(Cause::NagleDelayedAck, Server) >= ms(40), held, "{crosses}: {seen}");
        assert_eq!(seen.spent(Cause::ServerThink, Server) >= ms(40), !held, "{crosses}: {seen}");
    }
}

/// A phone writes a request's head, then its body of two full segments and a rest: the rest leaves
/// 2 ms after the ACK of the small head (frames 13 to 17 of a phone's TLS), which had held it.
/// Windows holds full segments as well, and a first one holds more than three. Later data was
/// written later.
#[test]
fn the_rest_of_a_write_waits_for_the_small_one_before_it_on_a_slow_host_too() {
    for (late, nagle) in [(2, true), (12, false)] {
        let text = format!(
            "handshake\n +5 C 126\n +1 S 262\n +7 C 414 #head\n +0.3 C 1448x2 more every=1.6\n head+0.5 S ack #acked\n acked+{late} C 1287 #rest\n rest+0 S ack\n +177 S 565\n +0 C ack"
        );
        let seen = log(text).rtt(ms(22)).seen_at(End::Client);
        let held = seen.spent(Cause::Nagle, Client);
        assert_eq!(held >= ms(15), nagle, "{late}: {seen}");
        assert!(!nagle || !seen.spent(Cause::SlowStart, Client).is_positive(), "{seen}");
    }
}

/// A home router answers DNS with the length's first byte, and with the rest 2.75 ms after the ACK
/// of that, which the client's timer had delayed by 50 ms (frames 1108 to 1114). This connection's
/// only round trip was its handshake of 13.7 ms; another connection between the two has seen 1.1
/// ms. A pause of the program is as possible if the first piece may be a message, and the only
/// reading without that other connection.
#[test]
fn a_hold_ends_sooner_than_the_round_trips_so_far() {
    let talk = |first: u32| {
        format!(
            "@0 C syn\n @12.6 S syn\n @13.7 C ack\n @13.9 C 2 #n\n n+0.01 C 40 #q\n q+150 S {first} #one\n one+49.8 C ack #heard\n heard+1.65 S 308 #rest\n rest+0 C ack"
        )
    };
    let sibling = log("handshake\n +5 C 100\n +2 S 200\n +0 C ack").rtt(ms(1.1));
    let sibling = sibling.between([Endpoint { port: 40_001, ..CLIENT }, SERVER]).capture(End::Client);
    for (first, beside, sure) in [(1, true, Some(Likely)), (60, true, Some(Possible)), (1, false, None)] {
        let mut segments = log(talk(first)).rtt(ms(1.1)).without_timestamps().capture(End::Client);
        if beside {
            let early = Duration::from_millis(200);
            segments.extend(sibling.iter().map(|segment| Segment { at: segment.at - early, ..*segment }));
        }
        segments.sort_by_key(|segment| segment.at);
        let seen = Seen::of(segments, "the client");
        let lines = seen.report.connections.iter().flat_map(|of| &of.exchanges).flat_map(|of| &of.bill);
        let mut held = lines.filter(|line| line.cause == Cause::NagleDelayedAck && line.ns >= ms(52));
        assert_eq!(held.next().map(|line| line.confidence), sure, "{seen}");
    }
}

/// An old SSH client's NEWKEYS, 16 bytes without a reply, and its first encrypted request: written
/// at once, and held until the server's timer has acknowledged the former (frames 234 to 238 of a
/// session). The heads of its messages say nothing of either.
#[test]
fn a_question_behind_new_keys_is_held_until_they_are_acknowledged() {
    let text = "handshake\n +1 C 144 asks\n +13.6 S 720 answers\n +3 C 16 #keys\n keys+34.46 S ack\n +0.1 C 48 #asked\n asked+0.28 S 48\n +0 C ack";
    log(text).rtt(ms(0.19)).both_ends(|seen| {
        let held = seen.spent(Cause::NagleDelayedAck, Client);
        assert!((held - ms(34.75)).as_millis_f64().abs() < 0.5, "{held}: {seen}");
        assert_eq!(seen.exchange(2).exchange.request_bytes, 64, "{seen}");
    });
}

/// Far from the sender, a second small piece that comes before any acknowledgement of the first was not
/// held, however well an earlier acknowledgement fits the path's variation.
#[test]
fn an_acknowledgement_of_an_earlier_segment_releases_nothing() {
    let hello = "handshake\n +2.6 C 7\n +0 S ack\n +4.6 S 16\n";
    let apart = format!("{hello} +0.7 C 15\n +9.6 C 45\n +0 S ack\n +26 S 300\n +0 C ack");
    log(apart).rtt(ms(246)).both_ends(|seen| {
        let bill = seen.exchange(2).never(Cause::Nagle).never(Cause::NagleDelayedAck);
        assert_eq!(bill.ns(Cause::SenderThink, Client), ms(9.6), "{seen}");
    });
    let held = format!("{hello} +0.7 C 15\n +0 S ack\n +0 C 45\n +26 S 300\n +0 C ack");
    log(held).rtt(ms(246)).both_ends(|seen| {
        assert_eq!(seen.exchange(2).ns(Cause::Nagle, Client), ms(246), "{seen}");
    });
}
