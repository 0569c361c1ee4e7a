//! What of HTTP/2 is a call or its answer, and what is exchanged between them?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::{Confidence, Kind};
use tcpwhy_wire::Endpoint;

use crate::packet_log::{CLIENT, End, SERVER, each, log, ms};
use crate::seen::Seen;

/// A client's preface with its SETTINGS, the server's, and both acknowledged (RFC 9113, 3.4 and
/// 6.5.3).
const PREFACE: &str = "handshake
     +0 C 82 #preface
     +0 S 46
     +0 C 9
     preface+1 S 9 #ready\n";

/// The server sends a PING before it answers the call, and the client echoes it at once: neither is
/// an answer or a call, and the same holds for acknowledgements of SETTINGS.
#[test]
fn a_ping_does_not_answer_a_call() {
    let rtt = ms(20);
    let text = PREFACE.to_owned()
        + "ready+5 C 445 #call
           +1 S 17
           +0 C 17
           call+60 S 353
           +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let call = seen.exchange(2);
        call.is_within(ms(1), &[(Cause::RoundTrip, Path, rtt), (Cause::ServerThink, Server, ms(60))]);
        assert_eq!(seen.count(Kind::Exchange), 2, "{seen}");
    });
}

/// In records of TLS 1.3 the same frames are 22 bytes longer (RFC 8446, 5.2).
#[test]
fn records_of_tls_do_not_hide_a_ping() {
    let rtt = ms(20);
    let text = "handshake
         +0 C 517
         +0 S 1300
         +0 C 64
         +0 C 104 #preface
         +0 S 68
         +0 C 31
         preface+1 S 31 #ready
         ready+5 C 467
         +2 S 52
         +0 C 39
         +50 S 375 #answer
         answer+36 S 39
         answer+60 C 460
         +7 S 300
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let calls = seen.count(Kind::Exchange);
        let is_right = [(calls - 1, 72), (calls, 7)];
        for (n, think) in is_right {
            let bill = seen.exchange(n);
            assert!(bill.ns(Cause::SenderThink, Server) <= ms(1), "{seen}");
            assert!(bill.ns(Cause::RoundTrip, Path) <= rtt + ms(1), "{seen}");
            let own = bill.ns(Cause::ServerThink, Server) - ms(think);
            assert!(own.max(-own) <= ms(1), "{seen}");
        }
    });
}

/// A client that sends a PING while it waits for its answer has not been writing its call for so
/// long.
#[test]
fn a_ping_of_a_waiting_client_is_no_part_of_its_call() {
    for (echo, confidence) in [("call+61 S 17", Confidence::Certain), ("", Confidence::Possible)] {
        let text = format!(
            "{PREFACE}
             ready+5 C 445 #call
             call+40 C 17
             {echo}
             call+80 S 353 #answer
             +0 C ack"
        );
        log(text).rtt(ms(20)).both_ends(|seen| {
            let call = seen.exchange(seen.count(Kind::Exchange));
            let own = call.ns(Cause::ServerThink, Server) - ms(80);
            assert!(own.max(-own) <= ms(1), "{seen}");
            let shown = call.of(Cause::ServerThink).confidence;
            assert!(shown == confidence || (shown == Confidence::Likely && !echo.is_empty()), "{seen}");
        });
    }
}

/// Messages of the same sizes are requests and replies if nothing shows that HTTP/2 is spoken.
#[test]
fn a_size_alone_makes_no_frame() {
    let text = "handshake
         +0 C 445
         +1 S 17
         +0 C 17
         +60 S 353
         +0 C ack";
    log(text).rtt(ms(20)).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 2, "{seen}");
        assert!(seen.exchange(1).ns(Cause::ServerThink, Server) <= ms(2), "{seen}");
    });
}

/// A reply that happens to have the size of a PING is the reply if no other one comes.
#[test]
fn a_reply_of_the_size_of_a_ping_is_a_reply() {
    let text = PREFACE.to_owned() + &"+5 C 200\n +8 S 17\n +0 C ack\n".repeat(3);
    log(text).rtt(ms(20)).both_ends(|seen| {
        for n in [3, 4] {
            let think = seen.exchange(n).ns(Cause::ServerThink, Server) - ms(8);
            assert!(think.max(-think) <= ms(1), "{seen}");
        }
        assert_eq!(seen.count(Kind::Exchange), 4, "{seen}");
    });
}

