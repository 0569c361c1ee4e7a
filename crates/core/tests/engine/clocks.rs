//! How much of a wait was on the path, by the hosts' time stamps? Clocks of other systems, which
//! stand still, step, or tick at their own rate, are no measure of a queue.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server, Unknown};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Line;
use tcpwhy_wire::{Duration, Endpoint, Instant, Segment};

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

/// The same capture from hosts whose time stamps tick more slowly.
fn ticking(mut segments: Vec<Segment>, tick_ms: u32) -> Vec<Segment> {
    for stamps in segments.iter_mut().filter_map(|segment| segment.options.timestamps.as_mut()) {
        (stamps.val, stamps.ecr) = (stamps.val / tick_ms, stamps.ecr / tick_ms);
    }
    segments
}

/// The same capture from a client whose time stamps count something else: `clock` maps nanoseconds
/// since the capture's start to TSval. The server's TSecr is changed alike.
fn stamped(mut segments: Vec<Segment>, clock: impl Fn(i64) -> i64) -> Vec<Segment> {
    let start = segments[0].at;
    let mut client = 0;
    for segment in &mut segments {
        let val = clock((segment.at - start).as_nanos()) as u32;
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        if segment.src == CLIENT {
            (stamps.val, client) = (val + 77_000, val + 77_000);
        } else {
            stamps.ecr = client;
        }
    }
    segments
}

/// Modbus between hosts with clocks of 100 ms (Windows, VxWorks), FTP from one with 500 ms (Mac OS
/// X): the server's 15 ms were billed as a queue of half a minute, and exchanges overlapped.
#[test]
fn a_slow_time_stamp_clock_is_no_queue() {
    let polls = log("handshake".to_owned() + &"\n +300 C 12\n +15 S 200\n +0 C ack".repeat(120)).rtt(ms(1));
    for end in End::BOTH {
        for tick_ms in [10, 40, 100, 500] {
            let seen =
                Seen::of(ticking(polls.capture(end), tick_ms), &format!("{end:?}, {tick_ms} ms a tick"));
            for n in 1..=120 {
                let poll = seen.exchange(n);
                assert!(poll.exchange.elapsed <= ms(317), "longer than since the one before: {seen}");
                if n > 20 || tick_ms != 40 {
                    poll.is(&[(Cause::RoundTrip, Path, ms(1)), (Cause::ServerThink, Server, ms(15))]);
                }
            }
        }
    }
}

/// A panel that polls every 20 ms or whenever it is done, and whose clock has ticks of 1.29 ms,
/// like that of a busy macOS: the server's 1 ms became a queue of 3.6 ms.
#[test]
fn a_clock_at_a_rate_of_its_own_is_no_queue() {
    let polls = each(0..150, |n| format!("+{} C 60\n +1 S 90\n +0 C ack", 2 + n * 7 % 23));
    let log = log(format!("handshake\n{polls}")).rtt(ms(0.4));
    for end in End::BOTH {
        for tick_ns in [1_290_000, 1_200_000, 5_000_000, 4_700_000] {
            let seen = Seen::of(stamped(log.capture(end), |ns| ns / tick_ns), &format!("{end:?}, {tick_ns}"));
            assert!(seen.queued() <= ms(2), "{seen}");
        }
    }
}

/// A phone with a clock of 5 ms (HZ=200), whose radio delays the first replies; its user's pause of
/// two seconds became a queue.
#[test]
fn a_pause_is_no_queue_before_the_clocks_rate_is_known() {
    let text = "handshake\n +1 C 690\n +400 S 620\n +112 C ack\n +45 C 800\n +230 S 500\n +27 C ack\n +2000 C 800\n +5 S 200\n +0 C ack";
    for late_ns in [0, 17_000_000] {
        let segments = stamped(log(text).rtt(ms(1)).capture(End::Server), |ns| (ns + late_ns) / 5_000_000);
        let seen = Seen::of(segments, &format!("a phone, {late_ns}"));
        assert!(seen.queued() <= ms(1), "{seen}");
        seen.exchange(3).elapsed(ms(6), ms(1));
    }
}

