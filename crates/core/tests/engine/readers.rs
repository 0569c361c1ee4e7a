//! Is the receiver's program slow, or its buffer too small for the path, or neither? Windows and
//! ACKs that differ in one thing.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence;
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, MSS, each, log, ms, settled};

/// This many full segments, in bytes.
fn segments(n: i64) -> u32 {
    (n * MSS) as u32
}

/// The time billed to a receiver's side, and the form.
fn reader(text: &str, window: u32, rtt: Duration, end: End) -> (Duration, Duration, Option<Form>) {
    let seen = log(text).rtt(rtt).window(End::Client, window).seen_at(end);
    let bill = seen.exchange(1);
    let [slow, full] = [Cause::ReceiverThink, Cause::ReceiveWindow].map(|cause| bill.ns(cause, Client));
    let form = bill.exchange.bill.iter().find(|line| line.cause == Cause::ReceiverThink);
    (slow, full, form.and_then(|line| line.detail.form))
}

/// A window is full and keeps its size. If acknowledged at once, it is a small buffer; if
/// acknowledged as a whole, long after arrival, the data had not been read. A window that has
/// shrunk to less than half is the program's fault, whatever the delay of the ACK, unless the next
/// ACK restores it: room made by reading would have been announced meanwhile.
#[test]
fn a_full_window_is_the_reader_s_if_it_shrank_or_was_acknowledged_late() {
    let rtt = ms(20);
    let [slow, zero] = [Form::SlowReader, Form::ZeroWindow].map(Some);
    let late =
        |delay: i32| format!("handshake\n +5 C 100\n +0 S 1448x32 more\n +{delay} C ack\n +0 S 1448x8");
    let half = "handshake\n +5 C 100\n +0 S 1448x32 more\n +40 C ack ack=23168\n +0 S 1448x16\n +0 C ack";
    let one = "handshake\n +5 C 100\n +0 S 1408\n +40 C ack\n +0 S 1408\n +0 C ack";
    let shrunk = |to: i64, at_last: i64| {
        let (first, then, last) = (segments(64), segments(to), segments(at_last));
        format!(
            "handshake\n +5 C 100\n +0 S 1448x32 more\n +0 C ack win={first}\n +0 S 1448x64 more\n +0 C ack win={then}\n +0 S 1448x{to} more\n +0 C ack win={last}\n +0 S 1448x8\n +0 C ack"
        )
    };
    for end in End::BOTH {
        let cases = [
            // Even if read at once, the full buffer would have taken the round trip.
            (late(80), segments(32), (ms(80), rtt, slow)),
            (late(0), segments(32), (ms(0), rtt, None)),
            (half.to_owned(), segments(32), (ms(0), rtt + ms(40), None)),
            (one.to_owned(), 1_408, (ms(0), rtt + ms(40), None)),
            (shrunk(48, 48), segments(32), (ms(0), rtt.times(3), None)),
            (shrunk(16, 12), segments(32), (rtt, rtt.times(2), slow)),
            (shrunk(16, 16), segments(32), (ms(0), rtt.times(3), None)),
        ];
        for (text, window, expected) in cases {
            let seen = reader(&text, window, rtt, end);
            let close = |a: Duration, b: Duration| (a - b).max(b - a) <= ms(1);
            assert!(
                close(seen.0, expected.0) && close(seen.1, expected.1) && seen.2 == expected.2,
                "{end:?} {text}\n{seen:?} instead of {expected:?}"
            );
        }
        // If the kernel shrinks a buffer that is set, it looks the same.
        let seen = log(shrunk(16, 12)).rtt(rtt).window(End::Client, segments(32)).seen_at(end);
        assert_eq!(seen.exchange(1).of(Cause::ReceiverThink).confidence, Confidence::Likely, "{end:?}");
        let closed =
            "handshake\n +5 C 100\n +0 S 1448x32 more\n +0 C ack win=0 #full\n full+100 C ack\n +0 S 1448x8";
        assert_eq!(reader(closed, segments(32), rtt, end), (rtt + ms(100), ms(0), zero), "{end:?}");
        let seen = log(closed).rtt(rtt).window(End::Client, segments(32)).seen_at(end);
        assert_eq!(seen.exchange(1).of(Cause::ReceiverThink).confidence, Confidence::Certain, "{end:?}");
        // A flight that fills the buffer at once, with a program that empties it at once.
        let filled =
            "handshake\n +5 C 100\n +0 S 1448x32 more\n +0 C ack win=0 #full\n full+0.1 C ack\n +0 S 1448x8";
        assert_eq!(reader(filled, segments(32), rtt, end), (ms(0), rtt + ms(0.1), None), "{end:?}");
    }
}