/// A capture that begins later shows a PING by its echo, twice, and its calls as at most possible.
#[test]
fn an_echo_shows_a_ping_where_the_preface_is_missing() {
    let call = "+5 C 445\n +1 S 17\n +0 C 17\n +60 S 353\n +0 C ack\n";
    let whole = log("handshake\n".to_owned() + &call.repeat(4)).rtt(ms(20));
    for end in End::BOTH {
        let seen = Seen::of(whole.capture(end).split_off(3), "later");
        let last = seen.exchange(seen.count(Kind::Exchange));
        assert!(last.ns(Cause::ServerThink, Server) >= ms(60), "{seen}");
        assert_eq!(last.of(Cause::ServerThink).confidence, Confidence::Possible, "{seen}");
    }
}

/// A phone's messages of 46 bytes and their confirmations pass for PINGs and their echoes (frames
/// 1107 to 2862 of a screen mirrored elsewhere): the messages left out may have been real, and a
/// pause between two parts of one may be the time between two.
#[test]
fn a_pause_beside_what_may_be_pings_is_no_more_than_possible() {
    for (ping, sure) in [("+1 S 17\n +0 C 17\n", Confidence::Possible), ("", Confidence::Likely)] {
        let call = format!("+5 C 445\n {ping} +60 S 353\n +0 C ack\n");
        let text =
            "handshake\n".to_owned() + &call.repeat(4) + "+5 C 300\n +100 C 445\n +60 S 353\n +0 C ack";
        let seen = Seen::of(log(text).rtt(ms(20)).capture(End::Client).split_off(3), "later");
        let last = seen.exchange(seen.count(Kind::Exchange));
        assert!(last.ns(Cause::SenderThink, Client) >= ms(100), "{seen}");
        assert_eq!(last.of(Cause::SenderThink).confidence, sure, "{seen}");
    }
}

/// A phone's messages, each a head of 46 bytes and its content, are confirmed with 46 bytes,
/// repeatedly and with nothing else (frames 11 to 2862 of a screen mirrored elsewhere): these are
/// no PINGs, and the head is part of its message. With answers of another length they may be.
#[test]
fn who_says_nothing_but_pings_confirms_messages() {
    for (answer, word_bytes) in [(46, 346), (353, 300)] {
        let word = |len: u32| format!("+20 C 46\n +0.05 C 300\n +0.3 S {len}\n");
        let words = (word(46).repeat(3) + &word(answer)).repeat(5);
        let text = "handshake\n".to_owned() + &words + &word(46) + &word(46);
        let seen = Seen::of(log(text).rtt(ms(0.4)).capture(End::Client).split_off(3), "later");
        let last = seen.exchange(seen.count(Kind::Exchange));
        assert_eq!(last.exchange.request_bytes, word_bytes, "{seen}");
    }
}

/// An encrypted upload, 16.4 KB at a time, four pieces under way: each follows two WINDOW_UPDATEs
/// in one record, which come when an earlier piece has arrived and been read (frames 75 to 4052 of
/// a browser's capture). Once the first three have shown that, nothing else held it. Messages of
/// another length, or only one after each four pieces, like confirmations of a file's blocks, are
/// answers.
#[test]
fn an_upload_in_cipher_waits_for_its_servers_windows() {
    let rounds = 14;
    for (word, apart, windows) in [(48, 1, true), (50, 1, false), (48, 4, false)] {
        let chunk = |n: i64| {
            let after = if n < 4 {
                "c0+0.1".to_owned()
            } else {
                format!("w{}+0.{:02}", if apart == 1 { n - 4 } else { n / 4 * 4 - 1 }, 5 + n % 4)
            };
            let next = n + 1;
            let says =
                if next % apart == 0 { format!("c{next}+0.3 S {word} #w{n}\n") } else { String::new() };
            format!("{after} C 1448x11 more\n +0 C 476 #c{next}\n c{next}+0.2 S ack\n {says}")
        };
        let begins = "handshake\n +1 C 620\n +0 S 1448x3\n +0 C 64\n +0 C 92 #c0\n";
        let text = format!("{begins} {} c{}+30 S 1523\n +0 C ack", each(0..4 * rounds, chunk), 4 * rounds);
        let ends = [CLIENT, Endpoint::v4([45, 157, 188, 28], 443)];
        let log = log(text).rtt(ms(24)).between(ends).without_timestamps();
        let seen = log.seen_at(End::Client);
        let held = seen.spent(Cause::ApplicationWindow, Server);
        assert_eq!(held >= ms(24.0 * (rounds - 6) as f64), windows, "{word} {apart}: {held}: {seen}");
        assert!(windows || held == ms(0), "{seen}");
    }
}

