//! What only the bytes of messages show: the session that is set up first, and the windows of the
//! protocol above TCP.

use tcpwhy_core::cause::{Cause, Side};
use tcpwhy_core::report::{Confidence, Exchange, Kind, Line, Pairing, Report};
use tcpwhy_core::{Analysis, Credit, Mark, Options, Role};
use tcpwhy_wire::{Duration, Segment};

use crate::invariants::{EVERYTHING, check};
use crate::listening::{billed, part_of, read_streams, ssh_exchange};
use crate::packet_log::{End, MSS, SERVER, each, log, ms};

/// Two flights of TLS 1.2 (RFC 5246, 7.3), with the server signing for 30 ms in the first, and a
/// request after them.
#[test]
fn tls_handshake_is_the_round_trips_before_anything_is_asked() {
    let rtt = ms(20);
    let text = "handshake
         +5 C 200 asks
         +30 S 1000 answers
         +1 C 130 asks
         +0 S 60 answers
         +2 C 100
         +0 S 300
         +0 C ack";
    let log = log(text).rtt(rtt);
    for end in [End::Client, End::Server] {
        let says = log.marks();
        let report = read_marked(&log.capture(end), |segment| {
            let session = true;
            says(segment).into_iter().map(|mark| Mark { session, ..mark }).collect()
        });
        let bills: Vec<_> = report.connections[0]
            .exchanges
            .iter()
            .map(|exchange| {
                let of = |cause| spent_on(exchange, cause);
                [of(Cause::TlsHandshake), of(Cause::ServerThink), of(Cause::RoundTrip)]
            })
            .collect();
        assert_eq!(
            bills[1..],
            [[rtt, ms(30), ms(0)], [rtt, ms(0), ms(0)], [ms(0), ms(0), rtt]],
            "{end:?}: {report:#?}"
        );
    }
}

/// A server sends a plain greeting before TLS begins, as NATS does: the handshake is one all the
/// same.
#[test]
fn a_greeting_ends_no_session_that_begins_behind_it() {
    let rtt = ms(20);
    let text =
        "handshake\n +1 S 322 greets\n +2 C 517 asks\n +3 S 1469 answers\n +1 C 270\n +0 S 300\n +0 C ack";
    let log = log(text).rtt(rtt);
    for end in [End::Client, End::Server] {
        let says = log.marks();
        let report = read_marked(&log.capture(end), |segment| {
            let session = segment.payload_len != 322;
            says(segment).into_iter().map(|mark| Mark { session, ..mark }).collect()
        });
        let bills =
            report.connections[0].exchanges.iter().map(|exchange| spent_on(exchange, Cause::TlsHandshake));
        assert_eq!(bills.collect::<Vec<_>>(), [ms(0), ms(0), rtt, ms(0)], "{end:?}: {report:#?}");
    }
}

/// A MySQL client requests TLS with 36 bytes, and its ClientHello follows 22 ms later (frames 6 to
/// 12 of an import): the former is not answered, and both set up the session.
#[test]
fn what_asks_for_tls_sets_up_the_session_with_the_hello_behind_it() {
    let rtt = ms(20);
    let text = "handshake
         +1 S 77 answers
         +1 C 36 #wish
         wish+22 C 322 asks
         +2 S 1400 answers
         +0 S 814 answers
         +0 C ack";
    let log = log(text).rtt(rtt);
    for end in [End::Client, End::Server] {
        let says = log.marks();
        let report = read_marked(&log.capture(end), |segment| {
            let session = segment.payload_len > 77;
            says(segment).into_iter().map(|mark| Mark { session, ..mark }).collect()
        });
        let exchange = &report.connections[0].exchanges[2];
        let of = |cause| spent_on(exchange, cause);
        let bill = [of(Cause::TlsHandshake), of(Cause::SenderThink), of(Cause::ServerThink)];
        assert_eq!(bill, [rtt, ms(22), ms(2)], "{end:?}: {report:#?}");
        assert_eq!(report.connections[0].exchanges.len(), 3, "{end:?}: {report:#?}");
    }
}

