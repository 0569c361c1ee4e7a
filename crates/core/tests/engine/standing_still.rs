//! Hosts and paths that stall for a moment, like those of a virtual machine: the cause that held the sender
//! is the same, and both ends see it.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{self, Certain, Likely, Possible};
use tcpwhy_wire::{Duration, Segment, TcpOptions};

use crate::packet_log::{End, MSS, each, log, ms, settled};
use crate::seen::Seen;

/// A transfer over a link of 100 Mbit/s, with every second segment acknowledged.
fn transfer(name: &str, pairs: i64) -> String {
    let data = each(0..pairs, |n| {
        let more = if n + 1 < pairs { " more" } else { "" };
        let when = if n == 0 { "+0".to_owned() } else { format!("{name}0+0") };
        format!("{when} S 2896{more} #{name}{n}")
    });
    format!("{data}\n{}", each(0..pairs, |n| format!("{name}{n}+0 C ack")))
}

/// The first flight after an idle time arrives 5 ms late: the path held it for so long, its window for the
/// rest of the round.
#[test]
fn a_flight_that_was_late_waited_on_the_path() {
    let rtt = ms(20);
    let first = each(0..5, |n| {
        let when = if n == 0 { "+0" } else { "f0+0" };
        format!("{when} S 2896 more late=5 #f{n}")
    });
    let acks = each(0..5, |n| format!("f{n}+0 C ack #a{n}\n a{n}+0 S 2896x2 more"));
    let text = format!(
        "handshake
         +5 C 100
         {}
         +2000 C 100
         {first}
         {acks}
         +0 S 100
         +0 C ack",
        transfer("t", 60)
    );
    log(text).rtt(rtt).bottleneck(End::Server, 100_000_000).both_ends(|seen| {
        let bill = seen.exchange(2);
        let (queued, window) = (bill.ns(Cause::Queueing, Path), bill.ns(Cause::SlowStartAfterIdle, Server));
        assert!(queued >= ms(3.5) && queued <= ms(5.5), "{seen}");
        assert!(window >= ms(17.5) && window <= ms(20.5), "{seen}");
    });
}

/// A receiver's application is stopped while a flight arrives over some milliseconds, and its host
/// acknowledges all of it when it resumes: far away that is long after the flight left, near it shortly after
/// its end.
#[test]
fn a_flight_that_a_stopped_reader_acknowledges_at_once_waited_for_the_reader() {
    let rtt = ms(0.2);
    let text = format!(
        "handshake
         +5 C 100
         {}
         t59+0 C 100
         +0 S 1448x60 more #f
         f+11 C ack win=150000 #read
         +0 S 1448x10
         +0 C ack win=400000",
        transfer("t", 60)
    );
    let stopped = log(text).rtt(rtt).window(End::Client, 400_000).bottleneck(End::Server, 100_000_000);
    stopped.both_ends(|seen| {
        let held = seen.exchange(2).ns(Cause::ReceiverThink, Client);
        // The end of the flight came 6.9 ms after its beginning.
        assert!(held >= ms(3.5) && held <= ms(4.5), "{seen}");
    });
}

/// Data held by Nagle leaves 4 ms after the ACK that releases it: its host was stopped. The same two pieces
/// were held before.
#[test]
fn a_hold_that_its_own_host_ended_late_is_no_pause() {
    let rtt = ms(2);
    let exchange = |late: f64| format!("+5 C 20\n +40 S ack\n +{late} C 100\n +0.05 S 64\n");
    let text = format!("handshake\n {} {} {}", exchange(0.0), exchange(0.0), exchange(4.0));
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(3);
        assert!(bill.ns(Cause::NagleDelayedAck, Client) >= ms(41), "{seen}");
        assert!(seen.exchange(3).ns(Cause::SenderThink, Client) <= ms(4.5), "{seen}");
    });
}

