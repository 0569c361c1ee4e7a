//! Captures that begin in the middle of a connection: no handshake shows which end is the client, the segment
//! size, the window scale, or the RTT.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server, Unknown};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Line;
use tcpwhy_wire::{Duration, Endpoint, SackBlock, TcpOptions};

use crate::packet_log::{CLIENT, End, PacketLog, SERVER, each, log, ms};
use crate::seen::Seen;

/// The captures at both ends, from the end of the handshake on.
fn both_ends_midway(log: &PacketLog, judge: impl Fn(&Seen)) {
    for end in End::BOTH {
        let segments = log.capture(end).split_off(3);
        judge(&Seen::of(segments, &format!("the {end:?}, midway")));
    }
}

/// No full segment ever passes: 1,000 bytes are not one.
#[test]
fn a_held_reply_is_nagle_whatever_the_largest_segment_was() {
    for rtt in [0, 2, 26].map(ms) {
        let stall = "\n +5 C 120 #request\n +0 S 150\n +40 C ack\n +0 S 1000\n +0 C ack";
        both_ends_midway(&log("handshake".to_owned() + &stall.repeat(8)).rtt(rtt), |seen| {
            for n in 5..=8 {
                let bill = seen
                    .exchange(n)
                    .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Server, ms(40) + rtt)]);
                // How long its application itself pauses has not shown anywhere.
                assert_eq!(bill.of(Cause::NagleDelayedAck).confidence, Possible, "{seen}");
            }
        });
    }
}

/// The window field falls by the amount received: that shows the scale, and a closed window is closed.
#[test]
fn a_closed_window_shows_its_scale() {
    let rtt = ms(20);
    let round = "\n +5 C 100 #request
         request+0 S 1448x4 more
         +0 C ack win=58000
         +0 S 1448x40 more
         +0 C ack win=80 #closed
         closed+300 C ack
         +0 S 1448x20
         +0 C ack";
    let slow = log("handshake".to_owned() + &round.repeat(4)).rtt(rtt).window(End::Client, 63_712);
    both_ends_midway(&slow, |seen| {
        let bill = seen.exchange(4);
        assert!(bill.of(Cause::ReceiverThink).ns >= ms(300), "{seen}");
        assert_eq!(bill.of(Cause::ReceiverThink).side, Client);
    });
}

/// A spontaneous write says nothing about the path; the stamp it echoes does.
#[test]
fn the_path_is_as_long_as_echoes_take_and_not_as_writes_follow_each_other() {
    let rtt = ms(100);
    // The server's capture: the client speaks 56 ms after the server's last packet, on its own.
    let round = "\n +156 C 1448x4 more #first\n +0 S ack\n first+100 C 1448x8\n +0 S 100\n +40 C ack";
    let upload = log("handshake".to_owned() + &round.repeat(6)).rtt(rtt);
    both_ends_midway(&upload, |seen| {
        let measured = seen.connection().rtt_min.expect("a round trip");
        assert!(measured >= rtt && measured <= rtt + ms(3), "{measured} of {rtt}: {seen}");
    });
}

/// A snap length of 68 bytes ends within a SYN's options: a window scale that is cut off is not absent.
#[test]
fn options_that_the_snap_length_cut_may_have_been_sent() {
    let text = "handshake\n +5 C 100\n +0 S 100 #head\n head+0 S 100\n +0 C ack".to_owned();
    let mut segments = log(text).rtt(ms(10)).capture(End::Server);
    for segment in segments.iter_mut().filter(|segment| segment.flags.syn()) {
        (segment.options.window_scale, segment.options.cut) = (None, true);
    }
    let seen = Seen::of(segments, "the server, cut");
    assert_eq!(seen.exchange(1).ns(Cause::Unexplained, Unknown), ms(0), "{seen}");
}

