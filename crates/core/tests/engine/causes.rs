//! One minimal log per cause: the reason why its code exists. Each is judged from both ends; if one end
//! cannot see the cause, the test says what it sees instead.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server, Unknown};

use crate::packet_log::{End, MSS, each, log, ms, settled};

/// TCP_DELACK_MIN (include/net/tcp.h): how long Linux delays an acknowledgement.
const DELACK_MS: f64 = 40.0;

/// 48 full segments, and a multiple of the window scale's unit.
const FULL_WINDOW: u32 = 48 * MSS as u32;

const ROUND_TRIPS_MS: [f64; 4] = [0.0, 2.0, 26.0, 100.0];

#[test]
fn round_trip_is_all_that_a_healthy_exchange_costs() {
    for rtt in ROUND_TRIPS_MS.map(ms) {
        let rpc = log("handshake
             +5 C 100
             +0 S 200
             +0 C ack
             +5 C 100
             +0 S 200
             +0 C ack");
        rpc.rtt(rtt).both_ends(|seen| {
            for n in [1, 2] {
                seen.exchange(n).is(&[(Cause::RoundTrip, Path, rtt)]);
            }
        });
    }
}

/// A hundred segments through 10 Mbit/s: each needs 1448 * 8 / 10^7 s.
#[test]
fn bandwidth_is_the_time_of_the_bytes_on_the_bottleneck() {
    // The receiver acknowledges every second segment as it arrives.
    let acks = each(1..=50, |i| format!("@{:.4} C ack", 45.0 + 40.0 + f64::from(2 * i) * 1.1584));
    let text = format!("handshake\n +5 C 100\n +0 S 1448x100\n {acks}");
    let (rtt, serialisation) = (ms(40), ms(100.0 * 1448.0 * 8.0 / 10e6 * 1e3));
    log(text).rtt(rtt).bottleneck(End::Server, 10_000_000).both_ends(|seen| {
        // The first segment's own passage cannot be told from the server's time, and no rate is known before four
        // of them have passed.
        seen.exchange(1).is_within(
            ms(4.0 * 1.1584 + 0.5),
            &[(Cause::RoundTrip, Path, rtt), (Cause::Bandwidth, Path, serialisation)],
        );
    });
}

#[test]
fn handshake_is_the_connection_s_own_round_trip() {
    for rtt in ROUND_TRIPS_MS.map(ms) {
        log("handshake\n +0 C 100\n +0 S 100").rtt(rtt).both_ends(|seen| {
            if rtt.is_positive() {
                seen.setup().is(&[(Cause::Handshake, Client, rtt)]);
            }
        });
    }
}

/// TCP_TIMEOUT_INIT: the SYN is retransmitted after 1 s.
#[test]
fn syn_retransmit_is_the_wait_for_the_second_syn() {
    let rtt = ms(40);
    let lost = log("@0    C syn lost
         @1000 C syn
         +0 S syn
         +0 C ack
         +0 C 100
         +0 S 100")
    .rtt(rtt);
    lost.seen_at(End::Client)
        .setup()
        .is(&[(Cause::SynRetransmit, Path, ms(1000)), (Cause::Handshake, Client, rtt)]);
    // The server's capture never saw the first SYN.
    lost.seen_at(End::Server).setup().is(&[(Cause::Handshake, Client, rtt)]);
}

#[test]
fn server_think_is_the_time_from_request_to_reply() {
    for rtt in ROUND_TRIPS_MS.map(ms) {
        for think_ms in [40, 200] {
            log(format!("handshake\n +5 C 100\n +{think_ms} S 200")).rtt(rtt).both_ends(|seen| {
                seen.exchange(1)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(think_ms))]);
            });
        }
    }
}

/// A client with TCP_NODELAY computes for 25 ms between the two halves of its request.
#[test]
fn sender_think_is_the_application_s_pause_within_a_message() {
    // Not 26 ms: there a pause of 25 ms ends when the acknowledgement comes, and the two cannot be told
    // apart.
    for rtt in [0, 2, 40, 100].map(ms) {
        let pause = log("handshake
             +5 C 20 #head
             head+0 S ack
             head+25 C 100 #body
             body+0 S 64");
        pause.rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Client, ms(25))]);
        });
    }
}

