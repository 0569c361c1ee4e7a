//! What captures from other people's networks showed to be wrong: other systems' clocks and counters, long pauses, and
//! captures that have not everything (docs/public-captures.md has the captures).

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server, Unknown};
use tcpwhy_wire::{Duration, Segment, Timestamps};

use crate::packet_log::{CLIENT, End, each, log, ms, settled};
use crate::seen::Seen;

/// The same capture from hosts whose time stamps tick more slowly.
fn ticking(mut segments: Vec<Segment>, tick_ms: u32) -> Vec<Segment> {
    for stamps in segments.iter_mut().filter_map(|segment| segment.options.timestamps.as_mut()) {
        (stamps.val, stamps.ecr) = (stamps.val / tick_ms, stamps.ecr / tick_ms);
    }
    segments
}

/// Modbus between hosts with clocks of 100 ms (Windows, VxWorks), FTP from one with 500 ms (Mac OS X): the server's 15 ms
/// were billed as a queue of half a minute, and exchanges overlapped.
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

/// Windows numbers all packets of the host in one row: a pause in which it talked to others is no lost tail.
#[test]
fn a_host_that_numbers_all_its_packets_in_one_row_has_lost_nothing() {
    let pushes = settled(8) + &each(1..12, |n| format!("+{} S 100 \n +0 C ack", n * 700));
    for end in End::BOTH {
        let mut segments = log(pushes.clone()).rtt(ms(30)).without_timestamps().capture(end);
        let mut others = 0_u16;
        let mut before = segments[0].at;
        for segment in &mut segments {
            if segment.at - before > ms(500) {
                others += 1 + others % 4;
            }
            before = segment.at;
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "a host with one counter");
        let lines = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
        let lost = lines.filter(|line| matches!(line.cause, Cause::Rto | Cause::Loss));
        assert_eq!(lost.count(), 0, "{seen}");
    }
}

/// A server that takes three seconds and is busy elsewhere meanwhile has sent nothing twice.
#[test]
fn a_long_think_is_not_shortened_by_packets_to_others() {
    let slow = settled(8) + "+5 C 100\n +3000 S 100 \n +0 C ack";
    for end in End::BOTH {
        let mut segments = log(slow.clone()).rtt(ms(30)).without_timestamps().capture(end);
        let last = segments.iter().rposition(|segment| segment.src != CLIENT).expect("a reply");
        for segment in segments[last..].iter_mut().filter(|segment| segment.src != CLIENT) {
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(5));
        }
        let seen = Seen::of(segments, "a busy server");
        seen.exchange(9).is(&[(Cause::RoundTrip, Path, ms(30)), (Cause::ServerThink, Server, ms(3000))]);
    }
}

/// Packets with data alone, as an export of "what is HTTP" leaves them: the client's next request minutes later is the
/// first thing that acknowledges the reply, and no round trip.
#[test]
fn a_pause_of_minutes_is_no_round_trip() {
    let polls = log("handshake".to_owned() + &"\n +300000 C 100 \n +27 S 350".repeat(6)).rtt(ms(20));
    for end in End::BOTH {
        let all = polls.capture(end).into_iter();
        let segments: Vec<Segment> = all.filter(|segment| segment.payload_len > 0).collect();
        let seen = Seen::of(segments, "data alone");
        for n in 1..=6 {
            let poll = seen.exchange(n);
            assert!(poll.exchange.elapsed <= ms(48), "{seen}");
        }
    }
}

/// The capture lost most of the reply: the client acknowledges what it has not. No window is blamed for that.
#[test]
fn what_the_capture_dropped_is_unexplained() {
    let reply =
        each(0..20, |n| format!("+0 S 1448 more {}\n +60 C ack", if n % 5 == 4 { "" } else { "unseen" }));
    let text = format!("handshake\n +5 C 100\n +0 S 500 more \n +0 C ack\n {reply}\n +0 S 100\n +0 C ack");
    for end in End::BOTH {
        let seen = log(text.clone()).rtt(ms(20)).seen_at(end);
        assert!(seen.notes("capture-drops") >= 4, "{seen}");
        let bill = seen.exchange(1);
        let unexplained = bill.ns(Cause::Unexplained, Unknown);
        assert!(unexplained >= bill.exchange.elapsed.divided_by(2), "{seen}");
        for cause in [Cause::SlowStart, Cause::SlowStartAfterIdle, Cause::SendBuffer, Cause::Loss, Cause::Rto]
        {
            bill.never(cause);
        }
        assert_eq!(bill.of(Cause::Unexplained).detail.form, Some(Form::NotCaptured));
    }
}

/// One direction only is said once for each such connection.
#[test]
fn one_direction_is_noted() {
    let talk = log(settled(5));
    let requests: Vec<Segment> =
        talk.capture(End::Client).into_iter().filter(|segment| segment.src == CLIENT).collect();
    assert_eq!(Seen::of(requests, "requests alone").notes("one-direction"), 1);
    assert_eq!(talk.seen_at(End::Client).notes("one-direction"), 0);
}

