//! Which window held the sender, if any: the receiver's, the congestion window, the send buffer, or was it
//! the program? Logs that differ in one thing.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_wire::Timestamps;

use crate::packet_log::{End, MSS, each, log, ms};
use crate::seen::{Bill, Seen};

/// A line's form and its confidence.
fn form(bill: &Bill<'_>, cause: Cause) -> (Option<Form>, Confidence) {
    let line = bill.of(cause);
    (line.detail.form, line.confidence)
}

fn flights(segments: &[i32]) -> String {
    each(segments.iter(), |segments| format!("+0 S 1448x{segments} more\n +0 C ack"))
        + "\n +0 S 100\n +0 C ack"
}

/// A server's data sent upon the very ACK that opens the window exceeds the former window, and leaves room:
/// from then on the congestion window limits it, though by the handshake an ACK takes longer to reach it.
#[test]
fn a_window_that_is_used_as_it_opens_held_what_came_with_it_only() {
    let rtt = ms(20);
    let text = "@0 C syn\n +0.03 S syn\n +0 C ack\n +5 C 100
         +0.05 S 1448x10 more
         +0 C ack ack=7240 #some
         some+0.1 C ack ack=14480 win=60032
         some+0.04 S 1448x10 more
         some+0.104 S 1448x10 more
         +0 C ack win=100000
         +0.04 S 1448x40";
    let seen = log(text).rtt(rtt).window(End::Client, 21_760).seen_at(End::Server);
    let bill = seen.exchange(1);
    bill.is_within(ms(0.5), &[(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt.times(2))]);
}

/// The last segment fills the window to the byte. It opens a round trip later, and the program writes again
/// long after that.
#[test]
fn a_window_that_has_long_been_open_holds_nobody() {
    let rtt = ms(20);
    let text = "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 S 520\n +0 C ack\n +100 S 1448x8\n +0 C ack";
    log(text).rtt(rtt).window(End::Client, 15_000).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Server, ms(120))]);
    });
}

/// A small pushed segment leaves 300 bytes of the window, which opens while the program pauses: it writes 5
/// ms later. A program that had more to send all the time continues as soon as its host can.
#[test]
fn a_pause_is_none_where_more_was_queued() {
    let rtt = ms(40);
    let rest = |what: &str, late: i32| {
        format!("handshake\n +5 C 100\n +0 S 1448x9\n {what}\n +0 C ack\n +{late} S 1448x8\n +0 C ack")
    };
    let seen = log(rest("+0 S 1448 more", 2)).rtt(rtt).window(End::Client, 14_780).seen_at(End::Server);
    let bill = seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::ReceiveWindow, Client, ms(42))]);
    assert_eq!(form(&bill, Cause::ReceiveWindow).1, Likely, "{seen}");
    let seen = log(rest("+0 S 1444", 5)).rtt(rtt).window(End::Client, 14_780).seen_at(End::Server);
    seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Server, ms(45))]);
}

/// With room for one segment but not for two, a sender with more to send defers it, but not the tail of a
/// message that its program holds back (MSG_MORE). Room for two is enough.
#[test]
fn a_tail_that_fits_the_window_is_not_put_off_for_it() {
    let rtt = ms(40);
    let text = "handshake\n +5 C 100\n +0 S 1448x19 more\n +0 C ack\n +0 S 656 more\n +0 C ack";
    log(text).rtt(rtt).window(End::Client, 29_056).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::Cork, Server, rtt)]);
    });
    for (window, cause, side) in [(31_856, Cause::SlowStart, Server), (31_855, Cause::ReceiveWindow, Client)]
    {
        let text = format!("handshake\n +5 C 100\n {}", flights(&[20, 8]));
        let log = log(text).rtt(rtt).without_window_scale().window(End::Client, window);
        log.both_ends(|seen| {
            assert!(seen.exchange(1).ns(cause, side) >= rtt, "{window}{seen}");
        });
    }
}