/// One ACK of a whole flight comes late, with a window that is smaller by the flight: it had not
/// been read. If the window hardly shrank, or for few segments, or a short delay, it is not the
/// program's; near the receiver only its application can cause 5 ms.
#[test]
fn a_late_acknowledgement_is_the_reader_s_if_its_window_shrank_by_the_flight() {
    let rtt = ms(20);
    let unread = |flight: i64, delay: i32, shrunk: i64| {
        let window = segments(144) - segments(shrunk);
        format!(
            "handshake\n +5 C 100\n +0 S 1448x{flight} more\n +{delay} C ack win={window}\n +0 S 1448x8\n +0 C ack"
        )
    };
    let cases = [
        (unread(32, 43, 32), [43, 43]),
        (unread(32, 43, 16), [43, 43]),
        (unread(32, 43, 15), [0, 0]),
        (unread(5, 43, 5), [43, 43]),
        (unread(32, 43, 32).replace("ack win", "ack ack=23168 win"), [43, 43]),
        (unread(32, 5, 32), [5, 0]),
        (unread(32, 1, 32), [0, 0]),
    ];
    for (text, expected) in cases {
        for (end, expected) in End::BOTH.into_iter().zip(expected) {
            let (slow, ..) = reader(&text, segments(144), rtt, end);
            let off = slow - ms(expected);
            assert!(off.max(-off) <= ms(1), "{end:?} {text}\n{slow} instead of {expected}");
        }
    }
}

/// A flight is not acknowledged, and 50 ms later its sender probes with one more segment (RFC 8985,
/// 7), which is acknowledged at once with all before it. Nothing was lost, and a receiver that has
/// read does acknowledge forty segments; near the sender their ACK may have been lost, but not
/// those of four hundred. For ten all may have been lost, and 90 ms are not a probe's time.
#[test]
fn a_probe_that_finds_a_whole_flight_unread_waited_for_the_reader() {
    let rtt = ms(20);
    for (flight, gap, slow) in
        [(40, 50, [true, false]), (400, 50, [true; 2]), (10, 50, [false; 2]), (400, 90, [false; 2])]
    {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x20 more\n +0 C ack\n +0 S 1448x{flight} more #f\n f+{gap} S 1448 more #p\n \
             p+0 C ack\n +0 S 1448x8\n +0 C ack"
        );
        for (end, slow) in End::BOTH.into_iter().zip(slow) {
            let seen = log(&*text).rtt(rtt).seen_at(end);
            let bill = seen.exchange(1);
            assert_eq!(bill.ns(Cause::ReceiverThink, Client) >= ms(30), slow, "{end:?} {flight} {gap}{seen}");
            if slow {
                bill.never(Cause::Loss).never(Cause::SenderThink);
                let sure = if end == End::Client { Confidence::Likely } else { Confidence::Possible };
                assert_eq!(bill.of(Cause::ReceiverThink).confidence, sure, "{end:?} {flight}");
            }
        }
    }
}

