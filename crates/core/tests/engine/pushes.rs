//! Messages sent by a timer, and messages in pieces: does anybody wait for them? In each log the
//! programs' own times tell.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Certain, Likely, Possible};
use tcpwhy_core::report::{Kind, Line};
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

const RTT: i32 = 2;

/// The time billed to these causes over the whole capture.
fn billed(seen: &Seen, causes: &[Cause]) -> Duration {
    let of = |line: &&tcpwhy_core::report::TotalLine| causes.contains(&line.cause);
    seen.report.bill.iter().filter(of).map(|line| line.ns).sum()
}

/// "Transmission on": the first measurement comes at once, then one every 20 ms; every second one
/// is acknowledged.
#[test]
fn an_answer_ends_with_the_first_of_a_timers_messages() {
    let pushes = each(1..=100, |n| {
        let ack = if n % 2 == 0 { format!("\n p{n}+0 C ack") } else { String::new() };
        format!("first+{} S 54 #p{n}{ack}", 20 * n)
    });
    let text = format!("{}+5 C 18 #on\n on+0.7 S ack\n on+1.8 S 54 #first\n{pushes}", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        seen.exchange(3).is(&[(Cause::RoundTrip, Path, ms(RTT)), (Cause::ServerThink, Server, ms(1.8))]);
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (3, 100), "{seen}");
        let others = [Cause::SenderThink, Cause::Bandwidth, Cause::Unexplained];
        assert_eq!(billed(seen, &others), Duration::ZERO, "{seen}");
    });
}

/// From the tenth on, each is acknowledged shortly before the next one leaves, as if that had
/// waited for it.
#[test]
fn what_is_on_time_was_not_held() {
    let pushes = each(1..=60, |n| {
        let held = if n < 10 { 0.0 } else { 17.95 };
        format!("first+{} S 54 #p{n}\n p{n}+{held} C ack", 20 * n)
    });
    let text =
        format!("{}+5 C 18 #on\n on+0.7 S ack\n on+1.8 S 54 #first\n first+0 C ack\n{pushes}", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let held = [Cause::Nagle, Cause::NagleDelayedAck, Cause::SenderThink];
        assert_eq!(billed(seen, &held), Duration::ZERO, "{seen}");
    });
}

/// A rhythm of 512 ms, with one message retransmitted and answered late (frames 3240 to 3290 of a
/// server's capture): a message found to be separate stays so.
#[test]
fn a_beat_with_a_copy_in_it_is_told_once() {
    let steps =
        [512.0, 512.0, 512.0, 506.3, 517.7, 512.0, 512.1, 511.9, 512.0, 512.0, 512.0, 512.0, 512.0, 512.0];
    let beats = each(steps.into_iter().zip(1..), |(step, n)| {
        let copy = if n == 3 { "beat+309 S 580..640\n " } else { "" };
        let acked = [125, 96, 400, 108, 225, 32, 75].get(n - 1).unwrap_or(&80);
        format!("beat+{step} S 60 #beat\n {copy}beat+{} C ack", acked - 43)
    });
    let text = format!("{}+5 S 60 #beat\n +43 C ack\n{beats}", settled(2));
    let mut segments = log(text).rtt(ms(86)).capture(End::Server);
    let first = segments.iter().position(|segment| segment.payload_len == 60).expect("a beat");
    let seen = Seen::of(segments.split_off(first), "the server, begun with a beat");
    let exchanges = &seen.connection().exchanges;
    let packets: Vec<[u64; 2]> = exchanges.iter().map(|one| one.packets).collect();
    assert!(packets.iter().all(|[first, last]| first <= last), "{packets:?}: {seen}");
    assert!(packets.windows(2).all(|two| two[0][1] < two[1][0]), "{packets:?}: {seen}");
}

/// A subscription without a reply, and the messages published from then on, by a loop that sleeps
/// for 100 ms.
#[test]
fn published_messages_do_not_answer_the_subscription() {
    let distances = [102.7, 101.5, 103.3, 102.2, 101.2, 104.6, 101.2, 101.9, 100.8, 102.8, 102.1];
    let pushes = each(distances.into_iter().zip(0..), |(ms, n)| {
        format!("push+{ms} S {} #push\n push+0 C ack", 13 + n % 3 * 4)
    });
    let text = format!(
        "{}+5 C 12 #subscribe\n subscribe+41 S ack\n subscribe+101 S 20 #push\n +0 C ack\n{pushes}",
        settled(2)
    );
    log(text).rtt(ms(0.1)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (2, 13), "{seen}");
        assert!(billed(seen, &[Cause::SenderThink, Cause::ServerThink]) < ms(1), "{seen}");
    });
}

