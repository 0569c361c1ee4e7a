//! What stands between two ends and is not seen, or what an end holds, where a capture shows two readings: the doubtful one is no more than possible.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};

use crate::packet_log::{End, log, ms};

/// The answer to ten segments is the first thing to acknowledge any of them, and the first one alone (frames 277 to 296 of a phone's): the others had not come, of
/// which a host acknowledges every second one. A server that acknowledges as they come and answers 590 ms later has taken those.
#[test]
fn a_request_of_which_nothing_was_acknowledged_was_on_its_way() {
    for (acked, late) in [("", true), ("q+0 S ack\n ", false)] {
        let ack = if late { "ack=1448" } else { "" };
        let text = format!(
            "handshake\n +1 C 1448x10 #q\n {acked}q+590 S 1448 {ack} more\n +0 S 500 {ack}\n +0 C ack"
        );
        let seen = log(text).rtt(ms(280)).without_timestamps().seen_at(End::Client);
        let think = seen.lines(Cause::ServerThink, Server)[0];
        if late {
            assert!(think.ns <= ms(201) && think.confidence == Possible, "{seen}");
            assert!(seen.spent(Cause::Queueing, Path) >= ms(380), "{seen}");
        } else {
            assert!(think.ns >= ms(580) && think.confidence >= Likely, "{seen}");
        }
    }
}