/// A stream's window (RFC 9113, 6.9) holds two segments; the client returns the credit 30 ms after
/// it has them.
#[test]
fn application_window_is_the_wait_for_the_protocol_s_own_credit() {
    let rtt = ms(10);
    let text = "handshake
         +5 C 100 asks=1
         +0 S 1448x2 #first
         first+0 C ack
         first+30 C 13 #update
         update+0 S 1448x2 #rest
         rest+0 C ack";
    let log = log(text).rtt(rtt);
    for end in [End::Client, End::Server] {
        let says = log.marks();
        let mut sent = 0;
        let report = read_marked(&log.capture(end), |segment| {
            let mut marks = says(segment);
            let own = |role, credit| Mark {
                seq: segment.seq,
                end: Some(segment.seq + segment.payload_len),
                role,
                id: Some(1),
                first: false,
                last: false,
                by_peer: false,
                session: false,
                released: false,
                credit: Some(credit),
            };
            if segment.src == SERVER && segment.payload_len > 0 {
                sent += 1;
                marks.push(Mark { last: sent == 4, ..own(Role::Answers, Credit::Uses(segment.payload_len)) });
            } else if segment.payload_len == 13 {
                marks.push(own(Role::Neither, Credit::Grants(2 * MSS as u32)));
            } else if segment.payload_len == 100 {
                let initial = own(Role::Neither, Credit::Initial(2 * MSS as u32));
                marks.insert(0, Mark { end: Some(segment.seq), ..initial });
            }
            marks
        });
        let exchange = report.connections[0].exchanges.last().expect("an exchange");
        let of = |cause| spent_on(exchange, cause);
        let bill = [of(Cause::ApplicationWindow), of(Cause::RoundTrip), of(Cause::SenderThink)];
        // The window update needs the other half of the round trip, and so do the data after it.
        assert_eq!(bill, [ms(30) + rtt, rtt, ms(0)], "{end:?}: {exchange:#?}");
    }
}

/// A list generated piece by piece by its server, in chunks (RFC 9112, 7.1; frames 4 to 70 of a
/// network controller's interface): its pauses of seconds are within one reply.
#[test]
fn chunks_are_one_answer_whatever_lies_between_them() {
    let text = "handshake
         +5 C 400 asks
         +50 S 552
         +1 S 1248
         +0 C ack
         +4000 S 1248
         +0 C ack
         +3400 S 220
         +0 C ack";
    let log = log(text).rtt(ms(80));
    for end in [End::Client, End::Server] {
        let says = log.marks();
        let report = read_marked(&log.capture(end), |segment| {
            let mut marks = says(segment);
            let part = |first: bool, last: bool| Mark {
                seq: segment.seq,
                end: last.then_some(segment.seq + segment.payload_len),
                role: Role::Answers,
                id: None,
                first,
                last,
                by_peer: false,
                session: false,
                released: false,
                credit: None,
            };
            match segment.payload_len {
                552 => marks.push(part(true, false)),
                220 => marks.push(part(false, true)),
                _ => {}
            }
            marks
        });
        let exchange = report.connections[0].exchanges.last().expect("an exchange");
        assert_eq!(exchange.packets[1], report.connections[0].packet_range[1] - 1, "{end:?}: {exchange:#?}");
        assert!(spent_on(exchange, Cause::SenderThink) >= ms(7390), "{end:?}: {exchange:#?}");
    }
}

/// A client subscribes to samples every ten seconds on a stream that it keeps open (frames 8 to 17
/// of a router's telemetry): no reply is owed, not even the first sample.
#[test]
fn nothing_is_owed_on_a_stream_that_its_asker_keeps_open() {
    let log = log("handshake\n +5 C 400 asks=1\n +40 S ack\n +9860 S 1000 answers=1\n +0 C ack").rtt(ms(80));
    for end in [End::Client, End::Server] {
        for is_over in [false, true] {
            let says = log.marks();
            let report = read_marked(&log.capture(end), |segment| {
                let marks = says(segment).into_iter();
                marks
                    .map(|mark| Mark { last: mark.last && (is_over || mark.role != Role::Asks), ..mark })
                    .collect()
            });
            let exchange = report.connections[0].exchanges.last().expect("an exchange");
            let own = exchange.bill.iter().filter(|line| line.cause == Cause::ServerThink);
            let surest = own.map(|line| line.confidence).max().expect("the server's time");
            assert_eq!(surest == Confidence::Possible, !is_over, "{end:?}: {exchange:#?}");
        }
    }
}

/// Only the first reply of a controller shows that its protocol is Modbus (frames 30 to 46 of one),
/// and thereby that it answers a request: 422 ms are its server's, as if the request had shown it.
#[test]
fn an_answer_may_tell_that_it_answers_a_question() {
    let log = log("handshake\n +3 C 12 asks=1\n +422 S 29 answers=1\n +0 C ack").rtt(ms(0.6));
    for end in [End::Client, End::Server] {
        for late in [false, true] {
            let says = log.marks();
            let mut asked = Vec::new();
            let report = read_marked(&log.capture(end), |segment| {
                let marks = says(segment);
                if late && segment.payload_len == 12 {
                    asked = marks.iter().map(|mark| Mark { by_peer: true, ..*mark }).collect();
                    return Vec::new();
                }
                if segment.payload_len == 29 { asked.drain(..).chain(marks).collect() } else { marks }
            });
            let exchange = report.connections[0].exchanges.last().expect("an exchange");
            let own = exchange.bill.iter().find(|line| line.cause == Cause::ServerThink);
            assert!(
                own.is_some_and(|own| own.confidence >= Confidence::Likely),
                "{end:?} {late}: {exchange:#?}"
            );
        }
    }
}