/// A few equal intervals may be a timer's, or a reply's that comes in parts.
#[test]
fn a_short_row_of_equal_distances_is_not_surely_an_answer() {
    let parts = "+0 C ack #read\n read+298 S 700\n".repeat(6);
    let text = format!("{}+5 C 100\n +1 S 700\n{parts}+0 C ack", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        let exchange = seen.exchange(3);
        let pause = exchange.of(Cause::SenderThink);
        assert_eq!((pause.confidence, pause.detail.form), (Possible, Some(Form::OrPushes)), "{seen}");
    });
}

/// A tick every three seconds; the client asks shortly before one, and is answered after it.
#[test]
fn a_tick_does_not_answer_what_was_asked_shortly_before_it() {
    let ticks = each(1..=14, |n| format!("@{} S 80 #t{n}\n t{n}+0 C ack", 3_000 * n));
    let asked = "@39900 C 100 #ask\n ask+40 S ack\n ask+150 S 200 #answer\n answer+0 C ack";
    let text = format!("{}\n{ticks}\n{asked}", settled(2));
    log(text).rtt(ms(RTT)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (3, 14), "{seen}");
        // The log's reply waits for the tick between the two.
        let answered = seen.exchange(3);
        assert_eq!(answered.exchange.reply_bytes, 200, "{seen}");
        assert_eq!(answered.of(Cause::ServerThink).side, Server, "{seen}");
    });
}

/// A panel asks every second, and confirms the reply with 7 bytes: the next request begins the next
/// message.
#[test]
fn what_confirms_an_answer_is_no_beginning_of_the_next_question() {
    let polls = each(1..=12, |n| {
        format!("@{} C 93 #ask\n ask+4 S 297 #answer\n answer+0.4 C 7 #got\n got+35 S ack", 1_000 * n)
    });
    log(format!("{}\n{polls}", settled(2))).rtt(ms(0.2)).both_ends(|seen| {
        let waited: Vec<Duration> = (seen.connection().exchanges.iter())
            .filter(|exchange| exchange.kind == Kind::Exchange && exchange.elapsed > ms(100))
            .map(|exchange| exchange.elapsed)
            .collect();
        assert!(waited.len() <= 4, "{seen}");
        for bill in seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill) {
            let is_pause = bill.cause == Cause::SenderThink && bill.ns > ms(1);
            assert!(!is_pause || bill.confidence == Possible, "{seen}");
        }
    });
}

/// The server's own messages are confirmed with 15 bytes at once; a request comes most of a second
/// later.
#[test]
fn what_confirms_news_is_no_beginning_of_a_question() {
    let news = each(1..=3, |n| {
        format!(
            "@{} S 60 #news\n news+0.2 C 15 #got\n got+40 S ack\n got+940 C 18 #ask\n ask+0.5 S 200 #answer\n answer+0 C ack",
            5_000 * n
        )
    });
    log(format!("{}\n{news}", settled(2))).rtt(ms(0.2)).both_ends(|seen| {
        assert_eq!(billed(seen, &[Cause::SenderThink]), Duration::ZERO, "{seen}");
        assert!(billed(seen, &[Cause::ServerThink]) < ms(3), "{seen}");
    });
}

/// A password, one byte per key, acknowledged by the server but not echoed; the last one is the
/// request.
#[test]
fn keys_without_an_echo_are_messages_of_their_own() {
    let pauses = [310, 120, 95, 480, 150, 210];
    let keys = each(pauses, |ms| format!("key+{ms} C 2 #key\n key+0 S ack"));
    let text = format!(
        "{}+700 C 2 #key\n key+0 S ack\n{keys}\n key+90 C 3 #key\n key+137 S 40 #in\n in+0 C ack",
        settled(2)
    );
    log(text).rtt(ms(0.2)).both_ends(|seen| {
        assert_eq!(billed(seen, &[Cause::SenderThink]), Duration::ZERO, "{seen}");
        assert_eq!(seen.exchange(3).exchange.request_bytes, 3, "{seen}");
    });
}