/// A phone whose clock ticks every 10 ms, and whose SYN waited for its radio (frames 1 to 8 of a
/// hotspot's capture): three ticks within 9 ms looked like a millisecond clock, and its request 32
/// ms late. Until the rate has held, that is only possible.
#[test]
fn a_late_first_packet_makes_no_certain_queue() {
    let text = "@0 C syn late=12\n +0 S syn\n +0 C ack\n +58 C 517 #q\n +0 S ack\n q+14 S 3636\n +12 C ack";
    for since in 0..10 {
        let mut segments = log(text).rtt(ms(9.2)).capture(End::Server);
        for segment in &mut segments {
            let stamps = segment.options.timestamps.as_mut().expect("a log has them");
            (stamps.val, stamps.ecr) = ((stamps.val + since) / 10, (stamps.ecr + since) / 10);
        }
        let seen = Seen::of(segments, &format!("a telephone, {since} ms since its tick"));
        let sure = seen.lines(Cause::Queueing, Path).into_iter().filter(|line| line.confidence > Possible);
        assert_eq!(sure.count(), 0, "{seen}");
    }
}

/// A host slept for 13 s, or its clock stood still while it was idle: the next request had not been
/// delayed on the path.
#[test]
fn a_step_that_stays_is_the_clock() {
    for pause_ms in [0, 7_700] {
        let polls = each(0..100, |_| "+1000 C 60\n +1 S 90\n +0 C ack".to_owned());
        let text = format!(
            "handshake\n{polls}\n +15000 C 60\n +1 S 90\n +0 C ack\n +{pause_ms} C 6\n +1 S 14\n +0 C ack"
        );
        let slept = |ns: i64| (ns - (ns - 101_000_000_000).clamp(0, 13_000_000_000)) / 1_000_000;
        for end in End::BOTH {
            let seen =
                Seen::of(stamped(log(text.clone()).rtt(ms(0.4)).capture(end), slept), "a host that slept");
            assert!(seen.queued() <= ms(1), "{seen}");
            seen.exchange(101).elapsed(ms(1.4), ms(1));
        }
    }
}

/// One host stood still for 48 s, with both its clocks.
#[test]
fn on_one_host_nothing_is_queued() {
    let polls = each(0..300, |_| "+1000 C 60\n +1 S 90\n +0 C ack".to_owned());
    let text = format!("handshake\n{polls}\n +60000 C 60\n +1 S 90\n +0 C ack");
    let ends = [Endpoint { addr: SERVER.addr, ..CLIENT }, SERVER];
    let mut segments = log(text).between(ends).capture(End::Client);
    let start = segments[0].at;
    for segment in &mut segments {
        let slept = (segment.at - start - ms(301_000)).at_least_zero().min(ms(48_000));
        let ticks = (slept.as_nanos() / 1_000_000) as u32;
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        (stamps.val, stamps.ecr) = (stamps.val - ticks, stamps.ecr - ticks);
    }
    let seen = Seen::of(segments, "one host");
    assert!(seen.queued() == Duration::ZERO, "{seen}");
}

/// A late request among other late ones is still reported, and so is a single one of a clock that
/// is known.
#[test]
fn a_queue_is_still_one() {
    let polls = each(0..20, |_| "+100 C 60\n +1 S 90\n +0 C ack".to_owned());
    let text = format!("handshake\n{polls}\n +100 C 60 late=40\n +1 S 90\n +0 C ack late=30");
    let seen = log(text).rtt(ms(20)).seen_at(End::Server);
    seen.exchange(21).is_within(
        ms(1.5),
        &[
            (Cause::RoundTrip, Path, ms(20)),
            (Cause::Queueing, Path, ms(40)),
            (Cause::ServerThink, Server, ms(1)),
        ],
    );
}