/// Room for one more segment, where the sender would send two: it waits as for a window that is full to the
/// byte.
#[test]
fn a_window_with_room_for_one_segment_of_two_is_used_up() {
    let rtt = ms(26);
    let window = (49 * MSS) as u32 / 128 * 128 + 128;
    let flight = "S 2896x24 more";
    let text = format!("handshake\n +5 C 100\n +0 {flight}")
        + &format!("\n +0 C ack\n +0 {flight}").repeat(4)
        + "\n +0 C ack\n +0 S 2896x24\n +0 C ack";
    log(text).rtt(rtt).window(End::Client, window).both_ends(|seen| {
        let expected = [(Cause::RoundTrip, Path, rtt), (Cause::ReceiveWindow, Client, rtt.times(5))];
        let bill = seen.exchange(1).is(&expected);
        // Other stacks would have sent the single segment.
        assert_eq!(bill.of(Cause::ReceiveWindow).confidence, Likely, "{seen}");
    });
}

/// Three segments of a window of 5,888 bytes, which has room for a fourth: an initial congestion window of three (RFC 3390).
#[test]
fn a_small_window_with_room_for_a_segment_holds_nothing() {
    let rtt = ms(60);
    let text = "handshake
        +5 C 100
        +0 S 1448x3 more
        +0 C ack win=20480
        +0 S 1448x6
        +0 C ack";
    log(text).rtt(rtt).window(End::Client, 5_888).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt)]);
    });
}

/// A path stalls while a request is in transit: its ACK and then its reply come at one instant (frames 1382
/// to 1396 of a browser's connection). A server that thinks has acknowledged before.
#[test]
fn an_acknowledgement_that_comes_with_the_answer_had_not_waited_for_it() {
    for (late, thinks, sure) in [(190, 2, Possible), (0, 190, Likely)] {
        assert_eq!(surest_of_server(late.into(), thinks.into()), Some(sure));
    }
}

/// No host delays an ACK by less than 40 ms: a bare ACK 17 or 20 ms late, a few ms before the reply, had not
/// waited for that either (frames 6 to 9 and 42 to 45 of a browser's connection, with RTTs of 3 to 53 ms).
/// The mailbox's request and its retransmission 51 ms later are acknowledged within one millisecond, 106 of
/// them late (frames 16 to 20).
#[test]
fn an_acknowledgement_that_no_timer_held_shows_when_the_question_arrived() {
    for (late, thinks, sure) in
        [(16.5, 0.4, Possible), (17.7, 3.0, Possible), (106.9, 1.1, Possible), (0.4, 16.5, Likely)]
    {
        let surest = surest_of_server(late, thinks).unwrap_or(Possible); // or it is a queue's
        assert_eq!(surest, sure, "{late}, {thinks}");
    }
}

/// The confidence of a server's wait, seen at the client, whose request is `late` on the path and
/// acknowledged on arrival.
fn surest_of_server(late: f64, thinks: f64) -> Option<Confidence> {
    let text = format!(
        "handshake\n +5 C 100\n +0 S ack\n +2 S 200\n +0 C ack\n +9000 C 41 late={late} #q\n q+0 S ack\n q+{thinks} S 41\n +0 C ack"
    );
    let seen = log(text).rtt(ms(30)).seen_at(End::Client);
    let lines = seen.connection().exchanges.last().unwrap_or_else(|| panic!("{seen}")).bill.iter();
    let own = lines.filter(|line| line.cause == Cause::ServerThink && line.ns >= ms(10));
    own.map(|line| line.confidence).max()
}

/// A phone's network stalls for two seconds. A reply comes after that, and in the same instant the
/// retransmissions of its server's timers (frames 554 to 667 of a laptop on it): the reply had not been
/// acknowledged yet, so it had been held up for at least as long as those timers.
#[test]
fn an_answer_with_a_copy_of_its_tail_had_stood_on_the_path() {
    for copied in [true, false] {
        let copy = if copied { "tail+170 S 1448..2048 late=1830.2" } else { "" };
        let text = format!(
            "handshake\n +5 C 517 #q\n q+0 S ack\n q+1 S 1448 more late=2000 #head\n head+0 S 600 late=2000 #tail\n {copy}\n tail+0 C ack"
        );
        let seen = log(text).rtt(ms(80)).without_timestamps().seen_at(End::Client);
        let sure = seen.lines(Cause::ServerThink, Server).iter().map(|line| line.confidence).max();
        assert_eq!(sure, Some(if copied { Possible } else { Likely }), "{seen}");
        assert_eq!(seen.spent(Cause::Queueing, Path) >= ms(150), copied, "{seen}");
    }
}