/// CORBA objects call each other through a connection captured from the middle on (frames 38 to 291
/// of one): the end with the service's port asks each time, and nobody waits in between.
#[test]
fn who_serves_by_its_port_may_ask() {
    let calls = each(1..5, |n| format!("+3000 S 168 asks={n}\n +3 C 208 answers={n}\n +0 S ack"));
    let log = log(format!("handshake\n{calls}")).rtt(ms(0.6));
    let says = log.marks();
    let report = read_marked(&log.capture(End::Server)[3..], |segment| says(segment));
    let exchanges = &report.connections[0].exchanges;
    assert_eq!(exchanges.len(), 4, "{exchanges:#?}");
    for exchange in exchanges {
        assert!(exchange.initiator == Side::Server && exchange.elapsed < ms(5), "{exchange:#?}");
    }
}

/// The report of a capture whose messages are marked by `says`.
pub(crate) fn read_marked(capture: &[Segment], mut says: impl FnMut(&Segment) -> Vec<Mark>) -> Report {
    let mut analysis = Analysis::new(Options { ..EVERYTHING });
    for segment in capture {
        analysis.on_marked(segment, &says(segment));
    }
    let report = analysis.finish();
    check(&report);
    report
}

pub(crate) fn spent_on(exchange: &Exchange, cause: Cause) -> Duration {
    exchange.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum()
}

/// An SSH server greets its client 463 ms after the handshake, although the client has introduced itself at once, and its
/// list of methods is in the same segment (frames 14 to 25 of a host's capture; RFC 4253, 4.2): the client waits for it.
#[test]
fn a_greeting_that_the_clients_crosses_is_waited_for() {
    let [version, list, question, reply] = ssh_exchange();
    let client = [version.clone(), list.clone(), question].concat();
    let server = [version, list, reply].concat();
    let text = "handshake\n +0.3 C 11 #v\n v+0 S ack\n v+463 S 215\n +0 C ack\n +0.2 C 204\n +1 S ack\n +0.4 C 48 #q\n +0 S ack\n q+246 S 192\n +0 C ack";
    for end in End::BOTH {
        let capture = log(text).rtt(ms(2)).capture(end);
        let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
        let exchanges = &report.connections[0].exchanges;
        let greeted = exchanges.iter().find(|exchange| exchange.request_bytes == 11).expect("a greeting");
        let thought = billed(greeted, Cause::ServerThink, Side::Server);
        assert_eq!((greeted.kind, thought), (Kind::Exchange, ms(463)), "{end:?}: {exchanges:#?}");
    }
}

/// The exchanges of a log in which a browser asks twice right behind its Finished, in TLS 1.2.
fn early_finished(text: &str, end: End) -> Vec<Exchange> {
    let record = |kind: u8, len: u16, first: u8| {
        let mut bytes = vec![kind, 3, 3, (len >> 8) as u8, len as u8, first];
        if len > 4 {
            let of = len - 4;
            bytes.extend([0, (of >> 8) as u8, of as u8]);
        }
        bytes.resize(5 + usize::from(len), 0);
        bytes
    };
    let (switch, finished) = (record(20, 1, 1), record(22, 40, 0x5d));
    let data = |len| record(23, len, 0x77);
    let close = [switch, finished].concat();
    let client = [record(22, 512, 1), record(22, 37, 16), close.clone(), data(200), data(300)].concat();
    let server = [record(22, 1200, 2), record(22, 4, 14), record(22, 200, 4), close, data(400)].concat();
    let capture = log(text).rtt(ms(38)).capture(end);
    let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
    report.connections[0].exchanges.clone()
}

