//! Rates that something else than a link may have made: what rests on them is no more than possible.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::report::Confidence;
use tcpwhy_wire::Duration;

use crate::packet_log::{End, log, ms};
use crate::seen::Seen;

fn link(seen: &Seen) -> (Duration, Confidence) {
    let bill = seen.exchange(1);
    let line = bill.of(Cause::Bandwidth);
    (line.ns, line.confidence)
}

/// 64 bytes are acknowledged 4 ms late, and the 3,121 that left with them 4 ms later (frames 141 to 162 of a browser): a link of 6 Mbit/s, or a
/// path that was late once.
#[test]
fn one_interval_between_acknowledgements_shows_no_rate_for_certain() {
    let text = "handshake
         +5 C 64 #h
         +0.2 C 1440x2 more
         +0 C 241 #end
         h+4 S ack ack=64
         end+8 S ack
         +2 S 307
         +0 C ack";
    let seen = log(text).without_timestamps().rtt(ms(56)).seen_at(End::Client);
    let (ns, confidence) = link(&seen);
    assert!(ns >= ms(5) && confidence == Confidence::Possible, "{seen}");
}

/// Six segments need 36 ms on a link of 2 Mbit/s. Two acknowledgements tell: between them is one interval, and the later segments have waited for
/// those before them, as long as that rate says.
#[test]
fn one_interval_that_a_burst_has_waited_for_is_a_link_s() {
    let text = "handshake
         +5 C 1448 more
         +0 C 1448 more #b
         +0 C 1448x3 more
         +0 C 1448 #end
         b+0 S ack
         end+0 S ack
         +2 S 307
         +0 C ack";
    let seen = log(text).rtt(ms(56)).bottleneck(End::Client, 2_000_000).seen_at(End::Client);
    let (ns, confidence) = link(&seen);
    assert!(ns >= ms(20) && confidence == Confidence::Likely, "{seen}");
}

/// Two segments arrive 40 ms late, and their receiver acknowledges them one by one (frames 1001 to 1007 of a page): a timer would have
/// acknowledged both in one, as it does with a small one alone.
#[test]
fn segments_acknowledged_one_by_one_at_once_waited_for_no_timer() {
    for (flight, acks, most) in [
        ("S 1448 more", "f+40 C ack #all", Confidence::Likely),
        ("S 1448x2 more", "f+40 C ack ack=1448\n f+40.05 C ack #all", Confidence::Possible),
    ] {
        let text = format!("handshake\n +5 C 100\n +0 {flight} #f\n {acks}\n all+0 S 1448x8\n +0 C ack");
        let seen = log(&text).rtt(ms(20)).seen_at(End::Client);
        let bill = seen.exchange(1);
        let line = bill.of(Cause::DelayedAckCwnd);
        assert!(line.ns >= ms(40) && line.confidence == most, "{seen}");
    }
}