/// Within a host segments arrive as they leave: data not acknowledged 3 ms later was not read, and
/// a sender that continues with one segment probes. A millisecond is its own, or its host's.
#[test]
fn within_a_host_a_probe_behind_a_flight_waited_for_the_reader() {
    let ends = [CLIENT, Endpoint { addr: CLIENT.addr, port: 80 }];
    for (flight, gap, slow) in [(10, 3.0, true), (2, 3.0, true), (1, 3.0, false), (10, 1.0, false)] {
        let text = format!(
            "handshake\n +5 C 100\n +0.05 S 1448x{flight} more #f\n f+{gap} S 1448 more #p\n p+0 C ack\n +0.05 S 1448x8\n +0.01 C ack"
        );
        log(text).rtt(ms(0.012)).between(ends).both_ends(|seen| {
            let read = seen.exchange(1).ns(Cause::ReceiverThink, Client);
            assert_eq!(read >= ms(gap - 0.5), slow, "{flight} {gap}: {read}{seen}");
        });
    }
}

/// The receiver's program leaves the second of two flights that together fill a window unread for
/// 20 ms: the wait after it is shorter than a round trip, but still the program's, for the held-up
/// part of the window, here half of it. Near the receiver nothing else delays an ACK that covers
/// all that has arrived.
#[test]
fn a_reader_that_holds_up_a_part_of_each_window_took_that_much() {
    let rtt = ms(50);
    let held = |delay: i32, acked: i64| {
        let ack = segments(16 + acked);
        format!(
            "handshake\n +5 C 100\n +0 S 1448x16 more #a\n +20 S 1448x16 more #b\n a+0 C ack ack=23168 #c\n b+{delay} C ack ack={ack} #d\n c+0 S 1448x16 more\n d+0 S 1448x{acked} more\n +0 C ack"
        )
    };
    for (delay, acked, slow) in [(20, 16, 10), (1, 16, 0), (20, 3, 0), (20, 8, 0)] {
        let text = held(delay, acked);
        let (seen, ..) = reader(&text, segments(32), rtt, End::Client);
        assert!((seen - ms(slow)).max(ms(slow) - seen) <= ms(1), "{text}\n{seen} instead of {slow}");
    }
}

/// Within a host only the receiver's program delays the ACK of several segments, whatever the
/// window; for one it may be the timer, and an ACK of only a part is not the program's.
#[test]
fn within_a_host_a_late_acknowledgement_of_several_segments_is_the_reader_s() {
    let ends = [CLIENT, Endpoint { addr: CLIENT.addr, port: 80 }];
    for (flight, acked, delay, slow) in
        [(10, 10, 20, true), (10, 10, 5, false), (2, 2, 20, false), (16, 8, 20, false)]
    {
        let text = format!(
            "handshake\n +5 C 100\n +0.05 S 1448x{flight} more\n +{delay} C ack ack={}\n +0.05 S 1448x8\n +0.01 C ack",
            segments(acked)
        );
        log(text).rtt(ms(0.012)).between(ends).both_ends(|seen| {
            let read = seen.exchange(1).ns(Cause::ReceiverThink, Client);
            let expected = if slow { ms(delay) } else { ms(0) };
            assert!(
                (read - expected).max(expected - read) <= ms(0.5),
                "{flight} {acked} {delay}: {read}{seen}"
            );
        });
    }
}

/// A window smaller than a segment that was never larger is a small buffer, and a write that does
/// not fill it, or comes sooner than a timer, is the program's.
#[test]
fn a_write_into_a_small_window_is_forced_only_if_it_fills_it() {
    let rtt = ms(20);
    let write = |pause: i32, len: u32| {
        format!("handshake\n +5 C 100\n +0 S 1448x32 more\n +0 C ack win=512\n +{pause} S {len}\n +0 C ack")
    };
    for (pause, len, forced) in [(220, 512, true), (220, 300, false), (150, 512, false)] {
        for end in End::BOTH {
            let (slow, ..) = reader(&write(pause, len), segments(32), rtt, end);
            let expected = if forced { rtt + ms(pause) } else { ms(0) };
            assert!((slow - expected).max(expected - slow) <= ms(1), "{end:?} {pause} {len}: {slow}");
        }
    }
    let small = "handshake\n +5 C 100\n +0 S 512\n +0 C ack\n +220 S 512\n +0 C ack";
    log(small).rtt(rtt).window(End::Client, 512).both_ends(|seen| {
        let paused = [(Cause::RoundTrip, Path, rtt), (Cause::SenderThink, Server, rtt + ms(220))];
        seen.exchange(1).is(&paused);
    });
}

