//! Several small things under way at once: requests sent without waiting, frames after frames,
//! tails, and a slow link that all of them share.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::{Confidence, Kind};

use crate::packet_log::{End, each, log, ms};

/// Two requests without waiting. The second reply waits for the ACK of the first, and the second
/// request had long arrived: the server is not to blame.
#[test]
fn a_second_reply_is_held_beside_the_first() {
    for rtt in [2, 26].map(ms) {
        let pipelined = log("handshake
             +5 C 30 #first
             first+0.05 C 40 #second
             first+0.01 S 20 #reply
             second+40 S ack
             reply+41 C ack
             +0 S 60
             +0 C ack");
        pipelined.rtt(rtt).both_ends(|seen| {
            seen.exchange(1)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Server, rtt + ms(41))]);
        });
    }
}

/// The same with TCP_NODELAY at the server, seen earlier: a reply 41 ms later was thought about for
/// that long.
#[test]
fn a_second_reply_of_a_server_without_nagle_is_thought_about() {
    let rtt = ms(2);
    let pipelined = log("handshake
         +5 C 30
         +0 S 20
         +0.2 S 20
         +5 C 30 #first
         first+0.05 C 40
         first+0.01 S 20 #reply
         reply+41 C ack
         +0 S 60
         +0 C ack");
    pipelined.rtt(rtt).both_ends(|seen| {
        seen.exchange(2).never(Cause::NagleDelayedAck).never(Cause::Nagle);
    });
}

const FRAMES_AT_FIRST: &str = "handshake
     +5 C 100
     +0 S ack
     +0 C 300
     +0 S 200";

/// Four frames in four writes: the last three wait until the first is acknowledged. The quick ACK
/// of the first exchange shows it; later the ACK comes with the first frame's reply.
#[test]
fn frames_are_held_until_the_first_one_s_answer() {
    for rtt in [2, 26].map(ms) {
        let frames = log(format!(
            "{FRAMES_AT_FIRST}
             +5 C 100
             +10 S 50
             +0 C 300
             +10 S 150"
        ));
        frames.rtt(rtt).both_ends(|seen| {
            assert_eq!(seen.count(Kind::Exchange), 2, "{seen}");
            seen.exchange(2).is(&[
                (Cause::RoundTrip, Path, rtt),
                (Cause::NagleDelayedAck, Client, rtt + ms(10)),
                (Cause::ServerThink, Server, ms(10)),
            ]);
            // A client that reads before it writes the rest looks the same.
            assert_eq!(seen.exchange(2).of(Cause::NagleDelayedAck).confidence, Confidence::Possible);
        });
    }
}

/// Requests of other sizes, or a client that first shows that it waits for its replies: each is an
/// exchange.
#[test]
fn requests_that_follow_an_answer_at_once_are_requests() {
    let dialogue = "+5 C 100
         +10 S 50
         +0 C 250
         +10 S 150";
    for before in ["handshake\n +5 C 100\n +0 S 50\n +0 C 300\n +0 S 200", FRAMES_AT_FIRST] {
        log(format!("{before}\n{dialogue}")).rtt(ms(2)).both_ends(|seen| {
            let n = seen.count(Kind::Exchange);
            for n in [n - 1, n] {
                seen.exchange(n).is(&[(Cause::RoundTrip, Path, ms(2)), (Cause::ServerThink, Server, ms(10))]);
            }
        });
    }
}

/// A server that works on the first piece of a request from the start: it answers equally soon
/// whenever the rest comes.
#[test]
fn a_server_that_answers_the_first_piece_did_not_wait_for_the_rest() {
    let rtt = ms(2);
    let early = log("handshake
         +5 C 100 #a
         a+0 S ack
         +0 C 300
         a+50 S 50
         +5 C 100 #b
         b+40 S ack
         +0 C 300
         b+50 S 50");
    early.rtt(rtt).both_ends(|seen| {
        seen.exchange(2).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(50))]);
    });
}