/// A full window is certain; its size shows whether its buffer is too small, locked, or cannot be larger for
/// want of an option.
#[test]
fn a_full_window_is_certain_and_its_size_says_why() {
    let rtt = ms(26);
    let fetch = |segments: i32| {
        let flight = format!("\n +0 S 1448x{segments} more\n +0 C ack");
        format!("handshake{}", format!("\n +5 C 100{}\n +0 S 100\n +0 C ack", flight.repeat(5)).repeat(2))
    };
    for (segments, why) in [(44, Form::Unscaled), (20, Form::Locked)] {
        let log = log(fetch(segments)).rtt(rtt).without_window_scale();
        log.window(End::Client, (i64::from(segments) * MSS) as u32).both_ends(|seen| {
            let bill = seen.exchange(2);
            assert_eq!(form(&bill, Cause::ReceiveWindow), (Some(why), Certain), "{seen}");
        });
    }
}

/// The tail of a message fits in the rest of the window, and waits for the small segment before it.
#[test]
fn a_window_with_room_for_the_tail_does_not_hold_it() {
    let rtt = ms(100);
    let text = "handshake
         +5 C 100
         +0 S 1448x19 more #flight
         +0 S 596
         flight+0 C ack ack=2896 win=60032
         +5 C ack win=60032
         +0 S 500
         +0 C ack";
    log(text).rtt(rtt).window(End::Client, 29_056).both_ends(|seen| {
        let bill = seen.exchange(1).never(Cause::ReceiveWindow);
        assert!(bill.ns(Cause::Nagle, Server) >= rtt + ms(4), "{seen}");
    });
}

/// The first of ten segments is lost. Each of the first two selective acknowledgements releases one more
/// (limited transmit, RFC 3042), and the third triggers the retransmission of the first: the sender recovers,
/// its program does not think.
#[test]
fn segments_that_duplicate_acknowledgements_let_go_are_a_recovery() {
    let rtt = ms(40);
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448 more lost #hole
         hole+0 S 1448x9 #rest
         rest+0 C ack #one
         rest+3 C ack #two
         rest+6 C ack #three
         one+0 S 1448
         two+0 S 1448
         three+0 S 0..{MSS} #again
         again+0 C ack"
    );
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    let bill = seen.exchange(1).never(Cause::SenderThink);
    assert_eq!(form(&bill, Cause::CongestionWindow), (Some(Form::Recovery), Possible), "{seen}");
    assert!(bill.ns(Cause::CongestionWindow, Server) >= rtt, "{seen}");
}

/// A program announces more (MSG_MORE) and writes it 50 ms later, with everything acknowledged: that is no
/// pacing.
#[test]
fn a_program_that_announces_more_and_pauses_thinks() {
    let rtt = ms(10);
    let text = "handshake
         +5 C 100
         +0 S 1448 more
         +0 C ack
         +50 S 1448x3 more
         +0 C ack
         +55 S 100
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1).never(Cause::Pacing);
        assert!(bill.ns(Cause::SenderThink, Server) >= ms(60), "{seen}");
    });
}

/// A program that writes a full segment every 5 ms, with at most two of them in flight: neither pacing nor a
/// window.
#[test]
fn full_segments_of_a_slow_program_are_its_own() {
    let rtt = ms(40);
    let text = "handshake\n +5 C 100\n +0 S 1448\n +5 S 1448\n +5 S 1448\n +40 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill =
            seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Server, ms(10))]);
        assert_eq!(form(&bill, Cause::SenderThink), (None, Possible), "{seen}");
    });
}

/// Without time stamps: the second flight of slow start comes 5 ms later than the ACK that released it
/// allows; that time was on the path.
#[test]
fn a_flight_that_was_late_on_its_way_was_held_by_its_window_until_then() {
    let rtt = ms(40);
    let text = "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack\n +0 S 1448x20 more late=5\n +0 S 100 late=5\n +0 C ack";
    let seen = log(text).rtt(rtt).without_timestamps().seen_at(End::Client);
    let bill =
        [(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt), (Cause::Queueing, Path, ms(5))];
    seen.exchange(1).is(&bill);
}

