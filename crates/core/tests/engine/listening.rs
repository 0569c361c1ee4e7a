//! From bytes to pairs: which messages are recognised while packets are read, in whole captures and
//! poor ones.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_core::report::{Confidence, Exchange, Kind, Report};
use tcpwhy_core::{Analysis, Options};
use tcpwhy_wire::{Duration, Endpoint, Segment};

use crate::invariants::{EVERYTHING, check};
use crate::packet_log::{End, SERVER, each, log, ms};

const REQUEST: &str = "GET /item HTTP/1.1\r\nHost: h\r\n\r\n";
const HEADER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n";
const RTT: i64 = 6;

/// Four requests 5 ms apart (RFC 9112, 9.3.2); the server works for 20 ms on one after the other.
fn pipeline() -> Vec<Segment> {
    let (asked, answered) = (REQUEST.len(), HEADER.len() + 300);
    let text = format!(
        "handshake
         @50 C {asked} #q
         q+5 C {asked}
         q+10 C {asked}
         q+15 C {asked}
         q+20 S {answered} #a1
         a1+0 C ack
         q+40 S {answered} #a2
         a2+0 C ack
         q+60 S {answered} #a3
         a3+0 C ack
         q+80 S {answered} #a4
         a4+0 C ack"
    );
    log(text).rtt(Duration::from_millis(RTT)).capture(End::Client)
}

/// The bytes from a sequence number on: the logs begin after 1,000 and 5,000.
fn payload(segment: &Segment) -> Vec<u8> {
    let answer = HEADER.to_owned() + &"x".repeat(300);
    let (stream, first) =
        if segment.src == SERVER { (answer.repeat(4), 5_001) } else { (REQUEST.repeat(4), 1_001) };
    let begin = (segment.seq.0 - first) as usize;
    stream.into_bytes()[begin..begin + segment.payload_len as usize].to_vec()
}

/// The report of a capture that kept this much of each payload.
fn read(segments: &[Segment], snap: usize) -> Report {
    read_streams(segments, snap, payload)
}

/// A segment's part of the bytes that its end sends in all.
pub(crate) fn part_of(streams: [&[u8]; 2], segment: &Segment) -> Vec<u8> {
    let (stream, first) = if segment.src == SERVER { (streams[1], 5_001) } else { (streams[0], 1_001) };
    let begin = (segment.seq.0 - first) as usize;
    stream[begin..begin + segment.payload_len as usize].to_vec()
}

pub(crate) fn read_streams(
    segments: &[Segment],
    snap: usize,
    payload: impl Fn(&Segment) -> Vec<u8>,
) -> Report {
    let mut analysis = Analysis::new(Options { ..EVERYTHING });
    for (segment, packet) in segments.iter().zip(1..) {
        let bytes = if segment.payload_len > 0 { payload(segment) } else { Vec::new() };
        let captured = &bytes[..bytes.len().min(snap)];
        analysis.on_captured(&Segment { packet, ..*segment }, captured);
    }
    let report = analysis.finish();
    check(&report);
    report
}

pub(crate) fn billed(exchange: &Exchange, cause: Cause, side: tcpwhy_core::Side) -> Duration {
    exchange.bill.iter().filter(|line| (line.cause, line.side) == (cause, side)).map(|line| line.ns).sum()
}

/// Each request is billed from when it left: 20, 35, 50 and 65 ms of the server's.
fn assert_paired(report: &Report) {
    let exchanges = &report.connections[0].exchanges;
    for (n, think) in (1..).zip([20, 35, 50, 65]) {
        let exchange = exchanges.iter().find(|exchange| exchange.n == n).expect("four exchanges");
        let lines = [billed(exchange, Cause::ServerThink, Server), billed(exchange, Cause::RoundTrip, Path)];
        assert_eq!(lines, [ms(think), ms(RTT as i32)], "{n}: {exchange:#?}");
    }
}

#[test]
fn a_pipeline_is_paired_by_its_bytes() {
    let capture = pipeline();
    assert_paired(&read(&capture, usize::MAX));
    // Each whole head is enough.
    assert_paired(&read(&capture, REQUEST.len().max(HEADER.len())));
}

