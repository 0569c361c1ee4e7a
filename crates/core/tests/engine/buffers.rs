//! Was the sending socket's buffer full, or did its program pause after what it had written?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};

use crate::packet_log::{End, MSS, each, log, ms};

/// Flights of 20 segments that do not grow: if at most an eighth of the window is left unused, the
/// window is the limit; if more, the buffer.
#[test]
fn flat_flights_that_nearly_use_up_the_window_are_the_window_s() {
    let rtt = ms(26);
    let flights = "+0 S 1448x20 more\n +0 C ack\n".repeat(5);
    for (segments, full) in [(22, true), (24, false)] {
        let text = format!("handshake\n +5 C 100\n {flights} +0 S 100\n +0 C ack");
        let path = log(text).rtt(rtt).without_window_scale().window(End::Client, segments * MSS as u32);
        path.both_ends(|seen| {
            let bill = seen.exchange(1);
            let [window, buffer] = [(Cause::ReceiveWindow, Client), (Cause::SendBuffer, Server)]
                .map(|(cause, side)| bill.ns(cause, side));
            let [held, other] = if full { [window, buffer] } else { [buffer, window] };
            assert!(held >= rtt.times(4) && other == ms(0), "{segments}{seen}");
        });
    }
}

/// A sender with a full buffer pushes what fitted and continues with exactly the acknowledgement
/// that frees a third of it. If it continues sooner or later, with little in flight, or with less
/// than a full segment, its program had more to send.
#[test]
fn a_writer_that_goes_on_when_a_third_is_free_waited_for_its_buffer() {
    let rtt = ms(20);
    let waited = |segments: u32, goes_on: i64, rest: &str| {
        let acks = each(1..=14, |n| format!("flight+{:.1} C ack ack={} #a{n}", 0.3 * n as f64, n * 2 * MSS));
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x{segments} #flight\n +0 S 900\n {acks}\n a{goes_on}+0 S {rest}\n +0 C ack"
        );
        let seen = log(text).rtt(rtt).seen_at(End::Server);
        let bill = seen.exchange(1);
        // The link takes a part of both.
        let [buffer, own] = [Cause::SendBuffer, Cause::SenderThink].map(|cause| bill.ns(cause, Server));
        assert!((buffer >= ms(14)) != (own >= ms(14)) && buffer.min(own) == ms(0), "{seen}");
        buffer > own
    };
    // 58,820 bytes: the seventh acknowledgement of two segments frees a third. 44,340: the sixth.
    assert!(waited(40, 7, "1448x12"));
    assert!(!waited(40, 6, "1448x12"), "sooner");
    assert!(!waited(40, 8, "1448x12"), "later");
    assert!(!waited(30, 6, "1448x12"), "too little in flight");
    assert!(!waited(40, 7, "700"), "no full segment");
}

/// Small packets of a sender without Nagle: first as many as the window counts, then data joined
/// meanwhile, with the first acknowledgement. If it continues with small ones, its buffer was full
/// of them; with nine it was not.
#[test]
fn small_packets_are_counted_by_the_window_and_by_the_buffer() {
    let rtt = ms(20);
    for (small, rest, cause) in [
        (9, "900", Cause::SlowStart),
        (9, "50", Cause::SendBuffer),
        (8, "900", Cause::SenderThink),
        (8, "50", Cause::SenderThink),
    ] {
        let text = format!(
            "handshake
             +5 C 100
             +0 S 50 #first
             first+0.01 S 50x{small} #rest
             first+0 C ack
             +0 S {rest}
             rest+0.5 C ack
             +0 C ack"
        );
        let seen = log(text).rtt(rtt).seen_at(End::Server);
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (cause, Server, rtt)]);
    }
}

/// TLS records with TCP_NODELAY, after which the sender has continued at once before. A stop after
/// one is due to a window if it lasts a round trip with ten segments in flight; otherwise the
/// program paused.
#[test]
fn what_stops_behind_a_record_for_less_than_a_round_is_the_program() {
    let rtt = ms(60);
    let record = "+0 S 4344x3 more\n +0 S 3381";
    let pause = |first: &str, pause: i32| {
        let text = format!(
            "handshake
             +5 C 100
             +0 S 1448x10 more
             +0 C ack
             +0 S 1933
             {record}
             +0 C ack
             {first} #end
             end+{pause} C ack ack=34208
             {record}
             +0 C ack"
        );
        let seen = log(text).rtt(rtt).seen_at(End::Server);
        seen.exchange(1).ns(Cause::SenderThink, Server)
    };
    assert_eq!(pause(record, 0), ms(0));
    assert_eq!(pause("+0 S 4344x2 more\n +0 S 3381", 0), rtt);
}