/// An encrypted upload over a link, whose server opens a window by 48 bytes for each 16.4 KB that
/// arrive, and replies half a second after its end (frames 37 to 393 of a browser). Messages of
/// another length are replies.
#[test]
fn an_uploads_windows_of_any_size_answer_nothing() {
    for (word, windows) in [(48, true), (50, false)] {
        let says = |n: i64| {
            format!(
                "c{n}+{} C 1448x11 more #c{}\n c{}+0 S {word}\n",
                if n % 15 == 14 { 25.0 } else { 1.0 },
                n + 1,
                n + 1
            )
        };
        let begins = "handshake\n +1 C 620\n +0 S 1448x3\n +0 C 64\n +0 C 92 #c0\n";
        let text = format!("{begins} {} c60+500 S 637\n +0 C ack", each(0..60, says));
        let ends = [CLIENT, Endpoint::v4([46, 105, 132, 157], 443)];
        let seen = log(text)
            .rtt(ms(12))
            .between(ends)
            .bottleneck(End::Client, 60_000_000)
            .without_timestamps()
            .seen_at(End::Client);
        assert_eq!(seen.count(Kind::Exchange) <= 5, windows, "{word}: {seen}");
        assert!(!windows || seen.longer(Cause::ServerThink, ms(450)).len() == 1, "{seen}");
    }
}

/// A server that receives a long upload sends WINDOW_UPDATE, which is no answer.
#[test]
fn room_for_more_does_not_answer_an_upload() {
    let rtt = ms(20);
    let text = PREFACE.to_owned()
        + "ready+5 C 1448x9 #first
         first+0 S ack
         +0 S 13 #room
         room+50 C 1448x8
         +0 S ack
         +0 S 13
         first+150 C 500 #last
         last+30 S 300
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 2, "{seen}");
        let upload = seen.exchange(2);
        let own = upload.ns(Cause::ServerThink, Server) - ms(30);
        assert!(own.max(-own) <= ms(1), "{seen}");
        assert!(upload.ns(Cause::SenderThink, Client) >= ms(125), "{seen}");
        assert!(upload.ns(Cause::RoundTrip, Path) <= rtt + ms(1), "{seen}");
    });
}

/// A call follows soon after a PING, whose echo leaves the server before the call has arrived: the
/// answer is the call's.
#[test]
fn a_call_behind_a_ping_is_answered_for_itself() {
    let rtt = ms(20);
    let text = PREFACE.to_owned()
        + "ready+5 C 300
         +3 S 200
         +5 C 17 #ping
         ping+0 S 17
         ping+0.6 C 445 #call
         call+40 S 17
         +0 C 17
         call+60 S 353
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        let call = seen.exchange(seen.count(Kind::Exchange));
        let own = call.ns(Cause::ServerThink, Server) - ms(60);
        assert!(own.max(-own) <= ms(1), "{seen}");
        call.never(Cause::Unexplained).elapsed(rtt + ms(60.6), ms(1));
    });
}