/// A clock that steps back twice, by more than packets can overtake each other, measures nothing.
#[test]
fn a_clock_that_steps_back_again_and_again_is_not_believed() {
    let text = "handshake\n +1 C 100\n +5 S 200\n +0 C ack\n +1 C 100\n +300 S 200\n +0 C ack\n";
    for (steps, most) in [(1, Certain), (2, Possible)] {
        let mut segments = log(text).rtt(ms(1)).capture(End::Server);
        for (n, segment) in segments.iter_mut().enumerate() {
            let stepped = (1..=steps).filter(|step| n >= *step * 2).count();
            segment.at = segment.at - Duration::from_millis(50).times(stepped as i64);
        }
        let seen = Seen::of(segments, "the server");
        assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// A login prompt comes 1.09 seconds after the banner, one tick of half a second later (frames 27
/// and 29 of a telnet session), and the lines of a session some 200 ms apart: until the clock's
/// rate is known, a stamp or two do not show when a segment left.
#[test]
fn a_stamp_of_an_unknown_slow_clock_makes_no_link_slow() {
    let text = "handshake\n +100 C 6\n +1 S ack\n +0 S 15\n +10 C ack\n +1 S 32\n +19 C ack\n +1089 S 7\n +10 C ack\n \
                +300 C 12\n +0 S ack\n +5 S 40\n +200 C ack\n +0.3 S 30\n +0 C ack";
    for end in End::BOTH {
        let slow = |mut segment: Segment| {
            if let Some(stamps) = &mut segment.options.timestamps {
                (stamps.val, stamps.ecr) = (stamps.val / 500, stamps.ecr / 500);
            }
            segment
        };
        let segments = log(text).rtt(ms(2)).capture(end).into_iter().map(slow).collect();
        let seen = Seen::of(segments, &format!("the {end:?}"));
        assert!(seen.longer(Cause::Bandwidth, ms(100)).is_empty(), "{seen}");
    }
}

/// Readings of 26 bytes leave once a second. One comes 2.9 seconds late, because both hosts and the
/// capture had slept (frames 522 to 528 of a broker's capture): nothing of the broker's was in
/// flight, so no link was busy with it.
#[test]
fn no_link_is_busy_with_what_left_a_second_later() {
    let readings =
        each(0..12, |n| format!("+1000 S 26{}\n +0 C ack", if n == 8 { " late=2900" } else { "" }));
    let seen = log(format!("handshake\n +0 C 20\n +0.1 S 4\n +0 C ack\n {readings}"))
        .rtt(ms(0.2))
        .seen_at(End::Client);
    assert!(seen.spent(Cause::Bandwidth, Path) < ms(100), "{seen}");
}

/// Time stamps of both ends stand still for two seconds in the middle of a page on one host (frames
/// 1014 to 1018 and 1055 to 1059 of a file whose times had been moved; a suspended virtual machine
/// looks the same): no ACK was delayed, no buffer full. If they advance, the client had delayed the
/// ACK.
#[test]
fn nobody_waits_while_the_clocks_stand_still() {
    for stands in [true, false] {
        let pages = "+100 C 100\n +0.2 S 3000\n +0 C ack\n".repeat(4);
        let text = format!(
            "handshake\n {pages} +100 C 100\n +0.2 S 1448x2 more\n +0 C ack\n +0 S 1448x2 more\n +2000 C ack #late\n +0 S 1448x2 more\n +0 S 700\n +0 C ack"
        );
        let mut segments = log(text).rtt(ms(0.02)).capture(End::Client);
        let late = segments.iter().position(|segment| segment.at - segments[0].at > ms(2_400));
        let late = late.expect("what comes behind the silence");
        for segment in segments.iter_mut().skip(late).filter(|_| stands) {
            let stamps = segment.options.timestamps.as_mut().expect("time stamps");
            (stamps.val, stamps.ecr) = (stamps.val - 2_000, stamps.ecr.saturating_sub(2_000));
        }
        let seen = Seen::of(segments, "the client");
        assert_eq!(seen.spent(Cause::Unexplained, Unknown) >= ms(1_990), stands, "{seen}");
        let total: Duration = seen.exchange(5).exchange.bill.iter().map(|line| line.ns).sum();
        assert!(total >= ms(2_000), "{seen}");
    }
}

/// A clock that counts milliseconds but ticks twice a second, as of a Mac that listed directories:
/// once it has ticked four times, a stamp does not show how long after the tick its packet left.
#[test]
fn a_clock_that_counts_more_finely_than_it_ticks_is_no_queue() {
    let sent: [(i64, i64); 8] = [
        (0, 0),
        (275, 500),
        (4_217, 4_500),
        (7_639, 8_000),
        (8_184, 8_500),
        (20_766, 21_000),
        (20_798, 21_000),
        (21_394, 21_500),
    ];
    let polls = each(&sent[1..], |(at, _)| format!("@{at} C 60\n +1 S 90"));
    let ticks = |ns: i64| {
        let until = sent.iter().take_while(|(at, _)| at * 1_000_000 <= ns + 500_000);
        until.last().map_or(0, |(_, stamp)| *stamp)
    };
    let text = format!("handshake\n {polls}\n +0 C ack");
    for end in End::BOTH {
        let segments = stamped(log(text.clone()).rtt(ms(0.4)).capture(end), ticks);
        let seen = Seen::of(segments, &format!("a clock of ticks, {end:?}"));
        for n in 4..=7 {
            seen.exchange(n).elapsed(ms(1.4), ms(0.1));
        }
    }
}

/// A SYN-ACK was held up on Wi-Fi for 74 ms, so that eight ticks of 10 ms passed within the next 6,
/// and the reply comes 56 ticks later (frames 6, 20 and 21 of a small computer's web server): no
/// queue, as millisecond ticks would show. Which of the two it is, is not known yet.
#[test]
fn a_late_first_packet_does_not_make_a_servers_time_a_queue() {
    let text =
        "@0 C syn\n +0 S syn late=74\n +0 C ack\n +0.5 C 649 #q\n q+0 S ack\n q+560 S 473 #a\n a+0 C ack";
    let segments = ticking(log(text).rtt(ms(5)).capture(End::Client), 10);
    let seen = Seen::of(segments, "the client");
    assert!(seen.spent(Cause::Queueing, Path) <= ms(80), "{seen}");
    let sure = seen.lines(Cause::ServerThink, Server).into_iter().map(|line| line.confidence).max();
    assert_eq!(sure, Some(Possible), "{seen}");
}

/// A phone's hotspot wakes: the SYN takes 123 ms more, and the SYN-ACK 62, of a server whose clock ticks every 4 ms; 24 ticks behind it leaves the
/// request's acknowledgement, which passes 51 ms behind it, and 17 ticks later the reply (frames 1 to 18 of a browser's capture). Milliseconds with a
/// queue since would fit these as well, but the handshake was 168 ms longer than that round trip: the reply was thought about for most of its time.
#[test]
fn a_syn_ack_that_may_have_been_late_makes_no_milliseconds_of_longer_ticks() {
    let text = "@0 C syn late=123\n +0 S syn late=62\n +0 C ack\n +0.1 C 1288x4 #q\n q+0 S ack late=17\n q+68 S 1288x3 late=25\n +0 C ack";
    let seen = Seen::of(ticking(log(text).rtt(ms(34)).capture(End::Client), 4), "the client");
    let bill = seen.exchange(1);
    assert!(bill.ns(Cause::Queueing, Path) <= ms(30), "{seen}");
    assert!(bill.ns(Cause::ServerThink, Server) >= ms(60), "{seen}");
}

/// The capture's clock is set once, by a second, while the server works or while nothing happens:
/// both ends' stamps show it. That second is no one's time, no queue held anything for so long, and
/// later times are measured as before.
#[test]
fn a_clock_that_is_set_once_is_nobody_s_time() {
    let text = settled(12) + &"\n +150 C 100\n +40 S 200\n +0 C ack".repeat(8);
    let cases = End::BOTH.into_iter().flat_map(|end| [1000.0, -1000.0, -150.0].map(|by| (end, by)));
    for (end, by, inside) in cases.flat_map(|(end, by)| [true, false].map(|inside| (end, by, inside))) {
        let mut segments = log(text.clone()).rtt(ms(20)).capture(end);
        let asked = (0..segments.len()).filter(|&n| segments[n].payload_len == 100).nth(15);
        for segment in &mut segments[asked.expect("a question") + usize::from(inside)..] {
            segment.at = segment.at + ms(by);
        }
        let seen = Seen::of(segments, &format!("the {end:?}, set by {by}, inside {inside}"));
        for n in 13..=20 {
            let bill = seen.exchange(n);
            for line in bill.exchange.bill.iter().filter(|line| line.confidence > Possible) {
                let most = if line.cause == Cause::ServerThink { ms(41) } else { ms(21) };
                assert!(line.ns <= most, "{n}: {} {}: {seen}", line.cause, line.ns);
            }
            if !(15..=16).contains(&n) {
                bill.is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(40))]);
            }
        }
        let nobodys = if by > 0.0 && inside { ms(998)..ms(1002) } else { Duration::ZERO..ms(2) };
        let unexplained = seen.longer(Cause::Unexplained, ms(0.5)).iter().map(|line| line.ns).sum();
        assert!(nobodys.contains(&unexplained), "{unexplained}: {seen}");
    }
}

