//! Medium and large transfers: what was the sender waiting for while much was in flight?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence;

use crate::packet_log::{End, MSS, each, log, ms, settled};

/// A flight is lost. The sender probes with new data after two round trips, then its timer runs
/// out, which began with the flight and not with the probe.
#[test]
fn a_timer_began_with_what_was_lost() {
    let rtt = ms(60);
    let first = 20 * 200;
    let text = settled(20)
        + &format!(
            "
            +5 C 100
            +0 S 1448x4 more lost #flight
            flight+122 S 1448 more lost
            flight+264 S {}..{} more
            +0 C ack
            +0 S {}..{} more
            +0 C ack
            +0 S {}..{}
            +0 C ack",
            first,
            first + MSS,
            first + MSS,
            first + 4 * MSS,
            first + 4 * MSS,
            first + 5 * MSS,
        );
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    let timer = seen.exchange(21).ns(Cause::Rto, Path);
    assert!(timer >= ms(260) && timer <= ms(268), "{timer}{seen}");
}

/// Super-segments leave the capture point whole and are acknowledged in parts: the parts show the
/// RTT, and a standing queue before a link of 2 Mbit/s.
#[test]
fn a_part_of_a_super_segment_shows_the_round_trip() {
    let serialisation_ms = 1448.0 * 8.0 / 2e6 * 1e3;
    let acks = each(1..=20, |i| {
        let at = 25.0 + f64::from(i) * serialisation_ms;
        format!("@{at:.4} C ack ack={}\n +0 S 1448 more", i * 1448)
    });
    let text = format!("handshake\n +5 C 100\n +0 S 2896x10 more\n {acks}\n +0.01 S 1448");
    let seen = log(text).rtt(ms(10)).seen_at(End::Server);
    let bill = seen.exchange(1);
    let bandwidth = bill.ns(Cause::Bandwidth, Path);
    // The link's rate is unknown until four parts have come back.
    assert!(bandwidth >= ms(15.0 * serialisation_ms), "{bandwidth}{seen}");
}

/// A sender that is woken when its send buffer has drained to a third: each flight is larger than
/// the one before, but no window held it, because ACKs of nearly all of it came and nothing left.
#[test]
fn a_sender_that_lets_acknowledgements_pass_waits_for_its_buffer() {
    let rtt_ms = 20.0;
    let mut lines = vec!["handshake\n +5 C 100".to_owned()];
    let (mut at, mut sent) = (45.0, 0);
    for segments in [40, 60, 90, 130] {
        lines.push(format!("@{at:.3} S 1448x{segments} more"));
        lines.push(each(1..segments / 2, |ack| {
            let (arrived, acked) = (at + rtt_ms / 2.0 + 0.3 * f64::from(ack), sent + ack * 2 * 1448);
            format!("@{arrived:.3} C ack ack={acked}")
        }));
        sent += segments * 1448;
        at += rtt_ms + 0.3 * f64::from(segments / 2 - 1) + 0.02;
    }
    lines.push(format!("@{at:.3} S 500\n +0 C ack"));
    let seen = log(lines.join("\n")).rtt(ms(rtt_ms)).seen_at(End::Server);
    let bill = seen.exchange(1);
    let buffer = bill.ns(Cause::SendBuffer, Server);
    // The link needed the time of the ACKs between them, and of the last segments.
    assert!(buffer >= ms(4.0 * (rtt_ms - 0.3)), "{buffer}{seen}");
}

/// Ten writes of 50 bytes use up a congestion window of ten packets; data written meanwhile leaves
/// as full segments.
#[test]
fn small_packets_use_up_a_congestion_window_too() {
    let rtt = ms(20);
    let writes = each(1..=9, |_| "+0.003 C 50".to_owned());
    let text = format!("handshake\n +5 C 50\n {writes}\n +0 S ack ack=50\n +0 C 2896\n +0 S 20");
    let seen = log(text).rtt(rtt).seen_at(End::Client);
    let bill = seen.exchange(1);
    let (window, think) = (bill.ns(Cause::SlowStart, Client), bill.ns(Cause::SenderThink, Client));
    assert!(window >= ms(19.5) && think <= ms(0.5), "{window} {think}{seen}");
}