/// One round that is no larger than the one before may be chance. After a loss, a window that stays constant
/// for a round hardly grows.
#[test]
fn a_flat_round_may_be_chance() {
    let rtt = ms(26);
    log(format!("handshake\n +5 C 100\n {}", flights(&[20, 20]))).rtt(rtt).both_ends(|seen| {
        assert_eq!(form(&seen.exchange(1), Cause::SendBuffer), (None, Possible), "{seen}");
    });
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
         {}",
        flights(&[6, 6, 6, 7])
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1).never(Cause::SendBuffer);
        assert_eq!(form(&bill, Cause::CongestionWindow), (Some(Form::AfterLoss), Likely), "{seen}");
    });
}

/// Slow start ends, and the window grows by a segment per round from then on: only a congestion window
/// explains that.
#[test]
fn a_window_that_grows_by_a_segment_a_round_is_in_avoidance() {
    let rtt = ms(40);
    let text = format!("handshake\n +5 C 100\n {}", flights(&[10, 20, 40, 42, 43, 44, 45]));
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert_eq!(form(&bill, Cause::CongestionWindow), (Some(Form::Avoidance), Likely), "{seen}");
    });
}

/// Two segments in flight over a link that takes 12 ms for each: their ACK is late because of the link.
#[test]
fn an_acknowledgement_that_the_link_delays_is_not_held_back() {
    let singles = each(0..40, |n| {
        let when = if n < 10 { "@40".to_owned() } else { format!("a{}+0", n - 10) };
        format!("{when} S 1448 more #p{n}\n p{n}+0 C ack #a{n}")
    });
    let text = format!(
        "handshake\n +5 C 100\n {singles}\n a39+0 S 100\n +0 C ack\n +50 C 100\n {}",
        flights(&[2, 4])
    );
    log(text).rtt(ms(20)).bottleneck(End::Server, 1_000_000).both_ends(|seen| {
        seen.exchange(2).never(Cause::DelayedAckCwnd);
    });
}

/// A sender that does not react to ACKs of most of its flight has a full send buffer: twice may be chance,
/// three times is not.
#[test]
fn a_sender_that_lets_acknowledgements_pass_again_does_so_for_its_buffer() {
    let reply = |name: &str| {
        let acks = each(1..20, |ack| format!("{name}+{:.2} C ack", 0.3 * f64::from(ack)));
        format!("+5 C 100\n +0 S 1448x40 more every=0.1 #{name}\n {acks}\n +0.05 S 1448x2\n +0 C ack\n")
    };
    let seen = log(format!("handshake\n {}{}{}", reply("a"), reply("b"), reply("c")))
        .rtt(ms(20))
        .seen_at(End::Server);
    let sure = [1, 2, 3].map(|n| form(&seen.exchange(n), Cause::SendBuffer));
    assert_eq!(sure, [Possible, Possible, Likely].map(|sure| (Some(Form::Drained), sure)), "{seen}");
}

/// A locked buffer grows from its first window by at most a half; one that has grown to twice as much has its
/// ceiling there.
#[test]
fn a_window_that_has_opened_is_capped_and_one_that_hardly_has_is_locked() {
    for (segments, why) in [(48, Form::Locked), (64, Form::Capped)] {
        let round = format!("\n +0 S 1448x{segments} more\n +0 C ack win={}", segments * MSS);
        let fetch = format!("\n +5 C 100{}\n +0 S 100\n +0 C ack win={}", round.repeat(5), segments * MSS);
        let first = format!(
            "\n +5 C 100\n +0 S 1448x32 more\n +0 C ack win={0}\n +0 S 100\n +0 C ack win={0}",
            segments * MSS
        );
        let log = log(format!(
            "handshake{first}{}",
            fetch.repeat(2).replace("+5 C 100", &format!("+200 C 100 win={}", segments * MSS))
        ));
        log.rtt(ms(26)).window(End::Client, 32 * MSS as u32).both_ends(|seen| {
            assert_eq!(form(&seen.exchange(3), Cause::ReceiveWindow), (Some(why), Certain), "{seen}");
        });
    }
}