/// A reply, its probe and its timer's retransmission come in one instant (frames 186 to 207): the reply had
/// left at least 200 ms before. If it comes singly, the time is the server's, as far as is known.
#[test]
fn an_answer_that_comes_with_its_copy_had_stood_on_the_path() {
    for stood in [true, false] {
        let copy = if stood { "reply+200 S 300..1760 more late=54" } else { "reply+300 C ack" };
        let text = format!(
            "handshake\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 800 #ask\n ask+0 S ack\n ask+19 S 1460x3 more late=254 #reply\n reply+0 S 130 late=254\n {copy}\n +5 C ack"
        );
        let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
        let server = seen.lines(Cause::ServerThink, Server).into_iter().filter(|line| line.ns >= ms(20));
        let surest = server.map(|line| line.confidence).max();
        assert_eq!(surest, Some(if stood { Possible } else { Likely }), "{seen}");
        let queued = seen.spent(Cause::Queueing, Path);
        assert_eq!(queued >= ms(198), stood, "{seen}");
    }
}

/// An answer over a path of 1.9 ms comes in one burst with the copy of its second segment, which has a number of its own (frames 196 to 204 of a
/// browser's TLS); or has none, as in IPv6, and a D-SACK behind it (frames 37 to 48 of another's): no server is likely to have taken that time. The
/// capture's own copy has no D-SACK, and another host of the same network may have heard something in half a millisecond.
#[test]
fn an_answer_that_comes_in_one_burst_with_a_copy_had_stood_on_the_path() {
    for (rtt, numbered, told, stood) in [
        (1.9, true, true, true),
        (1.9, true, false, true),
        (1.9, false, true, true),
        (1.9, false, false, false),
        (0.5, true, true, false),
    ] {
        let text = "handshake\n +5 C 100\n +0.1 S 300\n +0 C ack\n +20 C 800 #ask\n ask+1 S 400 more late=20 #reply\n reply+0 S 31 more late=20 #two\n reply+0.01 S 31 late=20\n reply+8 S 700..731 late=12.02\n +0 C ack";
        let log = log(text).rtt(ms(rtt)).without_timestamps();
        let log = if numbered { log } else { log.without_ip_ids() };
        let heard = |mut segment: Segment| {
            segment.options =
                if told || segment.flags.syn() { segment.options } else { TcpOptions::default() };
            segment
        };
        let seen = Seen::of(log.capture(End::Client).into_iter().map(heard).collect(), "the client");
        let server = seen.lines(Cause::ServerThink, Server).into_iter().filter(|line| line.ns >= ms(10));
        let surest = server.map(|line| line.confidence).max();
        assert_eq!(surest == Some(Possible), stood, "{rtt} {numbered} {told}: {seen}");
    }
}

/// A reply after 268 ms, held up for 567 by its own stamp, comes with its retransmission, which left 240 ms
/// later (frames 333 to 428 of a browser's OCSP): what the retransmission shows is part of what the stamp
/// does.
#[test]
fn what_a_copy_shows_of_an_answer_s_way_its_stamp_has_told() {
    let ask =
        "+350 C 377 #ask\n ask+0 S ack\n ask+268 S 701 late=567 #reply\n reply+240 S 4000..4701 late=327";
    let seen = log(settled(20) + ask + "\n +5 C ack").rtt(ms(42)).seen_at(End::Client);
    let queued = seen.spent(Cause::Queueing, Path);
    assert!(queued >= ms(560) && queued <= ms(575), "{seen}");
}

