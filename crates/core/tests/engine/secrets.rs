//! Encrypted messages that were not requested, and their company: confirmations, events, ends of
//! streams, window updates.

use tcpwhy_core::Side;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::{Confidence, Exchange, Kind};
use tcpwhy_wire::{Duration, Endpoint};

use crate::ciphers::{ASKED, exchanges, server_of};
use crate::listening::{part_of, read_streams};
use crate::packet_log::{End, each, log, ms};
use crate::seen::Seen;
use crate::spoken::{read_marked, spent_on};

/// A server that has sent its tickets, and both ends' SETTINGS.
const HTTP2: &str = "question+0.1 S 510\n +0.1 S 52\n +0 S 31 #settings\n settings+0.2 C 31\n question+20 S 466 #answer\n answer+2 C ack\n";

/// The highest confidence of a bill for a program's time of 30 ms or more.
fn surest(exchanges: &[Exchange]) -> Option<Confidence> {
    let own = [Cause::ServerThink, Cause::SenderThink];
    let lines = exchanges.iter().flat_map(|exchange| &exchange.bill);
    lines.filter(|line| own.contains(&line.cause) && line.ns >= ms(30)).map(|line| line.confidence).max()
}

/// A subscriber confirms events with 4 bytes in a record (frames 31 to 36 of MQTT's PUBACK), or
/// with 21 (those of AMQP): the next event answers nothing. A request of the usual length is
/// answered.
#[test]
fn what_is_too_short_for_a_question_may_confirm() {
    for end in [End::Client, End::Server] {
        for (len, sure) in [(26, Confidence::Possible), (43, Confidence::Possible), (70, Confidence::Likely)]
        {
            let event = format!("+0.6 C {len} #word\n word+412 S 415\n");
            let text = format!(
                "{ASKED} question+0.1 S 255\n +0.1 S 255\n question+20 S 60\n {} +0 C ack",
                event.repeat(2)
            );
            let exchanges = exchanges(&text, end);
            let told = surest(&exchanges);
            assert!(
                told.is_some_and(|told| (told <= Confidence::Possible) == (sure == Confidence::Possible)),
                "{end:?}: {exchanges:#?}"
            );
        }
    }
}

/// A capture from the middle on shows TLS records of both ends but no ClientHello (frames 13 to 36
/// of MQTT); one without payload shows neither. Messages of the same lengths in an unknown protocol
/// that is not encrypted are requests.
#[test]
fn what_is_too_short_for_a_question_may_confirm_whether_or_not_the_hello_was_captured() {
    for end in End::BOTH {
        for (said, len, sure) in [("sealed", 26, false), ("unread", 27, false), ("", 26, true)] {
            let events = each([298, 527, 730, 425], |wait| format!("+0.6 C {len}\n +{wait} S 45"));
            let log = log(format!("handshake\n +5 C 60 {said}\n +20 S 45\n {events}\n +0 C ack")).rtt(ms(40));
            let midway = log.capture(end).split_off(if said == "sealed" { 3 } else { 0 });
            let exchanges = read_marked(&midway, log.marks()).connections[0].exchanges.clone();
            assert_eq!(
                surest(&exchanges) >= Some(Confidence::Likely),
                sure,
                "{said} {end:?}: {exchanges:#?}"
            );
        }
    }
}