/// The client's application sleeps: its window of 48 segments closes, and 300 ms later it opens.
#[test]
fn receiver_think_is_the_wait_for_a_closed_window() {
    let rtt = ms(20);
    let slow = log("handshake
         +5 C 100
         +0 S 1448x48 more
         +0 C ack win=0 #closed
         closed+300 C ack
         +0 S 1448x20");
    slow.rtt(rtt).window(End::Client, FULL_WINDOW).both_ends(|seen| {
        // The server is stopped from the end of its first flight: for a round trip and the sleep.
        let bill = seen
            .exchange(1)
            .is(&[(Cause::RoundTrip, Path, rtt), (Cause::ReceiverThink, Client, rtt + ms(300))]);
        assert_eq!(bill.of(Cause::ReceiverThink).detail.form, Some(Form::ZeroWindow));
    });
}

/// The application does not read: data is acknowledged only by the timer, because that makes the window
/// smaller. In each round the congestion window takes the round trip.
#[test]
fn what_is_acknowledged_late_because_nobody_reads_is_the_reader_s() {
    let rtt = ms(20);
    let slow = log("handshake
         +5 C 100
         +0 S 1448x42 more
         +43 C ack win=138240
         +0 S 1448x42 more
         +43 C ack win=77440
         +0 S 1448x42 more
         +43 C ack win=16640
         +0 S 1448x11 more
         +43 C ack win=512 #full
         full+300 C ack
         +0 S 1448x11");
    slow.rtt(rtt).window(End::Client, 199_040).both_ends(|seen| {
        let bill = seen.exchange(1);
        let read = bill.ns(Cause::ReceiverThink, Client);
        assert!(
            read >= ms(4.0 * 43.0 + 300.0 - 1.0) && read <= ms(4.0 * 43.0 + 300.0 + 21.0),
            "{read}{seen}"
        );
    });
}

/// The last flight fills the window to its last byte, which cuts a segment there, pushed or not. The sending
/// host is busy, and takes 1.3 ms to continue.
#[test]
fn a_window_that_is_full_to_the_byte_holds_its_sender_however_slow_that_is() {
    for rtt in [ms(0.1), ms(20)] {
        let slow = log("handshake
         +5 C 100
         +0 S 1448x10 more
         +0 S 520
         +40 C ack win=0 #full
         full+60 C ack
         +1.3 S 1448x8");
        slow.rtt(rtt).window(End::Client, 15_000).both_ends(|seen| {
            let bill = seen.exchange(1);
            assert!(bill.ns(Cause::ReceiverThink, Client) >= ms(98), "{seen}");
            assert!(bill.ns(Cause::SenderThink, Server) <= ms(2), "{seen}");
        });
    }
}

/// write, write, read: the second write waits for the acknowledgement of the first, which the server delays
/// until its timer, because it has nothing to answer yet. The first exchange is acknowledged at once (quick
/// ACKs).
#[test]
fn nagle_delayed_ack_is_both_ends_waiting_for_each_other() {
    for rtt in ROUND_TRIPS_MS.map(ms) {
        let echo = log("handshake
             +5 C 20
             +0.05 S ack
             +0 C 100
             +0.05 S 64
             +5 C 20
             +40 S ack
             +0 C 100
             +0.05 S 64
             +5 C 20
             +40 S ack
             +0 C 100
             +0.05 S 64");
        echo.rtt(rtt).both_ends(|seen| {
            for n in [2, 3] {
                let bill = seen.exchange(n).is(&[
                    (Cause::RoundTrip, Path, rtt),
                    (Cause::NagleDelayedAck, Client, rtt + ms(DELACK_MS)),
                ]);
                assert_eq!(bill.of(Cause::NagleDelayedAck).detail.held_bytes, Some(100));
            }
        });
    }
}

/// The same with a server that acknowledges at once: the hold is a round trip.
#[test]
fn nagle_alone_costs_a_round_trip() {
    for rtt in [2, 26, 100].map(ms) {
        let echo = log("handshake
             +5 C 20
             +0 S ack
             +0 C 100
             +0 S 64");
        echo.rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Nagle, Client, rtt)]);
        });
    }
}

/// A corked tail leaves max(RTO, 200 ms) after everything before it was acknowledged; RTO = RTT + 200 ms once
/// settled.
#[test]
fn cork_holds_the_tail_until_the_timer() {
    for rtt_ms in [0, 4, 40] {
        let rtt = ms(rtt_ms);
        let corked = format!(
            "+5 C 100
             +0 S 1448x2 more
             +0 C ack
             +{} S 100
             +0 C ack",
            200 + rtt_ms + 4
        );
        log(settled(20) + &corked).rtt(rtt).both_ends(|seen| {
            // The tail leaves a round trip and the timer after the two segments before it.
            seen.exchange(21)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::Cork, Server, rtt + ms(204 + rtt_ms))]);
        });
    }
}

