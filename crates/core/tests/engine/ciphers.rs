//! What can be told of an encrypted conversation? The messages of TLS and HTTP/2 themselves are neither
//! requests nor replies.

use tcpwhy_core::Mark;
use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::{Confidence, Exchange};
use tcpwhy_wire::{Duration, Endpoint};

use crate::packet_log::{CLIENT, End, log, ms};
use crate::spoken::{read_marked, spent_on};

/// TLS 1.3 up to the client's Finished, with a request alongside; the server's flight continues in ciphertext
/// after its ServerHello (RFC 8446, 2).
pub(crate) const ASKED: &str = "handshake
     +2 C 512 asks #hello
     hello+1 S 127 answers
     +0 S 1200 #flight
     flight+1 C 80
     +0.3 C 286 #question\n";
const RTT: Duration = Duration::from_millis(40);

/// The exchanges of a log, by number.
pub(crate) fn exchanges(text: &str, end: End) -> Vec<Exchange> {
    let log = log(text).rtt(RTT);
    let says = log.marks();
    let report = read_marked(&log.capture(end), |segment| {
        // A CONNECT sets up no TLS.
        let session = segment.payload_len > 50;
        says(segment).into_iter().map(|mark| Mark { session, ..mark }).collect()
    });
    report.connections[0].exchanges.clone()
}

/// An exchange's bill for the server's thinking and its pauses, and the confidence of the first.
pub(crate) fn server_of(exchange: &Exchange) -> (i64, i64, Option<Confidence>) {
    let of = |cause| (spent_on(exchange, cause).as_nanos() + 500_000) / 1_000_000;
    let thinks = exchange.bill.iter().filter(|line| line.cause == Cause::ServerThink && line.ns > ms(1));
    (of(Cause::ServerThink), of(Cause::SenderThink), thinks.map(|line| line.confidence).max())
}

/// Two tickets follow the client's Finished at once (frames 10 to 13 of a redis client whose request takes
/// 120 ms).
#[test]
fn tickets_are_no_answer() {
    for end in [End::Client, End::Server] {
        let text = format!("{ASKED} question+0.1 S 255\n +0.1 S 255\n question+120 S 400\n +0 C ack");
        let (thinks, pauses, confidence) = server_of(&exchanges(&text, end)[2]);
        assert_eq!((thinks, pauses), (120, 0), "{end:?}");
        assert!(confidence >= Some(Confidence::Likely), "{end:?}");
    }
}

/// The server's host acknowledges Finished and request, and its first data is 736 bytes, 617 ms later (frames
/// 1023 to 1049 of a browser's capture): no ticket comes so late.
#[test]
fn what_comes_long_behind_the_finished_is_the_answer() {
    for end in [End::Client, End::Server] {
        let text = format!("{ASKED} question+0 S ack\n question+617 S 736\n +54 C ack");
        let (thinks, pauses, confidence) = server_of(&exchanges(&text, end)[2]);
        assert_eq!((thinks, pauses), (617, 0), "{end:?}");
        assert!(confidence >= Some(Confidence::Likely), "{end:?}");
    }
}

/// Data that comes at once and has not a ticket's length may have been the reply, and what follows, news
/// (frames 10 to 13 of a browser's event stream).
#[test]
fn what_follows_more_than_tickets_may_be_news() {
    for end in [End::Client, End::Server] {
        let text = format!("{ASKED} question+0.1 S 510\n +0.8 S 325\n question+428 S 30\n +0 C ack");
        let exchanges = exchanges(&text, end);
        let surest = exchanges.iter().flat_map(|exchange| &exchange.bill).filter(|line| line.ns >= ms(100));
        assert!(
            surest.map(|line| line.confidence).max() <= Some(Confidence::Possible),
            "{end:?}: {exchanges:#?}"
        );
    }
}

/// A long reply that comes at once continues as the windows allow.
#[test]
fn a_long_answer_that_begins_at_once_is_no_ticket() {
    for end in [End::Client, End::Server] {
        let text = format!("{ASKED} question+0.1 S 1448x10\n +0 C ack\n +40 S 1448x10\n +0 C ack");
        let (thinks, ..) = server_of(&exchanges(&text, end)[2]);
        assert_eq!(thinks, 0, "{end:?}");
    }
}

