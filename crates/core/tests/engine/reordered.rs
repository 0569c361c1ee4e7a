//! Retransmissions that the acknowledgement behind them does not answer: a reordered segment, a timer that the
//! peer's own delay outlasts, an answer that leaves without the bytes (RFC 3522, RFC 8985, 4).

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{self, Certain, Possible};

use crate::packet_log::{End, log, ms, settled};
use crate::seen::Seen;

/// How certain losses and timers of 10 ms and more are, at most.
fn most(seen: &Seen) -> Option<Confidence> {
    let lines = [Cause::Loss, Cause::Rto].into_iter().flat_map(|cause| seen.longer(cause, ms(10)));
    lines.map(|line| line.confidence).max()
}

/// Two segments of a reply are overtaken by the next two for 6 ms, which SACKs report; the first is retransmitted,
/// and acknowledged 5 ms later with an RTT of 200 ms, by an ACK that echoes the first time stamp (frames 5 to 20
/// of a web server's capture). Without time stamps, the time tells. If both are lost, the loss is certain.
#[test]
fn a_segment_acknowledged_too_soon_for_its_fast_copy_was_reordered() {
    let text = |late: &str, acks: &str| {
        format!(
            "handshake\n +0.2 C 804 #q\n q+1 S 1418 {late} more #a\n +0 S 1418 {late} more #b
             +0 S 1418 more #c\n +0 S 1418 more #d\n c+0 C ack\n d+0 C ack #told\n told+0 S 0..1418 #again
             {acks}"
        )
    };
    let overtaken = text("late=6", "a+0 C ack #A\n b+0 C ack\n A+0 S 1418x4 #e\n again+0 C ack\n e+0 C ack");
    let lost = text(
        "lost",
        "told+0.1 S 1418..2836 #more\n again+0 C ack #A\n more+0 C ack\n A+0 S 1418x4 #e\n e+0 C ack",
    );
    for stamps in [true, false] {
        for (text, expected) in [(&overtaken, None), (&lost, Some(Certain))] {
            let log = log(text.clone()).rtt(ms(200));
            let seen = if stamps { log } else { log.without_timestamps() }.seen_at(End::Server);
            let most = most(&seen).filter(|most| *most > Possible);
            assert_eq!(most, expected, "{stamps}: {seen}");
        }
    }
}

/// A terminal's keys are acknowledged when they are retransmitted after 219 ms, with a D-SACK, and the next one,
/// which Nagle had held, follows at once (frames 596 to 605 of a telnet session): nothing was lost.
#[test]
fn a_copy_that_a_d_sack_names_released_no_held_segment() {
    for (first, expected) in [("", Possible), ("lost", Certain)] {
        let text = format!(
            "handshake\n +5 C 20\n +1 S 20\n +0 C ack\n +50 C 11 {first} #k\n k+219 C 20..31 #again
             again+0 S ack #told\n told+0 C 1\n +300 S 186\n +0 C ack"
        );
        let seen = log(text).rtt(ms(0.3)).seen_at(End::Client);
        assert_eq!(most(&seen), Some(expected), "{seen}");
    }
}