/// The same if a first piece was late on the path: the server's time begins at its arrival.
#[test]
fn a_first_piece_that_was_late_begins_the_servers_time_when_it_arrives() {
    let rtt = ms(2);
    let late = log("handshake
         +20 C 100
         +20 S 50
         +5 C 100 #a late=3
         a+0 S ack
         +0 C 300
         a+50 S 50
         +5 C 100 #b
         b+40 S ack
         +0 C 300
         b+50 S 50");
    let seen = late.rtt(rtt).seen_at(End::Server);
    seen.exchange(3).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(50))]);
}

/// One reply is late on the path, just when the rest begins to be held: those before it still show
/// that the server does not wait for the rest.
#[test]
fn one_late_answer_does_not_hide_that_the_server_works_on_the_first_piece() {
    let rtt = ms(2);
    let request = |name: &str, held: i32, late: &str| {
        format!("+5 C 100 #{name}\n {name}+{held} S ack\n +0 C 300\n {name}+50 S 50{late}\n +0 C ack\n")
    };
    let requests = [request("a", 0, ""), request("b", 40, " late=3"), request("c", 40, "")];
    let seen = log(format!("handshake\n {}", requests.concat())).rtt(rtt).seen_at(End::Client);
    seen.exchange(3).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(50))]);
}

/// A reply in two writes, the second held until the first is acknowledged, and a millisecond late
/// on the path: that is no pause of its server, and no pause is subtracted from later holds.
#[test]
fn a_hold_that_was_late_on_its_way_is_no_pause() {
    let reply = |name: &str, held: i32, late: &str| {
        format!("+5 C 70\n +0 S 20 #{name}\n {name}+{held} C ack\n +0 S 60{late}\n +0 C ack\n")
    };
    let replies = [reply("a", 1, " late=0.9"), reply("b", 40, "")];
    let seen = log(format!("handshake\n {}", replies.concat())).rtt(ms(2)).seen_at(End::Client);
    assert_eq!(seen.exchange(2).ns(Cause::SenderThink, Server), ms(0), "{seen}");
}

/// Without a shorter wait to compare with, the time from the rest to the reply is the server's.
#[test]
fn a_server_that_waits_for_the_rest_thinks_from_there() {
    let rtt = ms(2);
    let late = log("handshake
         +5 C 100
         +0 S ack
         +0 C 300
         +10 S 50
         +5 C 100
         +40 S ack
         +0 C 300
         +10 S 50");
    late.rtt(rtt).both_ends(|seen| {
        seen.exchange(2).is(&[
            (Cause::RoundTrip, Path, rtt),
            (Cause::NagleDelayedAck, Client, rtt + ms(40)),
            (Cause::ServerThink, Server, ms(10)),
        ]);
    });
}

/// MSG_MORE on a whole message: the partial segment at its end leaves with the next ACK, without
/// PSH.
#[test]
fn a_tail_with_more_to_come_leaves_with_the_next_acknowledgement() {
    for rtt in [4, 40].map(ms) {
        let more = log("handshake
             +5 C 100
             +0 S 1448x3
             +0 C ack
             +0 S 656 more
             +0 C ack");
        more.rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Cork, Server, rtt)]);
            assert_eq!(bill.of(Cause::Cork).detail.form, Some(Form::UntilAcknowledged));
        });
    }
}

/// Ten small packets at once through 1 Mb/s, and little else: their ACKs come at the link's pace.
#[test]
fn small_packets_drain_behind_the_capture() {
    let (rtt, each_ms) = (ms(10), 155.0 * 8.0 / 1e3);
    let acks = each(1..=10, |i| format!("@{:.4} C ack", 15.0 + 10.0 + f64::from(i) * each_ms));
    let text = format!("handshake\n +5 C 100\n +0 S 155x10\n {acks}");
    log(text)
        .rtt(rtt)
        .bottleneck(End::Server, 1_000_000)
        .seen_at(End::Server)
        .exchange(1)
        .is_within(ms(0.6), &[(Cause::RoundTrip, Path, rtt), (Cause::Bandwidth, Path, ms(10.0 * each_ms))]);
}