/// The server's SETTINGS come with its tickets, and the client acknowledges them while it waits (RFC 9113,
/// 3.4; frames 8 to 18 of HTTP/2 through a balancer): with records of 26 bytes, which are not read.
#[test]
fn settings_of_http2_are_no_answer_and_no_question() {
    for end in [End::Client, End::Server] {
        for own in ["+0.1 S 73\n +0.5 S 31", "+0.1 S 52"] {
            let text = format!(
                "{ASKED} question+0.1 S 510\n {own} #settings\n settings+0.2 C 31\n question+110 S 500\n +0 C ack"
            );
            let exchanges = exchanges(&text, end);
            let (thinks, pauses, confidence) = server_of(&exchanges[2]);
            assert_eq!((thinks, pauses, exchanges.len()), (110, 0, 3), "{end:?}: {own}");
            assert!(confidence >= Some(Confidence::Likely), "{end:?}");
        }
    }
}

/// An HTTP/2 client may send more than its acknowledgement of the SETTINGS (frames 10 to 17 of Java's): if a
/// short message follows at once, it need not have asked for the data that comes 110 ms after its request. If
/// the server acknowledges the client's SETTINGS, it has not.
#[test]
fn a_word_about_settings_may_be_no_question() {
    for end in [End::Client, End::Server] {
        for (last, sure) in [("S 31", true), ("S 35", false)] {
            let text = format!(
                "{ASKED} question+0.1 S 61\n +0.2 S 35\n +0.2 {last} #settings\n settings+1.2 C 47\n question+110 S 491\n +0 C ack"
            );
            let exchanges = exchanges(&text, end);
            let (thinks, _, confidence) = server_of(exchanges.last().expect("a question"));
            assert_eq!(thinks == 110, sure, "{end:?}: {exchanges:#?}");
            assert_eq!(confidence >= Some(Confidence::Likely), sure, "{end:?}: {exchanges:#?}");
        }
    }
}

/// A server that wants another key gets a second ClientHello (RFC 8446, 4.1.4), and TLS after a CONNECT does
/// not begin with the connection's first message.
#[test]
fn tickets_are_no_answer_behind_a_second_hello() {
    for end in [End::Client, End::Server] {
        let retried = ASKED.replace(
            "hello+1 S 127",
            "hello+0.2 S 105 answers #retry\n retry+0.3 C 512 asks #again\n again+1 S 127",
        );
        let text = format!("{retried} question+0.1 S 255\n +0.1 S 255\n question+120 S 400\n +0 C ack");
        let exchanges = exchanges(&text, end);
        let (thinks, pauses, confidence) = server_of(exchanges.last().expect("a question"));
        assert_eq!((thinks, pauses), (120, 0), "{end:?}: {exchanges:#?}");
        assert!(confidence >= Some(Confidence::Likely), "{end:?}");
    }
}

/// TLS 1.2, with HTTP/2's SETTINGS after the server's Finished, acknowledged both ways along with the first
/// request (frames 8 to 17 of nginx).
#[test]
fn settings_behind_tls_1_2_are_no_answer() {
    let text = "handshake
         +2 C 512 asks #hello
         hello+1 S 1213 answers #flight
         flight+1 C 93 asks #finished
         finished+0.1 S 51 answers
         +0 S 69 #settings
         settings+0.3 C 93
         +0 C 73 #question
         +0 C 38
         question+0.1 S 38
         question+80 S 588
         +0 C ack";
    for end in [End::Client, End::Server] {
        let exchanges = exchanges(text, end);
        let (thinks, pauses, _) = server_of(&exchanges[3]);
        assert_eq!((thinks, pauses, exchanges.len()), (80, 0, 4), "{end:?}: {exchanges:#?}");
    }
}