/// Near the server, a packet faster than all before it shows that they had been delayed, the first
/// request too.
#[test]
fn a_request_may_have_waited_longer_than_was_known() {
    let rtt = ms(40);
    let text = "@0 C syn late=15
         +0 S syn
         +0 C ack late=15
         +20 C 100 late=25
         +0 S 200
         +0 C 100 late=0
         +0 S 200
         +0 C 100 late=10
         +0 S 200
         +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    seen.exchange(1).is_within(ms(1.1), &[(Cause::RoundTrip, Path, rtt), (Cause::Queueing, Path, ms(25))]);
}

/// Nagle holds every message of a stream but the first, several at a time: each hold but the last
/// ends with all data written until then, and the application keeps writing at its own pace.
#[test]
fn a_hold_in_the_middle_of_a_stream_costs_nothing() {
    let held = each(1..=8, |n| format!("+0 S ack\n +0 C {}", if n % 2 == 0 { 150 } else { 100 }));
    let text = format!("handshake\n +5 C 50\n {held}\n +0 S ack");
    log(text).rtt(ms(40)).both_ends(|seen| {
        let bill = seen.one_way(1);
        let (nagle, pace) = (bill.ns(Cause::Nagle, Client), bill.ns(Cause::SenderThink, Client));
        assert!(nagle <= ms(40.5) && pace >= ms(7 * 40), "{nagle} {pace}{seen}");
    });
}

/// A receiver whose window closes delays its ACKs, also for more than two segments: that is no slow
/// link.
#[test]
fn a_late_acknowledgement_with_a_smaller_window_is_no_slow_link() {
    let acks = each(1..=20, |n| format!("@{:.2} C ack ack={}", 15.0 + 0.02 * f64::from(n), 2896 * n));
    let text = format!(
        "handshake
         @5 C 100
         +0 S 2896x20 more
         {acks}
         @25.5 S 1448x10 more
         @30.5 C ack ack={}
         @35.5 S 1448x2
         @65.5 C ack win=0
         @110 C ack win=100000
         @115 S 1448x10
         +0 C ack",
        20 * 2896 + 4 * 1448
    );
    let seen = log(text).rtt(ms(10)).window(End::Client, 100_000).seen_at(End::Server);
    let bandwidth = seen.exchange(1).ns(Cause::Bandwidth, Path);
    assert!(bandwidth <= ms(8), "{bandwidth}{seen}");
}

/// Flights of a send buffer as Linux fills it (SO_SNDBUF of 32 KB, 50 ms; the window would have
/// doubled each time): it counts the memory of packets, which grow. The start slackens, doubles
/// once more and falls back.
#[test]
fn flights_that_go_by_fits_and_starts_are_a_send_buffer_s() {
    let rtt = ms(50);
    let rounds = each([10, 20, 24, 49, 48, 70, 143, 45, 45, 45, 45], |segments| {
        format!("+0 S 1448x{segments} more\n +0 C ack")
    });
    let text = format!("handshake\n +5 C 100\n {rounds}\n +0 S 100");
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        bill.elapsed(rtt.times(12), ms(1));
        bill.is_within(
            ms(1),
            &[
                (Cause::RoundTrip, Path, rtt),
                (Cause::SlowStart, Server, rtt.times(2)),
                (Cause::SendBuffer, Server, rtt.times(9)),
            ],
        );
        assert_eq!(bill.of(Cause::SendBuffer).confidence, Confidence::Likely, "{seen}");
    });
}

/// Slow start that ends by itself (HyStart++, RFC 9406) and grows by a tenth from then on: no send
/// buffer is involved.
#[test]
fn a_start_that_slackens_once_is_a_window_s() {
    let rtt = ms(50);
    let rounds = each([10, 20, 40, 66, 73, 80, 88, 97, 107], |segments| {
        format!("+0 S 1448x{segments} more\n +0 C ack")
    });
    let text = format!("handshake\n +5 C 100\n {rounds}\n +0 S 100");
    log(text).rtt(rtt).both_ends(|seen| {
        assert_eq!(seen.exchange(1).ns(Cause::SendBuffer, Server), ms(0), "{seen}");
    });
}

