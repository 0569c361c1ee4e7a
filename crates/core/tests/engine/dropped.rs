//! What has a host lost before any capture beside it could see it, as its queueing discipline (netem) does?

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};

use crate::packet_log::{End, SERVER, each, log, ms, settled};
use crate::seen::Seen;

/// Exchanges before those that count.
const BEFORE: usize = 12;

/// The window of packets that are dropped.
const DROPPED: u16 = 70;

/// The log at the server, which drops some of its packets.
fn at_the_server(text: &str) -> Seen {
    let dropped = format!("lost win={}", u32::from(DROPPED) << 7);
    let mut segments = log(text.replace("dropped", &dropped)).rtt(ms(0.1)).capture(End::Server);
    segments.retain(|segment| segment.src != SERVER || segment.window != DROPPED);
    Seen::of(segments, "the server")
}

/// An answer is dropped once, twice and four times: it comes behind its timer, doubled for each, and lacks as many numbers (frames 18 to 20, 12 to 14
/// and 1115 to 1120 of an RTSP server in a container). A server that takes another time has only sent packets elsewhere.
#[test]
fn an_answer_that_its_host_dropped_waited_for_its_timer() {
    for (dropped, took, sure) in
        [(1, 206, Some(Possible)), (2, 413, Some(Likely)), (4, 1659, Some(Likely)), (2, 300, None)]
    {
        let copies = each(1..=dropped, |n| format!("q+{n} S 2400..2480 dropped"));
        let text = format!(
            "{} +500 C 115 #q\n q+0 S ack\n {copies}\n q+{took} S 2400..2480\n +0 C ack",
            settled(BEFORE)
        );
        let seen = at_the_server(&text);
        let bill = seen.exchange(BEFORE + 1);
        match sure {
            Some(sure) => {
                assert!(bill.ns(Cause::Rto, Path) >= ms(took - 1), "{seen}");
                assert_eq!(bill.of(Cause::Rto).confidence, sure, "{seen}");
            }
            None => assert_eq!(bill.ns(Cause::Rto, Path), ms(0), "{seen}"),
        }
    }
}

/// The request is repeated after 258 ms, and the answer comes 417 ms behind the first one, with three numbers missing (frames 1527 to 1530 of the same):
/// one more than the copies have acknowledgements. The request had arrived, and its server answered at once.
#[test]
fn an_answer_that_was_dropped_before_its_request_was_repeated_waited_for_no_server() {
    let text = format!(
        "{} +500 C 115 #q\n q+0 S 2400..2480 dropped\n q+205 S 2400..2480 dropped\n q+258 C 1200..1315\n +0 S ack dropped\n q+417 S 2400..2480\n \
         +0 C ack",
        settled(BEFORE)
    );
    let seen = at_the_server(&text);
    let bill = seen.exchange(BEFORE + 1);
    assert!(bill.ns(Cause::Rto, Path) >= ms(415), "{seen}");
    assert!(bill.ns(Cause::ServerThink, Server) < ms(2), "{seen}");
}