/// A hotspot's path stalls: a request's acknowledgement, its answer and the answer's copy come 210, 298 and 88 ms late, the last two together, by a
/// clock that had shown no rate until then (frames 2343 to 2357 of a laptop's capture). The copy alone shows a timer; the clock shows all of it.
#[test]
fn an_answer_that_comes_with_its_copy_stood_as_long_as_its_clock_says() {
    let text = "handshake\n +1 C 74 #q\n q+0 S ack late=210\n q+211 C 0..74\n +0 S ack late=390\n q+304 S 773 late=298 #r\n r+211 S 0..773 late=88.5\n r+0 C ack\n +1 C fin";
    let seen = log(text).rtt(ms(6)).seen_at(End::Client);
    let (queued, own) = (seen.spent(Cause::Queueing, Path), seen.spent(Cause::ServerThink, Server));
    assert!((queued - ms(298)).as_nanos().abs() <= ms(3).as_nanos(), "{seen}");
    assert!((own - ms(304)).as_nanos().abs() <= ms(3).as_nanos(), "{seen}");
}

/// Nothing shows when a reply left, 200 ms after its request: neither a retransmission of the previous reply
/// that comes with it, nor one sent by a data centre's timer after 0.9 ms (rto_min, ip-route(8)), nor a probe
/// (RFC 8985, 7.3), nor one of the request whose sequence numbers equal the reply's.
#[test]
fn an_answer_stood_by_no_other_copy_than_its_own() {
    let settled = settled(6);
    for (rtt, first_seq, copy) in [
        (20.0, 5_000, "reply+0.3 S 1000..1200"),
        (0.2, 5_000, "reply+0.9 S 1200..1400"),
        (20.0, 5_000, "reply+60 S 1200..1400"),
        (20.0, 450, "ask+200.5 C 600..700"),
    ] {
        let text = format!("{settled} +5 C 100 #ask\n ask+200 S 200 #reply\n {copy}\n reply+2 C ack");
        log(text).rtt(ms(rtt)).first_seq(End::Server, first_seq).both_ends(|seen| {
            assert_eq!(seen.spent(Cause::Queueing, Path), ms(0), "{copy}: {seen}");
            assert!(seen.spent(Cause::ServerThink, Server) >= ms(199), "{copy}: {seen}");
        });
    }
}

/// The same after a request that had been retransmitted meanwhile (frames 239 to 276): the reply had left
/// before that arrived.
#[test]
fn an_answer_that_stood_had_answered_the_first_copy() {
    let text = "handshake\n +5 C 100\n +1 S 300\n +0 C ack\n +20 C 541 #ask\n ask+253 C 100..641 #again\n \
                ask+3 S 868 late=272 #reply\n reply+203 S 300..1168 late=69.2\n reply+204 S ack late=74\n +50 C ack";
    let seen = log(text).rtt(ms(19)).without_timestamps().seen_at(End::Client);
    assert_eq!(seen.spent(Cause::Rto, Path), ms(0), "{seen}");
    assert!(seen.spent(Cause::Queueing, Path) >= ms(250), "{seen}");
    assert!(
        seen.lines(Cause::ServerThink, Server)
            .iter()
            .all(|line| line.confidence < Certain || line.ns < ms(5)),
        "{seen}"
    );
}

/// A path delivers the reply's packet twice, 5 ms apart: the duplicate has its number and its time stamp, and
/// does not show when it left.
#[test]
fn a_packet_that_the_path_doubles_had_not_stood() {
    let doubled = log(settled(4) + "+5 C 100 #ask\n ask+300 S 200 #reply\n reply+8 C ack").rtt(ms(20));
    for doubled in [doubled.clone(), doubled.without_timestamps()] {
        let mut segments = doubled.capture(End::Client);
        let reply = segments.iter().rposition(|segment| segment.payload_len == 200).expect("a reply");
        segments.insert(reply + 1, Segment { at: segments[reply].at + ms(5), ..segments[reply] });
        let seen = Seen::of(segments, "the client");
        assert_eq!(seen.spent(Cause::Queueing, Path), ms(0), "{seen}");
        assert!(seen.spent(Cause::ServerThink, Server) >= ms(299), "{seen}");
    }
}