/// A client that seems to stop for 700 ms in the middle of its request: the first part may have
/// been a separate message without a reply.
#[test]
fn a_pause_with_everything_acknowledged_is_no_more_than_possibly_a_programs() {
    for pause in [60, 700] {
        let text = format!(
            "{}+5 C 200 #head\n head+0 S ack\n head+{pause} C 500 #rest\n rest+20 S 100 #answer\n answer+0 C ack",
            settled(2)
        );
        log(text).rtt(ms(RTT)).both_ends(|seen| {
            let exchange = seen.exchange(3);
            let pause = exchange.of(Cause::SenderThink);
            assert_eq!((pause.confidence, pause.detail.form), (Possible, Some(Form::OrMessages)), "{seen}");
        });
    }
}

/// A node's next message, 4.4 s after its reply, in a capture with only data packets (frames 10 to
/// 14 of a blockchain node): a timer would have retransmitted unacknowledged data, so this was
/// acknowledged, and may be a separate message. A timer of seconds takes longer.
#[test]
fn what_no_timer_repeats_had_been_acknowledged() {
    for (rtt, pause, most) in [(0.2, 4397, Possible), (0.2, 800, Likely), (300.0, 2000, Likely)] {
        let text = format!(
            "{}+5 C 60 #q\n q+1 S 224 #a\n a+0 C ack unseen\n a+0.6 S 886 #b\n b+0 C ack unseen\n b+{pause} S 3 #c\n c+1 C 36\n +0 S ack",
            settled(2)
        );
        let seen = log(text).rtt(ms(rtt)).seen_at(End::Server);
        let exchange = seen.exchange(3);
        assert_eq!(exchange.of(Cause::SenderThink).confidence, most, "{rtt}: {seen}");
    }
}

/// A chat in which others speak every five seconds: a message 6.3 s after a line that the server
/// had acknowledged may be the next of those.
#[test]
fn what_comes_as_late_as_news_do_is_not_surely_an_answer() {
    let news = each([4_000, 9_700, 13_900, 19_200], |ms| format!("@{ms} S 80 #n\n n+40 C ack"));
    let text = format!(
        "{}\n{news}\n@21000 C 31 #line\n line+40 S ack\n line+6300 S 162 #other\n other+40 C ack",
        settled(2)
    );
    log(text).rtt(ms(20)).both_ends(|seen| {
        assert_eq!(seen.exchange(3).of(Cause::ServerThink).confidence, Possible, "{seen}");
    });
}

/// Nothing shows that a message after five seconds is the reply if all others came within a
/// millisecond.
#[test]
fn a_second_is_no_certain_answer_and_five_are_out_of_all_measure() {
    let text =
        format!("{}+5 C 55 #ping\n ping+0.5 S ack\n ping+5290 S 127 #next\n next+0.7 C 127", settled(6));
    log(text).rtt(ms(0.2)).both_ends(|seen| {
        assert_eq!(seen.exchange(7).of(Cause::ServerThink).confidence, Possible, "{seen}");
    });
    let text = format!("handshake\n{}", "+50 C 100\n +1300 S 200\n +0 C ack\n".repeat(3));
    log(text).rtt(ms(0.2)).both_ends(|seen| {
        assert_eq!(seen.exchange(2).of(Cause::ServerThink).confidence, Likely, "{seen}");
    });
}

/// GOAWAY and close_notify are two segments, and one farewell.
#[test]
fn last_words_in_two_segments_answer_nothing() {
    let text = settled(5) + "+100 C 40 #thanks\n thanks+40 S ack\n thanks+4000 S 46\n +0 S 31 fin\n +0 C ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        assert_eq!((seen.count(Kind::Exchange), seen.count(Kind::OneWay)), (5, 2), "{seen}");
        assert!(billed(seen, &[Cause::ServerThink]) < ms(1), "{seen}");
    });
}

/// A shell typed into from the server's end: the client answers within a millisecond, with more
/// bytes than it was sent, and the next message comes at the person's own time.
#[test]
fn who_answers_at_once_and_waits_for_a_person_is_hardly_the_one_who_asks() {
    let pauses = [2_000, 700, 9_000, 1_300, 27_000, 4_100, 13_000];
    let turns = each(pauses, |pause| format!("+0.7 C 300 #said\n said+40 S ack\n said+{pause} S 76"));
    log(format!("handshake\n+1 C 300\n +900 S 76\n{turns}\n+0.7 C 300")).rtt(ms(5)).both_ends(|seen| {
        let last =
            seen.connection().exchanges.iter().filter(|exchange| exchange.kind == Kind::Exchange).skip(4);
        for line in last.flat_map(|exchange| &exchange.bill).filter(|line| line.cause == Cause::ServerThink) {
            assert!(line.ns < ms(950) || line.confidence == Possible, "{seen}");
        }
    });
}