/// Twenty full segments through 10 Mb/s, and twenty more behind a path that stands still for 200 ms: at the
/// rate that the first ones have shown, the link is through with these in 24 ms. The same if the ACKs let
/// twenty more leave.
#[test]
fn a_link_that_stood_still_is_no_slow_link() {
    let acks = |from: f64, before: i32, which: std::ops::RangeInclusive<i32>| {
        each(which, |i| format!("@{:.4} C ack ack={}", from + 1.2 * f64::from(i), before + 1_460 * i))
    };
    for (stands, confidence) in [(200.0, Confidence::Possible), (0.0, Confidence::Likely)] {
        let from = 80.0 + stands;
        let whole = format!("+0 S 1460x20\n {}", acks(from, 29_200, 1..=20));
        let [begun, rest] = [1..=3, 4..=40].map(|which| acks(from, 29_200, which));
        let halves = format!("+0 S 1460x20 more\n {begun}\n +0 S 1460x20\n {rest}");
        for second in [whole, halves] {
            let first = acks(25.0, 0, 1..=20);
            let text = format!("handshake\n +5 C 100\n +0 S 1460x20\n {first}\n @70 C 100\n {second}");
            let seen = log(text).rtt(ms(10)).seen_at(End::Server);
            assert_eq!(seen.exchange(2).of(Cause::Bandwidth).confidence, confidence, "{seen}");
        }
    }
}

/// The same near the receiver: ten of twenty segments that left together come 150 ms later, and the window
/// has room for no more than 24 ms of that link.
#[test]
fn what_comes_long_behind_its_burst_waited_for_no_link() {
    for (late, confidence) in [(150, Confidence::Possible), (0, Confidence::Likely)] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x20\n +0 C ack\n +5 C 100\n +0 S 1448x10 more #b\n b+0 S 1448x10 late={late}\n +0 C ack"
        );
        let log = log(text).rtt(ms(10)).window(End::Client, 30_000).bottleneck(End::Server, 10_000_000);
        let seen = log.seen_at(End::Client);
        assert_eq!(seen.exchange(2).of(Cause::Bandwidth).confidence, confidence, "{seen}");
    }
}

/// The last 56 bytes of a reply come 12 ms behind a burst, with its time stamp (frames 1029 to 1033 of a browser): a link of 10 Mbit/s
/// needs 0.1 ms for them.
#[test]
fn a_short_tail_that_comes_late_waited_for_no_link() {
    for (late, confidence) in [(12, Confidence::Possible), (0, Confidence::Likely)] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x20\n +0 C ack\n +5 C 100\n +0 S 1448x10 more #b\n b+0 S 56 late={late}\n +0 C ack"
        );
        let log = log(text).rtt(ms(10)).window(End::Client, 30_000).bottleneck(End::Server, 10_000_000);
        let seen = log.seen_at(End::Client);
        assert_eq!(seen.exchange(2).of(Cause::Bandwidth).confidence, confidence, "{seen}");
    }
}

/// Ten small packets at once over a fast link to a client that delays the ACK of the last packet.
#[test]
fn an_acknowledgement_held_back_is_not_a_link_that_drains() {
    let rtt = ms(10);
    let text = "handshake
         +5 C 100
         +0 S 155x10 #burst
         burst+0 C ack
         burst+0.1 C ack ack=300
         burst+0.2 C ack ack=1000
         burst+40 C ack";
    log(text).rtt(rtt).seen_at(End::Server).exchange(1).is_within(ms(1), &[(Cause::RoundTrip, Path, rtt)]);
}