/// Between the ends, nearer to the server: the reply was held up on the first quarter of the path until its
/// server's RTO had expired, and passes with the retransmission, as it does near the client.
#[test]
fn an_answer_may_have_stood_on_the_shorter_part_of_its_way() {
    for sixteenths in [4_i32, 12] {
        let late = 198.5 * 16.0 / f64::from(16 - sixteenths);
        let text = format!(
            "{} +5 C 100 #ask\n ask+0 S ack\n ask+5 S 200 late={late} #reply\n reply+200 S 800..1000 #copy\n reply+2 C ack",
            settled(4)
        );
        let segments = log(text).rtt(ms(40)).without_timestamps().capture_at(i64::from(sixteenths));
        let seen = Seen::of(segments, &format!("{sixteenths} sixteenths of the way"));
        assert!(seen.spent(Cause::Queueing, Path) >= ms(190), "{seen}");
        let own = seen.lines(Cause::ServerThink, Server);
        assert!(own.iter().all(|line| line.confidence == Possible || line.ns < ms(1)), "{seen}");
    }
}

/// Linear timeouts (tcp_thin_linear_timeouts, tcp(7)): a request is sent a third time as the reply to its
/// second transmission passes. Its sequence numbers equal the reply's, and the original was lost all the
/// same.
#[test]
fn a_copy_of_the_request_is_none_of_the_answer_s() {
    let text = settled(4)
        + "+20 C 500 refused #q\n q+210 C 400..900 #again\n again+205 S 200 #reply\n again+210 C 400..900\n reply+0 C ack";
    let seen = log(text).rtt(ms(20)).first_seq(End::Server, 900).seen_at(End::Server);
    let repaired = [Path, Server].map(|side| seen.spent(Cause::Rto, side));
    assert!(repaired.into_iter().sum::<Duration>() >= ms(209), "{seen}");
    assert_eq!(seen.spent(Cause::Queueing, Path), ms(0), "{seen}");
}

/// A segment that was overtaken, and retransmitted unnecessarily, has not ended slow start: flights keep
/// doubling. If one was lost, they grow slowly after its repair.
#[test]
fn a_start_goes_on_behind_what_was_overtaken() {
    let rtt = ms(40);
    let text = "handshake
         +5 C 100
         +0 S 1448x10 more
         +0 C ack
         +0 S 1448x4 more #flight
         flight+0.01 S 1448 more late=6 #late
         flight+0.02 S 1448x15 more #rest
         flight+0 C ack
         rest+0 C ack
         rest+1 S 20272..21720 more
         late+0 C ack
         +0 S 1448x40 more
         +0 C ack
         +0 S 1448x80 more
         +0 C ack
         +0 S 1448x160 more
         +0 C ack
         +0 S 1448x20
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = seen.exchange(1);
        let [start, recovery] =
            [Cause::SlowStart, Cause::CongestionWindow].map(|cause| bill.ns(cause, Server));
        assert!(start >= rtt.times(3) && recovery <= rtt.times(2) + ms(6), "{start} {recovery}{seen}");
    });
}

/// Nagle's hold lasts until an ACK that its receiver delayed by 42 ms and a switch by 92 more, as its own
/// time stamp shows (frames 21 to 30 of a scheduling test). Its sender cannot tell the two apart, but whoever
/// has to fix it can.
#[test]
fn what_an_acknowledgement_stands_on_its_way_nobody_held_back() {
    for (held_back, late, holds, stands) in [(42, 92, 42.0, 92.0), (0, 200, 200.0, 0.0)] {
        let text = format!(
            "{} +5 C 100 #q\n +0 S 1 #a\n a+{held_back} C ack late={late} #r\n r+0 S 2\n +0 C ack",
            settled(5)
        );
        let seen = log(text).rtt(ms(1)).seen_at(End::Server);
        let (held, stood) = (seen.spent(Cause::NagleDelayedAck, Server), seen.spent(Cause::Queueing, Path));
        // As long as a timer: a box that acknowledges in its place.
        assert!((held - ms(holds)).max(ms(holds) - held) <= ms(3), "{seen}");
        assert!((stood - ms(stands)).max(ms(stands) - stood) <= ms(3), "{seen}");
    }
}