/// A flight in slow start leaves room too small for a super-segment (tcp_tso_should_defer), and the
/// next one uses the whole opened window. No send buffer is involved; a flight that happens to be
/// as large once falls back after it.
#[test]
fn what_a_start_left_out_leaves_with_the_next_flight() {
    let rtt = ms(50);
    let starts = [[10, 20, 32, 72, 144, 288], [10, 20, 30, 70, 140, 260], [10, 20, 24, 61, 48, 70]];
    for (n, flights) in starts.into_iter().enumerate() {
        let rounds = each(flights, |segments| format!("+0 S 1448x{segments} more\n +0 C ack"));
        let text = format!("handshake\n +5 C 100\n {rounds}\n +0 S 100");
        log(text).rtt(rtt).both_ends(|seen| {
            let buffer = seen.exchange(1).ns(Cause::SendBuffer, Server);
            assert_eq!(buffer, if n < 2 { ms(0) } else { rtt.times(4) }, "{flights:?} {seen}");
        });
    }
}

/// A reply whose header leaves first, on a path with jitter: its tail follows a segment without
/// PSH, so it was written with that, and its lateness is the path's. No exchange teaches that the
/// server pauses.
#[test]
fn the_rest_of_a_write_is_held_however_late_it_comes() {
    let exchanges = each([0, 4, 1, 5, 2, 3, 5, 4], |late| {
        format!("+5 C 100\n +0 S 140\n +0 S 1448 more\n +0 C ack\n +0 S 52 late={late}\n +0 C ack")
    });
    log(format!("handshake\n {exchanges}")).rtt(ms(20)).both_ends(|seen| {
        for n in 2..=8 {
            let bill = seen.exchange(n);
            assert!(bill.ns(Cause::SenderThink, Server) <= ms(0.5), "{n} {seen}");
            assert!(bill.ns(Cause::Nagle, Server) >= ms(19), "{n} {seen}");
        }
    });
}

/// Riak's client (two writes) shows in its first exchange that it does not pause; the first hold
/// for a delayed ACK ends 1.8 ms late on a busy path.
#[test]
fn the_first_hold_may_end_late() {
    let text = "handshake
         +5 C 50
         +0 S ack
         +0 C 100
         +0 S 100
         +5 C 50 #head
         head+40 S ack late=0.9
         +0 C 100 late=0.9
         +0 S 100";
    log(text).rtt(ms(0.1)).both_ends(|seen| {
        let bill = seen.exchange(2);
        assert!(bill.ns(Cause::NagleDelayedAck, Client) >= ms(39.5), "{seen}");
        assert!(bill.ns(Cause::SenderThink, Client) <= ms(0.5), "{seen}");
    });
}

/// The window ends in the middle of a reply (tcp_mss_split_point cuts a segment there). The first
/// ACK opens it a round trip later; Nagle holds the tail for the rest of them, half a millisecond
/// more.
#[test]
fn a_window_holds_a_tail_before_nagle_does() {
    let rtt = ms(100);
    let text = "handshake
         +5 C 100
         +0 S 1448x20 more #flight
         +0 S 96
         flight+0 C ack ack=2896 win=60032
         +0.5 C ack win=60032
         +0 S 500
         +0 C ack";
    log(text).rtt(rtt).window(End::Client, 29_056).both_ends(|seen| {
        let bill = seen.exchange(1);
        let (window, nagle) = (bill.ns(Cause::ReceiveWindow, Client), bill.ns(Cause::Nagle, Server));
        assert!(window >= rtt - ms(2) && nagle <= ms(1), "{seen}");
    });
}

/// Four timeouts of silence would have reduced a window of 80 segments to ten (tcp_cwnd_restart):
/// with a first flight of 47, nothing was restarted, and the phase it is in is a guess.
#[test]
fn a_window_that_was_kept_is_not_restarted() {
    let rounds = |flights: &[i32]| {
        each(flights.iter().copied(), |segments| format!("+0 S 1448x{segments} more\n +0 C ack"))
            + "\n +0 S 100\n +0 C ack"
    };
    let (first, second) = (rounds(&[10, 20, 40]), rounds(&[47, 23]));
    let text = format!("handshake\n +5 C 100\n {first}\n +1500 C 100\n {second}");
    log(text).rtt(ms(100)).both_ends(|seen| {
        let bill = seen.exchange(2).never(Cause::SlowStartAfterIdle);
        assert_eq!(bill.of(Cause::CongestionWindow).confidence, Confidence::Possible, "{seen}");
    });
}

