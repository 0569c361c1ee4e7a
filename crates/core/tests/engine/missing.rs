//! Packets that were sent and arrived and are not in the capture: what depends on them is not made up.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::{Confidence, Kind};

use crate::packet_log::{End, MSS, each, log, ms};
use crate::seen::Seen;

/// A request in two writes, of which Nagle holds the second one until the delayed acknowledgement.
const STALL: &str = "\n +5 C 20 #first\n +40 S ack\n +0 C 100\n +0 S 64";

/// Whoever has seen an answer goes on with the next request, whether the capture has that answer or not.
#[test]
fn a_missing_reply_does_not_join_two_exchanges() {
    for rtt in [0, 26].map(ms) {
        let missing = STALL.replace("S 64", "S 64 unseen");
        let text = format!("handshake{}{missing}{}", STALL.repeat(3), STALL.repeat(3));
        log(text).rtt(rtt).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 6, "{seen}");
            for n in 2..=6 {
                seen.exchange(n)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Client, ms(40) + rtt)]);
            }
        });
    }
}

/// A sender that minds Nagle has had the acknowledgement, so that nobody can say what it waited for.
#[test]
fn a_missing_acknowledgement_makes_no_pause_of_a_hold() {
    for rtt in [0, 26].map(ms) {
        let missing = STALL.replace("S ack", "S ack unseen");
        let text = format!("handshake{}{missing}{}", STALL.repeat(3), STALL.repeat(3));
        log(text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(4).elapsed(ms(40) + rtt.times(2), ms(1));
            bill.never(Cause::SenderThink);
            assert!(bill.of(Cause::Unexplained).ns >= ms(40), "{seen}");
            seen.exchange(5)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Client, ms(40) + rtt)]);
        });
    }
}

/// Nothing is sent beyond a window: a wider one had come.
#[test]
fn a_missing_window_makes_no_pause_of_a_reader_s() {
    let window = 20 * MSS;
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448x20 more
         +0 C ack win=0 #full
         +180 C ack win={window} unseen
         +0 S 1448x20
         +0 C ack"
    );
    log(text).rtt(ms(10)).window(End::Client, window as u32).both_ends(|seen| {
        let bill = seen.exchange(1).never(Cause::SenderThink).never(Cause::CongestionWindow);
        assert!(bill.of(Cause::Unexplained).ns >= ms(180), "{seen}");
    });
}

/// Before the first prompt answer, an acknowledgement that was held back is all that shows the way to the peer.
#[test]
fn the_first_hold_behind_the_beginning_is_as_long_as_the_next_ones() {
    let reply = "\n +5 C 120\n +0 S 150\n +40 C ack\n +0 S 1000";
    for rtt in [0, 2].map(ms) {
        for (stall, side) in [(STALL, Client), (reply, Server)] {
            let all = log("handshake".to_owned() + &stall.repeat(6)).rtt(rtt);
            for end in End::BOTH {
                let seen = Seen::of(all.capture(end).split_off(3), &format!("the {end:?}, midway"));
                let first = seen.exchange(1).never(Cause::Nagle);
                // At the far end, nothing has shown the sender's distance either.
                let held = first.ns(Cause::NagleDelayedAck, side) >= ms(39);
                let line = &first.exchange.bill[0];
                assert!(held || line.confidence == Confidence::Possible, "{seen}");
            }
        }
    }
}

/// How long the server's timer runs was measured before the capture began: a whole reply held by a cork cannot be told
/// from a pause.
#[test]
fn a_pause_as_long_as_a_timer_is_not_certain_without_the_beginning() {
    let round = each(0..6, |_| "+5 C 100 #request\n request+40 S ack\n request+206 S 200".to_owned());
    let corked = log(format!("handshake\n{round}"));
    for end in End::BOTH {
        let seen = Seen::of(corked.capture(end).split_off(3), &format!("the {end:?}, midway"));
        for n in 1..=6 {
            for line in &seen.exchange(n).exchange.bill {
                let sure = line.confidence == Confidence::Certain && line.ns >= ms(100);
                assert!(line.cause != Cause::ServerThink || !sure, "{seen}");
            }
        }
    }
}

/// Where an acknowledgement was not captured, its sender's packets are numbered past it: the next one shows that, and
/// that the segment before minded Nagle after all.
#[test]
fn a_missing_acknowledgement_does_not_turn_nagle_off() {
    let reply = "\n +5 C 100\n +0 S 60\n +40 C ack\n +0 S 120\n +0 C ack";
    let missing = "\n +5 C 100\n +0 S 60\n +0 C ack unseen\n +0 S 120\n +0 C ack";
    for rtt in [0, 26].map(ms) {
        let text = format!("handshake{missing}{}", reply.repeat(4));
        log(text).rtt(rtt).both_ends(|seen| {
            for n in 2..=5 {
                let held = seen.exchange(n).ns(Cause::NagleDelayedAck, Server);
                assert!(held >= ms(40), "{n}{seen}");
            }
        });
    }
}

/// Whoever answers a request that is not in the capture is not still answering the one before.
#[test]
fn a_missing_request_does_not_join_two_exchanges() {
    let missing = "\n +5 C 100 unseen\n +0 S 60\n +40 C ack\n +0 S 120\n +0 C ack";
    let reply = missing.replace(" unseen", "");
    let text = format!("handshake{}{missing}{}", reply.repeat(3), reply.repeat(2));
    for rtt in [0, 26].map(ms) {
        log(&text).rtt(rtt).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 5, "{seen}");
            for n in 1..=5 {
                let bill = seen.exchange(n);
                assert!(bill.exchange.elapsed <= ms(41) + rtt.times(2), "{n}{seen}");
            }
        });
    }
}

/// A server that takes its time acknowledges the request meanwhile. Where that packet is not in the capture, it was no
/// reply that got lost and was sent again.
#[test]
fn a_missing_acknowledgement_makes_no_repair_of_a_pause() {
    let request = "\n +5 C 100 #request\n request+40 S ack\n request+260 S 200\n +0 C ack";
    let talk = |n: usize| request.repeat(n).replace("#request", "#r").replace("request+", "r+");
    let missing = request.replace("S ack", "S ack unseen");
    let text = format!("handshake{}{missing}{}", talk(4), talk(1));
    for rtt in [0, 26].map(ms) {
        log(&text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(5).never(Cause::Rto);
            assert!(bill.of(Cause::ServerThink).confidence < Confidence::Certain, "{seen}");
        });
    }
}

/// What is acknowledged first behind the beginning left before it: the way is as long as that of what was captured.
#[test]
fn a_stream_s_first_acknowledgement_does_not_shorten_the_way() {
    let rtt = ms(10);
    let flights = each(0..12, |n| format!("@{} C 1448x4 more\n @{} S ack", 20 + 10 * n, 25 + 10 * n));
    let upload = log(format!("handshake\n {flights}\n +0 C 100\n +0 S 50")).rtt(rtt);
    let seen = Seen::of(upload.capture(End::Client).split_off(3 + 4 + 2), "the client, midway");
    let measured = seen.connection().rtt_min.expect("a round trip");
    assert!(measured >= ms(9), "{measured}{seen}");
}
