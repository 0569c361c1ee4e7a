//! A server whose accept queue is full, against a path that loses the packets that open a
//! connection.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::Likely;
use tcpwhy_core::{Form, Report};

use crate::packet_log::{End, log, ms, settled};

/// The first data, then retransmissions at these ms, all but the last of them `dropped` (`refused`
/// by the host, `lost` by the path), and the reply.
fn asked(bytes: u32, dropped: &str, copies: &[u32]) -> String {
    let copy = |(n, at): (usize, &u32)| {
        let drop = if n + 1 < copies.len() { dropped } else { "" };
        format!("ask+{at} C 0..{bytes} {drop}\n")
    };
    let copies: String = copies.iter().enumerate().map(copy).collect();
    format!("handshake\n +0 C {bytes} {dropped} #ask\n {copies} +0 S ack\n +1 S 300\n +0 C ack\n")
}

/// Near the server all retransmissions were seen to arrive; at the client, four in a row indicate
/// it.
#[test]
fn a_full_accept_queue_is_the_server_s() {
    let at_client = |copies: &[u32]| if copies.len() > 2 { Server } else { Path };
    for copies in [&[220][..], &[220, 660], &[220, 660, 1540]] {
        let waited = ms(copies[copies.len() - 1]);
        for (end, whose) in [(End::Server, Server), (End::Client, at_client(copies))] {
            let seen = log(asked(200, "refused", copies)).rtt(ms(20)).seen_at(end);
            let expected = [(Cause::RoundTrip, Path, ms(20)), (Cause::Rto, whose, waited)];
            let bill = seen.exchange(1).is(&[&expected[..], &[(Cause::ServerThink, Server, ms(1))]].concat());
            let line = bill.of(Cause::Rto);
            assert_eq!(line.confidence, Likely, "{copies:?} at the {end:?}: {seen}");
            assert_eq!(line.detail.form == Some(Form::AcceptQueue), whose == Server, "{seen}");
        }
    }
}

/// The reply to a request leaves before the request's retransmission has arrived: the server
/// thought for 200 ms, and nothing was lost. The first request of a connection is treated like
/// later ones.
#[test]
fn an_answer_that_comes_too_soon_for_a_copy_is_no_repair() {
    for (warm, timestamps) in [(0, true), (0, false), (6, true), (6, false)] {
        let asked = 100 * warm;
        let text = format!(
            "{}+105 C 100 #q\n q+200 S 300 #r\n q+260 C {asked}..{} #x\n r+0 C ack\n x+0 S ack",
            settled(warm),
            asked + 100
        );
        let talk = log(text).rtt(ms(100));
        let talk = if timestamps { talk } else { talk.without_timestamps() };
        let seen = talk.seen_at(End::Client);
        let bill = seen.exchange(warm + 1);
        bill.is(&[(Cause::RoundTrip, Path, ms(100)), (Cause::ServerThink, Server, ms(200))]);
        assert_eq!(bill.exchange.request_bytes, 100, "{seen}");
    }
}

/// Data lost by the path is not seen to arrive.
#[test]
fn a_first_request_that_was_lost_is_the_path_s() {
    for end in End::BOTH {
        let seen = log(asked(200, "lost", &[220])).rtt(ms(20)).seen_at(end);
        let bill = seen.exchange(1);
        let line = bill.of(Cause::Rto);
        assert_eq!((line.side, line.ns), (Path, ms(220)), "at the {end:?}: {seen}");
    }
}

/// A handshake of more than a second may have lost a SYN and does not show the RTT; a capture is
/// not taken to be near a server whose distance is unknown (frames 1 to 7 of a phone's RTSP).
#[test]
fn a_server_whose_distance_is_not_known_is_not_beside_the_capture() {
    let text =
        "@0 C syn\n +0 S syn\n +0 C ack\n +14 C 438 #ask\n ask+3010 C 0..438\n ask+3200 S 263\n +0 C ack";
    let seen = log(text).rtt(ms(1_652)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(1);
    assert!(bill.exchange.bill.iter().all(|line| line.cause != Cause::Rto || line.side == Path), "{seen}");
}

/// Losses of large packets only, on a path that does not carry that size, are not the server's.
#[test]
fn full_segments_that_never_arrive_are_the_path_s() {
    let seen = log(asked(1448, "lost", &[220, 660, 1540])).rtt(ms(20)).seen_at(End::Client);
    assert_eq!(seen.exchange(1).of(Cause::Rto).side, Path, "{seen}");
}

/// Near the server each SYN arrived, and only the last was answered. Near the client the path may
/// have lost the others.
#[test]
fn syns_that_arrived_and_had_no_answer_are_the_server_s() {
    let opened = |dropped: &str| {
        format!(
            "@0 C syn {dropped}\n @1000 C syn {dropped}\n @3000 C syn\n +0 S syn\n +0 C ack\n \
             +0 C 100\n +1 S 100\n +0 C ack"
        )
    };
    let setup = |report: &Report| {
        let line = &report.connections[0].exchanges[0].bill[0];
        assert_eq!((line.cause, line.ns), (Cause::SynRetransmit, ms(3000)), "{report:#?}");
        (line.side, line.confidence)
    };
    let refused = log(opened("refused")).rtt(ms(20));
    assert_eq!(setup(&refused.seen_at(End::Server).report), (Server, Likely));
    assert_eq!(setup(&refused.seen_at(End::Client).report), (Path, Likely));
}

/// A SYN missing from the capture: the handshake took its timer, 3 s, plus the RTT, which the
/// server's reaction shows.
#[test]
fn a_handshake_of_a_timer_and_a_round_trip_lost_a_syn() {
    let text = "@0 C syn\n +3000 S syn\n +0 C ack\n +1 C 757\n +3010 S ack\n +0 S 1288\n +50 C ack\n +0 S 1288\n +2 C ack\n +0 S 100\n +0 C ack\n
                +500 C 100\n +0 S 100\n +0 C ack";
    let seen = log(text).rtt(ms(360)).without_timestamps().seen_at(End::Client);
    seen.setup()
        .is_within(ms(5), &[(Cause::SynRetransmit, Path, ms(3000)), (Cause::Handshake, Client, ms(360))]);
}

/// The first request is sent four times, and acknowledged 4.4 s after the last, though the server
/// is 466 ms away (frames 39 to 54 of a browser's capture): a request that the server's queue has
/// room for is acknowledged on arrival. The path stalled, and the server took no more than the time
/// between the acknowledgement and the reply.
#[test]
fn a_copy_that_is_acknowledged_late_found_no_full_queue() {
    for (late, whose, own) in [(3926, Path, 146), (0, Server, 146)] {
        let text = format!(
            "handshake\n +0 C 427 lost #ask\n ask+883 C 0..427 lost\n ask+2291 C 0..427 lost\n ask+5026 C 0..427 late={late}\n \
             +0 S ack\n +{own} S 445\n +0 C ack"
        );
        let seen = log(text).rtt(ms(466)).without_timestamps().seen_at(End::Client);
        let bill = seen.exchange(1);
        let line = bill.of(Cause::Rto);
        assert_eq!((line.side, line.ns), (whose, ms(5026)), "{late}: {seen}");
        assert_eq!(bill.of(Cause::ServerThink).ns, ms(own), "{late}: {seen}");
    }
}
