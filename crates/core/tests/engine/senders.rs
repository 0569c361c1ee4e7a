//! What did a sender do between two segments, where its window, its buffer or its program look
//! alike? Logs that differ in one thing.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_wire::Duration;

use crate::packet_log::{End, MSS, each, log, ms, settled};

fn segments(n: i64) -> u32 {
    (n * MSS) as u32
}

fn close(a: Duration, b: Duration) -> bool {
    (a - b).max(b - a) <= ms(1)
}

/// A full window opens after 40 ms, and the sender's data then leaves at once, or 14 ms late: until
/// it opened nothing could leave. If the program is as late again as the window was closed, it had
/// its own pause.
#[test]
fn a_shut_window_holds_until_it_opens_however_late_its_sender_goes_on() {
    let rtt = ms(10);
    for (late, held) in [(0, ms(50)), (14, ms(50)), (70, ms(0))] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x32 more\n +0 C ack win=0\n +40 C ack\n +{late} S 1448x8\n +0 C ack"
        );
        log(text).rtt(rtt).window(End::Client, segments(32)).both_ends(|seen| {
            let billed = seen.exchange(1).ns(Cause::ReceiverThink, Client);
            assert!(close(billed, held), "{late}: {billed}{seen}");
        });
    }
}

/// Of a window of 40 segments 32 are in flight, and none is acknowledged for 31 ms: a sender with
/// room for less than a third waits, until a timer sends a little more. With much room this holds
/// as long as a probe's timer runs; later, or with two segments, it was not the receiver's program.
#[test]
fn what_is_not_acknowledged_and_leaves_little_room_had_not_been_read() {
    let rtt = ms(10);
    for (flight, window, gap, slow) in
        [(32, 40, 31, true), (32, 200, 31, true), (32, 200, 60, false), (2, 40, 31, false)]
    {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x{flight} more #flight\n flight+{gap} S 1448x2 more\n +0 C ack\n +0 S 1448x8\n +0 C ack"
        );
        let log = log(text).rtt(rtt).window(End::Client, segments(window));
        let seen = log.seen_at(End::Client);
        let bill = seen.exchange(1);
        let billed = bill.ns(Cause::ReceiverThink, Client);
        assert_eq!(close(billed, ms(31)), slow, "{flight} {window}: {billed}{seen}");
        // Near the sender they may equally be lost.
        for line in &log.seen_at(End::Server).exchange(1).exchange.bill {
            assert!(line.ns < ms(31) || line.confidence == Possible, "{flight} {window}: {}", line.cause);
        }
    }
}

/// A tail that Nagle holds after another small segment. If full segments follow it at once, the
/// program was asleep until that very ACK: written sooner they would have been joined to the tail.
/// Otherwise it is Nagle's.
#[test]
fn a_tail_that_full_segments_follow_at_once_was_its_send_buffer_s() {
    let rtt = ms(20);
    let round = |behind: &str| format!("+0 S 1448x12 more\n +0 S 600\n +0 C ack\n +0 S 160\n {behind}");
    for (behind, cause, other) in [
        (
            "+0.05 S 1448x12 more\n +0 S 600\n +0 C ack\n +0 S 1448\n +0 C ack",
            Cause::SendBuffer,
            Cause::Nagle,
        ),
        ("+0 C ack", Cause::Nagle, Cause::SendBuffer),
    ] {
        let text = format!("handshake\n +5 C 100\n {}", round(behind));
        log(text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(1);
            assert!(bill.ns(cause, Server) >= rtt - ms(1), "{cause}{seen}");
            assert!(bill.ns(other, Server) <= ms(1), "{other}{seen}");
        });
    }
}

/// A pause after a small segment with more in flight ends with an ACK: the program may have slept
/// for room, whatever its buffer's size. One that ends at its own time is the program's.
#[test]
fn a_pause_that_ends_with_an_acknowledgement_is_not_surely_the_program_s() {
    let rtt = ms(20);
    for (pause, sure) in [("+0", Possible), ("+12", Certain)] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x6 more\n +0 S 900\n +0 C ack\n {pause} S 1448x6 more\n +0 S 900\n +0 C ack"
        );
        let seen = log(text).rtt(rtt).seen_at(End::Server);
        let think = seen.exchange(1).of(Cause::SenderThink).confidence;
        assert_eq!(think, sure, "{pause}{seen}");
    }
}