/// Three segments of a request are acknowledged 58 ms late, in two acknowledgements that come together, on a connection that has shown no link's rate
/// (frames 3338 to 3393 of a laptop's capture, in which other hosts' packets stood as well): that need not be what a link takes.
#[test]
fn acknowledgements_that_come_together_show_no_link() {
    let text = "handshake\n +1 C 355\n +0 S 147\n +7 C 536 #first\n +0.4 C 1448 more\n +0 C 898 #q\n first+0 S ack late=58.4\n q+0 S ack late=58\n q+797 S 532\n +0 C ack";
    let seen = log(text).rtt(ms(13)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(2);
    assert_eq!(bill.ns(Cause::Bandwidth, Path), ms(0), "{seen}");
    assert!((bill.ns(Cause::Queueing, Path) - ms(58)).as_nanos().abs() <= ms(1).as_nanos(), "{seen}");
    assert_eq!(bill.of(Cause::Queueing).confidence, Confidence::Possible, "{seen}");
}

/// A request of ten packets through a slow link: the server's apparent time is the link's.
#[test]
fn a_request_drains_behind_the_client_s_capture() {
    let (rtt, each_ms) = (ms(4), 500.0 * 8.0 / 1e3);
    let acks = each(1..=10, |i| format!("@{:.4} S ack", 9.0 + 2.0 + f64::from(i) * each_ms));
    let text = format!("handshake\n +5 C 500x10\n {acks}\n +0.1 S 100");
    log(text)
        .rtt(rtt)
        .bottleneck(End::Client, 1_000_000)
        .seen_at(End::Client)
        .exchange(1)
        .is_within(ms(0.6), &[(Cause::RoundTrip, Path, rtt), (Cause::Bandwidth, Path, ms(10.0 * each_ms))]);
}

/// The same request, its last ACK on the reply, for which the server took 20 ms.
#[test]
fn a_server_s_time_behind_a_slow_link_is_its_own() {
    let (rtt, each_ms) = (ms(4), 500.0 * 8.0 / 1e3);
    let acks = each(1..=9, |i| format!("@{:.4} S ack", 9.0 + 2.0 + f64::from(i) * each_ms));
    let reply = 9.0 + 2.0 + 10.0 * each_ms + 20.0;
    let text = format!("handshake\n +5 C 500x10\n {acks}\n @{reply:.4} S 100");
    log(text).rtt(rtt).bottleneck(End::Client, 1_000_000).seen_at(End::Client).exchange(1).is_within(
        ms(2),
        &[
            (Cause::RoundTrip, Path, rtt),
            (Cause::Bandwidth, Path, ms(10.0 * each_ms)),
            (Cause::ServerThink, Server, ms(20)),
        ],
    );
}

/// A backlog of full segments comes at the link's pace, each long after the one before it was
/// acknowledged.
#[test]
fn segments_at_the_pace_of_a_slow_link_are_its_time() {
    let (rtt, each_ms) = (ms(2), 1448.0 * 8.0 / 1e3);
    let text = "handshake
         +5 C 1448x4 more #burst
         burst+6 C 1448x3 more
         burst+40 C 1448x3
         +0 S 10";
    let seen = log(text).rtt(rtt).bottleneck(End::Client, 1_000_000).seen_at(End::Server);
    seen.exchange(1).never(Cause::Unexplained);
    assert!(seen.exchange(1).ns(Cause::Bandwidth, Path) >= ms(8.5 * each_ms), "{seen}");
}

/// TCP_NODELAY and a window of ten packets: ten small ones are sent, the rest is joined and leaves
/// with the first ACK.
#[test]
fn a_window_counts_small_packets_too() {
    let rtt = ms(20);
    let small = log("handshake
         +5 C 100
         +0 S 50 #first
         first+0.01 S 50x9 #rest
         first+0 C ack
         +0 S 900
         rest+0.5 C ack
         +0 C ack");
    // At the client the ACKs pass before it shows how many packets the server still had in flight.
    let bill = [(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt)];
    small.rtt(rtt).seen_at(End::Server).exchange(1).is(&bill);
}

/// A server that thinks for longer than its RTO and then writes twice: no packet shows whether
/// Nagle or a window of one segment, restarted after idle, held the second write. Without the idle
/// time it can only be Nagle.
#[test]
fn a_window_that_may_be_one_leaves_nagle_likely() {
    for (think_ms, sure) in [(300, Confidence::Likely), (20, Confidence::Certain)] {
        // The first one is acknowledged at once, and shows that the server itself does not pause.
        let exchange = format!("+0 C 100\n +{think_ms} S 132\n +40 C ack\n +0 S 132\n");
        let first = exchange.replace("+40 C", "+0 C");
        log("handshake\n".to_owned() + &first + &exchange.repeat(4)).rtt(ms(2)).both_ends(|seen| {
            let bill = seen.exchange(5);
            assert_eq!(bill.of(Cause::NagleDelayedAck).confidence, sure, "{seen}");
        });
    }
}

/// A client that was slow to end its handshake seems further away than it is, until it echoes a
/// time stamp sooner.
#[test]
fn an_echoed_time_stamp_shows_how_near_an_end_is() {
    let rtt = ms(4);
    let late = log("@0 C syn
         +0 S syn
         +3 C ack
         +5 C 20
         +0 S ack
         +0 C 100
         +0 S 64");
    late.rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Nagle, Client, rtt)]);
    });
}