/// BBR with a window of 28 segments, 40 ms away: it spaces the window's segments over the round
/// trip, so few of them follow the ACK that made room. Each round uses the window up.
#[test]
fn a_window_that_every_round_uses_up_is_what_holds_a_pacing_sender() {
    let rtt = ms(40);
    let paced = each(0..140, |n| {
        format!("@{:.3} S 1448x2 more #p{n}\n p{n}+0 C ack win=40576", 128.0 + 2.93 * f64::from(n))
    });
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack win=40576\n +0 S 1448x20 more\n +0 C ack win=40576\n {paced}\n +2.9 S 100\n +0 C ack"
    );
    log(text).rtt(rtt).window(End::Client, 40_576).both_ends(|seen| {
        let bill = seen.exchange(1);
        let window = bill.ns(Cause::ReceiveWindow, Client);
        let other =
            [Cause::CongestionWindow, Cause::SendBuffer, Cause::Pacing].map(|cause| bill.ns(cause, Server));
        assert!(window >= ms(2.93 * 100.0), "{window}{seen}");
        assert!(other.into_iter().sum::<tcpwhy_wire::Duration>() <= ms(60), "{other:?}{seen}");
    });
}

/// A window of 28 segments that two rounds use up, and that is eight times as large from then on:
/// the limit of the later flights of 29 to 34 segments is the sender's.
#[test]
fn a_window_that_has_grown_away_from_the_flights_holds_them_no_more() {
    let rtt = ms(40);
    let rounds = |flights: &[i32], window| {
        each(flights.iter().copied(), |segments| format!("+0 S 1448x{segments} more\n +0 C ack win={window}"))
    };
    let text = format!(
        "handshake\n +5 C 100\n {}\n {}\n +0 S 100\n +0 C ack",
        rounds(&[10, 20, 28], 40_576),
        rounds(&[28, 29, 30, 31, 32, 33, 34], 324_608),
    );
    log(text).rtt(rtt).window(End::Client, 40_576).both_ends(|seen| {
        let bill = seen.exchange(1);
        let window = bill.ns(Cause::ReceiveWindow, Client);
        assert!(window >= ms(38) && window <= ms(82), "{window} {seen}");
    });
}

/// Slow start of a sender that spaces its segments, like BBR: in the middle of a round that
/// doubles, no more is in flight than in the one before it.
#[test]
fn half_of_a_round_that_doubles_is_no_full_buffer() {
    let rtt = ms(60);
    let (mut lines, mut n) = (vec!["handshake\n +5 C 100".to_owned()], 0);
    for (round, segments) in [5, 10, 20, 40].into_iter().enumerate() {
        for segment in 0..segments {
            let at = 100.0 + 60.0 * round as f64 + 55.0 * f64::from(segment) / f64::from(segments);
            lines.push(format!("@{at:.3} S 1448x2 more #s{n}\n s{n}+0 C ack"));
            n += 1;
        }
    }
    lines.push(format!("s{}+1 S 100\n +0 C ack", n - 1));
    log(lines.join("\n")).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::SendBuffer, Server) <= ms(3), "{seen}");
        assert!(bill.ns(Cause::CongestionWindow, Server) <= ms(20), "{seen}");
    });
}

/// A server that pauses for 50 ms between two writes, as its first two exchanges show. In the third
/// the first write is 4 ms late on the path, and the second comes with the ACK that the client
/// delayed.
#[test]
fn a_pause_is_no_shorter_for_a_first_write_that_was_late() {
    let prompt = "+5 C 100\n +10 S 50\n +0 C ack\n +48 S 150\n +0 C ack\n".repeat(2);
    let text = format!(
        "handshake\n {prompt} +5 C 100\n +10 S 50 late=4 #first\n first+43.5 C ack\n first+50 S 150\n +0 C ack"
    );
    log(text).rtt(ms(2)).both_ends(|seen| {
        let bill = seen.exchange(3);
        assert_eq!(bill.ns(Cause::NagleDelayedAck, Server), ms(0), "{seen}");
        assert!(bill.ns(Cause::SenderThink, Server) >= ms(44), "{seen}");
    });
}