/// gRPC sends a PING after each reply: the next call is written 60 ms later, with nothing being written
/// meanwhile (frames 18 to 26 of calls through TLS). The acknowledgement of the PING is not the call's.
#[test]
fn a_call_does_not_begin_with_the_ping_before_it() {
    for end in [End::Client, End::Server] {
        let text = format!(
            "{ASKED} question+0.1 S 510\n +0.1 S 52 #settings\n settings+0.2 C 31\n question+110 S 500 #answer
             answer+0.7 C 39 #ping\n ping+0 S 39\n ping+20 C 81 #call\n call+38 S 286\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        let call = exchanges.last().expect("a call");
        assert_eq!(exchanges.len(), 4, "{end:?}: {exchanges:#?}");
        let (thinks, pauses, confidence) = server_of(call);
        assert_eq!((thinks, pauses), (38, 0), "{end:?}: {exchanges:#?}");
        assert!(
            confidence >= Some(Confidence::Likely) && spent_on(call, Cause::RoundTrip) == RTT,
            "{end:?}: {call:#?}"
        );
    }
}

/// A server answers a ping at once and sends something else 16 ms later (frames 54 to 59 of a WebSocket):
/// nobody need have waited.
#[test]
fn a_pause_between_two_words_is_never_certain() {
    let text =
        "handshake\n +2 C 300\n +0 S 300\n +0 C ack\n +500 C 32 #ping\n ping+0 S 28\n +16 S 28\n +0 C ack";
    let exchanges = exchanges(text, End::Server);
    let pauses = exchanges.iter().flat_map(|exchange| &exchange.bill);
    let surest = pauses
        .filter(|line| line.cause == Cause::SenderThink && line.ns > ms(10))
        .map(|line| line.confidence)
        .max();
    assert_eq!(surest, Some(Confidence::Likely), "{exchanges:#?}");
}

/// HTTP/2 streams requested at once are answered one after the other, and nothing shows which stream a reply
/// belongs to (frames 14 to 28 of a client that asks five times): near either end they are one exchange, and
/// the time between two replies is possibly a pause in one. The time between the requests is not necessarily
/// a pause either.
#[test]
fn answers_of_http2_to_several_questions_are_possibly_one() {
    let text = format!(
        "{ASKED} question+0.1 S 510\n +0.1 S 52 #settings\n settings+0.2 C 31\n question+20 S 466 #answer
         answer+2 C 40 #first\n first+10 C 40\n first+20 C 40\n first+30 C 38 #fourth\n first+40 C 40
         fourth+5 S 442\n +14 S 442\n +62 S 442\n +40 S 442\n +90 S 442\n +0 C ack"
    );
    let ends = [End::Client, End::Server].map(|end| exchanges(&text, end));
    for exchanges in &ends {
        let pauses = |side| {
            let lines = exchanges.iter().flat_map(|exchange| &exchange.bill);
            let long = lines
                .filter(|line| line.cause == Cause::SenderThink && line.side == side && line.ns >= ms(20));
            long.map(|line| line.confidence).max()
        };
        assert_eq!(pauses(Side::Server), Some(Confidence::Possible), "{exchanges:#?}");
        assert!(pauses(Side::Client) <= Some(Confidence::Likely), "{exchanges:#?}");
    }
    assert_eq!(ends[0].len(), ends[1].len(), "{ends:#?}");
}

/// A message as long as an acknowledgement of SETTINGS with a window update may equally be a request: `GET
/// abc` to a server that has replied along with its tickets.
#[test]
fn a_short_command_behind_a_quick_answer_is_a_question() {
    for end in [End::Client, End::Server] {
        let text = format!(
            "{ASKED} question+0.1 S 255\n +0.1 S 255\n +0.1 S 60 #answer\n answer+0.3 C 44 #get\n get+30 S 80\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        assert_eq!((exchanges.len(), server_of(&exchanges[3]).0), (4, 30), "{end:?}: {exchanges:#?}");
    }
}

/// The first request is longer than the initial window, which includes the client's Finished (frames 8 to 25
/// of a redis pipeline): the tickets that arrive before it continues do not make the rest another request.
#[test]
fn a_question_goes_on_behind_tickets() {
    for end in [End::Client, End::Server] {
        let text = "handshake
             +2 C 512 asks #hello
             hello+1 S 127 answers
             +0 S 1200 #flight
             flight+1 C 80 #finished
             +0.3 C 1448x9 more #question
             finished+0.1 S 255 #ticket
             +0 S 255
             question+0 S ack #acked
             ticket+0 C 1448x2 more
             acked+0 C 668 #last
             last+0.3 S 702
             +0 C ack";
        let exchanges = exchanges(text, end);
        assert_eq!(exchanges.len(), 3, "{end:?}: {exchanges:#?}");
        assert_eq!(exchanges[2].request_bytes, 80 + 11 * 1448 + 668, "{end:?}: {exchanges:#?}");
    }
}

/// An HTTP/2 server answers all requests sent with the Finished in one round trip, gets the acknowledgement
/// of its SETTINGS, and ends the connection 5 s later with GOAWAY, 39 bytes in a record; the client closes at
/// once (frames 2441 to 2822 of a browser). Nobody had waited for that.
#[test]
fn a_farewell_behind_the_first_answers_answers_nothing() {
    for end in [End::Client, End::Server] {
        let text = "handshake
             +0.3 C 517 asks #hello
             hello+0 S 1448x3 answers
             +0 S 564 #flight
             flight+18 C 64 #finished
             +0.3 C 92
             +0.3 C 234
             +0.1 C 298 #question
             question+0 S 55 #settings
             settings+0 S 44
             settings+0 S 72 #answer
             answer+0.7 C 31 #read
             +0.1 C 35
             +0 S ack #heard
             heard+4813 S 39 #bye
             bye+0.3 C fin
             +0 S 24
             +0 C rst";
        let exchanges = exchanges(text, end);
        let waited: Vec<Duration> = exchanges.iter().map(|exchange| exchange.elapsed).collect();
        assert!(waited.iter().all(|&waited| waited < ms(100)), "{end:?}: {exchanges:#?}");
    }
}

/// A browser opens a spare connection and asks nothing: after the Finished come two tickets, and ten seconds
/// later GOAWAY, an alert and FIN (frames 3423 to 3853), or an alert overtaken by its FIN (frames 2723 to
/// 3835 of another capture), or four minutes later GOAWAY, and the rest in five seconds (frames 768 to 3224 of a third): nobody had
/// waited for that. A reply to a request sent with the Finished is one.
#[test]
fn a_farewell_behind_the_tickets_answers_no_finished() {
    let farewell = "tickets+9970 S 39\n +0 S 24\n +0 S fin\n +0 C ack";
    let overtaken = "tickets+8371 S 24 late=0.1\n +0 S fin\n +0 C ack";
    let slow = "tickets+240000 S 73 #bye\n +0.1 C ack\n bye+5000 S 56\n +0 S fin\n +0 C ack";
    for (asked, said, waited) in [
        ("", farewell, false),
        ("", overtaken, false),
        ("", slow, false),
        ("+0.3 C 286", "tickets+1970 S 300\n +0 S fin", true),
    ] {
        for end in End::BOTH {
            let text = format!(
                "handshake
                 +0.8 C 517 asks #hello
                 hello+1 S 1448x2 answers
                 +0 S 147 #flight
                 flight+9 C 80 #finished
                 {asked}
                 finished+0 S ack
                 +0 S 303
                 +0 S 303 #tickets
                 tickets+0.1 C ack
                 {said}"
            );
            let exchanges = exchanges(&text, end);
            let long = exchanges.iter().filter(|exchange| exchange.elapsed > ms(500)).count();
            assert_eq!(long > 0, waited, "{end:?} {said}: {exchanges:#?}");
        }
    }
}

/// A browser asks once, in two records, and is answered with 2,133 bytes; five minutes later come an alert of 37 bytes, as TLS 1.0 makes them,
/// and FIN (frames 29 to 587 of a virtual machine's capture). What was longer than tickets was the answer; a longer message at the end may be
/// another part of it.
#[test]
fn an_alert_that_ends_a_session_minutes_after_its_answer_answers_nothing() {
    for (said, waited) in [(37, false), (400, true)] {
        for end in End::BOTH {
            let text = format!(
                "handshake
                 +4 C 138 asks #hello
                 hello+30 S 1448x2 answers
                 +0 S 912 #flight
                 flight+26 C 134 asks #finished
                 finished+18 S 53 answers
                 +0 S 6 #opened
                 opened+56 C 586 #question
                 question+45 S ack
                 question+190 S 2133 #answer
                 answer+0 C ack
                 answer+300314 S {said}
                 +0.2 S fin
                 +0.2 C ack"
            );
            let exchanges = exchanges(&text, end);
            let long = exchanges.iter().filter(|exchange| exchange.elapsed > ms(500)).count();
            assert_eq!(long > 0, waited, "{end:?} {said}: {exchanges:#?}");
        }
    }
}

/// The Finished of a spare connection (frames 2281 to 2299 of a browser's capture): nobody waits for the tickets that come
/// 300 ms later. A request sent along with the Finished is waited for, and so is a file that comes without one.
#[test]
fn tickets_that_come_late_answer_no_finished() {
    for (finished, reply, possible) in [(80, 287, true), (300, 287, false), (80, 1448, false)] {
        let text = format!(
            "handshake
             +0.8 C 517 asks #hello
             hello+1 S 1448x2 answers
             +0 S 147 #flight
             flight+1 C {finished} #finished
             finished+0 S ack
             finished+300 S {reply}
             +0 S 287
             +0.1 C ack"
        );
        for end in End::BOTH {
            let exchanges = exchanges(&text, end);
            let (thinks, _, sure) = server_of(&exchanges[2]);
            assert_eq!(
                (thinks, sure == Some(Confidence::Possible)),
                (300, possible),
                "{end:?}: {exchanges:#?}"
            );
        }
    }
}

/// A browser sends a request and a PING on an idle connection, where the capture begins (frames 161 to 190,
/// and 248 to 260 of another): the echo comes first, and the reply 213 ms later. The server did not pause in
/// it.
#[test]
fn the_echo_of_a_ping_beside_a_question_is_no_part_of_the_answer() {
    let asked = [
        "C 88\n +0 C 39\n +0 C 1448 more\n +0 C 270 #q",
        "C 39\n +0 C 171 #q",
        "C 6970\n +0 C 39\n +0 C 272 #q",
    ];
    for question in asked {
        let text = format!(
            "handshake\n +10 C 1\n +0 S ack\n +10000 {question}\n +0 S ack\n q+1 S 39\n +40 C ack\n q+213 S 68\n +0 S 134\n +0 C ack"
        );
        let log = log(text).rtt(ms(6)).between([CLIENT, Endpoint::v4([10, 0, 0, 2], 443)]);
        for end in End::BOTH {
            let segments = log.capture(end).split_off(5);
            let exchanges = read_marked(&segments, |_| Vec::new()).connections[0].exchanges.clone();
            assert_eq!(
                server_of(&exchanges[0]),
                (213, 0, Some(Confidence::Possible)),
                "{end:?}: {exchanges:#?}"
            );
        }
    }
}

/// The same with a server that gives no tickets until it ends the connection after a minute (frames 2205 to
/// 3077 of a browser's capture): a request sent with the Finished is answered by as many bytes.
#[test]
fn a_ticket_in_front_of_a_farewell_answers_no_finished() {
    for (asked, waited) in [("", false), ("+0.3 C 286", true)] {
        for end in End::BOTH {
            let text = format!(
                "handshake
                 +0.8 C 517 asks #hello
                 hello+1 S 1448x2 answers
                 +0 S 500 #flight
                 flight+1 C 64 #finished
                 {asked}
                 finished+0.3 S ack
                 +60000 S 474 #bye
                 +0 S fin
                 bye+0.1 C ack"
            );
            let exchanges = exchanges(&text, end);
            let long = exchanges.iter().filter(|exchange| exchange.elapsed > ms(500)).count();
            assert_eq!(long > 0, waited, "{end:?}: {exchanges:#?}");
        }
    }
}

/// After all replies an HTTP/2 browser updates its window, and thirty seconds later GOAWAY comes, in two
/// records (frames 285 to 4714): nobody had waited. Nor if a capture begins with what may be SETTINGS and
/// their acknowledgement (frames 13 to 103 of another).
#[test]
fn a_farewell_behind_a_window_answers_nothing() {
    let opened = "handshake
         +0.8 C 517 asks #hello
         hello+1 S 1448x2 answers
         +0 S 249 #flight
         flight+1 C 64
         +0.8 C 92
         +0.7 C 743 #question
         question+1 S 79
         +0 S 79
         +0 S 90 #settings
         settings+0.4 C 31
         +180 S 971 #answer
         answer+4 C 35 #window
         window+0 S ack
         window+30250 S 39 #bye
         +0 S 39
         bye+0.5 C fin";
    for end in End::BOTH {
        let exchanges = exchanges(opened, end);
        assert!(exchanges.iter().all(|exchange| exchange.elapsed < ms(500)), "{end:?}: {exchanges:#?}");
    }
    let log = log("handshake\n+5 S 277\n +0 S 31 #settings\n settings+2 C 31 #read\n read+0 S ack\n read+10307 S 39\n +0 S 24\n +0 S fin\n +0 C ack")
        .between([CLIENT, Endpoint::v4([10, 0, 0, 2], 443)]);
    for end in End::BOTH {
        let exchanges = &read_marked(&log.capture(end)[3..], |_| Vec::new()).connections[0].exchanges.clone();
        assert!(exchanges.iter().all(|exchange| exchange.elapsed < ms(500)), "{end:?}: {exchanges:#?}");
    }
}

/// TLS 1.2: the server's Finished and its SETTINGS acknowledge only the client's Finished, not the three
/// HTTP/2 messages that left 0.3 to 0.7 ms after it; the client acknowledges the SETTINGS at once. The
/// request is acknowledged 2 ms later, and the reply comes 18 ms after that (frames 162 to 181 of a browser).
#[test]
fn what_acknowledges_the_finished_alone_is_no_end_of_the_answer() {
    for end in [End::Client, End::Server] {
        let text = "handshake
             +0.5 C 657 asks #hello
             hello+0.5 S 1448x3 answers
             +0 S 1100 answers #flight
             flight+1 C 126 asks #finished
             finished+0.3 C 99
             finished+0.6 C 330
             finished+0.7 C 1059 #question
             finished+0 S ack
             finished+0 S 171 answers
             finished+0 S 69 #settings
             settings+0.2 C ack
             +0.3 C 38
             question+1.5 S ack
             question+1.6 S 38
             question+18 S 372 #answer
             answer+0.1 C ack";
        let exchanges = exchanges(text, end);
        let last = exchanges.last().expect("a question");
        assert_eq!(server_of(last).0, 18, "{end:?}: {exchanges:#?}");
        if end == End::Client {
            let sizes = (last.request_bytes, last.reply_bytes);
            // The server's acknowledgement of the client's SETTINGS is no part of it.
            assert_eq!(sizes, (126 + 99 + 330 + 1059, 171 + 69 + 372), "{exchanges:#?}");
        }
    }
}

/// TLS 1.3 and HTTP/2: the server's tickets and SETTINGS acknowledge only the Finished, not the request that
/// left after it (frames 68 to 80 of a browser). The client acknowledges the SETTINGS; the data 1.26 s later
/// is the reply.
#[test]
fn what_had_been_said_before_the_question_came_is_no_answer() {
    for own in ["S 618\n +0 S 31 #settings", "S 61\n question+0.1 S 35\n +0 S 31 #settings"] {
        for end in [End::Client, End::Server] {
            let text = format!(
                "handshake
                 +2 C 512 asks #hello
                 hello+1 S 127 answers
                 +0 S 1200 #flight
                 flight+1 C 64 #finished
                 +0.2 C 92
                 finished+5 C 589 #question
                 finished+3 {own}
                 settings+0.2 C 31 #read
                 read+0 S ack
                 question+1260 S 1340
                 +0 S 1168
                 +0 S 31
                 +0.1 C ack"
            );
            let exchanges = exchanges(&text, end);
            let last = exchanges.last().expect("a question");
            let (thinks, _, confidence) = server_of(last);
            assert!((1258..=1260).contains(&thinks), "{end:?}: {exchanges:#?}");
            // Near the server, such a message was sent after everything that had arrived.
            let expected = if end == End::Client { Confidence::Likely } else { Confidence::Possible };
            assert!(confidence >= Some(expected), "{end:?}: {exchanges:#?}");
        }
    }
}

/// ... and if the tickets answered only the Finished, a server answers a preface with its SETTINGS before the
/// request after it has arrived (frames 969 to 1086 of a browser): data that the client acknowledges at once
/// is no beginning of the reply.
#[test]
fn settings_that_answer_a_preface_are_no_beginning_of_the_answer() {
    let text = "handshake
         +1 C 512 asks #hello
         hello+0.3 S 127 answers
         +0 S 1200 #flight
         flight+6 C 64 #finished
         finished+0 S 79 #ticket
         ticket+44 C ack
         finished+46 S 79 #ticket
         ticket+45 C ack
         finished+187 C 92 #preface
         preface+0.7 C 1041 #question
         preface+0 S 64 #settings
         settings+1.1 C 31 #read
         read+0 S ack
         question+494 S 1340
         +0 S 1168
         +0.1 C ack";
    let exchanges = exchanges(text, End::Client);
    let last = exchanges.last().expect("a question");
    let (thinks, pauses, _) = server_of(last);
    // The client's own 0.7 ms are the only pause.
    assert_eq!((thinks, pauses), (494, 1), "{exchanges:#?}");
}

/// A browser sends requests a few milliseconds apart; which of them the reply answers, nothing shows (frames 246 to 272 of a
/// browser's capture).
#[test]
fn pauses_between_encrypted_records_may_be_those_between_requests() {
    let text = format!(
        "{ASKED} question+60 S 1300\n +0 S 300\n +0 C ack\n +30 C 371\n +3 C 184\n +4 C 246\n +3 C 202 #last\n last+30 S 1100\n +0 C ack"
    );
    let exchange = &exchanges(&text, End::Client)[3];
    let pauses: Vec<_> = exchange.bill.iter().filter(|line| line.cause == Cause::SenderThink).collect();
    assert_eq!(pauses.iter().map(|line| line.ns).sum::<Duration>(), ms(10));
    assert!(pauses.iter().all(|line| line.confidence <= Confidence::Likely), "{pauses:?}");
}