/// 40 segments, a silence, and flights of 10, 20 and 40 segments. The RTO of a connection with an
/// RTT of 8 ms is 208 ms, fires on a tick of 4 and is not known to the millisecond: a silence of
/// 214 does not certainly reset a window, one of 300 does.
#[test]
fn no_window_is_reset_before_its_sender_s_timer() {
    let grows = |first: &str| {
        format!(
            "{first}\n +0 S 1448x10 more\n +0 C ack\n +0 S 1448x20 more\n +0 C ack\n +0 S 1448x40\n +0 C ack\n"
        )
    };
    for (silence, reset) in [(214, false), (300, true)] {
        let text = format!(
            "handshake\n{}{}",
            grows("+5 C 100") + "+0 C 100\n +0 S 1448x80\n +0 C ack\n",
            grows(&format!("+{silence} C 100"))
        );
        log(text).rtt(ms(8)).both_ends(|seen| {
            let after_idle = seen.exchange(3).ns(Cause::SlowStartAfterIdle, Server);
            assert_eq!(after_idle >= ms(8), reset, "{silence}: {after_idle}{seen}");
        });
    }
}

/// 1.2 MB to a program that reads 16 KB every 5 ms from a buffer of 40 KB, 20 ms away, in the
/// sender's capture. Reading triggers ACKs, each of several segments and after a wait, like a link
/// that drains a queue; the windows between them show that something was left unread. There was no
/// link.
#[test]
fn a_reader_s_pace_is_no_link_s() {
    let seen = log(include_str!("read_slowly.log"))
        .without_ip_ids()
        .rtt(ms(20))
        .window(End::Server, 40_544)
        .seen_at(End::Client);
    let lines = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
    let of = |causes: &[Cause]| -> Duration {
        lines.clone().filter(|line| causes.contains(&line.cause)).map(|line| line.ns).sum()
    };
    let (link, peer) = (of(&[Cause::Bandwidth]), of(&[Cause::ReceiveWindow, Cause::ReceiverThink]));
    assert!(link <= ms(20) && peer >= ms(450), "{link} and {peer}{seen}");
}

/// A radio delivers in batches (frames 1453 to 2997 of a phone's network): flights of 77 KB were acknowledged and
/// nothing was lost, and then there are flights of 20, 5 and 13, twice in a round trip. A window does not close
/// without a loss.
#[test]
fn a_flight_far_below_one_that_lost_nothing_may_fill_no_window() {
    let rtt = ms(90);
    for (first, most) in [(53, Possible), (16, Likely)] {
        let begun =
            each([10, first.min(20), first], |segments| format!("+0 S 1448x{segments} more\n +0 C ack"));
        let twice = each(1..12, |n| {
            let [a, b, last] = [9 + n % 3, 4 + n % 2, n - 1];
            let second = if n == 1 { "a1+45".to_owned() } else { format!("y{last}+0") };
            format!(
                "x{last}+0 S 1448x{a} more #a{n}\n {second} S 1448x{b} more #b{n}\n a{n}+0 C ack #x{n}\n b{n}+0 C ack #y{n}"
            )
        });
        log(format!("handshake\n +5 C 100\n {begun} #x0\n {twice}\n +0 S 100")).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(1);
            let window = [Cause::CongestionWindow, Cause::DelayedAckCwnd];
            let held = bill
                .exchange
                .bill
                .iter()
                .filter(|line| window.contains(&line.cause) && line.confidence >= Likely);
            assert_eq!(held.map(|line| line.ns).sum::<Duration>() > rtt, most == Likely, "{seen}");
        });
    }
}