/// A server that pauses for 50 ms before its second write, and has had one held by a delayed ACK.
/// In the third exchange the client's ACK comes 6 ms before that write by chance: its time stamp
/// shows that the write left then, and was not late on the path.
#[test]
fn a_write_that_its_stamp_dates_behind_an_acknowledgement_was_not_let_go_by_that() {
    let text = "handshake
        +5 C 100\n +5 S 50 #a\n a+0 C ack\n a+50 S 150\n +0 C ack
        +5 C 100\n +5 S 50 #b\n b+42 C ack\n +0 S 150\n +0 C ack
        +5 C 100\n +5 S 50 #c\n c+42 C ack\n c+50 S 150\n +0 C ack";
    log(text).rtt(ms(2)).both_ends(|seen| {
        let bill = seen.exchange(3);
        assert_eq!(bill.ns(Cause::Queueing, Path), ms(0), "{seen}");
        assert!(bill.ns(Cause::SenderThink, Server) >= ms(49), "{seen}");
    });
}

/// A server without Nagle writes its reply in pieces of 1 KB: ten of them fill the window of a new
/// connection, and data written meanwhile leaves in full segments with the first ACKs. Seen also
/// from a client that acknowledges each at once.
#[test]
fn small_pieces_fill_a_window_that_counts_packets() {
    let rtt = ms(4);
    let small = each(0..10, |n| format!("@{} S 1024 #s{n}\n s{n}+0 C ack", 11.1 + 0.03 * f64::from(n)));
    let text = format!(
        "handshake\n +5 C 100\n {small}\n s0+{0} S 1448x20 more\n +0 C ack\n +0 S 1448x20\n +0 C ack",
        4
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert_eq!(bill.ns(Cause::SenderThink, Server).max(ms(0.5)), ms(0.5), "{seen}");
        assert!(bill.ns(Cause::SlowStart, Server) >= ms(7), "{seen}");
    });
}

/// At 40 ms a cork's timer is 240 ms, and fires 10.5 ms late here: a server that sleeps for 250 ms
/// would look the same. At the first reply they cannot be told apart, and slow servers are far more
/// usual.
#[test]
fn a_first_reply_after_a_cork_s_timer_or_a_sleep_is_likely_its_server_s() {
    let text = "handshake\n +5 C 100\n +250.5 S 200\n +0 C ack";
    log(text).rtt(ms(40)).both_ends(|seen| {
        let think = seen.exchange(1).of(Cause::ServerThink).confidence;
        assert_eq!(think, Confidence::Likely, "{seen}");
    });
}

/// A second write that leaves 2.4 ms after an ACK that had been delayed by 50: the host may have
/// been busy, or the program wrote just then.
#[test]
fn what_leaves_soon_behind_a_late_acknowledgement_is_not_surely_the_program_s_time() {
    let text = "handshake\n +5 C 100 #a\n a+50 S ack\n +2.4 C 150\n +0 S 250\n +0 C ack";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    assert_eq!(seen.exchange(1).of(Cause::SenderThink).confidence, Confidence::Possible, "{seen}");
}

/// A window of ten segments whose first is lost: it stands still until the repair, and so does the
/// sender.
#[test]
fn a_window_behind_a_hole_is_not_surely_what_holds() {
    let text = format!(
        "handshake\n +5 C 100\n +0 S 0..{MSS} more lost\n +0 S 1448x9 more\n +0 C ack\n +0 S 0..{MSS} more\n +0 C ack\n +0 S 1448x5\n +0 C ack"
    );
    log(text).rtt(ms(50)).window(End::Client, 14_592).both_ends(|seen| {
        for line in &seen.exchange(1).exchange.bill {
            let held = line.cause == Cause::ReceiveWindow && line.ns > ms(5);
            assert!(!held || line.confidence == Confidence::Possible, "{seen}");
        }
    });
}

/// A request of three segments over 1.8 Mbit/s to a server 0.1 ms away: the client's capture cannot
/// see that the link took 19 ms.
#[test]
fn a_server_behind_a_slow_link_is_not_surely_slow() {
    let text = "handshake\n +5 C 1448x3\n +19 S 100\n +0 C ack";
    let seen = log(text).rtt(ms(0.1)).seen_at(End::Client);
    assert_eq!(seen.exchange(1).of(Cause::ServerThink).confidence, Confidence::Likely, "{seen}");
}