/// Three time zones away, 9 ms of an acknowledgement's delay are not what the window's round trip was spent on.
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

/// A satellite line that is used for a quarter of the time, by a fast host and a slow one: what leaves together behind one
/// acknowledgement needs the line for what that acknowledged, once, and nobody paces it.
#[test]
fn segments_that_share_an_acknowledgement_need_the_bottleneck_once() {
    const ROUNDS: usize = 12;
    for late in [0.3, 1.6] {
        let pair = |round: usize, j: usize| {
            let when = match round {
                0 => format!("@{}", 600.0 + 2.6 * j as f64),
                _ => format!("a{}_{j}+{late}", round - 1),
            };
            let label = format!("{round}_{j}");
            format!("{when} C 1448 more\n +1.3 C 1448 more #s{label}\n s{label}+0 S ack #a{label}\n")
        };
        let text: String = (0..ROUNDS).flat_map(|round| (0..5).map(move |j| pair(round, j))).collect();
        let transfer = log(format!("handshake\n {text}")).rtt(ms(250)).bottleneck(End::Client, 1_500_000);
        let seen = transfer.seen_at(End::Client);
        let bill = seen.one_way(1);
        let needed = Duration::from_nanos(1448 * 8 * 1_000_000 / 1500).times(10 * ROUNDS as i64);
        let billed = bill.ns(Cause::Bandwidth, Path);
        assert!(billed <= needed + needed.divided_by(10), "{billed} of {needed}: {seen}");
        assert!(billed >= needed.divided_by(2), "{billed} of {needed}: {seen}");
        let paced: Duration = [Client, Server].into_iter().map(|side| bill.ns(Cause::Pacing, side)).sum();
        assert!(paced <= bill.exchange.elapsed.divided_by(20), "{paced}: {seen}");
    }
}

/// Packets with data alone: a push a minute later is a message of its own, though no acknowledgement in the capture says
/// that what was before it had arrived.
#[test]
fn a_push_without_acknowledgements_begins_a_message() {
    let pushes = log(settled(4) + "+5 C 100\n +7 S 900\n" + &"+60000 S 24\n".repeat(5)).rtt(ms(20));
    for end in End::BOTH {
        let all = pushes.capture(end).into_iter();
        let segments: Vec<Segment> = all.filter(|segment| segment.payload_len > 0).collect();
        let seen = Seen::of(segments, "data alone");
        let billed: Duration = seen.connection().exchanges.iter().map(|exchange| exchange.elapsed).sum();
        assert!(billed < ms(500), "{billed}: {seen}");
    }
}

/// The reply's second part answers a request that the capture does not have: that is no pause of the server's.
#[test]
fn an_answer_to_an_unseen_request_is_no_pause() {
    let polls = log(settled(4) + "+5 C 100\n +7 S 200\n +500 C 100 unseen\n +7 S 200\n +0 C ack").rtt(ms(20));
    for end in End::BOTH {
        let seen = polls.seen_at(end);
        seen.exchange(5).never(Cause::SenderThink);
    }
}

/// A path that is dead for nine seconds: six copies, not one.
#[test]
fn every_copy_is_counted() {
    let dead = log(settled(8)
        + "+5 C 100 lost #first
           first+240 C 800..900 lost
           first+720 C 800..900 lost
           first+1680 C 800..900 lost
           first+3600 C 800..900 #last
           last+0 S 50
           +0 C ack")
    .rtt(ms(20));
    let seen = dead.seen_at(End::Client);
    let bill = seen.exchange(9);
    let line = bill.of(Cause::Rto);
    assert_eq!(line.detail.retransmits, Some(4), "{seen}");
    // The two longest waits, the longest first: between the third, fourth and fifth copy.
    let [first, second, third] = line.evidence[..] else { panic!("{seen}") };
    assert!(third < first && first < second, "{seen}");
}

/// A printer that reads a buffer's worth each second, and a host that talks to others meanwhile: what leaves as the
/// window opens was waiting for that, and near its sender nothing can have been sent unseen.
#[test]
fn what_an_opening_window_lets_go_is_no_repair() {
    let job =
        each(0..6, |n| format!("+1300 S ack win=4380 \n +0 C 1460x3 more #page{n} \n +150 S ack win=0"));
    for end in End::BOTH {
        let text = format!("{}+5 C 1460x3 more\n +1 S ack win=0\n {job}", settled(8));
        let printer = log(text).rtt(ms(1)).window(End::Server, 4380);
        let mut segments = printer.without_timestamps().capture(end);
        let mut others = 0;
        let mut before = segments[0].at;
        for segment in segments.iter_mut().filter(|segment| segment.src == CLIENT) {
            others += u16::from(segment.at - before > ms(500)) * 2;
            before = segment.at;
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "a slow printer");
        let bill = &seen.connection().bill;
        assert!(!bill.iter().any(|line| matches!(line.cause, Cause::Rto | Cause::Loss)), "{end:?}: {seen}");
    }
}

/// The client offers time stamps, the server does not take them up (as Windows does not by default), so that segments have
/// twelve bytes more: they are full, and what holds them is the window that grows.
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
