//! Where the easy answer is wrong: the same milliseconds with another cause.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::{Confidence, Kind};
use tcpwhy_wire::Flags;

use crate::packet_log::{End, MSS, each, log, ms, settled};
use crate::seen::Seen;

/// 40 ms are the server's if it takes them, whatever a delayed ACK does in the meantime.
#[test]
fn a_server_that_takes_forty_or_two_hundred_ms_thinks() {
    for rtt in [0, 2, 26, 100].map(ms) {
        for think_ms in [41, 200] {
            let slow =
                format!("\n +5 C 100 #request\n request+40 S ack\n request+{think_ms} S 200\n +0 C ack");
            log("handshake".to_owned() + &slow.repeat(5)).rtt(rtt).both_ends(|seen| {
                for n in 1..=5 {
                    seen.exchange(n)
                        .is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(think_ms))]);
                }
            });
        }
    }
}

/// With TCP_NODELAY all of the pause is the program's, although the ACK would have come at about
/// the same time.
#[test]
fn a_pausing_client_with_nodelay_waits_for_nothing() {
    for rtt in [0, 2, 100].map(ms) {
        for pause_ms in [25, 39] {
            let first = format!("\n +5 C 20 #head\n +0 S ack\n head+{pause_ms} C 100\n +0 S 64\n +0 C ack");
            // From the second exchange on the server would acknowledge after 40 ms; the body comes before.
            let later = format!("\n +5 C 20\n +{pause_ms} C 100\n +0 S 64\n +0 C ack");
            log(format!("handshake{first}{}", later.repeat(5))).rtt(rtt).both_ends(|seen| {
                for n in 1..=6 {
                    seen.exchange(n)
                        .is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(pause_ms))]);
                }
            });
        }
    }
}

/// Without it the pause is a separate line, as long as in the first exchange, which was
/// acknowledged at once; the rest of the wait is due to Nagle and the delayed ACK.
#[test]
fn a_pausing_client_with_nagle_gets_two_lines() {
    let rtt = ms(2);
    for pause_ms in [25, 38] {
        let first = format!("\n +5 C 20 #head\n +0 S ack\n head+{pause_ms} C 100\n +0 S 64\n +0 C ack");
        let later = "\n +5 C 20\n +40 S ack\n +0 C 100\n +0 S 64\n +0 C ack";
        log(format!("handshake{first}{}", later.repeat(5))).rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(pause_ms))]);
            for n in 2..=6 {
                seen.exchange(n).is(&[
                    (Cause::RoundTrip, Path, rtt),
                    (Cause::SenderThink, Client, ms(pause_ms)),
                    (Cause::NagleDelayedAck, Client, ms(40) + rtt - ms(pause_ms)),
                ]);
            }
        });
    }
}

/// Minshall's form of Nagle does not hold the tail of a write: only full segments are outstanding.
#[test]
fn a_reply_slightly_over_one_segment_does_not_stall() {
    for rtt in [0, 26, 100].map(ms) {
        log("handshake\n +5 C 100\n +0 S 1448 more\n +0 S 100\n +0 C ack").rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt)]);
        });
    }
}

/// RFC 896's form holds it until the full segment is acknowledged; the receiver waits for a second segment.
#[test]
fn a_reply_slightly_over_one_segment_stalls_on_other_stacks() {
    let rtt = ms(20);
    log("handshake\n +5 C 100\n +0 S 1448 more\n +200 C ack\n +0 S 100\n +0 C ack").rtt(rtt).both_ends(
        |seen| {
            let bill = seen
                .exchange(1)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Server, rtt + ms(200))]);
            let line = bill.of(Cause::NagleDelayedAck);
            // A window of one segment would look the same.
            assert_eq!((line.confidence, line.detail.form), (Confidence::Possible, Some(Form::Rfc896)));
        },
    );
}

/// The client's two writes leave at once; the server's second waits for the ACK of its first.
#[test]
fn a_nodelay_client_against_a_server_that_writes_twice_blames_the_server() {
    for rtt in [0, 2, 26, 100].map(ms) {
        let exchange = "
            +5 C 20
            +0.05 C 100
            +0.05 S 30
            +40 C ack
            +0 S 200
            +0.05 C ack";
        log("handshake".to_owned() + &exchange.repeat(4)).rtt(rtt).both_ends(|seen| {
            for n in 1..=4 {
                seen.exchange(n)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Server, rtt + ms(40))]);
            }
        });
    }
}

/// A sleep of 200 ms starts with the write; the cork's timer starts a round trip later, with the acknowledgement.
#[test]
fn a_server_that_sleeps_two_hundred_ms_is_not_corked() {
    for rtt in [4, 40].map(ms) {
        log(settled(20) + "\n +5 C 100\n +0 S 300 #head\n +0 C ack\n head+200 S 100\n +0 C ack")
            .rtt(rtt)
            .both_ends(|seen| {
                seen.exchange(21)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Server, ms(200))])
                    .never(Cause::Cork);
            });
    }
}