/// Flights after 10 and 20 segments. A window never shrinks without a loss, but two segments may be missing
/// from a flight, and a tail of four does not count. Once it has stopped doubling it grows by at most a half
/// and two segments, or catches up with the full slow-start window: 40 plus the last flight, give or take a
/// fifth of that. Anything else is a send buffer.
#[test]
fn flights_that_no_window_has_are_a_send_buffer_s() {
    let is_buffer = |behind: &[i32]| {
        let text = format!("handshake\n +5 C 100\n {}", flights(&[&[10, 20], behind].concat()));
        End::BOTH.map(|end| {
            let seen = log(text.clone()).rtt(ms(50)).seen_at(end);
            seen.exchange(1).ns(Cause::SendBuffer, Server) > ms(0)
        })
    };
    for window in [&[16][..], &[4], &[36], &[24, 40], &[24, 59], &[24, 65]] {
        assert_eq!(is_buffer(window), [false; 2], "{window:?}");
    }
    for buffer in [&[15][..], &[5], &[24, 41], &[24, 58], &[24, 66]] {
        assert_eq!(is_buffer(buffer), [true; 2], "{buffer:?}");
    }
}

/// 40 segments fill the peer's window, which then opens to a megabyte. The congestion window has let these 40
/// pass, so the next flight has as many, two missing ones and a tenth apart, or any number more.
#[test]
fn what_is_smaller_than_a_flight_that_filled_the_peers_window_is_a_send_buffer_s() {
    for (next, is_buffer) in [(30, true), (34, false), (60, false), (200, false)] {
        let shut = 40 * MSS;
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack win={shut}\n +0 S 1448x20 more\n +0 C ack win={shut}\n +0 S 1448x40 more\n +0 C ack win={0}\n +0 S 1448x{next} more\n +0 C ack win={0}\n +0 S 1448x{next} more\n +0 C ack win={0}\n +0 S 100\n +0 C ack",
            1 << 20
        );
        log(text).rtt(ms(50)).window(End::Client, shut as u32).both_ends(|seen| {
            let bill = seen.exchange(1);
            assert!(bill.ns(Cause::ReceiveWindow, Client) >= ms(49), "{next}{seen}");
            assert_eq!(bill.ns(Cause::SendBuffer, Server) >= ms(99), is_buffer, "{next}{seen}");
        });
    }
}

/// Flights of 40 segments fill the peer's window, and every second one is half as large: the window holds nothing in
/// that, though the flights beside it fill it.
#[test]
fn half_a_window_between_full_ones_is_a_send_buffer_s() {
    let shut = 40 * MSS;
    let flights = each([10, 20, 40, 20, 40, 20], |n| format!("+0 S 1448x{n} more\n +0 C ack win={shut}"));
    let text = format!("handshake\n +5 C 100\n {flights}\n +0 S 100\n +0 C ack");
    log(text).rtt(ms(50)).window(End::Client, shut as u32).both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::ReceiveWindow, Client) <= ms(101), "{seen}");
        assert!(bill.ns(Cause::SendBuffer, Server) >= ms(49), "{seen}");
    });
}