/// A client streams, and echoes its server's PING meanwhile: the stream goes on.
#[test]
fn a_stream_goes_on_behind_an_echo() {
    let rtt = ms(20);
    let text = PREFACE.to_owned()
        + "ready+5 C 1448x5 #first
         first+1 S 17
         +0 C 17
         first+80 C 1448x5 #last
         last+30 S 300
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        assert_eq!(seen.count(Kind::Exchange), 2, "{seen}");
        let stream = seen.exchange(2);
        let own = stream.ns(Cause::ServerThink, Server) - ms(30);
        assert!(own.max(-own) <= ms(1), "{seen}");
        assert!(stream.ns(Cause::SenderThink, Client) >= ms(79), "{seen}");
    });
}

/// Each answer in TLS ends in records of HTTP/2, and the last of these come when the server gives
/// up the idle connection: GOAWAY, then the alert. The first is left out like a PING; the silence
/// is before both.
#[test]
fn a_farewell_in_two_records_is_no_part_of_the_answer() {
    let text = "handshake
         +0 C 517
         +0 S 1300
         +0 C 64
         +0 C 104 #preface
         +0 S 68
         +0 C 31
         preface+1 S 31 #ready
         ready+5 C 467
         +2 S 1448x3
         +0 C ack
         +45000 C ack
         +30000 S 39 #bye
         bye+0 S 24 fin
         +0 C ack";
    log(text).rtt(ms(30)).both_ends(|seen| {
        assert!(seen.report.elapsed < ms(1_000), "{}: {seen}", seen.report.elapsed);
        assert_eq!(seen.count(Kind::OneWay), 1, "{seen}");
    });
}

/// A minute after three calls and their answers a PING is sent twice more, and an acknowledgement of its echo comes before that
/// (frames 1698 to 1737 of a browser on a network that stalls): the echo is no rest of the answer.
#[test]
fn an_echo_that_its_acknowledgement_has_overtaken_is_no_answer() {
    let text = PREFACE.to_owned()
        + "ready+5 C 177 #call
           +0.2 C 296
           +0.7 C 138
           +2 S 332
           +0 S 1400x3 more
           +0 S 1273
           +0 S 17
           +0 C ack
           +0 C 17
           +0 S ack
           +58710 C 17 late=220 #ping
           ping+245 C 719..736 late=100
           ping+246 S 17 late=130
           ping+247 S ack late=30
           +200 C ack";
    let seen = log(text).rtt(ms(25)).seen_at(End::Client);
    let longest = seen.connection().exchanges.iter().map(|exchange| exchange.elapsed).max();
    assert!(longest.is_some_and(|longest| longest < ms(1_000)), "{seen}");
}

/// A client that sends a WINDOW_UPDATE 74 ms after its call, with an RTT of 75 ms; the reply begins 5 ms later, with an
/// empty frame before the answer (frames 451 to 454 of a browser): the WINDOW_UPDATE delayed it by nothing.
#[test]
fn what_is_answered_sooner_than_it_can_have_arrived_delayed_nothing() {
    let text = PREFACE.to_owned()
        + "ready+5 C 90 #call
           call+73.8 C 13
           call+4 S 9
           call+4.2 S 166
           +0 C ack";
    let seen = log(text).rtt(ms(75)).seen_at(End::Client);
    let call = seen.exchange(2);
    call.is_within(ms(0.5), &[(Cause::RoundTrip, Path, ms(75)), (Cause::ServerThink, Server, ms(4))]);
    assert!(call.of(Cause::ServerThink).evidence.contains(&8), "the call is cited: {seen}");
}

/// The server gives room for more, 42 bytes in a record of TLS 1.2, and answers a second later with 105 (frames
/// 1490 to 1973 of a browser): these are HEADERS, as no two records of a frame each are so long.
#[test]
fn an_answer_of_headers_behind_room_is_the_answer() {
    let text = "handshake
         +1 C 524
         +0 S 1300x4 more
         +0 S 1055
         +1 C 158
         +0.1 C 99
         +0.1 C 822 #first
         first+14 S 51
         +1 S 69
         +0 C 38
         +2 S 80
         +0.1 S 287 #ready
         ready+1000 C 91
         +0.1 C 1375 #call
         call+3 S 42
         call+1030 S 105
         +0 C ack";
    let seen = log(text).rtt(ms(360)).seen_at(End::Client);
    let thought = seen.exchange(3).ns(Cause::ServerThink, Server);
    assert!(thought >= ms(1_029) && thought <= ms(1_031), "{seen}");
}