/// The first packets of a client came late. A later one, which seems to have overtaken something because of a
/// missing byte, was quick: that does not show how late it was itself.
#[test]
fn a_request_is_not_late_because_it_was_quick() {
    let text = "handshake\n +0 S 1448x7 twice\n +0 C 1448x2 late=13\n +0 S 1\n +0 C 2897..2898\n +0 C ack";
    let segments = log(text).rtt(ms(2.167)).capture(End::Server).split_off(3);
    let seen = Seen::of(segments, "the server, midway");
    seen.one_way(2).never(Cause::Queueing);
}

/// An end that answers with data only may be nearer than it looks: its time and the RTT cannot be told apart.
#[test]
fn a_round_trip_that_only_answers_show_is_not_certain() {
    let talk = log("handshake".to_owned() + &"\n +5 C 100\n +30 S 200".repeat(10)).rtt(ms(20));
    for end in End::BOTH {
        let seen = Seen::of(talk.capture(end).split_off(7), &format!("the {end:?}"));
        for exchange in &seen.connection().exchanges {
            let sure = |line: &Line| line.cause == Cause::RoundTrip && line.confidence == Certain;
            assert!(!exchange.bill.iter().any(sure), "{seen}");
        }
    }
}

/// Near the receiver, the sender's reaction passes a round trip after the ACK. Until that is known, every
/// flight looks only as long as the latest data, and short flights of one size look like a send buffer.
#[test]
fn a_window_that_grows_is_no_send_buffer_however_far_away_its_sender_is() {
    let pair = |at: f64| format!("@{at} C 1448x2 more\n +0 S ack\n");
    let round = |n: usize| each(0..5 << n, |i| pair(5.0 + 61.0 * n as f64 + 0.02 * i as f64));
    let upload = log(format!("handshake\n{}\n +0 C 1448\n +0 S 50", each(0..5, round))).rtt(ms(60));
    both_ends_midway(&upload, |seen| {
        for exchange in &seen.connection().exchanges {
            let buffer = |line: &Line| line.cause == Cause::SendBuffer && line.confidence > Possible;
            assert!(!exchange.bill.iter().any(buffer), "{seen}");
        }
    });
}

/// Two hosts with segments of 64 KB: one of 4,096 bytes counts as single, and its ACK may be delayed.
#[test]
fn an_acknowledgement_that_is_held_back_shows_no_rate_where_segments_may_be_large() {
    let stall = "\n +0.2 C 4096\n +44 S ack\n +0.02 C 30\n +0.1 S 64";
    both_ends_midway(&log("handshake".to_owned() + &stall.repeat(12)), |seen| {
        for n in 2..=10 {
            assert!(seen.exchange(n).ns(Cause::Bandwidth, Path) < ms(1), "{seen}");
        }
    });
}

/// The capture has one direction only: nothing shows the peer's distance, or when it acknowledged what.
#[test]
fn of_one_direction_only_nothing_is_more_than_possible() {
    let talk = log("handshake".to_owned() + &"\n +5 C 100\n +0 S 1448x4\n +30 S 1448x2\n +0 C ack".repeat(6));
    for end in End::BOTH {
        for from in End::BOTH {
            let mut segments = talk.clone().rtt(ms(20)).capture(end);
            segments.retain(|segment| segment.src == if from == End::Client { CLIENT } else { SERVER });
            let seen = Seen::of(segments, &format!("the {end:?}, the {from:?}'s packets"));
            for exchange in &seen.connection().exchanges {
                let claims = |line: &Line| line.confidence > Possible && line.ns > ms(1);
                assert!(!exchange.bill.iter().any(claims), "{seen}");
            }
        }
    }
}

/// The only ACK so far took its host half a millisecond. The second write of the reply leaves 40 us after an
/// ACK that may well have released it.
#[test]
fn a_write_behind_an_acknowledgement_that_can_hardly_have_arrived_is_no_certain_pause() {
    let talk =
        log("handshake\n +5 C 100\n +0.5 S ack\n +0.1 S 113 #head\n head+46 C ack\n +0.04 S 500\n +0 C ack");
    let seen = Seen::of(
        talk.rtt(ms(20)).without_timestamps().capture(End::Server).split_off(3),
        "the server, midway",
    );
    assert_eq!(seen.exchange(1).of(Cause::SenderThink).confidence, Possible, "{seen}");
}