/// A request gets a bare ACK after 259 ms, from a host 29 ms away, which delays nothing for so long (frames
/// 2054 to 2084 of a browser on Wi-Fi): it or the ACK was held up, and the server's time is at most possible,
/// unless its stamps show it. After 150 ms its timer may have expired.
#[test]
fn an_acknowledgement_later_than_any_timer_had_stood() {
    for (acked, stamps, most) in [(230.5, false, Possible), (230.5, true, Likely), (150.0, true, Likely)] {
        let text = format!("{} +9 C 122 #q\n q+{acked} S ack\n q+270.5 S 129\n +0 C ack", settled(4));
        let log = if stamps { log(text) } else { log(text).without_timestamps() };
        let seen = log.rtt(ms(29)).seen_at(End::Client);
        assert_eq!(seen.exchange(5).of(Cause::ServerThink).confidence, most, "{acked}: {seen}");
    }
}

/// A reply echoes a stamp younger than the request's, and no packet with that stamp is in the capture (frames
/// 1 to 3 of an application's capture without bare ACKs and retransmissions): the request had been
/// retransmitted, and the server's time is unknown.
#[test]
fn an_answer_to_what_the_capture_does_not_have_says_little_of_its_server() {
    for (copy, most) in [("w+1590 C 400..500 unseen #q\n", Possible), ("", Likely)] {
        let from = if copy.is_empty() { "w+40 S ack\n w+1990" } else { "q+400" };
        let text = format!(
            "{} +5 C 100 {} #w\n {copy} {from} S 299",
            settled(4),
            if copy.is_empty() { "" } else { "lost" }
        );
        let seen = log(text).rtt(ms(20)).seen_at(End::Client);
        assert_eq!(seen.exchange(5).of(Cause::ServerThink).confidence, most, "{seen}");
    }
}