/// Nine segments, a silence of 300 ms, and a flight of eleven (9b's sample.pcap, 146 to 218): what is larger than any flight
/// before the silence was not held by a window that the silence had reset.
#[test]
fn a_flight_larger_than_any_before_a_silence_shows_no_restart() {
    for (before, restarted) in [(7, false), (40, true)] {
        let begun = each([before], |segments| format!("+0 S 1448x{segments}\n +0 C ack"));
        let again = "+0 S 1448x11 more\n +0 C ack\n +0 S 1448x6";
        let text = format!("handshake\n +5 C 100\n {begun}\n +300 C 100\n {again}\n +0 C ack");
        log(text).rtt(ms(24)).both_ends(|seen| {
            let bill = seen.exchange(2);
            let held =
                [Cause::SlowStart, Cause::SlowStartAfterIdle].map(|cause| bill.ns(cause, Server) >= ms(22));
            assert_eq!(held, [!restarted, restarted], "{seen}");
        });
    }
}

/// A window that is reset after an idle time is that of a new connection, ten segments, and three segments do not
/// fill it: their sender had no more, or the path held the rest.
#[test]
fn three_segments_do_not_fill_a_window_that_was_reset() {
    let rtt = ms(50);
    for (first, most) in [(3, Possible), (10, Likely)] {
        let begun = each([10, 20, 40], |segments| format!("+0 S 1448x{segments} more\n +0 C ack"));
        let again = each([first, 2 * first], |segments| format!("+0 S 1448x{segments} more\n +0 C ack"));
        let text = format!(
            "handshake\n +5 C 100\n {begun}\n +0 S 100\n +0 C ack\n +2000 C 100\n {again}\n +0 S 100"
        );
        log(text).rtt(rtt).both_ends(|seen| {
            let bill = seen.exchange(2);
            assert_eq!(bill.of(Cause::SlowStartAfterIdle).confidence, most, "{seen}");
        });
    }
}

/// Flights of 10, 20 and 40 segments, each acknowledged after the round trip of 40 ms, or up to 20 later, as where a
/// radio delivers in batches (a server's captures over such a path: 400 ms of slow start, likely, of 220): then
/// something else than the window held the sender for a third of each wait.
#[test]
fn a_window_that_opens_with_late_acknowledgements_is_possible() {
    for (late, sure) in [(0, Likely), (2, Likely), (20, Possible)] {
        let round = |n: usize| format!("+0 S 1448x{n} more\n +0 C ack late={late}\n ");
        let text = format!("handshake\n +5 C 100\n {}{}{}", round(10), round(20), round(40));
        let seen = log(text).rtt(ms(40)).seen_at(End::Server);
        let bill = seen.exchange(1);
        let line = bill.of(Cause::SlowStart);
        assert!(close(line.ns, ms(2 * (40 + late))) && line.confidence == sure, "{late}: {}{seen}", line.ns);
    }
}