#[test]
fn a_segment_that_overtakes_another_is_read_behind_it() {
    let mut capture = pipeline();
    let (fourth, fifth) = (4, 5);
    assert!(capture[fourth].payload_len > 0 && capture[fifth].payload_len > 0, "two requests");
    let [early, late] = [capture[fourth].at, capture[fifth].at];
    capture.swap(fourth, fifth);
    (capture[fourth].at, capture[fifth].at) = (early, late);
    let report = read(&capture, usize::MAX);
    assert_eq!(report.exchanges, 4, "{report:#?}");
}

/// Without the heads the pairing is unknown, and if they are missing in the middle, it is unknown
/// from there on.
#[test]
fn what_is_not_captured_makes_nothing_surer() {
    let capture = pipeline();
    let answers: Vec<usize> =
        (0..capture.len()).filter(|&i| capture[i].src == SERVER && capture[i].payload_len > 0).collect();
    let mut without = capture.clone();
    without.remove(answers[1]);
    let report = read(&without, usize::MAX);
    for exchange in report.connections[0].exchanges.iter().filter(|exchange| exchange.n > 1) {
        let think = exchange.bill.iter().filter(|line| line.cause == Cause::ServerThink);
        for line in think.filter(|line| line.ns > ms(65) + ms(1)) {
            assert_eq!(line.confidence, Possible, "{exchange:#?}");
        }
    }
}

/// RFC 9113, 4.1.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream];
    bytes.extend(payload);
    bytes
}