/// Headers of 54 bytes contain no options: segments are as large as with time stamps, and a queue is not
/// empty after each.
#[test]
fn full_segments_are_full_where_the_snap_length_cut_their_options() {
    let paced = each(1..60, |n| format!("@{} S 1448x2\n +0 C ack", 10 + 2 * n));
    let mut segments = log(format!("handshake\n +5 C 100\n {paced}")).rtt(ms(1)).capture(End::Server);
    for segment in &mut segments {
        segment.options = TcpOptions::default();
        segment.options.cut = true;
    }
    let seen = Seen::of(segments, "the server, cut");
    let thinks = |line: &Line| line.cause == Cause::SenderThink && line.confidence > Possible;
    assert!(!seen.connection().exchanges.iter().any(|exchange| exchange.bill.iter().any(thinks)), "{seen}");
}

/// A program that takes 30 ms to read every second window of two super-segments: its ACKs do not show
/// arrivals.
#[test]
fn a_slow_reader_of_a_window_that_never_was_larger_is_no_slow_link() {
    let full = |ms: u32| format!("\n +0 S 63712 more\n +0 S 29344\n +{ms} C ack");
    let rounds = (full(0) + &full(30) + &full(30)).repeat(8);
    let slow = log(format!("handshake\n +5 C 100{rounds}")).rtt(ms(0.05)).window(End::Client, 93_056);
    both_ends_midway(&slow, |seen| {
        for exchange in &seen.connection().exchanges {
            let link = |line: &Line| line.cause == Cause::Bandwidth && line.ns > ms(10);
            assert!(!exchange.bill.iter().any(link), "{seen}");
        }
    });
}

/// 64 bytes of each frame: the scale is cut off, and shows when the window of 64,000 bytes shrinks by two
/// segments. The SYN-ACK's window counts bytes in any case, and limits the ten segments that had left with
/// it.
#[test]
fn a_syn_s_window_shrinks_with_no_scale_that_is_learned_later() {
    let acks = each(1..5, |n| format!("f+{} S ack win={} #a{n}", 2 * n - 1, 64_000 - 2_896 * n));
    let more = each(1..5, |n| format!("a{n}+0 C 1448x4 more"));
    let text = format!(
        "handshake\n +5 C 1448x10 more every=1 #f\n {acks}\n f+9 S ack win=49520\n {more}\n +0 C 100 #end\n end+0 S ack win=64000\n +5 S 200\n +0 C ack"
    );
    let mut segments = log(text).rtt(ms(40)).window(End::Server, 64_000).capture(End::Server);
    for segment in segments.iter_mut().filter(|segment| segment.flags.syn()) {
        (segment.options.window_scale, segment.options.cut) = (None, true);
    }
    let seen = Seen::of(segments, "the server, 64 bytes of each frame");
    for cause in [Cause::ReceiveWindow, Cause::ReceiverThink] {
        assert_eq!(seen.spent(cause, Server), ms(0), "{seen}");
    }
}