/// A browser asks right behind its Finished, and a host in between acknowledges all of that at once (frames 1620 to 1800
/// of a browser behind a virtual machine's address translation; False Start, RFC 7918): the server's Finished ends the
/// session's setup, and its next data answers the request. Where a session goes on from before, the client's Finished is
/// the last one.
#[test]
fn a_request_behind_an_early_finished_waits_for_its_own_answer() {
    let text = "handshake
         +1 C 517
         +10 S 1214
         +3 C 93 #keys
         keys+0 S ack
         keys+3 C 205 #asks
         asks+0.2 C 305 #asked
         asks+0 S ack
         asked+0 S ack
         keys+35 S 256
         keys+110 S 405
         +0 C ack";
    for end in End::BOTH {
        let exchanges = early_finished(text, end);
        let shown: Vec<_> = exchanges.iter().map(|of| (of.request_bytes, of.reply_bytes)).collect();
        assert_eq!(shown, [(0, 0), (517, 1214), (93, 256), (510, 405)], "{end:?}: {exchanges:#?}");
        let set_up = [Cause::TlsHandshake, Cause::ServerThink].map(|cause| {
            exchanges[2].bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum::<Duration>()
        });
        assert_eq!(set_up, [ms(38), ms(35)], "{end:?}: {exchanges:#?}");
        // The request behind it waits anyway.
        let sure = |line: &Line| line.cause == Cause::ServerThink && line.confidence > Confidence::Possible;
        assert!(!exchanges[2].bill.iter().any(sure), "{end:?}: {exchanges:#?}");
        let thought = billed(&exchanges[3], Cause::ServerThink, Side::Server);
        assert_eq!(thought, ms(106.8), "{end:?}: {exchanges:#?}");
    }
}

/// The browser's key exchange and request are lost, and sent again (frames 3150 to 3459 of a phone's network): the server's
/// Finished was late by that, and not by itself.
#[test]
fn a_session_that_waited_for_a_timer_is_set_up_with_its_request() {
    let text = "handshake
         +1 C 517
         +10 S 1214
         +3 C 93 lost #keys
         keys+3 C 205 lost
         +0.2 C 305 lost #asked
         asked+330 C 517..1120 #again
         again+35 S 256
         again+110 S 405
         +0 C ack";
    for end in End::BOTH {
        let exchanges = early_finished(text, end);
        let shown: Vec<_> = exchanges.iter().map(|of| (of.request_bytes, of.reply_bytes)).collect();
        assert_eq!(shown, [(0, 0), (517, 1214), (603, 661)], "{end:?}: {exchanges:#?}");
    }
}

/// A device of MMS writes the header of its transport by itself (frames 10 to 90 of a control centre's session), and its client has two requests under
/// way: each message begins with its header, also where Nagle holds the rest, and all are paired by their numbers.
#[test]
fn a_head_in_two_segments_begins_its_message() {
    let text = "handshake
         @50 C 4 #q
         +0.1 C 23
         q+5 C 4 #r
         +0.1 C 23
         q+30 S 4 #a
         a+4 S 27
         +0 C ack
         q+60 S 4 #b
         b+4 S 27
         +0 C ack
         @200 C 4 #s
         +40 C 23
         s+45 C 27
         s+70 S 31
         +0 C ack
         s+90 S 31
         +0 C ack";
    let begin = |len: u8, inner: [u8; 6]| {
        let tokens = [2, 0xf0, 0x80, 1, 0, 1, 0];
        let data = [0x61, inner[0], 0x30, inner[1], 2, 1, 3];
        [&[3, 0, 0, len][..], &tokens, &data, &[0xa0, inner[2], inner[3], inner[4], 2, 1, inner[5]]].concat()
    };
    let ask = |n: u8| [begin(27, [14, 12, 7, 0xa0, 5, n]), vec![0x82, 0]].concat();
    let answer = |n: u8| [begin(31, [18, 16, 11, 0xa1, 9, n]), vec![0xa2, 4, 1, 2, 3, 4]].concat();
    let asked: Vec<u8> = (1..5).flat_map(ask).collect();
    let answered: Vec<u8> = (1..5).flat_map(answer).collect();
    let payload = |segment: &Segment| {
        let (stream, first) = if segment.src == SERVER { (&answered, 5_001) } else { (&asked, 1_001) };
        let begin = (segment.seq.0 - first) as usize;
        stream[begin..begin + segment.payload_len as usize].to_vec()
    };
    let report = read_streams(&log(text).rtt(ms(2)).capture(End::Client), usize::MAX, payload);
    let exchanges = &report.connections[0].exchanges;
    let think = |exchange: &Exchange| billed(exchange, Cause::ServerThink, Side::Server);
    for (n, own) in [(1, 25.0), (2, 54.9), (3, 30.0), (4, 45.0)] {
        let exchange = &exchanges[n];
        assert_eq!((exchange.request_bytes, exchange.reply_bytes), (27, 31), "{exchange:#?}");
        assert_eq!((think(exchange), exchange.by), (ms(own), Some(Pairing::Identifier)), "{exchange:#?}");
    }
    assert_eq!(billed(&exchanges[3], Cause::SenderThink, Side::Client), ms(40), "{exchanges:#?}");
    assert_eq!(billed(&exchanges[2], Cause::SenderThink, Side::Server), ms(4), "{exchanges:#?}");
}