/// With much data in a slow link, each ACK releases two segments: none is missing, however little
/// room is left.
#[test]
fn what_an_acknowledgement_lets_go_waited_for_no_reader() {
    let round = |n: i64| format!("+23 S ack ack={} #a\n a+0 C 1448x2 more", 2 * n * MSS);
    let text = format!("handshake\n +5 C 1448x30 more\n{}", each(1..30, round));
    log(text).rtt(ms(4)).window(End::Server, segments(40)).both_ends(|seen| {
        seen.one_way(1).never(Cause::ReceiverThink);
    });
}

/// An ACK number that stays while the next byte is missing waits for that byte, not for a reading
/// program.
#[test]
fn a_hole_is_no_slow_reader() {
    let round = "+0 S 1448x2 more\n +0 C ack\n";
    let text = settled(4)
        + "+5 C 100\n"
        + &round.repeat(4)
        + "+0 S 1448 more lost\n +0 S 1448x5 more #hole\n +0 C ack\n hole+900 S 12384..13832 unseen\n +0 C ack\n +0 S 1448x2 more\n +0 C ack\n +0 S 500\n +0 C ack";
    let seen = log(text).rtt(ms(60)).window(End::Client, 12_000).seen_at(End::Client);
    let bill = seen.exchange(5);
    bill.never(Cause::ReceiverThink);
    assert!(bill.ns(Cause::Rto, Path) >= ms(700), "{seen}");
}

/// A mail upload in writes of 8 kB: a window of 500 bytes holds it for 420 ms, then a write comes
/// 1.5 ms after the one before (frames 486 to 500 of a puzzle's mail). A program that writes by its
/// own clock also writes while a window is closed: the hold had delayed it. A program that
/// continues 40 ms later may have done so anyway.
#[test]
fn a_short_pause_behind_a_long_hold_does_not_forgive_it() {
    for (pause, held) in [(0.4, 420.0), (40.0, 0.0)] {
        let text = format!(
            "handshake\n +5 C 100\n +1 S 50\n +1 C 1448x5 more every=0.1\n +0.1 C 900\n +0.4 S ack win=512\n +420 S ack win=46080\n \
             +0 C 1448x5 more every=0.1\n +0.1 C 900\n +0.4 S ack win=46080\n +{pause} C 1448x5 more every=0.1\n +0.1 C 900\n +1 S 20 win=46080"
        );
        let seen =
            log(text).rtt(ms(0.4)).window(End::Server, 8_576).without_timestamps().seen_at(End::Client);
        let shut = seen.spent(Cause::ReceiverThink, Server) + seen.spent(Cause::ReceiveWindow, Server);
        assert!((shut - ms(held)).as_nanos().abs() <= ms(2).as_nanos(), "{pause}: {seen}");
    }
}