/// An upload to a receiver that reads 64 KB every 20 ms with a buffer of 64 KB, 50 ms away, as
/// captured on its host: each flight fills the window, and acknowledgements come in batches before
/// the one after a read. No send buffer matches that by chance.
#[test]
fn flights_that_fill_the_window_each_time_are_the_window_s() {
    let path = log(include_str!("read_in_pauses.log"))
        .without_ip_ids()
        .rtt(ms(50))
        .window(End::Client, 64_512)
        .window(End::Server, 65_160);
    path.both_ends(|seen| {
        let lines = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
        let buffer = lines.filter(|line| line.cause == Cause::SendBuffer).count();
        assert_eq!(buffer, 0, "{seen}");
    });
}

/// The first reply of a connection stops after exactly ten segments, and goes on well after their first acknowledgements should
/// have reached the server: these waited in the queue of a slow uplink. Ten segments are what a new connection may send
/// (RFC 6928), and no buffer's size.
#[test]
fn the_first_stop_of_a_connection_behind_ten_segments_is_its_window_s() {
    let acks = each(1..=5, |n| {
        let late = 30.0 - 4.0 * n as f64;
        format!("@{:.2} C ack ack={} late={late:.2} #a{n}", 115.6 + 4.0 * n as f64, n * 2 * MSS)
    });
    for (segments, cause) in [(10, Cause::SlowStart), (14, Cause::SendBuffer)] {
        let text = format!(
            "handshake
             +5 C 100
             +0 S 1448x{segments} more
             {acks}
             a1+0 S 1448x12 more
             +0 C ack"
        );
        let seen = log(text).rtt(ms(55)).bottleneck(End::Server, 5_792_000).seen_at(End::Client);
        let bill = seen.exchange(1);
        assert!(bill.ns(cause, Server) >= ms(20), "{segments}{seen}");
    }
}

/// Over a radio, the handshake takes 516 ms and the reply's first 4,096 bytes 175; the rest leaves 117 ms after they were
/// acknowledged, sooner than any round trip so far, and later ones take 67 (frames 488 to 1057 of a browser; three connections
/// pause alike): a window or a buffer may have held it, as the path may be shorter. A path that has not varied is known.
#[test]
fn a_pause_of_less_than_a_round_trip_that_shrinks_may_be_a_round() {
    for (late, most) in [([450.0, 108.0], Possible), ([0.0, 0.0], Likely)] {
        let text = format!(
            "@0 C syn late={}
             +0 S syn
             +0 C ack
             +5 C 1759 late={}
             +0 S 1255x3 more
             +0 S 331
             +0 C ack #acked
             acked+50 S 1255 more
             +11 S 560
             +0 C ack",
            late[0], late[1]
        );
        let seen = log(text).rtt(ms(67)).without_timestamps().seen_at(End::Client);
        let pauses = seen.lines(Cause::SenderThink, Server);
        assert!(pauses[0].ns >= ms(49) && pauses[0].confidence == most, "{late:?}: {seen}");
    }
}

/// A printer's window of two segments opens with each acknowledgement, 7 ms after they came over a path of 0.6 (frames 29 to
/// 249 of a job): its reader may set the pace. On a path of 8 ms, of an acknowledgement at once, its buffer does.
#[test]
fn a_small_window_that_opens_late_is_not_the_buffers_for_certain() {
    for (rtt, late) in [(0.6, 7), (8.0, 0)] {
        let rounds = each(0..20, |_| format!("+0 S 1460x2 more\n +{late} C ack"));
        let text = format!("handshake\n +5 C 100\n {rounds}\n +0 S 100");
        log(text).rtt(ms(rtt)).window(End::Client, 2944).both_ends(|seen| {
            let bill = seen.exchange(1);
            let window = bill.exchange.bill.iter().filter(|line| line.cause == Cause::ReceiveWindow);
            let sure = window.map(|line| line.confidence).max();
            assert_eq!(sure == Some(Certain), late == 0, "{seen}");
        });
    }
}