/// A consumer confirms ten deliveries at once, each in a separate record (frames 27 to 41 of AMQP):
/// the next delivery answers none of them.
#[test]
fn several_words_may_confirm_as_one_does() {
    for end in [End::Client, End::Server] {
        let words = "+0 C 43\n".repeat(9);
        let text = format!(
            "{ASKED} question+0.1 S 255\n +0.1 S 255\n question+20 S 4047\n +0.7 C 43\n {words} +509 S 415\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        assert_eq!(surest(&exchanges), Some(Confidence::Possible), "{end:?}: {exchanges:#?}");
    }
}

/// The server answers a ping, and sends an event 146 ms later (frames 27 to 29 of MQTT).
#[test]
fn two_words_in_cipher_are_two_messages() {
    for end in [End::Client, End::Server] {
        let text = format!(
            "{ASKED} question+0.1 S 255\n +0.1 S 255\n +0.1 S 60\n +900 C 24 #ping\n ping+0.1 S 24\n +146 S 45\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        assert_eq!(surest(&exchanges), Some(Confidence::Possible), "{end:?}: {exchanges:#?}");
    }
}

/// gRPC sends a PING and opens windows whenever data has come (frames 24 to 42 of events besides
/// calls): that is no request, the next event answers nothing, and a client answers an event with
/// neither a PING nor a call.
#[test]
fn an_event_behind_the_echo_of_a_ping_answers_nothing() {
    for end in [End::Client, End::Server] {
        let calls = |events: &str| {
            let text = format!("{ASKED} {HTTP2} {events} +0 C ack");
            let exchanges = exchanges(&text, end);
            [Kind::Exchange, Kind::OneWay]
                .map(|kind| exchanges.iter().filter(|told| told.kind == kind).count())
        };
        let [asked, _] = calls("");
        let told = "+0.3 C 65 #ping\n ping+0 S 39\n +366 S 126\n".repeat(3);
        assert_eq!(calls(&told), [asked, 3], "{end:?}");
        assert_eq!(calls(&format!("{told} +0.3 C 39\n +0 C fin\n")), [asked, 4], "{end:?}");
    }
}

/// One of several calls made at once has its reply, and the client's PING about that is echoed
/// (frames 30 to 44 of them): data 300 ms later is another one's reply, which somebody may have
/// waited for.
#[test]
fn an_answer_behind_the_echo_of_a_ping_may_be_waited_for() {
    for end in [End::Client, End::Server] {
        let text = format!(
            "{ASKED} {HTTP2} +50 C 90 #one\n +5 C 60\n +5 C 60 #last\n last+10 S 286 #first\n first+0.3 C 39 #ping\n ping+0 S 39\n +300 S 286\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        let (thinks, pauses, _) = server_of(exchanges.last().expect("calls"));
        assert!(thinks + pauses >= 290, "{end:?}: {exchanges:#?}");
        assert!(surest(&exchanges) <= Some(Confidence::Possible), "{end:?}: {exchanges:#?}");
    }
}

/// A reply of HTTP/2 ends with an empty frame, and an event of another stream comes 138 ms later
/// (frames 36 to 44 of events besides requests).
#[test]
fn what_comes_behind_the_end_of_a_stream_is_another_ones() {
    for end in [End::Client, End::Server] {
        for (last, sure) in [(31, Some(Confidence::Possible)), (441, Some(Confidence::Likely))] {
            let text = format!(
                "{ASKED} {HTTP2} +500 C 55 #asks\n asks+20 S 58\n +0.1 S 431\n +0.1 S {last}\n +138 S 61\n +0 C ack"
            );
            let exchanges = exchanges(&text, end);
            assert_eq!(surest(&exchanges), sure, "{end:?}: {exchanges:#?}");
        }
    }
}

/// A server sends tickets and SETTINGS, with the head of its reply and its first data (frames 12 to
/// 19 of events over HTTP/2): data 930 ms later is the next of these.
#[test]
fn what_is_said_with_settings_and_is_no_frame_may_be_an_answer() {
    for end in [End::Client, End::Server] {
        for own in ["S 510\n +0.1 S 73\n +0 S 90\n +0 S 40", "S 753"] {
            let text = format!("{ASKED} question+0.1 {own}\n +0.3 C 31\n question+930 S 61\n +0 C ack");
            let exchanges = exchanges(&text, end);
            assert_eq!(surest(&exchanges), Some(Confidence::Possible), "{end:?}, {own}: {exchanges:#?}");
        }
    }
}

/// Rows that begin along with the SETTINGS, in records longer than SETTINGS ever are (frames 12 to
/// 24 of Go's server): each pause is the server's, and its message upon the client's
/// acknowledgement of its settings answers nothing else.
#[test]
fn a_long_record_beside_settings_begins_the_answer() {
    for end in [End::Client, End::Server] {
        let rows = "+30 S 631\n".repeat(5);
        let text = format!(
            "{ASKED} question+0.1 S 61\n +0.1 S 705 #row\n row+0.2 C 31\n question+30 S 631\n {rows} +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        let (thinks, pauses, _) = server_of(&exchanges[2]);
        assert_eq!((thinks, pauses, exchanges.len()), (0, 180, 3), "{end:?}: {exchanges:#?}");
    }
}

/// A client updates the server's windows as it reads, and asks 150 ms later (frames 90 to 123 of 50
/// requests at once): it had not begun to ask.
#[test]
fn no_question_begins_with_windows() {
    for end in [End::Client, End::Server] {
        for windows in [1, 2, 4] {
            let windows = "+20 C 35\n".repeat(windows);
            let text = format!(
                "{ASKED} {HTTP2} +5 C 45 #asks\n asks+10 S 900\n +0 C ack\n {windows} +150 C 37 #more\n more+20 S 444\n +0 C ack"
            );
            let exchanges = exchanges(&text, end);
            let pauses = exchanges
                .iter()
                .flat_map(|exchange| &exchange.bill)
                .filter(|line| line.cause == Cause::SenderThink && line.side == Side::Client);
            assert_eq!(pauses.filter(|line| line.ns > ms(30)).count(), 0, "{end:?}: {exchanges:#?}");
            assert_eq!(server_of(exchanges.last().expect("a question")).0, 20, "{end:?}: {exchanges:#?}");
        }
    }
}

/// A message as long as an acknowledgement of SETTINGS in a record of TLS 1.2 is none if another
/// record is shorter than a frame's head (frames 8 to 22 of AMQP in TLS 1.3): then a message as
/// short as a PING is a request.
#[test]
fn records_too_short_for_a_frame_show_no_http2() {
    for end in [End::Client, End::Server] {
        for (head, asked) in [(30, true), (67, false)] {
            let text = format!(
                "{} question+0.1 S 521\n +0.4 C 350 #start\n start+0.3 S 42\n +0.5 C 42\n +0 C 38 #open\n open+0.3 S 38\n +0.6 C 82 #consumes\n consumes+0.5 S 400 #told
                 told+0.6 C 46 #asks\n asks+60 S 46\n +0 C ack",
                ASKED.replace("C 286", &format!("C {head}"))
            );
            let exchanges = exchanges(&text, end);
            let billed = exchanges.iter().any(|exchange| server_of(exchange).0 == 60);
            assert_eq!(billed, asked, "{end:?}: {exchanges:#?}");
        }
    }
}

/// A client's ping, 110 ms after its request (frames 66 to 76 of NATS): no part of that. Nor need
/// anybody have waited for data 180 ms after such a message.
#[test]
fn a_signal_is_no_part_of_a_question() {
    for end in [End::Client, End::Server] {
        let text = format!(
            "{ASKED} question+0.1 S 255\n +0.1 S 255\n question+20 S 60\n +900 C 194 #asks\n asks+110 C 28 #ping\n ping+0.1 S 28\n +300 C 28 #signal\n signal+180 S 200\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        assert!(surest(&exchanges) <= Some(Confidence::Possible), "{end:?}: {exchanges:#?}");
    }
}

/// A server that reads 100 KB updates windows, many in a record, before it answers (frames 86 to
/// 154 of Go's): its 50 ms are no pause.
#[test]
fn windows_of_an_upload_are_no_answer() {
    for end in [End::Client, End::Server] {
        let text = format!(
            "{ASKED} {HTTP2} +500 C 1448x9 #up\n +0 C 300 #all\n all+0.1 S 35\n +0.1 S 165\n all+50 S 444\n +0 C ack"
        );
        let exchanges = exchanges(&text, end);
        let (thinks, pauses, _) = server_of(exchanges.last().expect("an upload"));
        assert_eq!((thinks, pauses), (50, 0), "{end:?}: {exchanges:#?}");
    }
}

/// Node reads a long reply through HTTP/2's window of 65,535 bytes and updates it twice per round
/// trip (frames 195 to 246): its messages are no requests, and its server waits for them.
#[test]
fn a_window_of_http2_is_waited_for() {
    for end in [End::Client, End::Server] {
        let flight = "S 1448x45\n +0 S 587 #full\n full+0 C ack\n +0.1 C 48\n +0.1 C 48 #room\n room+0 ";
        let text =
            format!("{ASKED} {HTTP2} +500 C 52 #asks\n asks+1 {} S 500 #end\n end+0 C ack", flight.repeat(6));
        let exchanges = exchanges(&text, end);
        let read = exchanges.last().expect("an answer");
        let waited: Vec<_> = read.bill.iter().filter(|line| line.cause == Cause::ApplicationWindow).collect();
        assert!(
            waited.iter().all(|line| line.side == Side::Client)
                && spent_on(read, Cause::ApplicationWindow) >= ms(180),
            "{end:?}: {exchanges:#?}"
        );
        assert_eq!(
            (exchanges.len(), spent_on(read, Cause::SendBuffer)),
            (4, ms(0)),
            "{end:?}: {exchanges:#?}"
        );
    }
}

/// A server answers a request when the client's acknowledgement of its SETTINGS has arrived (frames 625 to 637 of a
/// browser's capture): no window of 65,535 bytes was used up.
#[test]
fn no_window_of_http2_is_used_up_by_fewer_bytes() {
    let asks = ASKED.replace("+0.3 C 286 #question", "+0.2 C 99\n +0.1 C 988\n +0 C 96 #question");
    let text = format!(
        "{asks} question+0 S 51 answers\n +0 S 69 answers\n +0 S 80 answers #settings\n settings+0.2 C 38 asks #said\n \
         said+0.1 S 399 answers\n +0 S 38 answers #end\n end+0 C ack"
    );
    for end in [End::Client, End::Server] {
        let exchanges = exchanges(&text, end);
        let waited: Duration = exchanges.iter().map(|read| spent_on(read, Cause::ApplicationWindow)).sum();
        assert_eq!(waited, ms(0), "{end:?}: {exchanges:#?}");
    }
}

/// A PING and its echo a minute after a reply that ended with the server's PING (frames 645 to 710
/// of a browser's capture): no window held anything.
#[test]
fn a_ping_ends_no_wait_for_a_window() {
    let text = ASKED.replace("+0.3 C 286 #question", "+0.9 C 92\n +0.1 C 470 #question")
        + "question+0.1 S 618\n +1.1 S 31 #settings\n settings+0 C 31\n settings+1.5 S 240\n +1.8 S 1208x5\n +0.6 S 483\n +0 S 39 #end\n end+0.3 C 39\n +60120 C 39 #ping\n ping+0.1 S 39\n +0 C ack";
    let exchanges = exchanges(&text, End::Client);
    for exchange in &exchanges {
        assert_eq!(spent_on(exchange, Cause::ApplicationWindow), ms(0), "{exchanges:#?}");
        assert!(exchange.elapsed < ms(1_000), "{exchanges:#?}");
    }
}

/// The same if the capture has neither the beginning nor the bytes: the port of a service that uses
/// TLS shows as much.
#[test]
fn a_port_says_that_a_short_word_is_in_cipher() {
    for (port, begins, sure) in
        [(5_671, "handshake\n", false), (5_671, "", false), (5_672, "handshake\n", true)]
    {
        let quick = "+5 C 120\n +0.5 S 300\n +0 C ack\n".repeat(4);
        let text =
            format!("{begins} {quick} +5 C 120\n +0.5 S 300\n +0.6 C 43 #word\n word+412 S 415\n +0 C ack");
        let ends = [Endpoint::v4([10, 0, 0, 1], 40_000), Endpoint::v4([10, 0, 0, 2], port)];
        let seen = log(text).rtt(ms(40)).between(ends).seen_at(End::Client);
        let surest = seen.longer(Cause::ServerThink, ms(200)).iter().map(|line| line.confidence).max();
        assert!(surest.is_some_and(|surest| (surest > Confidence::Possible) == sure), "{port}: {seen}");
    }
}

/// A client says goodbye and closes, and its server's alert says the same: that leaves before or
/// after the client's FIN, and ends in a reset in any case (frames 52 to 57 of PostgreSQL, 36 to 43
/// of JDBC).
#[test]
fn nobody_waits_for_the_alert_that_ends_a_session() {
    for end in [End::Client, End::Server] {
        for bye in
            ["+0.1 C 24\n +0 C fin\n bye+0.4 S 24\n", "bye+0.3 S 24\n bye+0.8 C 40\n +0 C 40\n +0 C fin\n"]
        {
            let text = format!(
                "{ASKED} question+0.1 S 255\n +0.1 S 255\n question+20 S 60\n +0 C ack\n +900 C 27 #bye\n {bye} bye+4 S rst\n +0 C rst"
            );
            let exchanges = exchanges(&text, end);
            let waited = exchanges.iter().filter(|exchange| exchange.kind == Kind::Exchange).count();
            assert_eq!(waited, 2, "{end:?}, {bye}: {exchanges:#?}");
        }
    }
}

/// A server sends 32 bytes every 7 s, and its client 36 within a quarter of a millisecond: the
/// content of a WebSocket PING comes back, with a mask of four bytes (frames 708 to 4205). Nobody
/// waits for the server's next message, whether or not it is longer than PINGs are. A client that
/// asks with as many bytes as its last answer waits.
#[test]
fn what_the_server_says_behind_a_pong_answers_nothing() {
    let ends = [Endpoint::v4([10, 0, 0, 1], 40_000), Endpoint::v4([10, 0, 0, 2], 443)];
    for (len, back, waited) in [(32, 36, false), (54, 58, false), (32, 40, true)] {
        let ping = format!("+7400 S {len} #ping\n +0.2 C {back}\n +0 S ack\n");
        let text = format!("handshake\n +5 C 44\n +95 S 49\n +0 C ack\n {}", ping.repeat(3)) + "+2237 S 25";
        let midway = log(text).rtt(ms(32)).between(ends).capture(End::Client).split_off(3);
        let midway = Seen::of(midway, "midway");
        let longest = midway.connection().exchanges.iter().map(|exchange| exchange.elapsed).max();
        assert_eq!(longest.is_some_and(|longest| longest > ms(500)), waited, "{len}: {midway}");
    }
}

/// A server that sends 268 bytes every two seconds, and a client that sends two HTTP/2 window
/// updates after every other one (frames 1020 to 1454): the capture begins in the middle, and
/// nobody waits. Two messages of another length may be a request.
#[test]
fn what_the_server_says_behind_two_windows_answers_nothing() {
    let ends = [Endpoint::v4([10, 0, 0, 1], 40_000), Endpoint::v4([10, 0, 0, 2], 443)];
    for (len, waited) in [(35, false), (37, true)] {
        let turn = format!(
            "+2100 S 268\n +50 C ack\n +1900 S 268\n +5 C {len} #first\n first+0.1 C {len}\n +0 S ack\n"
        );
        let text = format!("handshake\n +5 C 100\n +5 S 200\n +0 C ack\n {}", turn.repeat(2)) + "+2132 S 268";
        let midway = log(text).rtt(ms(12)).between(ends).capture(End::Client).split_off(6);
        let midway = Seen::of(midway, "midway");
        let longest = midway.connection().exchanges.iter().map(|exchange| exchange.elapsed).max();
        assert_eq!(longest.is_some_and(|longest| longest > ms(500)), waited, "{len}: {midway}");
    }
}

/// A server's WebSocket PING in a TLS session every 20 s, which its client answers at once,
/// captured from the middle on (frames 17 to 105): nobody waits for the next one. A client whose
/// own signal is answered within a second asks.
#[test]
fn the_next_ping_answers_no_pong() {
    let ends = [Endpoint::v4([10, 0, 0, 1], 40_000), Endpoint::v4([10, 0, 0, 2], 443)];
    // Its answer may be another protocol's, and of another length.
    let pings = [
        (20_000, 0.4, 28, false),
        (16_000, 4.2, 28, false),
        (20_000, 0.4, 26, false),
        (1_000, 0.4, 28, true),
    ];
    for (pause, reaction, back, waited) in pings {
        let ping = format!("+{pause} S 24 #ping\n +{reaction} C {back}\n +0 S ack\n");
        let text = "handshake\n".to_owned() + &ping.repeat(4);
        let midway = log(text).rtt(ms(20)).between(ends).capture(End::Client).split_off(3);
        let midway = Seen::of(midway, "midway");
        let longest = midway.connection().exchanges.iter().map(|exchange| exchange.elapsed).max();
        assert_eq!(longest.is_some_and(|longest| longest > ms(500)), waited, "{midway}");
    }
}

/// A client that has acknowledged its server's SETTINGS updates a window, which requests nothing,
/// and closes at once when GOAWAY comes 350 ms later (frames 3321 to 3522 of a browser's capture):
/// nobody had waited. A PING may have been answered, and so may a client that continues.
#[test]
fn what_a_client_answers_by_closing_is_a_farewell_behind_a_window() {
    for (asks, ends, waited) in
        [(35, "+0.2 C fin", false), (39, "+0.2 C fin", true), (35, "+300 C fin", true)]
    {
        let text = format!(
            "{ASKED} question+0 S 527 #settings\n settings+0.2 C 31\n question+4 S 289 #answer\n +0 C ack
             answer+0.7 C {asks} #window\n window+0 S ack\n window+348 S 39\n {ends}\n +0 S 24\n +0 C rst"
        );
        let exchanges = exchanges(&text, End::Client);
        let thought = exchanges.iter().map(|exchange| server_of(exchange).0).max();
        assert_eq!(thought.is_some_and(|thought| thought >= 100), waited, "{asks} {ends}: {exchanges:#?}");
    }
}

/// A server answers a request sent with the Finished at once, right behind its tickets, and ends the idle session after a minute
/// by an alert and FIN, which its client answers in the same way; nobody had waited for that. The same of HTTP/2's PING, a
/// minute after a question that the server only acknowledges, and its echo.
#[test]
fn an_alert_or_a_ping_after_a_minute_answers_nothing() {
    let alert = "finished+0 S ack\n +0.6 S 287\n +0.4 S 287\n +1 S 263 #told\n told+1 C ack\n told+65000 S 24\n +0 S fin\n +0.1 C 24\n +0 C fin";
    let text = format!(
        "handshake\n +3 C 517 asks #hello\n hello+8 S 2200 answers #flight\n flight+21 C 64 #finished\n +1 C 497\n {alert}"
    );
    for end in End::BOTH {
        let exchanges = exchanges(&text, end);
        assert!(exchanges.iter().all(|exchange| exchange.elapsed < ms(200)), "{end:?}: {exchanges:#?}");
        let asked = exchanges.iter().filter(|exchange| exchange.kind == Kind::Exchange);
        assert!(asked.clone().all(|exchange| exchange.initiator == Side::Client), "{end:?}: {exchanges:#?}");
    }
    let text = "handshake\n +0 C 82 #preface\n +0 S 46\n +0 C 9\n preface+1 S 9 #ready\n ready+5 C 445\n +60 S 353\n +2 C 62 #q\n q+1 C 9\n q+40 S ack\n q+58800 C 17\n +1 S 17\n +0 C ack";
    let log = log(text).rtt(ms(60));
    for end in End::BOTH {
        let exchanges = read_marked(&log.capture(end), |_| Vec::new()).connections[0].exchanges.clone();
        assert!(exchanges.iter().all(|exchange| exchange.elapsed < ms(200)), "{end:?}: {exchanges:#?}");
    }
}

/// Several encrypted questions leave at once, and their answers come one after the other: the time before the second is no
/// pause in one answer. One question in two records has one.
#[test]
fn a_pause_between_several_answers_is_no_more_than_possible() {
    for (asked, sure) in [
        ("C 900\n +0.2 C 700\n +0.2 C 910\n +0.2 C 690", Confidence::Possible),
        ("C 900", Confidence::Likely),
    ] {
        let text = format!(
            "{ASKED} question+60 S 1300\n +0 S 300\n +0 C ack\n +30 {asked} #last\n last+30 S 1100 #told\n told+170 S 900\n +0 C ack"
        );
        for end in End::BOTH {
            let exchanges = exchanges(&text, end);
            let pauses = exchanges.iter().flat_map(|exchange| &exchange.bill);
            let surest = pauses
                .filter(|line| {
                    line.cause == Cause::SenderThink && line.side == Side::Server && line.ns >= ms(170)
                })
                .map(|line| line.confidence)
                .max();
            assert_eq!(surest, Some(sure), "{end:?}: {exchanges:#?}");
        }
    }
}

/// A browser confirms what its server has said by itself, and asks something 9 ms later: nobody had waited for that (frames 104
/// to 119 of a browser's capture).
#[test]
fn a_question_behind_a_confirmation_is_one() {
    let pushes =
        "+9000 S 71\n +0 S 39\n +1 C 35\n +0.1 C 39 #told\n told+9 C 1300\n +30 S 900\n +0 C ack\n".repeat(2);
    let text = format!("{ASKED} question+60 S 1300\n +0 S 300\n +0 C ack\n {pushes}");
    for end in End::BOTH {
        let exchanges = exchanges(&text, end);
        let last = exchanges.last().expect("a question");
        let pause = last.bill.iter().find(|line| line.cause == Cause::SenderThink && line.ns >= ms(8));
        let sure = pause.map(|line| line.confidence);
        assert_eq!(sure, Some(Confidence::Possible), "{end:?}: {exchanges:#?}");
    }
}

/// A device's request is answered in 20 ms, behind TLS's handshake, and the server ends the session by an alert six seconds later
/// (frames 1109 to 1253 of a voice assistant's capture), whose record says that it is one: that answers nothing. Another
/// record may be the answer.
#[test]
fn a_record_that_says_that_it_is_an_alert_answers_nothing() {
    for end in End::BOTH {
        for (says, waited) in [(" alert", false), ("", true)] {
            let text = format!(
                "{ASKED} question+20 S 197\n +0 S 69 #said\n said+0.2 C ack\n said+6000 S 53{says}\n +0 C ack\n +2000 S fin\n +0 C ack"
            );
            let exchanges = exchanges(&text, end);
            let longest = exchanges.iter().map(|exchange| exchange.elapsed).max();
            assert_eq!(longest.is_some_and(|longest| longest > ms(200)), waited, "{end:?}: {exchanges:#?}");
        }
    }
}

/// A capture begins with a browser's long request over HTTP/2 in TLS 1.2, which its server answers after 243 ms, and an alert two
/// minutes later ends the session (frames 13 to 2686 of a browser's capture).
#[test]
fn an_alert_ends_no_answer_in_a_capture_that_begins_midway() {
    let record = |kind: u8, len: u16| {
        let head = [kind, 3, 3, (len >> 8) as u8, len as u8];
        [&head[..], &vec![0x41; usize::from(len)]].concat()
    };
    let client = [record(23, 355), record(23, 3_315), record(23, 33)].concat();
    for (kind, waited) in [(21, false), (23, true)] {
        let server = [record(23, 421), record(23, 33), record(kind, 26)].concat();
        let text = "handshake\n @50 C 360\n +0.5 C 1300\n +0 C 1300\n +0 C 720\n +0.4 C 38 #asked\n asked+0 S ack\n asked+243 S 426\n +0 S 38 #said\n said+0.1 C ack\n said+119900 S 31\n +0 S fin\n +0.1 C ack";
        for end in End::BOTH {
            let capture = log(text).rtt(ms(45)).capture(end).split_off(3);
            let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
            let exchanges = &report.connections[0].exchanges;
            let thought: Vec<_> =
                exchanges.iter().map(|exchange| spent_on(exchange, Cause::ServerThink)).collect();
            let long: Vec<_> = thought.iter().filter(|thought| **thought >= ms(200)).collect();
            assert!(waited || long.len() == 1 && *long[0] < ms(300), "{end:?}: {exchanges:#?}");
            let longest = exchanges.iter().map(|exchange| exchange.elapsed).max();
            assert_eq!(longest.is_some_and(|longest| longest > ms(400)), waited, "{end:?}: {exchanges:#?}");
        }
    }
}
