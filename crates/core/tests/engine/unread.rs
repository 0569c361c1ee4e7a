//! Captures without payload: only lengths show which messages are requests, and which belong to TLS or
//! HTTP/2 itself.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::{Confidence, Exchange};

use crate::packet_log::{End, log, ms};
use crate::spoken::read_marked;

fn exchanges(text: &str, end: End) -> Vec<Exchange> {
    let log = log(format!("handshake\n {text}")).rtt(ms(80));
    read_marked(&log.capture(end), log.marks()).connections[0].exchanges.clone()
}

/// How certain the way and the server's time of an exchange are, where they take 10 ms and more.
fn surest(exchange: &Exchange) -> Option<Confidence> {
    let answers = [Cause::RoundTrip, Cause::ServerThink, Cause::SenderThink];
    let lines = exchange.bill.iter().filter(|line| answers.contains(&line.cause) && line.ns >= ms(10));
    lines.map(|line| line.confidence).max()
}

/// A TLS 1.3 client sends its Finished and its first request, tickets arrive, and the reply 120 ms
/// later (frames 4 to 14 of a client of redis): none of these lengths shows that the tickets answer
/// nothing. If the first message is shorter than any ClientHello, or if the payload was captured,
/// somebody waits for a reply.
#[test]
fn what_comes_behind_a_finished_may_be_tickets() {
    for end in End::BOTH {
        for (said, hello, finished, is_open) in [
            ("unread", 517, 80, true),
            ("unread", 60, 80, false),
            ("unread", 517, 300, false),
            ("", 517, 80, false),
        ] {
            let text = format!(
                "+2 C {hello} {said} #hello\n hello+1 S 1333\n +1.8 C {finished} #finished\n finished+0.1 C 58\n finished+0.2 S 510
                 finished+120 S 27\n +2 C 158\n +60 S 300\n +5 C 158\n +60 S 300\n +5 C 158\n +60 S 300\n +0 C ack"
            );
            let exchanges = exchanges(&text, end);
            let told = surest(&exchanges[2]);
            assert_eq!(
                told <= Some(Confidence::Possible),
                is_open,
                "{said} {hello} {finished} {end:?}: {exchanges:#?}"
            );
            assert!(surest(&exchanges[4]) >= Some(Confidence::Likely), "{end:?}: {exchanges:#?}");
        }
    }
}

/// Messages of a stream arrive every 30 ms, and right after each the client opens HTTP/2 windows by
/// 26 bytes (frames 8 to 30 of gRPC): nobody waits for the next one. Messages of 27 bytes, or after
/// a while, are ordinary requests.
#[test]
fn windows_that_open_behind_what_comes_ask_nothing() {
    for end in End::BOTH {
        for (len, after, is_open) in [(26, 0.4, true), (52, 0.4, true), (27, 0.4, false), (26, 60.0, false)] {
            let round = format!("+{after} C {len}\n +30 S 514\n");
            let exchanges =
                exchanges(&format!("+2 C 63 unread\n +0 S 36\n {} +0 C ack", round.repeat(5)), end);
            for exchange in &exchanges[2..6] {
                let told = surest(exchange);
                assert_eq!(
                    told <= Some(Confidence::Possible),
                    is_open,
                    "{len} {after} {end:?}: {exchange:#?}"
                );
            }
        }
    }
}

/// A server that takes 3 s may have sent news (frames 12 to 16 of a chat): for a request whose
/// payload was not captured, that is equally possible. One that takes 1.5 s, or whose payload was
/// captured, has likely answered a request.
#[test]
fn what_comes_seconds_later_may_be_news_where_no_payload_was_captured() {
    for end in End::BOTH {
        for (said, wait, is_open) in [("unread", 3_000, true), ("unread", 1_500, false), ("", 3_000, false)] {
            let rounds = "+5 C 300\n +20 S 500\n".repeat(3);
            let text = format!("+2 C 300 {said}\n +20 S 500\n {rounds} +5 C 300\n +{wait} S 500\n +0 C ack");
            let exchanges = exchanges(&text, end);
            let told = exchanges.iter().find(|exchange| exchange.elapsed >= ms(1_000)).map(surest);
            assert_eq!(
                told <= Some(Some(Confidence::Possible)),
                is_open,
                "{said} {wait} {end:?}: {exchanges:#?}"
            );
        }
    }
}