/// The capture starts in the middle, and a heartbeat of 32 bytes comes every three seconds, which
/// the peer returns at once.
#[test]
fn a_heart_beat_that_comes_back_is_asked_by_who_sent_it_first() {
    let text =
        settled(1) + &each(1..=3, |n| format!("@{} S 32 #b{n}\n b{n}+0.1 C 32\n +40 S ack", 3_000 * n));
    let log = log(text).rtt(ms(0.1));
    for end in End::BOTH {
        let segments = log.capture(end);
        let first = segments.iter().position(|segment| segment.payload_len == 32).expect("a heart-beat");
        let seen = Seen::of(segments[first..].to_vec(), "behind the handshake");
        assert!(billed(&seen, &[Cause::ServerThink]) < ms(1), "{seen}");
    }
}

/// A client closes 442 ms after its reply, and the server's alert answers that: nobody waits for
/// it, and the server did not pause. A client may half-close after its request (shutdown(2),
/// SHUT_WR): then the rest of the reply is waited for.
#[test]
fn an_alert_behind_the_client_s_end_is_no_part_of_the_answer() {
    for timestamps in [true, false] {
        let talk = |text: &str| if timestamps { log(text) } else { log(text).without_timestamps() };
        let begin = "handshake\n +5 C 100\n +30 S 200\n +0 C ack\n";
        let closed =
            begin.to_owned() + "+5 C 100\n +30 S 900\n +0 C ack\n +442 C fin\n +0 S 31\n +0 S fin\n +0 C rst";
        talk(&closed).rtt(ms(20)).both_ends(|seen| {
            seen.exchange(2).is(&[(Cause::RoundTrip, Path, ms(20)), (Cause::ServerThink, Server, ms(30))]);
            let exchanges = &seen.connection().exchanges;
            assert!(exchanges.iter().all(|exchange| exchange.elapsed <= ms(51)), "{seen}");
        });
        let half = begin.to_owned() + "+5 C 100 fin\n +30 S 900\n +0 C ack\n +442 S 31 fin\n +0 C ack";
        talk(&half).rtt(ms(20)).both_ends(|seen| {
            seen.exchange(2).elapsed(ms(492 + 20), ms(1));
        });
    }
}

/// A game reports its units' positions, every 200 ms and in between, and nothing ever comes back on
/// that connection.
#[test]
fn what_nobody_answers_in_small_pieces_may_be_as_many_messages() {
    let moves = each(0..40, |n| format!("+{} C {}", 150 + 40 * (n % 2), 72 + n % 3));
    for answer in ["", "+0 S 20\n +0 C ack"] {
        log(format!("handshake\n {moves}\n {answer}")).rtt(ms(8)).both_ends(|seen| {
            let pauses = |line: &&Line| line.cause == Cause::SenderThink && line.ns > ms(500);
            let exchanges = &seen.connection().exchanges;
            let mut lines = exchanges.iter().flat_map(|exchange| exchange.bill.iter().filter(pauses));
            assert_eq!(lines.all(|line| line.confidence == Possible), answer.is_empty(), "{seen}");
        });
    }
}

/// A person types a password, which is not echoed (frames 99 to 115 of a telnet session): each key
/// is a separate message, however soon the next one comes.
#[test]
fn keys_are_no_message_in_pieces() {
    let keys = each([120, 43, 236, 81, 48], |pause| format!("+{pause} C 1\n +0 S ack"));
    log(format!("handshake\n +1 C 27\n +1 S 12\n +0 C ack\n +500 S 10\n +0 C ack\n {keys}\n +2000 C fin"))
        .rtt(ms(0.05))
        .both_ends(|seen| {
            let sure =
                seen.longer(Cause::SenderThink, ms(1)).into_iter().any(|line| line.confidence > Possible);
            assert!(!sure, "{seen}");
        });
}

