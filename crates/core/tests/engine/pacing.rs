//! Senders that space their segments: which are pacing, and is it that or a link, a window or a
//! buffer that limits them?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence;

use crate::packet_log::{End, each, log, ms};

/// A pacing sender: its flights all have one size, and its segments come singly, all over the round
/// trip. Data limited by a send buffer comes in trains.
#[test]
fn segments_all_over_the_round_trip_are_paced_and_no_full_buffer() {
    let segments = each(0..400, |n| {
        let uneven = [0.0, 0.12, -0.1, 0.18, 0.05][n as usize % 5];
        format!("@{:.3} S 2896 #s{n}\n s{n}+0 C ack", 50.0 + 0.8 * f64::from(n) + uneven)
    });
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {segments}\n s399+0.3 S 100\n +0 C ack");
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(bill.ns(Cause::SendBuffer, Server) <= ms(25), "{seen}");
    assert!(bill.ns(Cause::Pacing, Server) >= ms(200), "{seen}");
}

/// The same if the pace rises by a twentieth per round trip: a window in congestion avoidance, or
/// the pace itself.
#[test]
fn a_pace_that_rises_slowly_is_no_more_than_a_possible_window() {
    let slower = 0.95_f64.powf(1.0 / 25.0);
    let segments = each(0..600, |n| {
        let uneven = [0.0, 0.12, -0.1, 0.18, 0.05][n as usize % 5];
        let at = 50.0 + 0.8 * (1.0 - slower.powi(n)) / (1.0 - slower) + uneven;
        format!("@{at:.3} S 2896 #s{n}\n s{n}+0 C ack")
    });
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {segments}\n s599+0.3 S 100\n +0 C ack");
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let bill = seen.exchange(1);
    assert_eq!(bill.of(Cause::CongestionWindow).confidence, Confidence::Possible, "{seen}");
}

/// A pace that has fallen a little, without a loss: the window allowed more before, and never
/// closes.
#[test]
fn a_window_that_let_more_pass_before_holds_no_paced_sender() {
    let segments = each(0..400, |n| {
        let uneven = [0.0, 0.35, -0.3, 0.3, 0.1, -0.25, 0.4][n as usize % 7];
        let at = 50.0 + 0.8 * f64::from(n) - 0.16 * f64::from(n.min(100)) + uneven;
        format!("@{at:.3} S 2896 #s{n}\n s{n}+0 C ack")
    });
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {segments}\n s399+0.3 S 100\n +0 C ack");
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(bill.ns(Cause::CongestionWindow, Server) <= ms(40), "{seen}");
    assert!(bill.ns(Cause::Pacing, Server) >= ms(180), "{seen}");
}

/// SO_MAX_PACING_RATE of 2.5 MB/s between two neighbouring hosts: a rate that shows after eight
/// intervals held before. The application's own time at the beginning is not part of it.
#[test]
fn a_beat_that_has_shown_was_kept_before() {
    let beats = each(0..20, |n| format!("@{:.3} S 14480 #b{n}\n b{n}+0 C ack", 50.0 + 5.79 * f64::from(n)));
    let text = format!(
        "handshake\n +5 C 100\n +0 S 14480 #one\n one+0 C ack\n @15 S 14480 #two\n two+0 C ack\n {beats}\n b19+5.79 S 1448"
    );
    log(text).rtt(ms(0.05)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let (pace, own) = (bill.ns(Cause::Pacing, Server), bill.ns(Cause::SenderThink, Server));
        assert!(pace >= ms(5.79 * 18.5) && pace <= ms(5.79 * 20.5), "{pace} {own}{seen}");
        assert!(own >= ms(44) && own <= ms(52), "{pace} {own}{seen}");
    });
}

/// A sender that spaces its segments: they arrive evenly, with stamps that advance with them, and
/// are acknowledged a little late now and then. That is no link's doing.
#[test]
fn a_pacing_sender_is_no_slow_link() {
    let segments = each(0..80, |n| {
        let late = f64::from(n % 3) * 0.2;
        format!("@{:.1} S 1448 more #s{n}\n s{n}+{late:.1} C ack", 30.0 + 0.7 * f64::from(n))
    });
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {segments}\n +0.7 S 100\n +0 C ack");
    log(text).rtt(ms(20)).both_ends(|seen| {
        assert!(seen.exchange(1).ns(Cause::Bandwidth, Path) <= ms(6), "{seen}");
    });
}

/// Nine of its intervals are slightly more than a round trip: each segment leaves just after the
/// ACK of the ninth before it. It keeps its own rhythm.
#[test]
fn acknowledgements_at_the_beat_of_a_pacing_sender_hold_nothing() {
    let segments =
        each(0..200, |n| format!("@{:.3} S 1448 more #s{n}\n s{n}+0 C ack", 30.0 + 2.235 * f64::from(n)));
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {segments}\n +2.2 S 100\n +0 C ack");
    log(text).rtt(ms(20)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let paced = bill.ns(Cause::Pacing, Server) + bill.ns(Cause::SlowStart, Server);
        assert!(paced >= ms(200.0 * 2.235 - 60.0), "{seen}");
    });
}