/// Three gRPC calls at once, each in one segment of three frames, and their replies out of order:
/// 20, 60 and 35 ms of the server's. 40 bytes of each segment were captured, with its first frame
/// but not the one that ends the stream.
#[test]
fn calls_are_paired_where_only_the_first_frame_of_each_segment_was_captured() {
    let call = |stream| {
        let path = [[0x83].as_slice(), &[0x86; 99]].concat();
        let data = frame(0, 1, stream, &[0; 60]);
        [frame(1, 4, stream, &path), frame(8, 0, stream, &[0, 0, 0, 5]), data].concat()
    };
    let answer = |stream| {
        let status = [[0x88].as_slice(), &[0xc0; 50]].concat();
        [frame(1, 4, stream, &status), frame(0, 0, stream, &[0; 90]), frame(1, 5, stream, &[0x40; 12])]
            .concat()
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let client = [preface, frame(4, 0, 0, &[]), call(1), call(3), call(5), call(7)].concat();
    let server = [frame(4, 0, 0, &[]), answer(1), answer(5), answer(3), answer(7)].concat();
    let (asked, answered) = (call(1).len(), answer(1).len());
    let text = format!(
        "handshake
         @30 C 33 #p
         p+0 S 9 #s
         s+0 C ack
         @50 C {asked} #q
         q+5 C {asked}
         q+10 C {asked}
         q+20 S {answered} #a1
         a1+0 C ack
         q+45 S {answered} #a5
         a5+0 C ack
         q+65 S {answered} #a3
         a3+0 C ack
         @400 C {asked} #r
         r+15 S {answered} #a7
         a7+0 C ack"
    );
    for end in [End::Client, End::Server] {
        let capture = log(&text).rtt(Duration::from_millis(RTT)).capture(end);
        for snap in [usize::MAX, 40] {
            let report = read_streams(&capture, snap, |segment| part_of([&client, &server], segment));
            let exchanges = report.connections[0].exchanges.iter();
            let mut calls: Vec<&Exchange> = exchanges.filter(|exchange| exchange.reply_bytes > 100).collect();
            calls.sort_by_key(|call| call.n);
            assert_eq!(calls.len(), 4, "{end:?}, {snap}: {:#?}", report.connections[0].exchanges);
            for (call, think) in calls.iter().zip([20, 60, 35, 15]) {
                let lines = [billed(call, Cause::ServerThink, Server), billed(call, Cause::RoundTrip, Path)];
                assert_eq!(lines, [ms(think), ms(RTT as i32)], "{end:?}, {snap}: {call:#?}");
                assert_eq!(call.elapsed, ms(think + RTT as i32), "{end:?}, {snap}");
            }
        }
    }
}

/// A call that continues after 200 ms: if only the first frame of each segment was captured,
/// another frame may have shown what it waited for.
#[test]
fn a_pause_is_no_more_than_possible_where_heads_were_not_captured() {
    let data = |ends| frame(0, ends, 1, &[0; 60]);
    let begin = [frame(1, 4, 1, &[[0x83].as_slice(), &[0x86; 99]].concat()), data(0)].concat();
    let rest = [data(0), data(1)].concat();
    let answer = frame(1, 5, 1, &[[0x88].as_slice(), &[0xc0; 50]].concat());
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    let client = [preface, frame(4, 0, 0, &[]), begin.clone(), rest.clone()].concat();
    let server = [frame(4, 0, 0, &[]), answer.clone()].concat();
    let text = format!(
        "handshake
         @30 C 33 #p
         p+0 S 9 #s
         s+0 C ack
         @50 C {} #q
         q+0 S ack
         q+200 C {} #r
         r+5 S {} #a
         a+0 C ack",
        begin.len(),
        rest.len(),
        answer.len()
    );
    for end in [End::Client, End::Server] {
        let capture = log(&text).rtt(Duration::from_millis(RTT)).capture(end);
        let report = read_streams(&capture, 40, |segment| part_of([&client, &server], segment));
        let lines = report.connections[0].exchanges.iter().flat_map(|exchange| &exchange.bill);
        let paused = lines.filter(|line| line.cause == Cause::SenderThink && line.ns >= ms(150));
        let sure = paused.map(|line| line.confidence).max();
        assert_eq!(sure, Some(Possible), "{end:?}: {:#?}", report.connections[0].exchanges);
    }
}

/// RFC 9112, 6.3: a reply whose head states its length continues until then, however evenly its
/// pieces come. 500 bytes every 250 ms are a throttled reply, not a timer's reports.
#[test]
fn an_answer_of_known_length_is_one_however_evenly_it_comes() {
    let header = "HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n";
    let server = header.to_owned() + &"x".repeat(6_000);
    let first = header.len() + 500;
    let pieces = each(1..12, |n| format!("q+{} S 500 #a{n}\na{n}+0 C ack", n * 250));
    let text = format!("handshake\n@50 C {} #q\nq+0 S {first} #a\na+0 C ack\n{pieces}", REQUEST.len());
    for end in [End::Client, End::Server] {
        let capture = log(&text).rtt(Duration::from_millis(RTT)).capture(end);
        let streams = [REQUEST.as_bytes(), server.as_bytes()];
        let report = read_streams(&capture, usize::MAX, |segment| part_of(streams, segment));
        let [_, answered] = &report.connections[0].exchanges[..] else {
            panic!("{end:?}: {:#?}", report.connections[0].exchanges)
        };
        assert_eq!(billed(answered, Cause::SenderThink, Server), ms(11 * 250), "{end:?}: {answered:#?}");
        let pause = answered.bill.iter().find(|line| line.cause == Cause::SenderThink).unwrap();
        assert!(pause.confidence >= Likely, "{end:?}: {pause:#?}");
    }
}

/// A radio (Icecast) begins to play with the head of its reply, and nobody waits for the end of its
/// sound.
#[test]
fn what_a_radio_plays_is_waited_for_by_nobody() {
    let header = "HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: r\r\n\r\n";
    let server = header.to_owned() + &"x".repeat(6_000);
    let pieces = each(1..12, |n| format!("a+{} S 500 #a{n}\na{n}+0 C ack", n * 250));
    let text =
        format!("handshake\n@50 C {} #q\nq+0 S {} #a\na+0 C ack\n{pieces}", REQUEST.len(), header.len());
    for end in [End::Client, End::Server] {
        let capture = log(&text).rtt(Duration::from_millis(RTT)).capture(end);
        let streams = [REQUEST.as_bytes(), server.as_bytes()];
        let report = read_streams(&capture, usize::MAX, |segment| part_of(streams, segment));
        let lines = report.connections[0].exchanges.iter().flat_map(|exchange| &exchange.bill);
        let sure = lines.filter(|line| line.cause == Cause::SenderThink && line.confidence > Possible);
        assert_eq!(sure.count(), 0, "{end:?}: {:#?}", report.connections[0].exchanges);
    }
}

/// RFC 9112, 6.3: a reply of unknown length ends with its connection, and its client waits until
/// then (frames 5 to 28 of a web server's capture): 3.1 s of the server. A reply of known length is
/// over with its last byte.
#[test]
fn an_answer_that_ends_with_its_connection_is_waited_for_until_then() {
    let counted = "HTTP/1.0 200 OK\r\nContent-Length: 167\r\n\r\n";
    let cases =
        [("HTTP/1.0 200 OK\r\n\r\n", usize::MAX, true), (counted, usize::MAX, false), (counted, 30, false)];
    for (header, kept, waited) in cases {
        let server = header.to_owned() + &"x".repeat(167);
        let text = format!(
            "handshake\n@50 C {} #q\nq+2 S {} #a\na+0 C ack\na+3100 S fin\n+0 C ack\n+0 C fin\n+0 S ack",
            REQUEST.len(),
            server.len()
        );
        for end in [End::Client, End::Server] {
            let capture = log(&text).rtt(Duration::from_millis(RTT)).capture(end);
            let streams = [REQUEST.as_bytes(), server.as_bytes()];
            let report = read_streams(&capture, kept, |segment| part_of(streams, segment));
            let exchange = &report.connections[0].exchanges[1];
            let paused = billed(exchange, Cause::SenderThink, Server);
            assert_eq!(paused == ms(3100), waited, "{end:?}: {exchange:#?}");
            assert_eq!(exchange.elapsed == ms(3102 + RTT as i32), waited, "{end:?}: {exchange:#?}");
        }
    }
}

/// RFC 6455, 5.2: each frame is a separate message, so that no silence between two of them is a
/// pause within one; and no frame shows which of several messages it answers.
#[test]
fn frames_of_a_websocket_are_messages() {
    let asks = "GET /chat HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n";
    let takes = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
    let sent = |len: u8| [[0x81, 0x80 | len, 1, 2, 3, 4].as_slice(), &vec![b'x'; usize::from(len)]].concat();
    let told = |begin: u8, len: u8| [[begin, len].as_slice(), &vec![b'y'; usize::from(len)]].concat();
    let pong = [0x8a, 0x84, 1, 2, 3, 4, 5, 6, 7, 8];
    let client = [asks.as_bytes(), &sent(20), &pong, &sent(20)].concat();
    let server = [takes.as_bytes(), &told(0x81, 30), &told(0x89, 4), &told(0x81, 30)].concat();
    let text = format!(
        "handshake
         @50 C {} #u
         u+1 S {} #v
         v+0 C ack
         @100 C 26 #q
         q+40 S 32 #a
         a+0 C ack
         a+160 S 6 #ping
         ping+1 C 10 #pong
         pong+0 S ack
         @500 C 26 #r
         r+40 S 32 #b
         b+0 C ack",
        asks.len(),
        takes.len()
    );
    for end in [End::Client, End::Server] {
        let capture = log(&text).rtt(Duration::from_millis(RTT)).capture(end);
        let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
        for exchange in &report.connections[0].exchanges {
            assert_eq!(
                billed(exchange, Cause::SenderThink, Server),
                Duration::ZERO,
                "{end:?}: {exchange:#?}"
            );
            assert!(exchange.elapsed <= ms(40 + RTT as i32), "{end:?}: {exchange:#?}");
        }
        let think = report.bill.iter().find(|line| (line.cause, line.side) == (Cause::ServerThink, Server));
        assert!(think.is_some_and(|line| line.ns >= ms(80)), "{end:?}: {:#?}", report.bill);
    }
}

/// A viewer has asked for the screen's next changes (RFC 6143, 7.5.3), where a capture begins in
/// the middle of a picture (frames 2 to 94 of VNC): the request stands until something changes, and
/// nobody waits for that. A request for the whole screen is waited for.
#[test]
fn what_a_viewer_has_asked_for_stands_until_the_screen_changes() {
    for (incremental, waited) in [(1, false), (0, true)] {
        let client = [3, incremental, 0, 0, 0, 0, 4, 0, 3, 0].repeat(6);
        let server = [b"I".as_slice(), &[0xed; 1999]].concat();
        let shown = each([373, 98, 755, 290, 1_500], |ms| format!("+{ms} S 100 #p\n p+5 C 10\n +0 S ack\n"));
        let text = format!("handshake\n +5 S 1448 more\n +0 S 52 #p\n p+5 C 10\n +0 S ack\n{shown}");
        for end in End::BOTH {
            let capture = log(&text).rtt(ms(RTT as i32)).capture(end).split_off(3);
            let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
            let think = report.bill.iter().find(|line| line.cause == Cause::ServerThink);
            assert_eq!(think.is_some_and(|line| line.ns >= ms(50)), waited, "{end:?}: {:#?}", report.bill);
        }
    }
}

/// Requests answered when there is news, and tickets before a reply, look like a working server if
/// no byte of a message was captured (polls of 500 ms and TLS 1.3, captured with 64 bytes of each
/// packet): its programs' time is only likely, and a pause between the two pieces possible. If bytes of an unknown protocol were captured, the
/// confidence stays as before.
#[test]
fn what_programs_take_is_no_more_than_likely_where_no_byte_was_captured() {
    let text =
        "handshake\n".to_owned() + &"+5 C 100\n +90 S 200 #first\n first+80 S 200\n +0 C ack\n".repeat(3);
    let segments = log(text).rtt(ms(2)).capture(End::Server);
    let (sure, unread) = ([Confidence::Certain, Likely], [Likely, Possible]);
    for (snap, surest) in [(0, unread), (1_000, sure)] {
        let report = read_streams(&segments, snap, |segment| vec![b'~'; segment.payload_len as usize]);
        for (cause, surest) in [Cause::ServerThink, Cause::SenderThink].into_iter().zip(surest) {
            let lines = report.connections[0].exchanges.iter().flat_map(|exchange| &exchange.bill);
            let told =
                lines.filter(|line| line.cause == cause && line.ns >= ms(10)).map(|line| line.confidence);
            assert_eq!(told.max(), Some(surest), "{cause:?}: {report:#?}");
        }
    }
}

/// A script sends an FTP server all its commands at once, before the greeting (frames 2506 to 2520
/// of a laboratory's capture): each line is owed a reply (RFC 959, 4.2), and the greeting is none.
/// The server takes 3.8 s to refuse a password.
#[test]
fn each_of_several_lines_is_owed_a_reply() {
    let client = b"user admin\npass password\nquit\n";
    let server =
        b"220 (vsFTPd 3.0.3)\r\n331 Please specify the password.\r\n530 Login incorrect.\r\n221 Goodbye.\r\n";
    let text = "handshake
        +0.04 C 30 #q
        q+0 S ack
        q+1.74 S 20 #g
        +0 C ack
        g+0.06 S 34 #u
        +0 C ack
        u+3788.3 S 22 #p
        +0 C ack
        p+0.05 S 14 #bye
        +0 C ack
        bye+0.02 S fin
        +0 C fin";
    let capture = log(text).rtt(ms(0.02)).capture(End::Client);
    let report = read_streams(&capture, usize::MAX, |segment| part_of([client, server], segment));
    let exchanges = report.connections[0].exchanges.iter().filter(|exchange| exchange.kind == Kind::Exchange);
    let told: Vec<_> = exchanges
        .map(|exchange| {
            let thought = billed(exchange, Cause::ServerThink, Server).as_nanos();
            (exchange.request_bytes, exchange.reply_bytes, thought / 1_000_000)
        })
        .collect();
    assert_eq!(told, [(11, 34, 1), (14, 22, 3790), (5, 14, 3790)], "{report:#?}");
}

/// A file of 2 MB passes on another connection between 150 and 226, for 872 ms (a recording of curl and vsftpd): its own
/// bill says why, and the server of this one does not pause. The server opens the file for 5 ms, and without 150 would
/// have taken all of the time.
#[test]
fn a_transfer_of_ftp_takes_place_elsewhere() {
    let client = b"USER anonymous\r\nRETR f\r\nQUIT\r\n";
    let opening = "150 Opening BINARY mode data connection.\r\n";
    // Both replies in one segment are one of a short transfer.
    for (opens, opening, thinks) in [(42, opening, 5), (66, opening, 5), (0, "", 877)] {
        let server = format!(
            "220 (vsFTPd 3.0.5)\r\n230 Login successful.\r\n{opening}226 Transfer complete.\r\n221 Goodbye.\r\n"
        );
        let opened = match opens {
            0 => "q+877 S 24",
            42 => "q+5 S 42 #o\n +0 C ack\n o+872 S 24",
            _ => "q+5 S 66\n +0 C ack",
        };
        let text = format!(
            "handshake\n +2 S 20\n +0.1 C 16\n +0.1 S 23\n +0.1 C 8 #q\n {opened}\n +0.1 C 6\n +0.1 S 14\n +0 C ack"
        );
        for end in End::BOTH {
            let capture = log(&text).rtt(ms(20)).capture(end);
            let report =
                read_streams(&capture, usize::MAX, |segment| part_of([client, server.as_bytes()], segment));
            let of = |cause| {
                report.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum::<Duration>()
            };
            let (thought, paused) = (of(Cause::ServerThink), of(Cause::SenderThink));
            assert!(
                thought >= ms(thinks) && thought < ms(thinks + 4) && paused < ms(1),
                "{end:?}: {report:#?}"
            );
        }
    }
}

/// A page introduces itself over WebSocket, and 4.06 s later the server has it load again, since a file has changed
/// (frames 37 to 40 of a developer's capture): frames do not say who asks. What comes within a second is
/// probably an answer.
#[test]
fn a_frame_long_after_another_may_be_an_event() {
    let upgrade = b"GET /livereload HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: YQ==\r\n\r\n";
    let client = [&upgrade[..], b"\x81\xfe\x00\x95", &[7; 153]].concat();
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
    let server = [&switch[..], b"\x81\x37", &[b'a'; 55]].concat();
    for (after, surest) in [(4060, Possible), (900, Likely)] {
        let text = format!(
            "handshake\n +0.1 C {}\n +0.4 S {}\n +10 C 157 #hello\n hello+0.1 S ack\n hello+{after} S 57\n +0.1 C ack",
            upgrade.len(),
            switch.len()
        );
        for end in End::BOTH {
            let capture = log(&text).rtt(ms(1)).capture(end);
            let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
            let think = report.connections[0].exchanges.iter().flat_map(|exchange| &exchange.bill);
            let think = think
                .filter(|line| line.cause == Cause::ServerThink && line.ns > ms(400))
                .map(|line| line.confidence);
            assert_eq!(think.max(), Some(surest), "{end:?}: {report:#?}");
        }
    }
}

/// A server takes 1.07 s to reject the name in a client's hello with a fatal alert, and closes
/// (frames 767 to 831 of a browser's capture).
#[test]
fn a_fatal_alert_is_what_a_hello_had_waited_for() {
    let mut client = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec();
    client.resize(517, 0);
    for (level, waited) in [(2, true), (1, false)] {
        let server = [0x15, 3, 1, 0, 2, level, 0x70];
        let text = "handshake\n +0.3 C 517 #hello\n hello+0 S ack\n hello+1057 S 7 #alert\n alert+0 S fin\n alert+0.3 C ack\n +2 C fin\n +0 S ack";
        for end in End::BOTH {
            let capture = log(text).rtt(ms(21)).capture(end);
            let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
            let think =
                report.bill.iter().find(|line| (line.cause, line.side) == (Cause::ServerThink, Server));
            let billed = think.is_some_and(|line| line.ns >= ms(1056) && line.ns <= ms(1058));
            assert_eq!(billed, waited, "{end:?}: {report:#?}");
        }
    }
}

/// A packet of SSH with so many bytes behind its length (RFC 4253, 6).
fn ssh_packet(len: u8, message: u8) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0, len, 8, message];
    bytes.resize(4 + usize::from(len), 0);
    bytes
}

