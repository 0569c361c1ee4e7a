//! From bytes to pairs: what is read of messages while packets are read, on whole and on poor captures.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::{Confidence, Exchange, Report};
use tcpwhy_core::{Analysis, Options};
use tcpwhy_wire::{Duration, Segment};

use crate::invariants::{EVERYTHING, check};
use crate::packet_log::{End, SERVER, log, ms};

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

/// What was sent from a sequence number on: the logs begin behind 1,000 and 5,000.
fn payload(segment: &Segment) -> Vec<u8> {
    let answer = HEADER.to_owned() + &"x".repeat(300);
    let (stream, first) =
        if segment.src == SERVER { (answer.repeat(4), 5_001) } else { (REQUEST.repeat(4), 1_001) };
    let begin = (segment.seq.0 - first) as usize;
    stream.into_bytes()[begin..begin + segment.payload_len as usize].to_vec()
}

/// The report of a capture of which so much of each payload was kept.
fn read(segments: &[Segment], snap: usize) -> Report {
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

fn billed(exchange: &Exchange, cause: Cause, side: tcpwhy_core::Side) -> Duration {
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
    // All of each head is enough.
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

/// Without the heads nobody can tell, and where they are missing in the middle nobody can tell any more.
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
            assert_eq!(line.confidence, Confidence::Possible, "{exchange:#?}");
        }
    }
}