/// A window of one segment against a receiver that acknowledges every second segment or after its timer.
#[test]
fn delayed_ack_cwnd_is_a_window_of_one_against_a_held_back_acknowledgement() {
    for rtt in [2, 40].map(ms) {
        let starved = log("handshake
             +5 C 100
             +0 S 1448 more
             +200 C ack
             +0 S 1448x2
             +0 C ack");
        starved.rtt(rtt).both_ends(|seen| {
            seen.exchange(1)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::DelayedAckCwnd, Client, rtt + ms(200))]);
        });
    }
}

/// 150 segments from a window of ten: 10, 20, 40, 80 in four flights, three of them waited for.
#[test]
fn slow_start_is_the_rounds_that_double() {
    for rtt in [10, 100].map(ms) {
        let cold = log("handshake
             +5 C 100
             +0 S 1448x10 more
             +0 C ack
             +0 S 1448x20 more
             +0 C ack
             +0 S 1448x40 more
             +0 C ack
             +0 S 1448x80
             +0 C ack");
        cold.rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt.times(3))]);
        });
    }
}

/// The same rounds on a connection that had grown to a window of 80 and then was idle for ten seconds.
#[test]
fn slow_start_after_idle_is_the_same_rounds_again() {
    let rtt = ms(40);
    let rounds = "
         +0 S 1448x10 more
         +0 C ack
         +0 S 1448x20 more
         +0 C ack
         +0 S 1448x40 more
         +0 C ack
         +0 S 1448x80
         +0 C ack";
    let text = format!("handshake\n +5 C 100 {rounds}\n +10000 C 100 {rounds}");
    log(text).rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt.times(3))]);
        seen.exchange(2)
            .is(&[(Cause::RoundTrip, Path, rtt), (Cause::SlowStartAfterIdle, Server, rtt.times(3))]);
    });
}

/// Slow start after the idle time ends at 36 segments, as with HyStart, and the window grows by two per round
/// from there. A window of 80 would have sent all of it at once: these rounds are due to the idle time too
/// (tcp_cwnd_restart).
#[test]
fn what_a_window_that_was_reset_lacks_behind_its_start_is_the_idle_time_s() {
    let rtt = ms(40);
    let flights = |segments: &[u32]| each(segments, |count| format!("+0 S 1448x{count} more\n +0 C ack"));
    let text = format!(
        "handshake\n +5 C 100\n {}\n +0 S 100\n +0 C ack\n +10000 C 100\n {}\n +0 S 100\n +0 C ack",
        flights(&[10, 20, 40, 80]),
        flights(&[10, 20, 36, 38, 40])
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(2).never(Cause::CongestionWindow);
        assert!(bill.ns(Cause::SlowStartAfterIdle, Server) >= rtt.times(4) - ms(1), "{seen}");
    });
}

/// After a loss the window grows by one segment a round.
#[test]
fn congestion_window_is_the_rounds_after_a_loss() {
    let rtt = ms(40);
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448 more lost #hole
         hole+0 S 1448x9 more #rest
         rest+0 C ack
         rest+0 C ack
         rest+0 C ack
         +0 S 0..{MSS} more
         +0 C ack
         +0 S 1448x6 more
         +0 C ack
         +0 S 1448x7 more
         +0 C ack
         +0 S 1448x8
         +0 C ack"
    );
    log(text).rtt(rtt).both_ends(|seen| {
        // A round for the repair, then three flights, each waited for.
        seen.exchange(1).is(&[
            (Cause::RoundTrip, Path, rtt),
            (Cause::Loss, Path, rtt),
            (Cause::CongestionWindow, Server, rtt.times(3)),
        ]);
    });
}

/// A locked buffer of 48 segments: every round fills the window exactly.
#[test]
fn receive_window_is_a_round_trip_for_each_full_window() {
    let rtt = ms(26);
    let fetch = "\n +5 C 100\n +0 S 1448x48 more".to_owned()
        + &"\n +0 C ack\n +0 S 1448x48 more".repeat(4)
        + "\n +0 C ack\n +0 S 1448x48\n +0 C ack";
    log(format!("handshake {fetch} {fetch}")).rtt(rtt).window(End::Client, FULL_WINDOW).both_ends(|seen| {
        let expected = [(Cause::RoundTrip, Path, rtt), (Cause::ReceiveWindow, Client, rtt.times(5))];
        seen.exchange(1).is(&expected);
        // That the window never grows shows only after a while.
        let later = seen.exchange(2).is(&expected);
        assert_eq!(later.of(Cause::ReceiveWindow).detail.form, Some(Form::Locked), "{seen}");
    });
}