/// Jobs distributed in messages of 2,009 bytes (ZeroMQ's PUSH, frames 12 to 35): there is no reply,
/// and two of them with a pause between are not one message in two pieces, however large they are.
#[test]
fn large_messages_that_nobody_answers_are_no_message_in_pieces() {
    let work = each([149, 230, 230, 230], |pause| format!("+{pause} C 2009\n +0 S ack"));
    let greetings = "+0 C 10\n +0 S 11\n +0 C ack\n +0 C 54\n +0 S 53\n +0 S 28\n +0 C ack";
    log(format!("handshake\n {greetings}\n +0 C 2037\n +0 S ack\n {work}\n +230 C fin"))
        .rtt(ms(20))
        .both_ends(|seen| {
            let sure =
                seen.longer(Cause::SenderThink, ms(1)).into_iter().any(|line| line.confidence > Possible);
            assert!(!sure, "{seen}");
        });
}

/// In the middle of a connection on one host, bursts end with pushed segments of 5,788 bytes, each
/// acknowledged at once, tenths of a second apart (frames 127 to 149): however large the segments
/// are, it is unknown whether they belong together.
#[test]
fn without_a_handshake_large_segments_may_end_messages() {
    let bursts =
        each([520, 822, 410, 630], |pause| format!("+{pause} C 24\n +0 S ack\n +0.2 C 1448\n +0 S ack"));
    let text = format!(
        "handshake\n +1 C 1448\n +1 S 40\n +0 C ack\n +500 C 1448\n +0 S ack\n {bursts}\n +0.3 S 30\n +0 C ack"
    );
    let segments = log(text).rtt(ms(0.05)).capture(End::Client)[3..].to_vec();
    let seen = Seen::of(segments, "the client, midway");
    let sure = seen.longer(Cause::SenderThink, ms(200)).into_iter().any(|line| line.confidence > Possible);
    assert!(!sure, "{seen}");
}

/// Media come in small pieces, each written separately, as long as anybody listens (RTP within
/// RTSP, frames 20 to 1020 of a camera): it is unknown whether anybody waits for the last. A few
/// pieces are a reply.
#[test]
fn an_answer_that_goes_on_in_many_pieces_may_be_a_stream() {
    for (pieces, most) in [(80, Likely), (12, Certain)] {
        let media = each(0..pieces, |n| format!("+{} S {}\n +0.2 C ack", 30 + n % 9, 2_036 + n % 7));
        let text = format!("handshake\n +0 C 317\n +0.4 S 128\n +0 C ack\n {media}\n +5 S fin");
        let seen = log(text).rtt(ms(0.2)).without_timestamps().seen_at(End::Server);
        let surest = seen.lines(Cause::SenderThink, Server).iter().map(|line| line.confidence).max();
        assert_eq!(surest, Some(most), "{pieces}: {seen}");
    }
}

/// Output that a program pushes over SSH for hours, in small segments with pauses of half a minute
/// (frames 1681 to 3123): each is a separate message, also if a part of each pause was the link's.
#[test]
fn a_pause_is_its_sender_s_although_the_link_took_a_part_of_it() {
    let pushes = each(0..12, |n| format!("p{n}+30000 S 68 #p{}\n p{}+0 C ack", n + 1, n + 1));
    // A reply that shows the link's rate.
    let reply = each(1..20, |n| format!("s0+0 S 1448 more #s{n}"));
    let acks = each(0..20, |n| format!("s{n}+0 C ack"));
    let text = format!(
        "handshake\n +5 C 100\n +1 S 1448 more #s0\n {reply}\n s0+0 S 700 #tail\n {acks}\n tail+0 C ack\n +9000 S 68 #p0\n p0+0 C ack\n {pushes}"
    );
    log(text).rtt(ms(0.6)).bottleneck(End::Server, 3_000_000).both_ends(|seen| {
        assert!(seen.spent(Cause::SenderThink, Server) < ms(1_000), "{seen}");
        assert!(seen.count(Kind::OneWay) >= 12, "{seen}");
    });
}