/// A browser opens HTTP/2's window while an encrypted reply is in full flow, in a session whose beginning is not read: the
/// reply goes on, and no round trip is waited for twice. Behind the reply's end, the same bytes may ask for something.
#[test]
fn a_reply_in_full_flow_goes_on_behind_a_frame() {
    let rtt = ms(60);
    let ends = [CLIENT, Endpoint { port: 443, ..SERVER }];
    for (behind, alone) in [(4.5, 0), (40.0, 1)] {
        let text = format!(
            "handshake\n +5 C 347\n +1 S 1448x10 more every=1 #r\n r+{behind} C 35\n +0 S ack\n r+10 S 1448x20 more every=1\n +0 S 700\n +0 C ack"
        );
        let seen = log(text).rtt(rtt).between(ends).seen_at(End::Client);
        assert_eq!(seen.count(Kind::OneWay), alone, "{seen}");
        seen.exchange(1).elapsed(ms(90), ms(0.1));
    }
}

/// A resolver over HTTP/2 updates its client's window by one record of 35 bytes at once, and answers 30 ms later in 555 (frames 3114 to 3136 of a
/// browser's): what comes between may be the answer's whole wait, whether or not another answer came before that. Behind 150 bytes it is a pause.
#[test]
fn what_follows_a_window_in_cipher_may_begin_the_answer() {
    for (first, sure) in [
        ("S 35", Confidence::Possible),
        ("S 499\n +0 S 35", Confidence::Possible),
        ("S 150", Confidence::Likely),
    ] {
        let begins = "handshake\n +1 C 517\n +1 S 1448x3\n +0 C 80\n +0.1 S 300\n +0 C ack\n";
        let quick = "+20 C 215\n +2 S 555\n +0 C ack\n".repeat(4);
        let text = format!("{begins} {quick} +40 C 215 #q\n q+1 {first}\n q+31 S 555\n +0 C ack");
        let ends = [CLIENT, Endpoint { port: 443, ..SERVER }];
        let seen = log(text).rtt(ms(6)).between(ends).without_timestamps().seen_at(End::Client);
        let pauses = seen.longer(Cause::SenderThink, ms(20));
        assert!(pauses.iter().all(|line| line.confidence == sure) && !pauses.is_empty(), "{first}: {seen}");
    }
}

/// A phone uploads in TLS without a pause, and its server sends 35 bytes now and then (frames of an upload whose next part was billed one round trip,
/// certain): what goes on behind these is the same request. Messages of another length may be answers.
#[test]
fn an_upload_in_cipher_goes_on_behind_what_may_be_frames() {
    for (word, goes_on) in [(35, true), (57, false)] {
        let parts = |from: i64| each(from..from + 5, |n| format!("+8 C 1448x4 more #u{n}\n u{n}+0 S ack"));
        let [first, second, third] = [0, 5, 10].map(parts);
        let text = format!(
            "handshake\n +1 C 517\n +1 S 1448x3\n +0 C 80\n +0.1 C 692\n +0 S 500\n +0 C ack
             {first}\n u4+0.1 S {word}\n {second}\n u9+0.1 S {word}\n {third}
             +1 C 300 #e\n +0 S ack\n e+40 S 400\n +0 C ack"
        );
        let ends = [CLIENT, Endpoint { port: 443, ..SERVER }];
        for end in End::BOTH {
            let seen = log(&text).rtt(ms(50)).between(ends).without_timestamps().seen_at(end);
            let exchanges = &seen.connection().exchanges;
            assert_eq!(exchanges.len() == 4, goes_on, "{word}: {seen}");
            let last = exchanges.last().expect("the upload");
            assert_eq!(last.request_bytes == 15 * 4 * 1448 + 300, goes_on, "{word}: {seen}");
        }
    }
}