/// The last of five segments is lost: its timer starts with the acknowledgement of the other four, RTT + 200 ms.
#[test]
fn a_lost_tail_waits_for_the_timer() {
    let rtt = ms(40);
    let sent = 20 * 200;
    let text = settled(20)
        + &format!(
            "
            +5 C 100
            +0 S 1448x4 more #head
            +0 S 500 lost
            head+0 C ack
            +240 S {}..{}
            +0 C ack",
            sent + 4 * MSS,
            sent + 4 * MSS + 500
        );
    log(text).rtt(rtt).both_ends(|seen| {
        seen.exchange(21).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, rtt + ms(240))]);
    });
}

/// Two segments, both lost: the tail loss probe leaves 2 * SRTT + 2 ms after them (RFC 8985, 7).
#[test]
fn a_tail_probe_is_a_fast_repair() {
    let rtt = ms(40);
    let sent = 20 * 200;
    let probe = sent + MSS;
    let text = settled(20)
        + &format!(
            "
            +5 C 100
            +0 S 1448 more lost #first
            +0 S 1000 lost
            first+82 S {probe}..{} #probe
            probe+0 C ack
            +0 S {sent}..{probe}
            +0 C ack",
            probe + 1000
        );
    log(text)
        .rtt(rtt)
        .seen_at(End::Server)
        .exchange(21)
        .is(&[(Cause::RoundTrip, Path, rtt), (Cause::Loss, Path, rtt + ms(82))]);
}

#[test]
fn a_lost_syn_ack_costs_a_second_at_either_end() {
    let rtt = ms(40);
    let by_client = log("@0    C syn
         +0    S syn lost
         @1000 C syn
         +0    S syn
         +0 C ack
         +0 C 100
         +0 S 100
         +0 C ack");
    let by_server = log("@0    C syn
         +0    S syn lost
         +1000 S syn
         +0 C ack
         +0 C 100
         +0 S 100
         +0 C ack");
    for lost in [by_client, by_server] {
        lost.rtt(rtt).both_ends(|seen| {
            seen.setup().is(&[(Cause::SynRetransmit, Path, ms(1000)), (Cause::Handshake, Client, rtt)]);
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt)]);
        });
    }
}

/// The request arrived, but its ACK was lost; the retransmission changes nothing, and D-SACK shows
/// it.
#[test]
fn a_spurious_retransmission_costs_nothing() {
    let rtt = ms(40);
    let text = settled(20)
        + "
            +5 C 100 #request
            request+40 S ack lost
            request+244 C 2000..2100 #again
            again+0 S ack
            request+300 S 200
            +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        seen.exchange(21).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(300))]);
    });
}

/// A mail server greets: the client waits from the end of the handshake.
#[test]
fn a_server_that_speaks_first_is_waited_for() {
    for rtt in [0, 26].map(ms) {
        let mail = log("handshake
             +30 S 50
             +5 C 20
             +10 S 80");
        mail.rtt(rtt).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 2);
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(30))]);
            seen.exchange(2).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(10))]);
        });
    }
}

/// Two seconds after the last exchange the server has news: a separate message, over when it is
/// acknowledged.
#[test]
fn a_push_is_the_server_s_own_message() {
    let rtt = ms(26);
    log(settled(2) + "\n +2000 S 300\n +0 C ack\n +500 C 100\n +10 S 20").rtt(rtt).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (3, 1), "{seen}");
        let push = seen.one_way(1).is(&[(Cause::RoundTrip, Path, rtt)]);
        assert_eq!(push.exchange.initiator, Server);
        seen.exchange(3).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(10))]);
    });
}

/// A metrics feed: a hundred bytes every 300 ms, never answered. Nobody waits in the pauses.
#[test]
fn a_stream_without_answers_is_billed_message_by_message() {
    for rtt in [2, 26].map(ms) {
        let items = each(1..50, |i| format!("first+{} C 100\n +0 S ack", i * 300));
        log(format!("handshake\n @200 C 100 #first\n +0 S ack\n {items}")).rtt(rtt).both_ends(|seen| {
            assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (0, 50), "{seen}");
            for n in 1..=50 {
                seen.one_way(n).is(&[(Cause::RoundTrip, Path, rtt)]);
            }
        });
    }
}

/// Several requests in flight, with pieces of replies between them. They cannot be paired, but no
/// time may be billed twice, and the round trip is never larger than the path's.
#[test]
fn interleaved_requests_are_billed_by_the_turn() {
    let rtt = ms(20);
    let http2 = log("handshake
         +5 C 90
         +5 C 40 #second
         second+10 S 1200 #a
         a+0 C 40
         a+15 S 1448x3
         +2 S 300 #b
         b+3 C 60
         b+9 S 900
         +20 S 100
         +0 C ack");
    http2.rtt(rtt).both_ends(|seen| {
        let exchanges = &seen.connection().exchanges;
        let billed: tcpwhy_wire::Duration = exchanges.iter().map(|exchange| exchange.elapsed).sum();
        let first = seen.segments.first().map(|segment| segment.at).unwrap();
        let last = seen.segments.last().map(|segment| segment.at).unwrap();
        assert!(billed <= last - first + rtt.times(exchanges.len() as i64), "{billed}{seen}");
        for exchange in exchanges {
            let round_trip = exchange.bill.iter().find(|line| line.cause == Cause::RoundTrip);
            assert!(round_trip.is_none_or(|line| line.ns <= rtt + rtt), "{seen}");
        }
    });
}

/// The reply comes after the client has closed its direction: a half-close is not the end.
#[test]
fn a_half_closed_connection_is_answered() {
    let rtt = ms(26);
    log("handshake\n +5 C 100 fin\n +0 S ack\n +50 S 500 fin\n +0 C ack").rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(50))]);
    });
}