/// Flights of exactly 20 segments, round after round, with a window for a thousand: a locked SO_SNDBUF.
#[test]
fn send_buffer_is_rounds_that_do_not_grow() {
    let rtt = ms(26);
    let text = "handshake\n +5 C 100\n +0 S 1448x20 more".to_owned()
        + &"\n +0 C ack\n +0 S 1448x20 more".repeat(5)
        + "\n +0 C ack\n +0 S 1448x20";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        bill.elapsed(rtt.times(7), ms(1));
        // It takes one round to see that the next is no larger.
        let found = bill.ns(Cause::SendBuffer, Server);
        assert!(found >= rtt.times(5), "{found}{seen}");
    });
}

/// Twenty segments a millisecond apart, none of them waiting for an acknowledgement.
#[test]
fn pacing_is_segments_spaced_by_their_sender() {
    let rtt = ms(40);
    let paced = log("handshake
         +5 C 100
         +0 S 1448x20 every=1")
    .rtt(rtt);
    paced
        .seen_at(End::Server)
        .exchange(1)
        .is(&[(Cause::RoundTrip, Path, rtt), (Cause::Pacing, Server, ms(19))]);
    // At the client the spacing could equally be the bottleneck's.
    let seen = paced.seen_at(End::Client);
    let bill = seen.exchange(1).elapsed(rtt + ms(19), ms(1));
    let spaced = bill.ns(Cause::Bandwidth, Path) + bill.ns(Cause::Pacing, Server);
    assert!(ms(19) - spaced <= ms(1), "{seen}");
}

/// Fast retransmission: three selective acknowledgements trigger the retransmission of the first of ten
/// segments after a round trip.
#[test]
fn loss_is_a_repair_by_selective_acknowledgement() {
    for rtt in [2, 40].map(ms) {
        let text = format!(
            "handshake
             +5 C 100
             +0 S 1448 more lost #hole
             hole+0 S 1448x9 #rest
             rest+0 C ack
             rest+0 C ack
             rest+0 C ack
             +0 S 0..{MSS}
             +0 C ack"
        );
        log(text).rtt(rtt).both_ends(|seen| {
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Loss, Path, rtt)]);
        });
    }
}

/// A single request is lost: RTO = RTT + 200 ms.
#[test]
fn rto_is_the_timer_of_a_lone_segment() {
    for rtt_ms in [2, 40] {
        let rtt = ms(rtt_ms);
        let request = format!("+5 C 100 lost #request\n request+{} C 2000..2100\n +0 S 200", 200 + rtt_ms);
        let lost = log(settled(20) + &request).rtt(rtt);
        let expected = [(Cause::RoundTrip, Path, rtt), (Cause::Rto, Path, ms(200 + rtt_ms))];
        lost.seen_at(End::Client).exchange(21).is(&expected);
        // The server's capture sees only the retransmission: the estimated timer stands for the wait.
        lost.seen_at(End::Server).exchange(21).is_within(ms(10), &expected);
    }
}

/// A segment delayed on the path by 3 ms and overtaken by the rest of its flight.
#[test]
fn queueing_is_a_segment_overtaken_on_the_path() {
    let rtt = ms(40);
    let reordered = log("handshake
         +5 C 100
         +0 S 1448 more late=3
         +0 S 1448x3")
    .rtt(rtt);
    let seen = reordered.seen_at(End::Client);
    let bill = seen.exchange(1).elapsed(rtt + ms(3), ms(1));
    bill.never(Cause::Loss).never(Cause::Rto);
    assert!(bill.ns(Cause::Queueing, Path) >= ms(2), "{seen}");
    // In the server's capture, before the path, nothing of it shows.
    reordered.seen_at(End::Server).exchange(1).is(&[(Cause::RoundTrip, Path, rtt)]);
}

/// More was queued, half of what was in flight was acknowledged, no timer agrees: 90 ms that no rule
/// explains.
#[test]
fn unexplained_is_said_and_not_spread() {
    let rtt = ms(20);
    let stall = log("handshake
         +5 C 100
         +0 S 1448x2 more #half
         half+0 C ack
         half+0.01 S 1448x2 more
         half+90 S 1448x2");
    stall.rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Unexplained, Unknown, ms(70) + rtt)]);
    });
}

#[test]
fn every_cause_has_its_test() {
    let source = concat!(include_str!("causes.rs"), include_str!("spoken.rs"));
    for cause in Cause::ALL {
        let name = format!("fn {}_", cause.name().replace('-', "_"));
        assert!(source.contains(&name), "no test begins with `{name}`");
    }
}