/// Once the link's rate is known, the ACK of a flight has an expected time: the path, and the flight on the
/// link. An ACK some ms later was queued behind other traffic. Half a millisecond does not count; 9 ms may be
/// its receiver's, as may that of a single segment, or of a program that has not read: its window is smaller.
#[test]
fn an_acknowledgement_later_than_the_link_explains_was_queued() {
    let singles = each(0..40, |n| {
        let when = if n < 10 { "@40".to_owned() } else { format!("a{}+0", n - 10) };
        format!("{when} S 1448 more #p{n}\n p{n}+0 C ack #a{n}")
    });
    let queued = |flight: u32, late: f64, window: u32| {
        let text = format!(
            "handshake\n +5 C 100\n {singles}\n a39+0 S 1448x{flight} more\n +0 C ack late={late} win={window}\n +0 S 1448x8 more\n +0 C ack late={late} win={window}\n +0 S 100\n +0 C ack"
        );
        let path = log(text).rtt(ms(20)).bottleneck(End::Server, 10_000_000);
        let seen = path.window(End::Client, 1 << 20).seen_at(End::Server);
        seen.exchange(1).ns(Cause::Queueing, Path)
    };
    let open = 1 << 20;
    let cases = [
        (4, 5.0, open, 10.0),
        (4, 0.5, open, 0.0),
        (4, 9.0, open, 0.0),
        (1, 5.0, open, 5.0),
        (4, 5.0, open / 2, 0.0),
    ];
    for (flight, late, window, expected) in cases {
        let queued = queued(flight, late, window);
        assert!(
            queued >= ms(expected - 1.2) && queued <= ms(expected + 1.2),
            "{flight} {late} {window}: {queued}"
        );
    }
}

/// A window that grows in the first round trip and then stays constant: the reason of ten of eleven waits
/// names the line, however long the first was.
#[test]
fn a_line_is_told_by_what_took_most_of_its_time() {
    let [first, then] = [20 * MSS, 28 * MSS];
    let rounds = each(0..12, |n| {
        format!("a{n}+0 S 1448x27 more\n a{n}+0 S 1448 more #f{n}\n f{n}+0 C ack win={then} #a{}", n + 1)
    });
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448x19 more\n +0 S 1448 more #f\n f+1 C ack win={then} #a0\n {rounds}\n a12+0 S 100\n +0 C ack"
    );
    log(text).rtt(ms(20)).window(End::Client, first as u32).both_ends(|seen| {
        assert_eq!(form(&seen.exchange(1), Cause::ReceiveWindow).0, Some(Form::Locked), "{seen}");
    });
}

/// A window of up to four segments whose ACK is delayed by a quarter of the wait or more: the timer is the
/// cost. With more in flight, or on a path that takes most of the time anyway, it is the window.
#[test]
fn a_held_back_acknowledgement_is_the_cause_where_little_is_in_flight_and_it_takes_much() {
    for (segments, held_ms, rtt_ms, cause) in [
        (4, 40, 20, Cause::DelayedAckCwnd),
        (5, 40, 20, Cause::SlowStart),
        (2, 7, 20, Cause::SlowStart),
        (2, 9, 20, Cause::DelayedAckCwnd),
        (2, 60, 200, Cause::SlowStart),
        (2, 70, 200, Cause::DelayedAckCwnd),
    ] {
        let rtt = ms(rtt_ms);
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x{segments} more\n +{held_ms} C ack\n +0 S 1448x8\n +0 C ack"
        );
        log(text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(1);
            bill.elapsed(rtt.times(2) + ms(held_ms), ms(1));
            let line = bill.of(cause);
            assert!(line.ns >= rtt + ms(held_ms) - ms(1), "{segments} {held_ms} {rtt_ms}{seen}");
        });
    }
}

/// After ten seconds of silence a window that is reset begins with ten segments again, two more at most: a
/// first flight of 15 shows that it was kept.
#[test]
fn a_first_flight_behind_a_silence_says_whether_the_window_was_reset() {
    for (first, cause) in [(11, Cause::SlowStartAfterIdle), (15, Cause::CongestionWindow)] {
        let text = format!(
            "handshake\n +5 C 100\n {}\n +10000 C 100\n {}",
            flights(&[10, 20, 40]),
            flights(&[first, 8])
        );
        log(text).rtt(ms(40)).both_ends(|seen| {
            assert!(seen.exchange(2).of(cause).ns >= ms(39), "{first}{seen}");
        });
    }
}