/// The ACK is a second later than it can be, and the reply 300 ms after it left within the same tick: no
/// program took that time. A reply with a later stamp may have been thought about.
#[test]
fn an_answer_that_left_with_its_acknowledgement_was_not_thought_about() {
    let own = |ack_late: u32, thinks: u32, late: u32| {
        let text = format!(
            "handshake\n +5 C 100\n +0 S ack\n +2 S 200\n +0 C ack\n +900 C 300 late=1000 #q\n q+0 S ack late={ack_late}\n \
             q+{thinks} S 400 late={late}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(100)).seen_at(End::Client);
        let bill = &seen.connection().exchanges.last().unwrap_or_else(|| panic!("{seen}")).bill;
        let of = |cause| bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum::<Duration>();
        (of(Cause::ServerThink), of(Cause::Queueing))
    };
    let (think, queued) = own(0, 0, 300);
    assert!(think <= ms(201) && queued >= ms(1_000), "{think} {queued}");
    let (think, _) = own(0, 1_000, 0);
    assert!(think >= ms(990), "{think}");
}

/// A request after 59 s of silence is acknowledged 272 ms late, and the reply has the same stamp as that ACK;
/// both are held up for 80 ms on their way back as well (frames 1314 to 1317 of a browser's poll over a
/// phone). Linux acknowledges at once after such a silence, so the server took no more than a tick. Soon
/// after the previous reply, its program may have triggered the ACK as it read, late.
#[test]
fn what_is_answered_within_the_tick_of_its_arrival_was_late_on_its_way() {
    for idle in [59_000, 100] {
        let text = settled(3)
            + &format!("+{idle} C 46 late=192 #q\n q+0 S ack late=80\n q+0.01 S 46 late=80\n +0 C ack");
        let seen = log(text).rtt(ms(65)).seen_at(End::Client);
        let bill = seen.exchange(4);
        let late = bill.exchange.bill.iter().filter(|line| line.cause == Cause::Queueing);
        let late: Duration = late.filter(|line| line.confidence == Likely).map(|line| line.ns).sum();
        let shown = bill.ns(Cause::ServerThink, Server) <= ms(1.1) && late >= ms(270);
        assert_eq!(shown, idle > 1_000, "{seen}");
    }
}

/// A request after 7 s of silence is acknowledged 40 ms late, as every segment by itself is there, and the reply has the same
/// stamp (frames 89 to 91 of an application's capture): the host's timer may have run. 72 ms is no timer's.
#[test]
fn an_acknowledgement_that_a_timer_may_have_sent_was_not_likely_late() {
    for (late, most) in [(40, Possible), (72, Likely)] {
        let text =
            settled(3) + &format!("+7000 C 46 late={late} #q\n q+0 S ack\n q+0.01 S 1448x3\n +0 C ack");
        let seen = log(text).rtt(ms(65)).seen_at(End::Client);
        assert_eq!(seen.exchange(4).of(Cause::Queueing).confidence, most, "{seen}");
    }
}

/// A host whose delayed ACKs have the stamps of what they acknowledge (frames 40 to 47 of SSH, where Nagle
/// holds the message after New Keys): near it they were not held up, and far from it a lateness of exactly
/// the timer is a delayed ACK.
#[test]
fn a_delayed_acknowledgement_with_an_old_stamp_stood_nowhere() {
    for (held, end) in [(42, End::Client), (42, End::Server), (120, End::Server)] {
        let hold = format!("+10 C 16 #keys\n keys+{held} S ack\n +0 C 44\n +0.1 S 44\n +0 C ack\n");
        let text = settled(4) + &hold.repeat(2);
        let mut segments = log(text).rtt(ms(2)).capture(end);
        for segment in
            segments.iter_mut().filter(|segment| segment.src.port == 80 && segment.payload_len == 0)
        {
            if let Some(stamps) = segment.options.timestamps.as_mut().filter(|_| !segment.flags.syn()) {
                stamps.val -= held;
            }
        }
        let seen = Seen::of(segments, &format!("the {end:?}"));
        assert_eq!(seen.spent(Cause::Queueing, Path), ms(0), "{seen}");
        assert!(seen.spent(Cause::NagleDelayedAck, Client) >= ms(f64::from(2 * held - 4)), "{seen}");
    }
}

/// Near a server a request is acknowledged 300 ms after it has passed, and answered 100 ms later: a host
/// acknowledges within its timer, whatever its program does, so it was stalled, and its program may have had
/// the request as late. An ACK within a timer leaves no doubt.
#[test]
fn a_host_that_acknowledges_late_had_stood_still() {
    for (acked, sure) in [(300, Possible), (40, Certain)] {
        let text = format!("{}+5 C 100 #q\n q+{acked} S ack\n q+400 S 200\n +0 C ack", settled(4));
        let seen = log(text).rtt(ms(40)).seen_at(End::Server);
        let bill = seen.exchange(5);
        let own = bill.of(Cause::ServerThink);
        assert_eq!((own.ns, own.confidence), (ms(400), sure), "{acked}: {seen}");
    }
}

/// A receiver's window has room for two segments, one of which a link of 1.4 Mbit/s carries in 7 ms. One pair
/// comes 900 ms late, by its sender's clock (frames 698 to 752 of a download, while nothing came to any
/// connection of its host): the link had nothing of this transfer to carry meanwhile.
#[test]
fn what_stands_longer_than_a_window_is_long_waits_for_no_bytes_of_its_own() {
    let pair = "+0 S 1280x2 more\n +0 C ack\n";
    let text = format!(
        "handshake\n +5 C 430\n {}\n +0 S 1280x2 more late=900\n +0 C ack\n {}\n +0 S 300\n +0 C ack",
        pair.repeat(12),
        pair.repeat(4)
    );
    let log = log(text).rtt(ms(80)).window(End::Client, 2_560).bottleneck(End::Server, 1_400_000);
    let seen = log.seen_at(End::Client);
    let late = seen.spent(Cause::Queueing, Path);
    assert!(late >= ms(860) && late <= ms(915), "{seen}");
    assert!(seen.spent(Cause::Bandwidth, Server) + seen.spent(Cause::Bandwidth, Path) <= ms(330), "{seen}");
}

/// The uplink stalls for 20 ms, and the reply arrives just before an ACK of the request's first segment
/// (frames 80 to 100 of a browser's capture, when three connections of two hosts receive everything in one
/// instant): that ACK had left before the reply, 20 ms before it if the server had thought for so long.
#[test]
fn what_left_before_an_answer_that_comes_with_it_had_stood() {
    for stood in [true, false] {
        let [first, rest, ack, thinks] =
            if stood { ["late=20 ", "late=20.1 ", " late=0.12", "0"] } else { ["", "", "", "20"] };
        let text = format!(
            "handshake\n +1.3 C 1282 {first}more #a\n +0 C 488 {rest}#b\n a+0 S ack{ack}\n b+{thinks} S 1282x2 more\n +0 S 964\n +0 C ack"
        );
        let seen = log(text).rtt(ms(321)).without_timestamps().without_ip_ids().seen_at(End::Client);
        let bill = seen.exchange(1);
        let own = bill.of(Cause::ServerThink);
        assert!(own.ns >= ms(20), "{seen}");
        assert_eq!(own.confidence, if stood { Possible } else { Likely }, "{seen}");
    }
}

/// Four writes leave within 3 ms; 95 ms late the server acknowledges the first one and answers it in the same
/// instant, then the others (frames 3169 to 3185 of a browser's capture): the first ACK had not waited for
/// the reply, whatever else was sent meanwhile.
#[test]
fn what_answers_a_part_of_a_question_had_just_arrived_with_its_acknowledgement() {
    for stood in [true, false] {
        let [late, thinks] = if stood { [" late=97", "0"] } else { ["", "97"] };
        let text = format!(
            "handshake\n +1 C 500\n +6 S 1440 more\n +0 S 900\n +0 C ack\n +0 C 64{late} #a\n a+2.6 C 92{late} #b\n +0 C 334{late}\n +0 C 1175{late} #d\n \
             a+0 S ack\n a+{thinks} S 179\n d+0 S ack\n d+{thinks} S 232\n +0 C ack"
        );
        let seen = log(text).rtt(ms(253.6)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(2);
        let own = bill.of(Cause::ServerThink);
        assert!(own.ns >= ms(90), "{seen}");
        assert_eq!(own.confidence, if stood { Possible } else { Likely }, "{seen}");
    }
}

/// A path stalls for 0.7 s within a reply: the next data comes with a retransmission of its first segment,
/// sent by its sender's timer (frames 460 to 478 of a phone's capture). The server had not paused. If it
/// does, there is no retransmission, or that comes as late as it can have been triggered.
#[test]
fn a_silence_that_ends_with_a_copy_of_what_ends_it_was_the_paths() {
    let copied = |late| {
        format!(
            "a+300 S 1448 more late=400 #b
             b+0 S 1448 more late=400
             b+250 S 5544..6992 more late={late}"
        )
    };
    let paused = "a+700 S 1448 more\n +0 S 1448 more".to_owned();
    for (then, stood) in [(copied(150.2), true), (copied(210.0), false), (paused, false)] {
        let text = settled(6) + "+5 C 100 #q\n q+10 S 1448x3 more #a\n a+0 C ack\n" + &then + "\n +0 C ack";
        let seen = log(text).rtt(ms(40)).seen_at(End::Client);
        let queue = seen.exchange(7).ns(Cause::Queueing, Path);
        assert!(if stood { queue >= ms(650) } else { queue <= ms(60) }, "{queue}: {seen}");
    }
}

/// The same for three seconds (frames 440 to 533 of a browser behind a hotspot). The server sets
/// PSH at the ends of its writes, and the segment before the silence has none: it had more to send,
/// and all of it had been acknowledged. After a segment with PSH the silence ends the reply, and so
/// it does if the server never sets PSH.
#[test]
fn an_answer_whose_sender_has_more_ends_at_no_silence() {
    let copied =
        "a+2000 S 1448 more late=1100 #b\n b+0 S 1000 late=1100\n b+250 S 5544..6992 more late=850.2";
    for (before, mark, goes_on) in [(6, " more", true), (6, "", false), (0, " more", false)] {
        let first = settled(before);
        let at = if before > 0 { copied.to_owned() } else { copied.replace("5544..6992", "4344..5792") };
        let text = format!("{first} +5 C 100 #q\n q+10 S 1448x3{mark} #a\n a+0 C ack\n {at}\n +0 C ack");
        let seen = log(text).rtt(ms(40)).seen_at(End::Client);
        let queue = seen.exchange(before + 1).ns(Cause::Queueing, Path);
        assert_eq!(queue >= ms(2_900), goes_on, "{queue}: {seen}");
    }
}