/// A program that reads a little late: six of the 20 segments that its buffer holds are never read
/// when it acknowledges, and it continues 4 ms later. Each flight fills the rest, and waits for a
/// round trip of 20 ms. A buffer that is read at once would allow 20 segments in that time: for
/// want of buffer these 14 took 14.4 ms of it, and the program caused the rest.
#[test]
fn what_a_reader_that_is_a_little_behind_has_not_read_is_missing_from_its_window() {
    let round = |n: i32| {
        let next = n + 1;
        format!("a{n}+0 S 1448x14 more #f{n}\n f{n}+0 C ack win=20352 #a{next}\n a{next}+4 C ack win=20992")
    };
    let rounds = each(1..9, round);
    let text = format!(
        "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack win=29056\n +0 S 1448x20 more #f0\n f0+0 C ack win=20352 #a1\n \
         a1+4 C ack win=20992\n {rounds}\n a9+0 S 100\n +0 C ack"
    );
    log(text).rtt(ms(20)).window(End::Client, 29_056).both_ends(|seen| {
        let bill = seen.exchange(1);
        let (reader, buffer) = (bill.ns(Cause::ReceiverThink, Client), bill.ns(Cause::ReceiveWindow, Client));
        let whole = ms(20.0 * 8.0);
        assert!(reader >= ms(5.0 * 7.0) && reader <= ms(6.0 * 9.0), "{reader} {buffer}{seen}");
        assert!(reader + buffer >= whole - ms(20), "{reader} {buffer}{seen}");
    });
}

/// 1.5 MB to a program that reads 64 KB every 20 ms, 50 ms away, as captured on the hosts: ACKs
/// that shrink the window by what they acknowledge are late because nothing is read, and its rhythm
/// continues after them.
#[test]
fn what_shrinks_the_window_late_shows_a_reader_that_pauses() {
    let path = log(include_str!("read_64k_at_a_time.log"))
        .without_ip_ids()
        .rtt(ms(50))
        .window(End::Client, 64_512)
        .window(End::Server, 65_160);
    path.both_ends(|seen| {
        let reader = seen.exchange(1).ns(Cause::ReceiverThink, Client);
        assert!(reader >= ms(72), "{reader}{seen}");
    });
}

/// A receiver acknowledges several segments 100 ms after they arrived, with the same window, and the sender
/// goes on at once (frames 384 to 408 of a download in a virtual machine): its congestion window may have
/// cost no more than the round trips. If the ACKs come at once, that is what it cost; and a receiver that
/// nothing has timed may be far away.
#[test]
fn a_congestion_window_does_not_answer_for_late_acknowledgements() {
    for (took, delay, sure) in
        [(0.05, 100, Confidence::Possible), (0.05, 0, Confidence::Likely), (0.0, 100, Confidence::Likely)]
    {
        let text = format!(
            "@0 C syn\n +0 S syn\n +{took} C ack\n +5 C 100\n +0 S 1448x8 more\n +{delay} C ack
             +0 S 1448x16 more\n +{delay} C ack\n +0 S 1448x32\n +0 C ack"
        );
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        let bill = seen.exchange(1);
        let line = bill.of(Cause::SlowStart);
        assert!(line.ns >= ms(39 + 2 * delay) && line.ns <= ms(41 + 2 * delay), "{seen}");
        assert_eq!(line.confidence, sure, "{delay} {seen}");
    }
}

/// A reader keeps 14,480 bytes of its buffer unread, the sender uses up what that leaves of it and has never used up the whole: read at once,
/// nothing would have waited. A whole window that was used up before may have been too small.
#[test]
fn a_window_is_the_readers_if_the_whole_of_it_was_never_used_up() {
    let rtt = ms(20);
    let text = |whole: &str| {
        format!(
            "handshake\n +5 C 100\n +0 S 1448x10 more\n +0 C ack win=60000\n +0 S 1448x20 more\n {whole}
             +0 C ack win=45520\n +0 S 1448x31 more\n +0 C ack win=45520\n +0 S 1448x31 more\n +0 C ack"
        )
    };
    let reader = |whole: &str| {
        let seen = log(text(whole)).rtt(rtt).window(End::Client, 60_000).seen_at(End::Server);
        let bill = seen.exchange(1);
        (bill.ns(Cause::ReceiverThink, Client), bill.ns(Cause::ReceiveWindow, Client))
    };
    assert_eq!(reader(""), (rtt, ms(0)));
    let (thinks, held) = reader("+0 C ack win=60000\n +0 S 1448x41 more");
    assert!(thinks < held && held >= rtt, "{thinks} {held}");
}