/// The confidence of a pause of 60 ms between the pieces of the second reply, or of the second request.
fn pause_of(rounds: &str, midway: bool, end: End) -> Option<Confidence> {
    let log = log(format!("handshake\n {rounds}\n +0 C ack")).rtt(ms(20));
    let segments = log.capture(end).split_off(if midway { 3 } else { 0 });
    let exchanges = read_marked(&segments, log.marks()).connections[0].exchanges.clone();
    let paused = |exchange: &Exchange| {
        let mut own = exchange.bill.iter().filter(|line| line.cause == Cause::SenderThink);
        own.find(|line| line.ns >= ms(50)).map(|line| line.confidence)
    };
    exchanges.iter().find_map(paused)
}

/// Pieces of a message that fills less than a segment are as many messages of a browser's connection for
/// events (frames 9 to 11 of a chat): with no payload, a pause between them is no more than possible. A
/// longer message goes on, and so does one whose payload was captured.
#[test]
fn pieces_whose_payload_was_not_captured_may_be_messages() {
    for end in End::BOTH {
        for (said, piece, is_open) in [(" unread", 100, true), (" unread", 1000, false), ("", 100, false)] {
            let text =
                format!("+2 C 300{said}\n +20 S 200\n +5 C 300 #asked\n asked+10 S {piece}\n +60 S {piece}");
            let told = pause_of(&text, false, end).expect("a pause");
            assert_eq!(told == Confidence::Possible, is_open, "{said} {piece} {end:?}");
        }
        // Nor does a capture that begins midway show what encrypted pieces are.
        for (said, is_open) in [(" sealed", true), ("", false)] {
            let text = format!("+2 C 300{said}\n +20 S 200\n +5 C 300 #asked\n asked+10 S 100\n +60 S 100");
            let told = pause_of(&text, true, end).expect("a pause");
            assert_eq!(told == Confidence::Possible, is_open, "{said} {end:?}");
        }
    }
}

/// Five pieces of 400 bytes, more than a segment, are as many replies of one length (frames 70 to 90 of a caller over
/// HTTP/2); pieces of other lengths are one reply.
#[test]
fn a_row_of_pieces_of_one_length_may_be_as_many_messages() {
    for (last, is_open) in [(400, true), (410, false)] {
        let pieces = format!("asked+10 S 400\n +60 S 400\n +60 S 400\n +60 S 400\n +60 S {last}");
        let text = format!("+2 C 300 unread\n +20 S 200\n +5 C 300 #asked\n {pieces}");
        for end in End::BOTH {
            let told = pause_of(&text, false, end).expect("a pause");
            assert_eq!(told == Confidence::Possible, is_open, "{last} {end:?}");
        }
    }
}

/// A capture begins with what belongs to an earlier message (the SETTINGS that nginx sends before it
/// answers, 38 bytes in TLS): the pause behind it is no more than possible, and a later one is likely.
#[test]
fn what_a_capture_begins_with_may_be_the_end_of_a_message() {
    for end in End::BOTH {
        let first = pause_of("+2 C 38\n +0 S 38\n +60 S 588\n +5 C 300\n +5 S 300", true, end);
        assert_eq!(first, Some(Confidence::Possible), "{end:?}");
        let later = pause_of("+2 C 38\n +0 S 38\n +5 C 300\n +5 S 300\n +60 S 588", true, end);
        assert!(later >= Some(Confidence::Likely), "{end:?}: {later:?}");
    }
}

/// A replica tells its position in 36 bytes whenever it likes, and news follows 150 ms later (frames 26 to
/// 54 of redis): no more than possible as an answer. A longer message, and one right after a reply, ask.
#[test]
fn a_few_bytes_in_their_own_time_ask_nothing_where_no_payload_was_captured() {
    for end in End::BOTH {
        for (said, len, after, is_open) in [
            (" unread", 36, 100, true),
            (" unread", 200, 100, false),
            (" unread", 36, 2, false),
            ("", 36, 100, false),
        ] {
            let round = format!("+{after} C {len} #word\n word+40 S ack\n word+150 S 300\n");
            let exchanges =
                exchanges(&format!("+2 C 300{said}\n +20 S 500\n {} +0 C ack", round.repeat(6)), end);
            for exchange in &exchanges[4..8] {
                let told = surest(exchange);
                assert_eq!(
                    told <= Some(Confidence::Possible),
                    is_open,
                    "{said} {len} {after} {end:?}: {exchange:#?}"
                );
            }
        }
    }
}