/// Rounds that double and are spaced over each round trip are an opening window, or a sender's
/// pace, whichever end sees them.
#[test]
fn a_paced_start_is_slow_start() {
    let rounds = [(10, 60.0, 4.0), (20, 100.0, 1.9), (40, 140.0, 0.95)];
    let text = rounds.map(|(count, from, apart)| {
        each(0..count, |n| {
            let label = format!("s{count}x{n}");
            format!("@{:.2} S 1448 more #{label}\n {label}+0 C ack", from + apart * f64::from(n))
        })
    });
    let text = format!(
        "handshake\n +5 C 100\n @60 S 1448x10 more\n +0 C ack\n {}\n @180 S 100\n +0 C ack",
        text[1..].join("\n")
    );
    log(text).rtt(ms(40)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let own = bill.ns(Cause::SlowStart, Server) + bill.ns(Cause::Pacing, Server);
        assert!(own >= ms(60), "{seen}");
        assert!(bill.ns(Cause::Bandwidth, Path) <= ms(6), "{seen}");
    });
}

/// Segments come at the link's pace, full and with more to follow. One is late and the next early:
/// that may have been their sender's doing, but does not make the others so.
#[test]
fn one_uneven_interval_does_not_make_a_link_s_pace_the_sender_s() {
    let segments = each(0..12, |n| {
        let late = if n == 7 { 1.0 } else { 0.0 };
        format!("@{} C 1448 more #s{n}\n s{n}+0 S ack", 20.0 + 12.0 * f64::from(n) + late)
    });
    let text = format!("handshake\n {segments}\n s11+5 C 500 #end\n end+0 S 10\n +0 C ack");
    let seen = log(text).rtt(ms(2)).seen_at(End::Server);
    let think = seen.exchange(1).ns(Cause::SenderThink, Client);
    assert!(think <= ms(60), "{seen}"); // next to the uneven ones
}

/// A sender with an interval of 5 ms that divides the round trip, so that each segment leaves just
/// as an ACK arrives: it would have left without it. Far from it the ACKs are as prompt.
#[test]
fn a_beat_that_acknowledgements_fall_in_with_is_a_pace() {
    let beats = each(0..60, |n| format!("@{} S 14480 more #b{n}\n b{n}+0 C ack", 50 + 5 * n));
    log(format!("handshake\n +5 C 100\n {beats}\n b59+5 S 100\n +0 C ack")).rtt(ms(20)).both_ends(|seen| {
        let bill = seen.exchange(1);
        let pace = bill.ns(Cause::Pacing, Server);
        assert!(pace >= ms(5 * 45), "{pace}{seen}");
    });
}

/// A rhythm that has been kept for long, then a program that pauses for 11 ms after a write: its
/// next write leaves as the ACK of some earlier segment arrives, as they do every 2 ms. Its queue
/// had been emptied.
#[test]
fn a_pause_behind_a_beat_is_its_program_s() {
    let beat = |name: char, from: f64, n: i32| {
        // A long write is pushed now and then, and at its end.
        let segment = if n == 59 { "700" } else { "1448" };
        let more = if n == 45 || n == 59 { "" } else { "more" };
        let at = from + 2.235 * f64::from(n);
        format!("@{at:.3} S {segment} {more} #{name}{n}\n {name}{n}+0 C ack")
    };
    let first = each(0..60, |n| beat('a', 30.0, n));
    let second = each(0..20, |n| beat('b', 30.0 + 2.235 * 59.0 + 11.83, n));
    let text = format!("handshake\n +5 C 100\n +0 S 100\n {first}\n {second}\n b19+2.2 S 100\n +0 C ack");
    log(text).rtt(ms(16)).both_ends(|seen| {
        let bill = seen.exchange(1);
        // Near it, ACKs of half its flight have come meanwhile: it may have waited for room in its
        // buffer.
        let own = bill.ns(Cause::SenderThink, Server) + bill.ns(Cause::SendBuffer, Server);
        assert!(own >= ms(11), "{seen}");
    });
}

/// BBR with a window of 32 segments, 40 ms away, and a receiver that acknowledges eight at once:
/// the window is full when such an ACK comes, and the released segments leave spread over the time
/// until the next. The first of them leaves 27 ms behind its ACK, which no window explains.
#[test]
fn what_a_full_window_lets_go_eight_at_a_time_is_the_window_s_however_it_is_spaced() {
    let group = |n: i32| {
        let segments = each(0..8, |i| {
            format!("@{:.2} S 1448 more #p{n}x{i}", 172.0 + 12.1 * f64::from(n) + 1.2 * f64::from(i))
        });
        format!("{segments}\n p{n}x7+0 C ack win=46336")
    };
    let groups = each(0..24, group);
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack win=46336\n +0 S 1448x20 more\n +0 C ack win=46336\n {groups}\n +1.2 S 100\n +0 C ack"
    );
    log(text).rtt(ms(40)).window(End::Client, 46_336).both_ends(|seen| {
        let bill = seen.exchange(1);
        let window = bill.ns(Cause::ReceiveWindow, Client);
        assert!(window >= ms(12.1 * 17.0), "{window}{seen}");
        assert!(bill.ns(Cause::Pacing, Server) <= ms(40), "{seen}");
    });
}

/// A window of 10, 20 and then 30 segments, the first two of which are used up at once. The flight
/// of the third round is spaced by a slow start that would continue to 40: until the window is full
/// again it limits nothing.
#[test]
fn a_window_that_has_just_opened_does_not_hold_what_a_start_spaces() {
    let paced = each(0..30, |n| format!("round+{n} S 1448 more #p{n}\n p{n}+0 C ack"));
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack win=28960\n +0 S 1448x20 more\n +0 C ack win=43440 #round\n {paced}\n +40 S 100\n +0 C ack"
    );
    log(text).rtt(ms(40)).window(End::Client, 14_480).both_ends(|seen| {
        let bill = seen.exchange(1);
        let own = bill.ns(Cause::SlowStart, Server) + bill.ns(Cause::Pacing, Server);
        assert!(own >= ms(25), "{own}{seen}");
    });
}
