//! Replies whose arrival the capture does not show: if not acknowledged in time, a reply was lost
//! or held up on the path.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Confidence;

use crate::packet_log::{End, log, ms, settled};

/// A reply is held up on the path for 600 ms, and its client acknowledges it with the next request:
/// near the server the RTT seems as ever, and its time in the bill is at most possible. Near the
/// client the delay is seen.
#[test]
fn an_answer_that_is_acknowledged_late_may_have_stood() {
    let text = settled(8) + "+5 C 100\n +0 S 200 late=600\n +1 C 100\n +0 S 200\n +0 C ack";
    let seen = log(text).rtt(ms(8)).seen_at(End::Server);
    assert_eq!(seen.exchange(9).of(Cause::RoundTrip).confidence, Confidence::Possible, "{seen}");
    assert_eq!(seen.exchange(10).of(Cause::RoundTrip).confidence, Confidence::Certain, "{seen}");
}

/// The same with a client that thinks before it asks again: it has acknowledged the reply by then.
#[test]
fn an_answer_that_is_acknowledged_before_the_next_question_has_arrived() {
    let text = settled(8) + "+5 C 100\n +0 S 200\n +40 C ack\n +600 C 100\n +0 S 200\n +0 C ack";
    log(text).rtt(ms(8)).both_ends(|seen| {
        assert_eq!(seen.exchange(9).of(Cause::RoundTrip).confidence, Confidence::Certain, "{seen}");
    });
}

/// Both ends send a greeting, and the server's is lost: its client continues without it.
#[test]
fn a_greeting_that_its_client_does_not_have_is_not_certain() {
    let text = "handshake
         +1 S 42 greets lost
         +4 C 24 greets
         +0 S ack
         +590 S 1120
         +0 C ack
         +0 S 0..42
         +0 C ack";
    let seen = log(text).rtt(ms(193)).seen_at(End::Server);
    assert_eq!(seen.exchange(1).of(Cause::RoundTrip).confidence, Confidence::Possible, "{seen}");
}

/// A network stalls while a reply is in transit: its client asks again before it has that, and
/// sends a late bare ACK of it (frames 14 to 19 of a chat). The RTT was not the usual one. A
/// retransmission that left before the reply can have arrived shows nothing.
#[test]
fn whoever_asks_again_had_no_answer_yet() {
    for (again, sure) in [(180.0, Confidence::Possible), (6.0, Confidence::Certain)] {
        let text = settled(8)
            + &format!(
                "+5 C 100 #q\n +0 S 200 late=280 #a\n q+{again} C 800..900\n +0 S ack\n a+0 C ack\n +50 C 100\n +0 S 200\n +0 C ack"
            );
        let seen = log(text).rtt(ms(8)).seen_at(End::Server);
        assert_eq!(seen.exchange(9).of(Cause::RoundTrip).confidence, sure, "{seen}");
    }
}
