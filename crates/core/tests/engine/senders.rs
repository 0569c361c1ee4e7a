//! What did a sender do between two segments, where its window, its buffer or its program look alike? Logs that differ in one thing.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Server};
use tcpwhy_core::report::Confidence;
use tcpwhy_wire::Duration;

use crate::packet_log::{End, MSS, log, ms};

fn segments(n: i64) -> u32 {
    (n * MSS) as u32
}

fn close(a: Duration, b: Duration) -> bool {
    (a - b).max(b - a) <= ms(1)
}

/// A window without room opens after 40 ms, and what the sender has then leaves at once, or 14 ms late: until it opened nothing could
/// leave. A program that comes as late again as the window was shut had a pause of its own.
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

/// Of 40 segments that a window takes 32 are on their way, and nothing of them is acknowledged for 31 ms: whoever has room for less than a
/// third waits, until a timer sends a little more. With much room it is the same for as long as a probe's timer runs; later, or with two
/// segments, it was not the reader.
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
        // Beside the sender they may as well be lost.
        for line in &log.seen_at(End::Server).exchange(1).exchange.bill {
            assert!(
                line.ns < ms(31) || line.confidence == Confidence::Possible,
                "{flight} {window}: {}",
                line.cause
            );
        }
    }
}

/// A tail that Nagle holds behind another small segment. Where full segments follow it at once, the program was asleep until that very
/// acknowledgement: written sooner they would have been joined to the tail. Without them it is Nagle's.
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

/// A pause behind a small segment with more in flight ends with an acknowledgement: the writer may have slept for room, whatever its
/// buffer's size. One that ends at its own time is the program's.
#[test]
fn a_pause_that_ends_with_an_acknowledgement_is_not_surely_the_program_s() {
    let rtt = ms(20);
    for (pause, sure) in [("+0", Confidence::Possible), ("+12", Confidence::Certain)] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 1448x6 more\n +0 S 900\n +0 C ack\n {pause} S 1448x6 more\n +0 S 900\n +0 C ack"
        );
        let seen = log(text).rtt(rtt).seen_at(End::Server);
        let think = seen.exchange(1).of(Cause::SenderThink).confidence;
        assert_eq!(think, sure, "{pause}{seen}");
    }
}

/// 40 segments, a silence, and flights of 10, 20 and 40 segments. The timer of a connection 8 ms long is 208 ms, fires on a tick of 4 and
/// is not known to the millisecond: a silence of 214 does not reset a window for certain, one of 300 does.
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

/// 1.2 MB to a reader that takes 16 KB each 5 ms from a buffer of 40 KB, 20 ms away, as the sender's capture had it. What is read lets
/// acknowledgements go, each of several segments and after a wait, as a link does that works off a queue; the windows between them say
/// that something was left unread. There was no link.
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