/// The path stands still while a request of two segments is on its way; the second one is retransmitted by a tail
/// loss probe, and the answer comes before anything acknowledges the second (frames 1362 to 1498 of a browser
/// over a phone): it had not waited for that. An answer that acknowledges both had.
#[test]
fn an_answer_that_acknowledges_none_of_a_copy_did_not_wait_for_it() {
    for (second, acks, expected) in [
        ("late=183", "a+0 S 287\n b+0 S ack\n again+0 S ack", None),
        ("lost", "again+0 S 287", Some(Certain)),
    ] {
        let text = format!(
            "handshake\n +5 C 100\n +0 S 200\n +0 C ack\n +2 C 80 late=180 #a\n +0.2 C 187 {second} #b
             b+86 C 180..367 late=99 #again\n {acks}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(23)).seen_at(End::Client);
        assert_eq!(most(&seen).filter(|most| *most > Possible), expected, "{seen}");
    }
}

/// The answer is lost, and the question repeated after 300 ms: its acknowledgement comes with a sequence number beyond the answer, and
/// the answer 2.8 ms later, numbered right after that (frames 206 to 214 of a laptop's pings): it had left behind it, as a copy, and
/// nobody thought for 300 ms. Without numbers it may have been overtaken.
#[test]
fn what_is_numbered_right_behind_the_packet_before_it_was_not_overtaken() {
    let text = "handshake\n +5 C 100\n +0 S 200\n +0 C ack\n +5 C 100 #q\n q+0.5 S 200 lost\n q+300 C 100..200 #r\n r+0 S ack\n \
                +2.8 S 200..400\n +0 C ack";
    let numbered = log(text).rtt(ms(30)).without_timestamps();
    let seen = numbered.seen_at(End::Client);
    assert!(
        !seen.longer(Cause::Rto, ms(290)).is_empty() && seen.longer(Cause::ServerThink, ms(1)).is_empty(),
        "{seen}"
    );
    let seen = log(text).rtt(ms(30)).without_timestamps().without_ip_ids().seen_at(End::Client);
    assert!(!seen.longer(Cause::Queueing, ms(2.7)).is_empty(), "{seen}");
}

/// The second part of an answer is overtaken by an acknowledgement that left 5 ms after it, and comes 60 ms later than
/// usual: it was late for 55 ms, and before that its server had not written it yet.
#[test]
fn what_is_overtaken_was_late_since_then_and_not_before() {
    let text = "handshake\n +5 C 100\n +2 S 300 #a\n +0 C ack\n a+700 S 300 late=60 #b\n b+5 S ack ack=100\n +100 C ack";
    let seen = log(text).rtt(ms(30)).seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(
        bill.ns(Cause::Queueing, Path) <= ms(61) && bill.ns(Cause::SenderThink, Server) >= ms(690),
        "{seen}"
    );
}

/// The answer to a request is lost; the client repeats the request, whose D-SACK carries a number beyond the answer, the server goes on
/// 52 ms later, and repairs the answer when it hears of the hole (frames 1564 to 1645 of a browser behind a VPN): the loss took all that
/// time, and not the server.
#[test]
fn an_answer_from_beyond_a_lost_one_tells_that_the_server_had_answered() {
    let text = format!(
        "{} +5 C 195 #q\n +0.2 C 241\n q+1 S 254 lost\n q+590 C 4000..4436 #again\n again+0 S ack #told\n told+52 S 328 #more\n \
         more+0 C ack #hole\n hole+0 S 8000..8254\n +0 C ack",
        settled(40)
    );
    let seen = log(text).rtt(ms(190)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(41);
    assert!(bill.ns(Cause::ServerThink, Server) < ms(60), "{seen}");
    assert!(bill.ns(Cause::Rto, Path) + bill.ns(Cause::Loss, Path) >= ms(780), "{seen}");
}

/// A camera writes 4.6 KB every 36 to 64 ms, and a segment of each write is overtaken by the next for 1.5 ms (frames 1981 to 2000 of an
/// RTSP stream): the next one is written no later for that, so that it is possible at most that the delays cost anything.
/// The last one's did.
#[test]
fn what_is_overtaken_before_a_pause_may_have_delayed_nothing() {
    let write = |pause| {
        format!("+{pause} S 1448 more\n +0.1 S 1448 late=1.5 more\n +0.1 S 1448 more\n +0.1 S 300\n +0 C ack")
    };
    let stream = crate::packet_log::each([36, 64, 41, 57, 49, 38, 62, 44, 53, 60, 39, 47], write);
    let text = format!("{} +5 C 300\n +20 S 1200 late=1.5 more\n +0 S 200\n {stream}", settled(3));
    let seen = log(text).rtt(ms(80)).seen_at(End::Client);
    let late = seen.lines(Cause::Queueing, Path);
    let sure = late.iter().filter(|line| line.confidence > Possible).map(|line| line.ns).max();
    assert!(sure.is_none_or(|sure| sure <= ms(3)), "{seen}");
    assert!(!late.is_empty(), "{seen}");
}

/// A client's last words, 36 and 60 bytes, are overtaken by its FIN for 23 ms, which a SACK reports; they go out again as one packet, of which 36 bytes are
/// acknowledged 9.5 ms later, and then all, with an RTT of 14.5 (frames 45 to 53 of a session of SSH): nothing was lost. If the second half was, so is
/// that.
#[test]
fn what_is_acknowledged_in_part_and_too_soon_for_its_copy_was_overtaken() {
    for (late, acks, expected) in
        [("late=25.3", "a+0 S ack\n b+0 S ack", None), ("lost", "a+0 S ack\n again+0 S ack", Some(Certain))]
    {
        let text = format!(
            "{} +5 C 36 late=25.2 #a\n +0 C 60 {late} #b\n +1.3 C fin late=14.25 #fin\n fin+0 S ack\n +0.1 C 300..396 fin #again\n {acks}\n +0 S fin\n +0 C ack",
            settled(3)
        );
        let seen = log(text).rtt(ms(14.5)).without_timestamps().seen_at(End::Client);
        let most = most(&seen).filter(|most| *most > Possible);
        assert_eq!(most, expected, "{late}: {seen}");
    }
}