/// A capture whose clock advances by 10 ms: nothing below two ticks is a queue, nor certainly the
/// server's time.
#[test]
fn a_clock_of_ten_milliseconds_shows_no_less_than_two_of_them() {
    let text = settled(4) + &each(0..60, |n| format!("+{} C 100\n +3 S 200\n +0 C ack", 37 + n * 13 % 17));
    for end in End::BOTH {
        let mut segments = log(text.clone()).rtt(ms(12)).capture(end);
        for segment in &mut segments {
            segment.at = Instant::from_nanos(segment.at.as_nanos() / 10_000_000 * 10_000_000);
        }
        let seen = Seen::of(segments, &format!("the {end:?}, by a clock of 10 ms"));
        assert!(seen.queued() <= ms(10), "queued {} {seen}", seen.queued()); // before it was known
        let sure = |line: &&&Line| line.confidence > Possible;
        let all = seen.lines(Cause::ServerThink, Server);
        let sure: Duration = all.iter().filter(sure).map(|line| line.ns).sum();
        assert!(sure <= ms(60), "{sure}: {seen}");
    }
}

/// ... nor does it show that a reply was no later for the rest of its request: Nagle held that
/// rest.
#[test]
fn a_clock_of_ten_milliseconds_does_not_show_what_an_answer_waited_for() {
    let stall = [0, 3, 6, 9, 4, 1, 7]
        .map(|idle| format!("\n +{idle} C 100 #first\n +41 S ack\n +0 C 150\n +4 S 300"));
    let text = settled(4) + &stall.concat().repeat(4);
    for end in End::BOTH {
        let mut segments = log(text.clone()).rtt(ms(20)).capture(end);
        for segment in &mut segments {
            segment.at = Instant::from_nanos(segment.at.as_nanos() / 10_000_000 * 10_000_000);
        }
        let seen = Seen::of(segments, &format!("the {end:?}, by a clock of 10 ms"));
        let longest = seen.longer(Cause::ServerThink, ms(20));
        assert!(longest.is_empty(), "{longest:?}: {seen}");
    }
}