/// An end's version, its list of methods, and a question and its reply in the exchange of keys (RFC 4253, 7 and 8).
pub(crate) fn ssh_exchange() -> [Vec<u8>; 4] {
    [b"SSH-2.0-x\r\n".to_vec(), ssh_packet(200, 20), ssh_packet(44, 30), ssh_packet(188, 31)]
}

/// An SSH server ends its key exchange and continues encrypted, all in one segment (frame 167 of a
/// host's capture; RFC 4253, 7.3): its plain reply, before the encrypted bytes, is the answer.
#[test]
fn a_reply_in_front_of_cipher_is_the_answer() {
    let [version, list, question, reply] = ssh_exchange();
    let client = [version.clone(), list.clone(), question].concat();
    let server = [version, list, reply, ssh_packet(12, 21), vec![0x9d; 84]].concat();
    let text = "handshake\n +1 C 11\n +1 S 11\n +0.1 S 204\n +0 C ack\n +1 C 204\n +0 S ack\n +5 C 48 #q\n q+30 S 292\n +0 C ack";
    for end in End::BOTH {
        let capture = log(text).rtt(ms(20)).capture(end);
        let report = read_streams(&capture, usize::MAX, |segment| part_of([&client, &server], segment));
        let exchanges = &report.connections[0].exchanges;
        let asked = exchanges.iter().find(|exchange| exchange.request_bytes == 48).expect("a question");
        let thought = billed(asked, Cause::ServerThink, Server);
        assert_eq!(
            (asked.kind, thought, asked.reply_bytes),
            (Kind::Exchange, ms(30), 192),
            "{end:?}: {exchanges:#?}"
        );
    }
}