/// Without the SYN it is unknown whether the server itself acknowledges.
#[test]
fn without_the_syn_no_server_thinks_for_certain() {
    let whole = log("handshake\n +1 C 246 #q\n +0 S ack\n q+60 S 1440\n +0 C ack").rtt(ms(0.4));
    let segments = whole.capture(End::Client);
    for (first, most) in [(0, Certain), (1, Likely)] {
        let seen = Seen::of(segments[first..].to_vec(), "the client");
        assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// A proxy's reply in two writes, the second waiting for an ACK that is delayed by 210 ms (frames 364 to
/// 367), on a connection captured from the middle on. Before, a small write had left together with a segment
/// of 1,452 bytes: that is full size there, and no proof that Nagle is off.
#[test]
fn a_segment_with_more_behind_it_may_be_full_where_no_syn_says_so() {
    let text = "handshake\n +5 C 290\n +1 S 154\n +0 S 1452 more\n +0 C ack\n +0 S 325\n +0 C ack\n \
                +5 C 290 #ask\n ask+0 S ack\n ask+900 S 154 #head\n head+210 C ack\n +0 S 1109\n +38 C 290";
    let mut segments = log(text).rtt(ms(154)).without_timestamps().capture(End::Client);
    segments.drain(..3);
    let seen = Seen::of(segments, "behind the handshake");
    let held = seen.spent(Cause::NagleDelayedAck, Server);
    assert!((held - ms(364)).as_nanos().abs() < 2_000_000, "{seen}");
}

/// Programs do not see ACKs: a write that leaves with one, whatever its delay, was held. If the delay is
/// constant, a program may pause for as long.
#[test]
fn what_goes_with_each_acknowledgement_is_held_without_the_beginning_too() {
    let stalls = |delay: fn(u32) -> f64| {
        each(0..12, move |n| {
            format!("+5 C 20 #first{n}\n first{n}+{} S ack\n +0.02 C 100\n +0.1 S 64\n +0 C ack", delay(n))
        })
    };
    for (delay, most) in [((|n| 40.0 + f64::from(n * 7 % 5)) as fn(u32) -> f64, Likely), (|_| 43.0, Possible)]
    {
        for end in End::BOTH {
            let mut segments = log(format!("handshake\n {}", stalls(delay))).rtt(ms(0.05)).capture(end);
            segments.drain(..3);
            let seen = Seen::of(segments, "behind the handshake");
            let sure = |n| seen.exchange(n).of(Cause::NagleDelayedAck).confidence;
            assert_eq!([sure(2), sure(11)], [Possible, most], "{seen}");
        }
    }
}

/// Only the SYN is missing, and with it the server's distance: its timed writes seem to leave with ACKs, if
/// it were as far away as that takes.
#[test]
fn without_the_syn_what_leaves_by_a_timer_was_hardly_held() {
    let sizes = [2_444, 1_316, 940, 1_316, 940, 1_316, 752, 1_128, 752, 1_128, 752, 2_896, 1_504, 1_316, 940];
    let left = [
        266.4, 347.9, 429.5, 510.9, 592.4, 684.1, 765.5, 847.0, 928.5, 1010.2, 1091.7, 1184.2, 1265.9,
        1347.5, 1429.1,
    ];
    let pieces = each(left.into_iter().zip(sizes), |(at, len)| format!("@{at} S {len}\n +0 C ack"));
    let text = format!("handshake\n @175 S 2896x2 more\n +0 S 224\n +0 C ack\n {pieces}");
    for end in End::BOTH {
        let seen = Seen::of(log(text.clone()).rtt(ms(20)).capture(end).split_off(1), &format!("the {end:?}"));
        for cause in [Cause::Nagle, Cause::NagleDelayedAck] {
            let sure = |line: &&&Line| line.confidence > Possible;
            assert_eq!(seen.longer(cause, Duration::ZERO).iter().find(sure), None, "{seen}");
        }
    }
}

/// Only the order in which they were heard shows which end asks (neither port is a service's): 36 bytes
/// follow all messages of the other end at once, which takes 30 to 540 ms (frames 1 to 286 of an editor's
/// tunnel). These may be confirmations, and the time its own. With a service's port it is the server's.
#[test]
fn who_was_heard_first_may_be_the_one_who_answers() {
    for (port, sure) in [(44_359, Possible), (8_080, Likely)] {
        let turn = |wait: i64| format!("+1.5 C 36\n +0 S ack\n +{wait} S 218\n +0 C ack\n");
        let text = [50, 107, 242, 36, 256, 58, 121].map(turn).concat();
        let ends = [Endpoint::v4([10, 0, 0, 1], 55_308), Endpoint::v4([10, 0, 0, 2], port)];
        let seen = Seen::of(
            log("handshake\n".to_owned() + &text)
                .rtt(ms(0.4))
                .between(ends)
                .capture(End::Client)
                .split_off(3),
            "later",
        );
        let thought = seen.longer(Cause::ServerThink, ms(200));
        assert!(!thought.is_empty() && thought.iter().all(|line| line.confidence == sure), "{seen}");
    }
}

/// A capture begins in the middle, with ports that are neither a service's nor a client's: the first to be
/// heard asks, and its message seven seconds after a reply is no reply (frames 1 to 6 of a remote desktop on
/// another port). With a service's and a client's port, the service is asked.
#[test]
fn whoever_is_heard_first_asks_where_neither_port_is_a_service_s() {
    for (ports, waited) in [([2817, 3390], false), ([3389, 52_817], true)] {
        let ends = [Endpoint::v4([10, 0, 0, 1], ports[0]), Endpoint::v4([10, 0, 0, 2], ports[1])];
        let text =
            "handshake\n +1 C 162\n +0 C 47\n +13 S 19\n +7168 C 177\n +4.5 S 884\n +100 C 318\n +6.8 S 51";
        let log = log(text).rtt(ms(60)).between(ends);
        let seen = Seen::of(log.capture(End::Server).split_off(3), "later");
        let thought = seen.longer(Cause::ServerThink, ms(7000));
        assert_eq!(!thought.is_empty(), waited, "{ports:?}: {seen}");
    }
}

/// Captured from the middle on, the server's ACK of the client's additional data has a number beyond anything
/// it was seen to send (frames 42 to 149 of a mail service in TLS): the reply had left by then and was lost,
/// and its timer brings it 3.3 s later. If the number is unchanged, the server took the time.
#[test]
fn a_number_in_an_acknowledgement_shows_an_answer_that_was_lost() {
    for lost in [true, false] {
        let first = if lost { "q+300 S 137 lost" } else { "" };
        let text = format!(
            "handshake\n +5 C 942 #q\n q+0 S ack\n {first}\n q+785 C 45 #more\n more+0 S ack\n more+3600 S 0..137\n +0 C ack"
        );
        let seen = Seen::of(log(text).rtt(ms(270)).capture(End::Client).split_off(3), "midway");
        let rto = seen.spent(Cause::Rto, Path);
        assert_eq!(rto >= ms(3_000), lost, "{seen}");
        assert_eq!(seen.spent(Cause::ServerThink, Server) >= ms(3_000), !lost, "{seen}");
    }
}

/// A request every 15 s (frames 84 to 1656 of a browser's capture, from the middle on): its third reply's
/// stamp is as old as the reply is late, and the next is on time again. For a reply 220 ms late with a stamp
/// 120 old, the server's clock may have stood still before.
#[test]
fn behind_a_silence_stamps_show_what_was_late_for_as_long_as_was_waited() {
    let midway = |thinks: u32, late: u32| {
        let text = format!(
            "handshake\n +5 C 239\n +0 S ack\n +0 S 262\n +0 C ack\n +15000 C 239\n +4 S 262\n +0 C ack\n +15200 C 238\n +{thinks} S 264 late={late}\n \
             +0 C ack\n +15000 C 238\n +1 S 261\n +0 C ack"
        );
        let seen = Seen::of(log(text).rtt(ms(222)).capture(End::Client).split_off(3), "the client, midway");
        let bill = seen.exchange(3);
        let of = |cause| {
            let line = bill.exchange.bill.iter().find(|line| line.cause == cause);
            line.map(|line| (line.ns, line.confidence))
        };
        (of(Cause::ServerThink), of(Cause::Queueing), seen.exchange(4).ns(Cause::Queueing, Path))
    };
    let (think, queued, next) = midway(4, 188);
    let (late, confidence) = queued.expect("it was late");
    assert!(late >= ms(186) && late <= ms(189) && confidence == Likely, "{queued:?}");
    assert!(think.is_none_or(|(ns, _)| ns <= ms(7)) && next == ms(0), "{think:?}");
    let (think, queued, _) = midway(100, 120);
    assert!(queued.is_none() && think.is_some_and(|(_, confidence)| confidence == Possible), "{think:?}");
    let (think, queued, _) = midway(190, 0);
    assert!(queued.is_none() && think.is_some_and(|(_, confidence)| confidence > Possible), "{think:?}");
}

/// After a bare ACK the server takes 204 ms by its own clock (frames 243 to 586 of a messenger's capture,
/// from the middle on): a reply 276 ms later was late on the path, and one 153 ms later shows that the ACK
/// was. So does one 4 ms younger than an ACK that comes with it.
#[test]
fn behind_an_acknowledgement_the_servers_own_clock_says_what_it_took() {
    let text = "handshake\n +5 C 70 #a\n a+0 S ack late=80\n a+204 S 72 late=152\n +0 C ack\n +23000 C 70 #b\n b+0 S ack late=90\n b+204 S 72 late=39\n \
                +0 C ack\n +9000 C 94\n +0 S ack\n +10 C 356 #c\n c+0 S ack\n c+205 S 64\n +0 C ack";
    let seen = Seen::of(log(text).rtt(ms(24)).capture(End::Client).split_off(3), "the client, midway");
    for n in [1, 2] {
        let bill = seen.exchange(n);
        let think = bill.of(Cause::ServerThink); // or a cork, which has a timer of 200 ms
        assert!(think.ns >= ms(202) && think.ns <= ms(206), "{seen}");
    }
    assert!((ms(70)..=ms(72)).contains(&seen.exchange(1).ns(Cause::Queueing, Path)), "{seen}");
    let text = "@0 C syn\n +0 S syn late=-10\n +0 C ack\n +5 C 517 #a\n a+0 S ack\n a+0 S 1448x3\n a+56 S 896\n +0 C ack\n +22 C 158 #b\n \
                b+0 S ack late=60\n b+4 S 258 late=56\n +0 C ack";
    let seen = log(text).rtt(ms(190)).seen_at(End::Client);
    let bill = seen.exchange(2);
    assert!(
        bill.ns(Cause::ServerThink, Server) <= ms(8) && bill.ns(Cause::Queueing, Path) >= ms(54),
        "{seen}"
    );
}

/// The first packets captured from a server are ACKs that arrive together, and the reply 614 ms later, of
/// which its clock shows 210 (frames 14 to 27 of a phone's capture, from the middle on). Which of them was on
/// time is unknown; the reply's additional delay over the ACK's was not the server's.
#[test]
fn an_answer_is_later_than_its_acknowledgement_by_what_its_stamps_leave() {
    let text = "handshake\n +5 C 118 more #a\n a+21 C 1400 #q\n a+0 S ack late=21\n q+0 S ack\n q+210 S 98 late=404\n +0 C ack";
    let seen = Seen::of(log(text).rtt(ms(205)).capture(End::Client).split_off(3), "the client, midway");
    let bill = seen.exchange(1);
    let (think, late) = (bill.of(Cause::ServerThink).ns, bill.of(Cause::Queueing));
    assert!(think >= ms(208) && think <= ms(213) && late.ns >= ms(402) && late.ns <= ms(405), "{seen}");
    assert_eq!(late.confidence, Possible, "{seen}");
}

/// Ticks of 10 ms: 25 of them pass between the ACK and a reply 299 ms later (frames 210 to 230 of a small web
/// server's capture). A reply 270 ms later may have left just before the next tick.
#[test]
fn ticks_of_10_ms_bound_what_the_server_took() {
    for (late, most) in [(51, 262), (20, 270)] {
        let text = format!(
            "handshake\n +1.1 C 267 #p\n +0.5 C 236 #q\n p+1.5 S ack\n q+4 S ack\n q+249 S 1374x2 late={late}\n +0 C ack"
        );
        let mut segments = log(text).rtt(ms(9.3)).capture(End::Client);
        for segment in segments.iter_mut().filter(|segment| segment.src.port == 80) {
            segment.options.timestamps.as_mut().expect("a stamp").val /= 10;
        }
        let seen = Seen::of(segments, "the client");
        let bill = seen.exchange(1);
        let think = bill.of(Cause::ServerThink).ns;
        assert!(think <= ms(most) && think >= ms(248), "{seen}");
        assert_eq!(bill.exchange.bill.iter().any(|line| line.cause == Cause::Queueing), late > 20, "{seen}");
    }
}

/// Captured from the middle on, without stamps: a server speaks 1.3 ms after a message that it does not
/// acknowledge, and its timer acknowledges that 6 ms after the next (frames 322 to 345 of a messenger's
/// capture). Neither is a reaction, and the server is 25 ms away.
#[test]
fn what_does_not_acknowledge_all_that_was_said_is_no_reaction() {
    let turns = "+100 S 79 #p\n p+0.4 C 38\n +0 S ack\n".repeat(3);
    let text = format!(
        "handshake\n {turns} +100 S 162 #a\n a+0.4 C 38 #m\n m+0 S ack\n m+48.8 S 61\n m+60 C 38 #held\n held+58 C 38 #next\n held+39.6 S ack\n next+0 S ack
         +200 C 68\n +0.7 S 68\n +0 C ack"
    );
    let segments = log(text).rtt(ms(25)).without_timestamps().capture(End::Client).split_off(3);
    let seen = Seen::of(segments, "midway");
    let last = seen.connection().exchanges.last().expect("an exchange");
    let way: Duration =
        last.bill.iter().filter(|line| line.cause == Cause::RoundTrip).map(|line| line.ns).sum();
    assert!((ms(24.9)..ms(26)).contains(&way), "{seen}");
}

/// A path that holds two packets for 490 ms says nothing about two others: the server's clock advances by the
/// time here between its request's ACK and its reply (frames 46 to 56 and 92 to 102 of a small site),
/// whatever its client's timer does meanwhile. If no ACK came before the reply, it may be the path again.
#[test]
fn what_the_servers_clock_measures_too_is_its_own_time_on_a_path_that_varies() {
    let acked = "+9 C 428\n +0 S ack\n +389 S 1103\n +0 C ack\n";
    let text = format!(
        "handshake\n {} +1000 C 427 #q\n q+395 C 3472..3899\n q+0 S ack late=490 #a\n a+387 S 1102 late=490\n +0 C ack\n {acked} +9 C 428\n +389 S 1103\n +0 C ack",
        "+500 C 434\n +0 S ack\n +71 S 1103\n +0 C ack\n".repeat(8)
    );
    let seen = log(text).rtt(ms(30)).seen_at(End::Client);
    for (n, own) in [(9, 387), (10, 389)] {
        let bill = seen.exchange(n);
        let think = bill.of(Cause::ServerThink);
        assert!((think.ns - ms(own)).max(ms(own) - think.ns) <= ms(2), "{seen}");
        assert_eq!(think.confidence, Likely, "{seen}");
    }
    assert_eq!(seen.exchange(11).of(Cause::ServerThink).confidence, Possible, "{seen}");
}

/// Captured from the middle on, two segments overtake each other on the path: the ACK of the second has a
/// SACK block, and that of the first acknowledges both, 12 ms before the reply (frames 108 to 631 of an
/// assistant's capture). Each is a round trip: nothing was retransmitted.
#[test]
fn what_fills_a_hole_of_reordering_shows_the_way() {
    let question =
        "+9000 C 1174 late=0.2 #q\n q+0.1 C 588 #s\n s+0 S ack\n q+0 S ack\n +12.4 S 615\n +40 C ack\n";
    let text = format!("handshake\n {}", question.repeat(2));
    let seen = Seen::of(
        log(text).rtt(ms(164.6)).without_timestamps().capture(End::Client).split_off(3),
        "the client, midway",
    );
    for n in [1, 2] {
        let bill = seen.exchange(n);
        assert!(bill.of(Cause::RoundTrip).ns >= ms(164), "{seen}");
        assert!(bill.of(Cause::ServerThink).ns <= ms(14), "{seen}");
    }
}

/// A capture begins with the third copy of a request: its first acknowledgement reports bytes that came twice
/// (frames 1 to 5 of a home's capture), so the path had held them, and how long it is has not shown.
#[test]
fn what_had_arrived_before_the_capture_shows_no_distance() {
    for (before, sure) in
        [("@100 C 110 late=395\n @500 C 0..110 #r\n", Possible), ("@500 C 110 #r\n", Likely)]
    {
        let text = format!(
            "handshake\n {before} r+7 S ack\n +0 S 110\n +0 C ack\n{}",
            "+5000 C 110\n +0 S 110\n +0 C ack\n".repeat(4)
        );
        let unseen = if sure == Possible { 4 } else { 3 };
        let mut segments = log(text).rtt(ms(5)).capture(End::Client).split_off(unseen);
        if sure == Possible {
            let (start, end) = (segments[0].seq, segments[0].seq + 110);
            segments[1].options.push_sack(SackBlock { start, end });
        }
        let seen = Seen::of(segments, "the client, midway");
        let way = seen.lines(Cause::RoundTrip, Path);
        assert!(way.first().is_some_and(|line| line.ns >= ms(11) && line.confidence == Possible), "{seen}");
        // Later ones agree with each other.
        assert!(way.last().is_some_and(|line| line.confidence == sure), "{seen}");
    }
}

/// The first packets of a capture from the middle on: 43 bytes three times, of which the acknowledgement echoes
/// the third, and the reply 39 ms later (frames 9 to 13 of a browser's capture): that copy's echo times the path.
#[test]
fn a_copy_whose_stamp_is_echoed_times_the_path() {
    let text = "handshake\n +5 C 43 lost #a\n a+127 C 0..43 lost\n a+358 C 0..43 #c\n c+0 S ack\n c+39 S 40\n +0 C ack";
    let seen = Seen::of(log(text).rtt(ms(18)).capture(End::Client).split_off(3), "the client, midway");
    let bill = seen.exchange(1);
    let lines: Vec<_> =
        bill.exchange.bill.iter().filter(|line| matches!(line.cause, Cause::Rto | Cause::Loss)).collect();
    let lost: Duration = lines.iter().map(|line| line.ns).sum();
    assert!(lost >= ms(357) && lost <= ms(359), "{seen}");
    let think = bill.ns(Cause::ServerThink, Server);
    assert!(think >= ms(38) && think <= ms(40) && bill.ns(Cause::RoundTrip, Path) >= ms(17), "{seen}");
}

/// A program sends what it records on ticks of 10 ms, each piece acknowledged at once, and the capture lacks the SYN:
/// how far away it is only its own pauses bound. That the next piece comes so long after the acknowledgement of the
/// last shows no hold.
#[test]
fn pauses_that_bound_the_distance_are_no_round_trips_of_a_hold() {
    let pieces =
        each(0..40, |n| format!("+{} S {}\n +0 C ack", [61.2, 61.3, 71.2, 61.4][n % 4], 700 + n % 3 * 188));
    let segments = log(format!("handshake\n +0 C ack\n +80 S 1448x4\n +0 C ack\n {pieces}"))
        .rtt(ms(20))
        .capture(End::Client);
    let seen = Seen::of(segments[1..].to_vec(), "without the SYN");
    for exchange in &seen.connection().exchanges {
        let held = |line: &Line| line.cause == Cause::Nagle && line.confidence > Possible;
        assert!(!exchange.bill.iter().any(held), "{seen}");
    }
}