/// A pacing sender fills the window with a partial segment, pushed (__tcp_transmit_skb,
/// net/ipv4/tcp_output.c, since 5.4), and continues a moment after the window has opened: its program has
/// more to send all the time.
#[test]
fn a_segment_that_the_window_cuts_is_no_end_of_a_write() {
    let rounds = each(0..12, |round| {
        each(0..15, |n| {
            let (at, len) = if n == 14 { (23.8, 1312) } else { (1.6 * f64::from(n), 1448) };
            format!(
                "@{:.1} S {len} #s{round}x{n}\n s{round}x{n}+0 C ack",
                40.0 + 24.9 * f64::from(round) + at
            )
        })
    });
    let text = format!("handshake\n +5 C 100\n {rounds}\n +2 S 100\n +0 C ack");
    let path = log(text).without_window_scale().window(End::Client, 21_584).rtt(ms(24));
    path.both_ends(|seen| {
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::SenderThink, Server) <= ms(10), "{seen}");
        assert!(bill.ns(Cause::ReceiveWindow, Client) >= ms(100), "{seen}");
    });
}

/// Three time zones away, 9 ms of delay of an ACK are not the cause of the window's round trip.
#[test]
fn a_little_of_a_long_round_trip_is_no_delayed_acknowledgement() {
    let far = log("handshake
         +5 C 100
         +0 S 1448x3 more
         +9 C ack
         +0 S 1448x3 more
         +9 C ack
         +0 S 1448x3
         +0 C ack")
    .rtt(ms(370));
    far.both_ends(|seen| {
        seen.exchange(1).never(Cause::DelayedAckCwnd);
    });
}

/// The client offers time stamps, but the server does not (as Windows by default), so segments have twelve
/// bytes more: they are full, and their limit is the growing window.
#[test]
fn time_stamps_that_only_the_syn_had_are_in_no_segment() {
    let flight = |n: u32, when: &str, name: char| {
        each(0..n, |i| format!("{when} C 2920 #{name}{i}\n {name}{i}+0 S ack #{name}a{i}"))
    };
    let text = format!(
        "handshake\n {}\n {}\n {}\n ca19+0 C 100\n +0 S 50",
        flight(5, "@60", 'a'),
        flight(10, "aa4+0", 'b'),
        flight(20, "ba9+0", 'c'),
    );
    for end in End::BOTH {
        let mut segments = log(text.clone()).without_timestamps().rtt(ms(20)).capture(end);
        segments[0].options.timestamps = Some(Timestamps { val: 1, ecr: 0 });
        let seen = Seen::of(segments, "a server without time stamps");
        let bill = seen.exchange(1);
        assert!(bill.ns(Cause::SenderThink, Client) <= ms(1), "{end:?}: {seen}");
        assert!(bill.ns(Cause::Bandwidth, Path) <= ms(1), "{end:?}: {seen}");
        assert!(bill.ns(Cause::SlowStart, Client) >= ms(35), "{end:?}: {seen}");
    }
}

/// A front end answers a SYN with a window of zero, and opens it a round trip later, when it has the third
/// packet: 1,537 bytes leave within 20 us of that (frames 1 to 5 of an uploaded stream). A client that writes
/// 30 ms later has not waited for it.
#[test]
fn a_window_that_opens_behind_the_handshake_holds_the_first_question() {
    let rtt = ms(70);
    for (pause, held) in [(0.02, rtt), (30.0, ms(0))] {
        let text = format!(
            "@0 C syn\n +0 S syn win=0\n +0 C ack\n +0 S ack win=65024\n +{pause} C 1400\n +0.3 S 1400\n +0 C ack"
        );
        log(text).rtt(rtt).both_ends(|seen| {
            let waited = seen.exchange(1).ns(Cause::ReceiveWindow, Server);
            assert!((waited - held).max(held - waited) <= ms(0.2), "{waited}: {seen}");
        });
    }
}

/// Two segments are acknowledged 700 ms after they left, where a round trip takes 50 (frames 1148 to 1246 of a phone's upload): no receiver holds an
/// acknowledgement back for half a second, so that it or they had stood on the path. 450 ms may be its timer.
#[test]
fn no_receiver_holds_an_acknowledgement_back_for_half_a_second() {
    for held in [450, 700] {
        let text =
            format!("handshake\n +5 C 100\n +0 S 1448x2 more\n +{held} C ack\n +0 S 1448x8\n +0 C ack");
        for end in End::BOTH {
            let seen = log(&text).rtt(ms(50)).seen_at(end);
            let timer = seen.exchange(1).ns(Cause::DelayedAckCwnd, Client);
            assert_eq!(timer >= ms(held), held < 500, "{seen}");
            let queued = seen.exchange(1).ns(Cause::Queueing, Path);
            assert_eq!(queued >= ms(held), held > 500 && end == End::Server, "{seen}");
        }
    }
}

/// Twelve segments pass together, and 30 ms later six acknowledgements, each of two of them (frames 1215 to 1232 of a server on Wi-Fi): the last one is
/// of a round of twelve. Of two segments alone, acknowledged as late, it is the receiver's timer.
#[test]
fn the_last_of_several_acknowledgements_is_of_the_whole_round() {
    for segments in [2, 12] {
        let acks = each(1..segments / 2, |n| format!("flight+30 C ack ack={}\n ", 1 + 2 * 1448 * n));
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x{segments} more #flight\n {acks} flight+30 C ack\n +0 S 1448x8\n +0 C ack"
        );
        log(text).rtt(ms(20)).both_ends(|seen| {
            let timer = seen.exchange(1).ns(Cause::DelayedAckCwnd, Client);
            assert_eq!(timer.is_positive(), segments == 2, "{seen}");
        });
    }
}