/// A chat client reports that its user types: 85 bytes, and as many 97 ms later (frames 764 to 783
/// of one). Neither is answered, and nothing shows that the second was waited for.
#[test]
fn a_pause_between_small_pieces_without_an_answer_may_be_nobodys() {
    for begins in ["handshake\n +5 C 100", "@0 C 100"] {
        let text = format!("{begins}\n +1 S 80\n +0 C ack\n +825 C 85\n +97 C 85\n +0 S ack");
        let seen = log(text).rtt(ms(31)).seen_at(End::Client);
        let paused = seen.one_way(1).exchange.bill.iter().filter(|line| line.cause == Cause::SenderThink);
        let surest = paused.map(|line| line.confidence).max().unwrap_or_else(|| panic!("{seen}"));
        assert_eq!(surest, Possible, "{seen}");
    }
}

/// Pictures of an unreadable stream: after five seconds of separately written pieces, its viewer
/// hardly waits for the last one. For four seconds it is as likely a slow reply, if the capture does not end with
/// the last piece: the stream may have gone on.
#[test]
fn an_answer_that_goes_on_for_seconds_may_be_a_stream() {
    for (pieces, end, surest) in
        [(50, "\n +5 S fin", Likely), (50, "", Possible), (120, "\n +5 S fin", Possible)]
    {
        let piece = |n| format!("\n +{} S {}", 30 + n * 37 % 61, 300 + n * 91 % 700);
        let text = settled(4) + "+5 C 100\n +0 S 400\n +0 C ack" + &each(0..pieces, piece) + end;
        log(text).rtt(ms(20)).both_ends(|seen| {
            let pauses = seen.lines(Cause::SenderThink, Server);
            assert_eq!(pauses.iter().map(|line| line.confidence).max(), Some(surest), "{seen}");
        });
    }
}

/// A messenger's client confirms the server's push with 46 bytes, 11 ms after it, and asks 31.5 ms
/// later (frames 1640 to 1652): a message acknowledged separately begins no request.
#[test]
fn what_confirms_a_push_begins_no_question_however_soon_that_comes() {
    let text = settled(3)
        + "+5000 S 162 #push\n push+0.6 C ack\n push+11 C 46 #got\n got+0 S ack\n got+31.5 C 202 #q\n q+3 S ack\n q+260 S 288\n +0 C ack";
    let server = Endpoint::v4([10, 0, 0, 2], 443);
    log(text).rtt(ms(7)).between([CLIENT, server]).both_ends(|seen| {
        let asked = seen.longer(Cause::ServerThink, ms(250));
        assert_eq!(asked.len(), 1, "{seen}");
        assert_eq!(seen.longer(Cause::SenderThink, ms(5)).len(), 0, "{seen}");
        let question = seen.connection().exchanges.iter().find(|of| of.reply_bytes == 288).expect("one");
        assert_eq!(question.request_bytes, 202, "{seen}");
    });
}

/// Two encrypted messages of 39 and 35 bytes 1 ms after a reply, and the next request 693 ms later
/// (frames 2386 to 2499 of a browser): messages about a reply begin no request.
#[test]
fn words_at_the_heels_of_an_answer_begin_no_question() {
    let text = settled(3)
        + "+5000 C 405 #a\n a+130 S 110 #answer\n answer+1 C 39\n +0.1 C 35 #w\n w+0 S ack\n w+691 C 68 #q\n +0.1 C 367 #all\n all+0 S ack\n all+194 S 82\n +0 C ack";
    let server = Endpoint::v4([10, 0, 0, 2], 443);
    log(text).rtt(ms(6.5)).between([CLIENT, server]).both_ends(|seen| {
        let question = seen.connection().exchanges.iter().find(|of| of.reply_bytes == 82).expect("one");
        assert_eq!(question.request_bytes, 435, "{seen}");
        assert_eq!(seen.longer(Cause::SenderThink, ms(100)).len(), 0, "{seen}");
    });
}

/// An SSH session captured from the middle on: its client updates its window with 36 bytes 0.4 ms
/// after the server's output, and the next output comes 846 ms later (frames 8 to 26): nobody
/// waits. A key has the same length, and comes 300 ms after the output; on another port the meaning
/// is unknown.
#[test]
fn a_window_of_ssh_at_the_heels_of_its_output_asks_nothing() {
    for (port, heels, asks) in [(22, 0.4, false), (22, 300.0, true), (2_323, 0.4, true)] {
        let text = format!(
            "@0 S 1060 #out\n out+0 C ack\n out+{heels} C 36 #word\n +41 S ack\n word+846 S 1124 #more\n more+0.3 S 100\n +0 C ack"
        );
        let ends = [Endpoint::v4([217, 117, 226, 147], 54_530), Endpoint::v4([172, 16, 26, 2], port)];
        let seen = log(text).rtt(ms(4)).between(ends).seen_at(End::Server);
        assert_eq!(seen.spent(Cause::ServerThink, Server) >= ms(800), asks, "{port}: {seen}");
    }
}

