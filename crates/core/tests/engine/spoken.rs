//! What only the bytes of messages show: the session that is set up first, and the windows of the protocol above TCP.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::{Exchange, Report};
use tcpwhy_core::{Analysis, Credit, Mark, Options, Role};
use tcpwhy_wire::{Duration, Segment};

use crate::invariants::{EVERYTHING, check};
use crate::packet_log::{End, MSS, SERVER, log, ms};

/// Two flights of TLS 1.2 (RFC 5246, 7.3), of which the server signs for 30 ms in the first, and a request behind them.
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

/// A stream's window (RFC 9113, 6.9) holds two segments; the client gives back as much 30 ms after it has them.
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
        // The window's update needs the other half of the round trip, and so does what follows.
        assert_eq!(bill, [ms(30) + rtt, rtt, ms(0)], "{end:?}: {exchange:#?}");
    }
}

/// The report of a capture of which somebody says what its messages are.
fn read_marked(capture: &[Segment], mut says: impl FnMut(&Segment) -> Vec<Mark>) -> Report {
    let mut analysis = Analysis::new(Options { ..EVERYTHING });
    for segment in capture {
        analysis.on_marked(segment, &says(segment));
    }
    let report = analysis.finish();
    check(&report);
    report
}

fn spent_on(exchange: &Exchange, cause: Cause) -> Duration {
    exchange.bill.iter().filter(|line| line.cause == cause).map(|line| line.ns).sum()
}