/// A sender with a full send buffer pushes what fitted and continues with the ACK that frees a
/// third of it. The receiver has not read: it acknowledges all of it at once, 40 ms late.
#[test]
fn a_partial_segment_in_a_long_write_is_a_full_buffer() {
    let rtt = ms(20);
    let flight = "\n +0 S 1448x10".repeat(4) + "\n +0 S 900\n +40 C ack";
    log("handshake\n +5 C 100".to_owned() + &flight.repeat(4) + "\n +0 S 1448\n +0 C ack")
        .rtt(rtt)
        .both_ends(|seen| {
            let bill = seen.exchange(1);
            assert!(bill.ns(Cause::SenderThink, Server) <= ms(5), "{seen}");
            assert!(bill.ns(Cause::ReceiverThink, Client) >= ms(100), "{seen}");
        });
}

/// The tail of each reply waits after a full segment until the small one before that is
/// acknowledged; one of these ACKs is 4 ms late. The tail was queued: neither the buffer nor the
/// program held it, then or in the next reply.
#[test]
fn a_queued_tail_that_comes_late_was_held_all_the_same() {
    let replies = each(0..6, |n| {
        let late = if n == 4 { " late=4" } else { "" };
        format!("+5 C 100\n +0 S 140\n +0 S 1448 more\n +0 C ack{late}\n +0 S 52\n +0 C ack")
    });
    log(format!("handshake\n {replies}")).rtt(ms(20)).both_ends(|seen| {
        for n in 5..=6 {
            let bill = seen.exchange(n);
            let held = bill.ns(Cause::Nagle, Server);
            assert!(held >= ms(20) && held <= ms(24.5), "{seen}");
            assert_eq!(
                bill.ns(Cause::SendBuffer, Server) + bill.ns(Cause::SenderThink, Server),
                ms(0),
                "{seen}"
            );
        }
    });
}

/// The rest of a reply once came 30 ms after its beginning, which had been acknowledged at once. If
/// it follows the ACK after 20 ms, there was no pause of 30.
#[test]
fn a_pause_longer_than_the_wait_is_not_in_it() {
    let text = "handshake
         +5 C 100
         +0 S 140 #a
         a+0 C ack
         a+30 S 50
         +0 C ack
         +5 C 100
         +0 S 140 #b
         b+0 C ack #acked
         acked+0 S 50
         +0 C ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        seen.exchange(2).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::Nagle, Server, ms(20))]);
    });
}

/// A web server writes its file in pieces of 32 KB (sendfile): the last packet of each is small and
/// pushed, and the next piece follows at once, or with the ACK that releases it.
#[test]
fn a_sender_that_goes_on_behind_each_piece_of_a_file_does_not_think_behind_the_last_one() {
    let piece = "+0 S 4344x7 more\n +0 S 2360\n";
    let round = |pieces: usize| piece.repeat(pieces) + "+0 C ack\n";
    let reply = log(format!("handshake\n +5 C 100\n {}{}{}", round(1), round(2), round(4))).rtt(ms(60));
    reply.both_ends(|seen| {
        let thought = seen.exchange(1).ns(Cause::SenderThink, Server);
        assert!(thought < ms(62), "{seen}"); // after the first piece nothing shows it yet
    });
}