/// By its IP identifications, the original of a message was lost before the capture point: its wait
/// is before the retransmission, not after it.
#[test]
fn a_first_copy_that_nobody_saw_is_billed_before_the_second() {
    let lost = log("handshake
         +0 C 100
         +0 S 100
         +0 C ack
         +40 C 1 lost
         +240 C 100..101
         +0 S ack
         +300 C 1
         +0 S ack");
    let seen = lost.rtt(ms(17)).seen_at(End::Server);
    let [first, second] = [1, 2].map(|n| seen.one_way(n).exchange);
    assert!(first.elapsed >= ms(217), "{seen}");
    assert!(first.start + first.elapsed <= second.start + ms(17), "{seen}");
}

/// After the handshake's two packets the client's packet numbers skip one, and the time since then
/// is that of its timer.
#[test]
fn a_first_request_that_nobody_saw_costs_its_timer() {
    let lost = log("handshake
         +0.1 C 100 lost #first
         first+204 C 0..100 #again
         again+0 S 200
         +0 C ack");
    lost.rtt(ms(1)).both_ends(|seen| {
        let repair = seen.exchange(1).ns(Cause::Rto, Path);
        assert!(repair >= ms(198) && repair <= ms(206), "{seen}");
    });
    let paused = log("handshake\n +204 C 100\n +0 S 200\n +0 C ack");
    paused.rtt(ms(1)).both_ends(|seen| assert_eq!(seen.exchange(1).exchange.elapsed, ms(1), "{seen}"));
}

/// The rest of a request reaches the server just before the ACK of its first reply: that ACK held
/// the second reply only for the time between the two.
#[test]
fn an_answer_waits_for_its_request_before_it_waits_for_an_acknowledgement() {
    let rtt = ms(20);
    log("handshake
         +5 C 120 #head
         head+0 S ack
         +0 C 480 #rest
         head+0.2 S 100 #first
         first+0 C ack
         rest+0.1 S 400
         +0 C ack")
    .rtt(rtt)
    .both_ends(|seen| {
        seen.exchange(1).is_within(ms(1), &[(Cause::RoundTrip, Path, rtt), (Cause::Nagle, Client, rtt)]);
    });
}

/// `Expect: 100-continue`, which the server does not answer: curl sends the body after a second.
#[test]
fn a_client_that_waits_a_second_for_leave_to_go_on_thinks() {
    let rtt = ms(20);
    let text = "\n +5 C 200 #head\n head+0 S ack\n head+1001 C 700\n +3 S 100\n +0 C ack";
    log("handshake".to_owned() + text).rtt(rtt).both_ends(|seen| {
        let expected = [
            (Cause::RoundTrip, Path, rtt),
            (Cause::SenderThink, Client, ms(1001)),
            (Cause::ServerThink, Server, ms(3)),
        ];
        seen.exchange(1).is(&expected);
    });
}

/// The handshake's answer was late, so the server seems further away than it is. Its reply was to
/// the retransmission: it echoes that one's time stamp.
#[test]
fn an_answer_that_echoes_the_second_copy_had_waited_for_it() {
    let text = "@0 C syn
         +0 S syn late=14
         +0 C ack
         +0.1 C 100 lost #first
         first+208 C 0..100
         +0 S 3
         +0 C ack";
    let seen = log(text).rtt(ms(0.4)).seen_at(End::Client);
    assert!(seen.exchange(1).ns(Cause::Rto, Path) >= ms(200), "{seen}");
    assert!(seen.exchange(1).ns(Cause::ServerThink, Server) <= ms(1), "{seen}");
}

/// SYNs with FIN, which scanners send to test a host's reaction (frames 180 to 198 of a scan): they
/// open nothing, and nobody waits for an answer.
#[test]
fn who_closes_with_its_syn_opens_nothing() {
    let mut segments = log("@0 C syn\n @200 C syn\n @400 C syn").capture(End::Client);
    for probe in [false, true] {
        if probe {
            for segment in &mut segments {
                segment.flags.0 |= Flags::FIN | Flags::PSH;
            }
        }
        let seen = Seen::of(segments.clone(), "a scanner");
        assert_eq!(seen.report.bill.iter().any(|line| line.cause == Cause::SynRetransmit), !probe, "{seen}");
    }
}