/// A server's clock ticks every 10 ms and loses one tick in a thousand (frames 36 to 51 of a small
/// web server's capture, 17 to 24 s after its first one): its 30 to 43 ms became a queue of up to
/// 17.8, compared with packets of 20 s before.
#[test]
fn a_clock_that_loses_ticks_is_no_queue() {
    let asked = [
        (2, 28),
        (4_008, 30),
        (4_351, 38),
        (5_193, 32),
        (29, 31),
        (3_062, 31),
        (38, 37),
        (7_606, 41),
        (4_700, 43),
    ];
    let polls = each(asked, |(after, thinks)| {
        format!("+{after} C 467 #q\n q+{thinks} S 1448x3 more\n +0 C ack\n +4 S 108\n +0 C ack")
    });
    let mut segments = log(format!("handshake\n{polls}")).rtt(ms(2.6)).capture(End::Client);
    let slow = |val: u32| 350_323 + ((val - 77_000) as f64 * 0.999 / 10.0) as u32;
    for segment in &mut segments {
        let Some(stamps) = segment.options.timestamps.as_mut() else { continue };
        if segment.src == SERVER {
            stamps.val = slow(stamps.val);
        } else if stamps.ecr > 0 {
            stamps.ecr = slow(stamps.ecr);
        }
    }
    let seen = Seen::of(segments, "the client");
    assert!(seen.queued() <= ms(1), "{seen}");
}