/// A request waits until another client says something, or until a timer ends all that wait (frames 24 to 58 and 77 to 86 of
/// a signalling server's capture): news. A server that is asked all the time says nothing by answering behind a
/// request, nor do several connections of one client.
#[test]
fn an_answer_that_another_connection_released_may_be_news() {
    let asked = REQUEST.len();
    let answered = HEADER.len() + 300;
    let streams = [REQUEST.repeat(40), (HEADER.to_owned() + &"x".repeat(300)).repeat(40)];
    let waits =
        |until: &str| format!("handshake\n @300 C {asked}\n +0 S ack\n @{until} S {answered}\n +0 C ack");
    let turn = |at: i64| format!("@{at} C {asked}\n +0.2 S {answered}\n +0 C ack\n");
    let event = format!("handshake\n {} {}", turn(200), turn(5_000));
    let busy = format!("handshake\n {}", each((0..20).map(|n| 4_050 + 50 * n), turn));
    let cases = [
        (waits("5010.1"), event.clone(), 3, Possible),
        (waits("5010.1"), event.clone(), 1, Confidence::Certain),
        (waits("5700"), event, 3, Confidence::Certain),
        (waits("5010.1"), busy, 3, Confidence::Certain),
        (waits("12310"), waits("12309.96"), 3, Possible),
        (waits("12310"), waits("12309.96"), 1, Likely),
        (waits("4310"), waits("4309.96"), 3, Confidence::Certain),
    ];
    for (waiting, other, host, most) in cases {
        let other = log(&other).between([Endpoint::v4([10, 0, 0, host], 41_000), SERVER]);
        let mut capture = log(&waiting).rtt(ms(20)).capture(End::Server);
        capture.extend(other.rtt(ms(20)).capture(End::Server));
        capture.sort_by_key(|segment| segment.at);
        let bytes = [streams[0].as_bytes(), streams[1].as_bytes()];
        let report = read_streams(&capture, usize::MAX, |segment| part_of(bytes, segment));
        let exchange = report.connections[0].exchanges.iter().find(|exchange| exchange.n == 1);
        let thought = exchange.and_then(|of| of.bill.iter().find(|line| line.cause == Cause::ServerThink));
        let thought = thought.unwrap_or_else(|| panic!("{report:#?}"));
        assert_eq!(thought.confidence, most, "{waiting}: {exchange:?}");
    }
}