/// One segment whose acknowledgement is held back waits for its receiver's timer. Two full ones are acknowledged at once:
/// that may as well be late on its way (frames 3121 to 3131 of a Wi-Fi's capture), or its host busy.
#[test]
fn a_late_acknowledgement_of_two_segments_may_not_have_been_held_back() {
    for (segments, most) in [(1, Likely), (2, Possible)] {
        let text =
            format!("handshake\n +5 C 100\n +0 S 1448x{segments} more\n +40 C ack\n +0 S 1448x8\n +0 C ack");
        log(text).rtt(ms(20)).both_ends(|seen| {
            assert_eq!(seen.exchange(1).of(Cause::DelayedAckCwnd).confidence, most, "{segments}: {seen}");
        });
    }
}

/// A start whose second flight has a segment that others overtake by 2 ms, of a path of 100 ms without time stamps or
/// identifications: it may not have been lost, and the window may go on opening.
#[test]
fn a_window_behind_a_segment_that_others_overtook_is_possible() {
    for (late, most) in [("late=2", Possible), ("lost", Likely)] {
        let flights = format!(
            "+0 S 1448x10 more\n +0 C ack\n +0 S 1448x9 more\n +0 S 1448 more {late} #b\n +0 S 1448x10 more #d\n +3 C ack"
        );
        let again = if late == "lost" { "+0 S 27512..28960 more\n +0 C ack" } else { "" };
        let text =
            format!("handshake\n +5 C 100\n {flights}\n {again}\n +0 S 1448x12 more\n +0 C ack\n +0 S 100");
        let mut segments = log(text).rtt(ms(100)).without_timestamps().capture(End::Client);
        for segment in &mut segments {
            segment.ip_id = None;
        }
        let seen = Seen::of(segments, "the client");
        let window =
            seen.lines(Cause::CongestionWindow, Server).into_iter().map(|line| line.confidence).max();
        assert_eq!(window, Some(most), "{seen}");
    }
}