/// Eight segments every 20 ms over a path of 60, as a link of 4.8 Mbit/s delivers them that works in batches (an
/// upload over one: 580 ms of a send buffer, likely), or 24, 25, ... after each round trip: without time stamps the
/// batches may be the link's, and no window's.
#[test]
fn batches_that_divide_the_round_trip_may_be_the_link_s() {
    for (segments, grows, every, sure) in [(8, 0, 20, Possible), (24, 1, 60, Likely)] {
        let batches = each(0..480 / every, |n| {
            let segments = segments + (n + 1) * grows;
            format!("f{n}+{every} S 1448x{segments} more #f{}\n +0 C ack", n + 1)
        });
        let text = format!("handshake\n +5 C 100\n +0 S 1448x{segments} more #f0\n +0 C ack\n {batches}");
        let seen = log(text).rtt(ms(60)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(1);
        let held = [Cause::SendBuffer, Cause::CongestionWindow].map(|cause| bill.ns(cause, Server));
        assert!(held[0] + held[1] > ms(200), "{seen}");
        let lines = bill.exchange.bill.iter().filter(|line| line.ns > ms(100));
        let most = lines.filter(|line| line.cause != Cause::RoundTrip).map(|line| line.confidence).max();
        assert_eq!(most, Some(sure), "{every}{seen}");
    }
}

/// Writes of 8 KB over a slow link, each of which leaves 0.2 ms after the acknowledgement of all of the one before it, as
/// Windows does with its send buffer of that size (a text book's upload: 443 ms of its program, likely). One that leaves
/// 30 ms later, or once, need not.
#[test]
fn what_leaves_on_the_last_acknowledgement_each_time_was_held_by_a_buffer() {
    for (late, writes, cause, sure) in [
        (0.2, 40, Cause::SendBuffer, Likely),
        (0.2, 2, Cause::SendBuffer, Possible),
        (30.0, 9, Cause::SenderThink, Possible),
    ] {
        let write = |n: usize| {
            let on = if n == 0 { 5.0 } else { late };
            format!(
                "+{on} C 1448x2 more #w{n}\n +0 S ack\n w{n}+0 C 1448x2 more #x{n}\n +0 S ack\n \
                 x{n}+0 C 1448 more\n +0 C 900\n +0 S ack"
            )
        };
        let text = format!("handshake\n {}\n +0 S 100\n +0 C ack", each(0..writes, write));
        let seen = log(text).rtt(ms(20)).bottleneck(End::Client, 250_000).seen_at(End::Client);
        let bill = seen.exchange(1);
        let line = bill.of(cause);
        assert!(line.ns > ms(20) && line.confidence == sure, "{late} {writes}{seen}");
    }
}

/// The path has taken 160 ms so far, and a small answer was left over. The next one begins 152 ms after its request
/// and ends 8 later, as if what came with the request released the rest (a page's, 10.4 ms of Nagle, likely): but its
/// first segment answers the request, which had arrived by then.
#[test]
fn what_an_answer_s_first_segment_answers_releases_nothing_later() {
    let text = "@0 C syn\n +0 S syn late=8\n +0 C ack\n +2 C 200\n +0 S 140 late=8\n +2 C 525\n +0 S 1448 more\n \
                +8 S 1306\n +0 C ack";
    let seen = log(text).rtt(ms(152)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(2);
    for cause in [Cause::Nagle, Cause::NagleDelayedAck, Cause::SlowStart, Cause::DelayedAckCwnd] {
        assert!(bill.ns(cause, cause.side(Server)) < ms(1), "{cause}{seen}");
    }
}

/// Flights of four segments, each of which ends with a write of 4 KB and is pushed, and continues a round trip later
/// on its acknowledgement (a page's, 33.7 ms of its program, likely): near the receiver, whose
/// acknowledgements have passed, a window as well may have held it.
#[test]
fn a_pause_of_a_round_trip_behind_a_whole_flight_is_possible() {
    let flight = |name: char, n: i32| {
        format!("+0 S 1448x2 more #{name}\n +0 C ack\n {name}+0.3 S 1448x{n} more\n +0 S 900\n +0 C ack\n ")
    };
    let text = format!("handshake\n +5 C 100\n {}{}{}", flight('a', 1), flight('b', 1), flight('c', 1));
    let seen = log(text).rtt(ms(32)).seen_at(End::Client);
    let bill = seen.exchange(1);
    let think = bill.of(Cause::SenderThink);
    assert!(close(think.ns, ms(64)) && think.confidence == Possible, "{seen}");
}

/// Far from their sender, two segments of a reply come 8 ms apart on a path of 40 ms: its radio may deliver in steps, unless the
/// sender's time stamps are as far apart. A pause of more than the round trip is the sender's.
#[test]
fn what_comes_apart_by_less_than_a_round_trip_was_perhaps_written_together() {
    for (pause, stamped, sure) in [(8, false, Possible), (8, true, Likely), (60, false, Likely)] {
        let text = settled(4) + &format!("+5 C 100\n +2 S 300\n +{pause} S 400\n +0 C ack");
        let log = log(text).rtt(ms(40));
        let log = if stamped { log } else { log.without_timestamps() };
        let seen = log.seen_at(End::Client);
        assert_eq!(seen.exchange(5).of(Cause::SenderThink).confidence, sure, "{pause} {stamped}{seen}");
        let beside = log.seen_at(End::Server);
        let think = beside.exchange(5).of(Cause::SenderThink).confidence;
        assert!(think >= Likely, "{pause} {stamped}{beside}");
    }
}

/// The short end of a reply comes 30 ms later than the acknowledgement of all before it allows, on a path of 160 ms: nothing is
/// left of a window then, and the program may have written it late. On time, the window held it.
#[test]
fn a_short_end_behind_the_last_acknowledgement_may_have_been_written_late() {
    for (late, sure) in [(0, Likely), (30, Possible)] {
        let text =
            settled(4) + &format!("+5 C 100\n +2 S 1448x6 more\n +0 C ack\n +{late} S 1005\n +0 C ack");
        let seen = log(text).rtt(ms(160)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(5);
        let held = [Cause::SlowStart, Cause::CongestionWindow, Cause::SlowStartAfterIdle];
        let held = bill.exchange.bill.iter().find(|line| held.contains(&line.cause));
        assert_eq!(held.expect("a window").confidence, sure, "{late}{seen}");
    }
}

/// A window of 20 segments opens, and the next segment comes a round trip later, or 45 ms after that: it may have stood on its way.
#[test]
fn a_window_holds_for_a_round_trip_behind_its_opening() {
    for (late, sure) in [("", Certain), (" late=45", Possible)] {
        let text =
            settled(4) + &format!("+5 C 100\n +2 S 1448x20 more\n +0 C ack\n +0 S 1448x20{late}\n +0 C ack");
        let seen = log(text)
            .rtt(ms(80))
            .without_timestamps()
            .window(End::Client, segments(20) + 100)
            .seen_at(End::Client);
        assert_eq!(seen.exchange(5).of(Cause::ReceiveWindow).confidence, sure, "{seen}");
    }
}

/// A client's flight before an idle time was lost, at two segments: slow start ends there, and what an idle time does not reset
/// is that limit.
#[test]
fn a_window_that_was_lost_opens_slowly_behind_an_idle_time() {
    for (lost, most) in [(" lost", Possible), ("", Likely)] {
        let text = settled(4)
            + &format!("+5 C 204{lost} #q\n ")
            + if lost.is_empty() { "" } else { "q+300 C 400..604\n " }
            + "+0 S 100\n +0 C ack\n +18000 C 1448x2 more\n +0 S ack\n +0 C 1448x4 more\n +0 S ack\n +0 C 1448x2\n +0 S ack\n +0 S 100";
        let seen = log(text).rtt(ms(80)).seen_at(End::Client);
        let lines = seen.lines(Cause::SlowStart, Client);
        assert!(!lines.is_empty(), "{seen}");
        assert!(lines.iter().all(|line| line.confidence == most), "{lost}{seen}");
    }
}

/// A connection's first flight fills a window of ten segments, which any sender's own may be as well; one of four is smaller than
/// those.
#[test]
fn a_first_flight_of_ten_segments_may_fill_two_windows() {
    for (window, sure) in [(10, Likely), (4, Certain)] {
        let text = format!(
            "handshake\n +5 C 100\n +2 S 1448x{window} more\n +0 C ack\n +0 S 1448x{window}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(40)).window(End::Client, segments(window) + 500).seen_at(End::Server);
        assert_eq!(seen.exchange(1).of(Cause::ReceiveWindow).confidence, sure, "{window}{seen}");
    }
}

/// Chunks of 2,048 bytes, each of which leaves 0.12 ms after the acknowledgement of the one before, whether that took half a millisecond or
/// twice as long (a picture sent in 116 of them): something waits for it, and no program sees acknowledgements. One that writes at
/// its own pace is not moved by them.
#[test]
fn a_write_that_follows_acknowledgements_again_and_again_waits_for_them() {
    for (held, surest) in [(true, Possible), (false, Certain)] {
        let chunks = each(0..24, |n| {
            let (acked, next) = (if n % 2 == 0 { 0.4 } else { 0.9 }, n + 1);
            let written = if held { format!("a{n}+0.12") } else { format!("c{n}+1.5") };
            format!("c{n}+{acked} C ack #a{n}\n {written} S 2048 #c{next}")
        });
        let text = format!("{}+5 C 100\n +1 S 2048 #c0\n {chunks}\n +0 C ack", settled(2));
        let seen = log(text).rtt(ms(0.1)).seen_at(End::Server);
        let exchange = seen.exchange(3);
        let pause = exchange.of(Cause::SenderThink);
        assert!(pause.ns >= ms(0.6 * 24.0), "{held}: {seen}");
        assert_eq!(pause.confidence, surest, "{held}: {seen}");
        assert_eq!(pause.detail.form == Some(Form::Drained), held, "{held}: {seen}");
    }
}
