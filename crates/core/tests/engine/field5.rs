//! What a fifth reading of strangers' captures showed, as packet logs.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::Line;
use tcpwhy_wire::{Duration, Segment};

use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;

/// The lines of a cause that cost more than this, of all exchanges and one-way messages.
fn lines(seen: &Seen, cause: Cause, least: Duration) -> Vec<&Line> {
    let exchanges = seen.connection().exchanges.iter();
    exchanges
        .flat_map(|exchange| &exchange.bill)
        .filter(|line| line.cause == cause && line.ns > least)
        .collect()
}

/// A login prompt comes 1.09 seconds behind the banner, one tick of half a second later (frames 27 and 29 of a telnet session), and the
/// lines of a session some 200 ms apart: before the clock's rate is known, a stamp or two say nothing of when a segment left.
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
        assert!(lines(&seen, Cause::Bandwidth, ms(100)).is_empty(), "{seen}");
    }
}

/// A page asks for events with the same 398 bytes at once again: the first one comes after 163 seconds, others soon (frames 225 to 3186
/// of a router's pages). They were news as well, as far as anybody can tell.
#[test]
fn a_question_like_one_that_was_answered_with_news_may_be_answered_so_too() {
    for (first, other, most) in [(162_814, 398, Possible), (310, 398, Certain), (162_814, 300, Certain)] {
        let soon = each([296, 396, 603], |wait| {
            format!("+3 C {other} #q{wait}\n q{wait}+0 S ack\n q{wait}+{wait} S 936\n +0 C ack")
        });
        let text = format!(
            "handshake\n +1 C 398 #q\n q+0 S ack\n q+{first} S 936\n +0 C ack\n {soon}\n +3 C {other}"
        );
        let seen = log(text).rtt(ms(0.3)).seen_at(End::Server);
        for n in 2..=4 {
            assert_eq!(seen.exchange(n).of(Cause::ServerThink).confidence, most, "{first} {other}: {seen}");
        }
    }
}

/// Somebody types a password, which is not echoed (frames 99 to 115 of a telnet session): each key is a message of its own, however soon
/// the next one comes.
#[test]
fn keys_are_no_message_in_pieces() {
    let keys = each([120, 43, 236, 81, 48], |pause| format!("+{pause} C 1\n +0 S ack"));
    log(format!("handshake\n +1 C 27\n +1 S 12\n +0 C ack\n +500 S 10\n +0 C ack\n {keys}\n +2000 C fin"))
        .rtt(ms(0.05))
        .both_ends(|seen| {
            let sure =
                lines(seen, Cause::SenderThink, ms(1)).into_iter().any(|line| line.confidence > Possible);
            assert!(!sure, "{seen}");
        });
}

/// Without the connection's beginning: a phone confirms what a server pushes with 32 bytes 5 ms later, and the next push comes 1.49
/// seconds behind that (frames 93 to 98 of a phone's). Who takes its time to ask may have asked.
#[test]
fn what_follows_the_other_ends_words_at_their_heels_may_confirm_them() {
    for (reaction, most) in [(5, Possible), (400, Likely)] {
        let text = format!(
            "handshake\n +1 C 246\n +3 S 300\n +0 C ack\n +700 S 979\n +0 C ack\n +{reaction} C 270 #q\n q+0 S ack\n q+1491 S 343\n +0 C ack"
        );
        let segments = log(text).rtt(ms(40)).capture(End::Client)[3..].to_vec();
        let seen = Seen::of(segments, "the client, midway");
        let think = lines(&seen, Cause::ServerThink, ms(1_000));
        assert!(!think.is_empty() && think.iter().all(|line| line.confidence == most), "{reaction}: {seen}");
    }
}

/// The last 648 bytes of a write go out again after 125 ms, and are acknowledged at once (frames 546 to 549 of an upload to Windows, which
/// holds acknowledgements for up to 200 ms and has no D-SACK): whether the first copy was lost, nobody can tell.
#[test]
fn a_probe_finds_a_loss_for_certain_only_where_the_peer_would_say_that_it_did_not() {
    let text = "handshake\n +5 C 1448x4 #w\n w+0.2 S ack\n +0.1 C 648 lost #tail\n tail+125 C 5792..6440\n +0 S ack\n +5 S 100\n +0 C ack";
    for (stamps, most) in [(true, Certain), (false, Possible)] {
        let log = log(text).rtt(ms(0.3));
        let log = if stamps { log } else { log.without_timestamps() };
        let seen = log.seen_at(End::Client);
        let losses = lines(&seen, Cause::Loss, ms(50));
        assert!(!losses.is_empty() && losses.iter().all(|line| line.confidence == most), "{stamps}: {seen}");
    }
}

/// A download's last segments come in another order, the pushed one before one that is not (frames 848 to 850), and 4.7 seconds later the
/// server takes its leave: nothing was queued in between.
#[test]
fn an_overtaken_segment_does_not_say_that_more_is_queued() {
    let text = "handshake\n +1 C 300\n +20 S 1448x3 more\n +0 C ack\n +0 S 1448 late=0.3 more\n +0.05 S 60\n +1 C ack\n +4724 S 63\n +0 S fin\n +1 C fin";
    let seen = log(text).rtt(ms(20)).seen_at(End::Client);
    assert!(lines(&seen, Cause::Unexplained, ms(100)).is_empty(), "{seen}");
}

/// In the middle of a connection on one host, bursts that end with pushed segments of 5,788 bytes, each acknowledged at once, and as many
/// tenths of a second apart (frames 127 to 149): however large the segments are, nobody knows that they belong together.
#[test]
fn without_a_handshake_large_segments_may_end_messages() {
    let bursts =
        each([520, 822, 410, 630], |pause| format!("+{pause} C 24\n +0 S ack\n +0.2 C 1448\n +0 S ack"));
    let text = format!(
        "handshake\n +1 C 1448\n +1 S 40\n +0 C ack\n +500 C 1448\n +0 S ack\n {bursts}\n +0.3 S 30\n +0 C ack"
    );
    let segments = log(text).rtt(ms(0.05)).capture(End::Client)[3..].to_vec();
    let seen = Seen::of(segments, "the client, midway");
    let sure = lines(&seen, Cause::SenderThink, ms(200)).into_iter().any(|line| line.confidence > Possible);
    assert!(!sure, "{seen}");
}