/// 66 bytes of a browser are acknowledged, and 1.7 s later its server says 38, to which the browser answers with 42 in
/// 0.75 ms (frames 28 to 70 of a browser's capture): a WebSocket's PING and PONG are so, by the mask of four bytes
/// (RFC 6455, 5.3 and 5.5.3), and then the 66 bytes had no answer. What is followed by 43 bytes is an answer.
#[test]
fn what_is_returned_at_once_with_a_mask_need_not_be_an_answer() {
    for (bytes, most) in [(42, Possible), (43, Likely)] {
        let text = format!(
            "handshake\n +1 C 517 #h\n h+0 S ack\n h+20 S 189\n +0 C ack\n +1000 C 66 #q\n q+0 S ack\n q+1731 S 38\n \
             +0.75 C {bytes}\n +0 S ack"
        );
        let ends = [CLIENT, Endpoint { port: 443, ..SERVER }];
        let seen = log(text).rtt(ms(12)).between(ends).without_timestamps().seen_at(End::Client);
        let think = seen.exchange(2);
        assert_eq!(think.of(Cause::ServerThink).confidence, most, "{bytes}: {seen}");
    }
}

/// A server ends its answer with a PING of HTTP/2, which the browser echoes at once, and then is silent for four minutes, until the server says in 73 bytes that it
/// gives the connection up (frames 2376 to 3525 of a browser's capture): these do not answer the echo. 40 bytes may be a request.
#[test]
fn the_echo_of_a_ping_is_not_answered_minutes_later() {
    for (bytes, waits) in [(39, 0), (40, 1)] {
        let text = format!(
            "handshake\n +1 C 517 #h\n h+0 S ack\n h+20 S 1200\n +0 C ack\n +1 C 400 #q\n q+0 S ack\n q+30 S 700\n +0 S 39\n +0.3 C {bytes} #e\n \
             e+0 S ack\n e+239994 S 73\n +0.3 C fin\n +0 S fin\n +0 C ack"
        );
        let ends = [CLIENT, Endpoint { port: 443, ..SERVER }];
        let seen = log(text).rtt(ms(44)).between(ends).without_timestamps().seen_at(End::Client);
        assert_eq!(seen.longer(Cause::ServerThink, ms(1000)).len(), waits, "{bytes}: {seen}");
    }
}

/// A chat client's 54 bytes are acknowledged, and 34 ms after them come 46 (frames 1686 to 1695 of one); a remote desktop's are written in
/// the same way, in answer; keys and moves of a mouse are of one length (frames 4862 to 4913). Each may be a message. What was written
/// before an acknowledgement could come is likely one, and so is a reply whose head says that there is more.
#[test]
fn a_small_write_behind_an_acknowledged_one_may_be_a_message() {
    let cases = [
        ("+5 C 54 #a\n a+0 S ack\n a+34 C 46\n +20 S 800", true),
        ("+5 C 54 #a\n a+34 C 46\n +20 S 800", false),
        ("+5 C 100\n +2 S 50 #a\n a+0 C ack\n a+34 S 49", true),
        ("+5 C 100\n +2 S 50 #a\n a+34 S 49", false),
        (
            "+5 C 100 asks\n +2 S 150 answers opens #a\n a+0 C ack\n a+34 S 149 answers part #b\n b+0 C ack\n +1 S 149 answers ends",
            false,
        ),
        ("+5 C 150 asks opens #a\n a+0 S ack\n a+34 C 149 asks ends\n +20 S 74 answers", false),
        ("+5 C 85 #a\n a+34 C 85\n +20 S 74", true),
    ];
    for (text, open) in cases {
        log(format!("{}{text}\n +0 C ack", settled(2))).rtt(ms(10)).both_ends(|seen| {
            let exchange = seen.exchange(3);
            let pause = exchange.of(Cause::SenderThink);
            assert_eq!(pause.ns, ms(34), "{text}: {seen}");
            assert_eq!(pause.detail.form == Some(Form::OrMessages), open, "{text}: {seen}");
            assert_eq!(pause.confidence == Possible, open, "{text}: {seen}");
        });
    }
}