/// A request's ACK, which its host had delayed by 40 ms, is held up on the path for 96 more; the
/// reply comes 32 ms after it, and by the server's clock 128 (frames 532 to 816 of a browser's
/// capture, whose SYN had been held up for a second). No stamp shows how much of the rest was the
/// path's, and how much the timer's.
#[test]
fn what_the_servers_clock_leaves_of_a_late_acknowledgement_is_possibly_the_way() {
    let text = "@0 C syn late=1138 #one\n @1021.5 C syn late=117.5\n one+0 S syn\n +0 C ack\n +1.7 C 517 #q\n q+40 S ack late=96\n \
                q+168 S 1418x2 more\n +0 S 447\n +0 C ack";
    let seen = log(text).rtt(ms(2.5)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let (way, own) = (bill.of(Cause::RoundTrip), bill.of(Cause::ServerThink));
    assert!(own.ns >= ms(126) && own.ns <= ms(169) && own.confidence == Likely, "{seen}");
    assert!(way.ns <= ms(45) && way.confidence == Possible, "{seen}");
}

/// A SYN-ACK is held up on the path for 67 ms, as its stamp shows, and that of the next
/// acknowledgement, which comes after 14; the reply comes 61 ms later by its server's clock, and is
/// 29 late itself (frames 222 to 259 of a browser's capture): no host in between has acknowledged.
#[test]
fn whose_syn_ack_was_late_by_the_same_clock_acknowledges_itself() {
    let text =
        "@0 C syn\n +0 S syn late=66.7\n +0 C ack\n +1 C 427 #q\n q+0 S ack\n q+61 S 1102 late=29\n +0 C ack";
    let seen = log(text).rtt(ms(13.9)).seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(bill.ns(Cause::RoundTrip, Path) <= ms(15), "{seen}");
    let own = bill.of(Cause::ServerThink);
    assert!(own.ns >= ms(58) && own.ns <= ms(63), "{seen}");
}

/// After a silence of seven seconds a reply comes 150 ms after its request, with a time stamp 125
/// ms older (frames 1222 to 1232 of a bulk transfer's control connection). The server's next
/// segment is on time again: the reply was delayed on the path. A clock that stood still stays
/// behind, and if nothing follows, the cause is unknown.
#[test]
fn an_answer_that_seemed_late_stood_if_its_server_s_clock_has_caught_up() {
    let polls = each(0..8, |_| "+100 C 60\n +1 S 90\n +0 C ack".to_owned());
    for (next, stands, sure) in [
        ("+300 S 40\n +0 C ack", false, Some(Likely)),
        ("+300 S 40\n +0 C ack", true, None),
        ("", false, None),
    ] {
        let late = if stands { 0 } else { 125 };
        let text = format!(
            "handshake\n{polls}\n +7000 C 60\n +{} S 90 late={late}\n +0 C ack\n {next}\n +100 C 60\n +1 S 90\n +0 C ack",
            150 - late
        );
        let mut segments = log(text).rtt(ms(20)).capture(End::Client);
        let silence = segments[0].at + ms(2_000);
        for segment in
            segments.iter_mut().filter(|segment| stands && segment.at > silence && segment.src == SERVER)
        {
            let stamps = segment.options.timestamps.as_mut().expect("time stamps");
            stamps.val -= 125;
        }
        let seen = Seen::of(segments, "the client");
        let bill = &seen.exchange(9).exchange.bill;
        let of = |cause| bill.iter().find(move |line| line.cause == cause);
        assert_eq!(of(Cause::Queueing).map(|line| line.confidence), sure, "{seen}");
        let think = of(Cause::ServerThink).expect("the server's");
        let own = if sure.is_some() { ms(25) } else { ms(150) };
        assert!(think.ns - own <= ms(2) && own - think.ns <= ms(2), "{seen}");
        assert!(sure.is_some() || think.confidence == Possible, "{seen}");
    }
}

/// The first packets of a capture from the middle on: a request's acknowledgement after 22 ms and its reply 46.5
/// ms later, with one time stamp (frames 4 to 6 of a browser's capture). They left within a tick, which is not
/// known yet: on its way back the reply took longer by all but a tick of 10 ms. With a stamp of its own, the
/// reply was the server's.
#[test]
fn an_answer_with_the_stamp_of_its_acknowledgement_left_with_it() {
    for (written, late, least) in [(0, 46, 36), (46, 0, 0)] {
        let text =
            format!("handshake\n +5 C 80 #q\n q+0 S ack\n q+{written} S 76 late={late}\n +0 C 39\n +0 S ack");
        let segments = log(text).rtt(ms(22)).capture(End::Client).split_off(3);
        let seen = Seen::of(segments, "the client, midway");
        let bill = seen.exchange(1);
        let queue = bill.ns(Cause::Queueing, Path);
        assert!(queue >= ms(least) && queue <= ms(late), "{seen}");
        let think = bill.of(Cause::ServerThink);
        let most = if late > 0 { Possible } else { Likely };
        assert!(think.confidence == most && think.ns <= ms(written + 11), "{seen}");
    }
}

/// A connection's first answer, 82 ms after its request by its server's stamps, across a second by which the capture's
/// clock was set on: the stamps look like ticks of 10 ms, and most of that second like the server's own time.
#[test]
fn what_only_the_answer_s_own_ticks_show_is_not_certainly_the_server_s() {
    let text = "handshake\n +0 C 130 #q\n q+0 S ack\n q+82 S 17 #a\n a+0 S 555\n a+0 C ack\n +0 C ack";
    for end in End::BOTH {
        let mut segments = log(text).rtt(ms(0.7)).capture(end);
        for segment in &mut segments[5..] {
            segment.at = segment.at + ms(1_000);
        }
        let seen = Seen::of(segments, "a clock that is set");
        let bill = seen.exchange(1);
        let think = bill.of(Cause::ServerThink);
        assert!(think.confidence == Possible || think.ns <= ms(90), "{seen}");
    }
}

/// The first piece of a request came 50 ms late, and the second, on time, right behind it: by its stamp it was written
/// 50 ms later, and that is what the request took.
#[test]
fn a_late_piece_cost_nothing_that_the_next_was_not_written_for() {
    let text = settled(4) + "+5 C 36 late=49.8 #hello\n hello+50 C 517\n +0 S 1400\n +0 C ack";
    log(text).rtt(ms(80)).both_ends(|seen| {
        let bill = seen.exchange(5);
        assert!(bill.ns(Cause::SenderThink, Client) >= ms(48), "{seen}");
        assert!(bill.ns(Cause::Queueing, Path) <= ms(2), "{seen}");
    });
}
