//! Paths whose MTU is below what both ends announced: full segments are as long as the path allows.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};

use crate::packet_log::{End, log, ms};

/// 1,348 bytes per segment where 1,448 were negotiated (frames 48 to 109 of a browser's
/// connection): each flight waits for the ACKs of the one before, and neither Nagle nor a pause
/// holds a segment with more to follow.
#[test]
fn segments_that_the_path_keeps_short_are_full() {
    let rtt = ms(150);
    let text = "handshake
         +5 C 471
         +0 S 1348x3 more
         +0 C ack
         +0 S 1348x6 more
         +0 C ack
         +0 S 1348x12
         +0 C ack";
    log(text).rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt.times(2))]);
    });
}

/// A window of 1,024 bytes makes segments equally short, each a round trip after the one before:
/// that is not the path's MTU.
#[test]
fn segments_that_a_window_keeps_short_are_not_full() {
    let rtt = ms(40);
    let text = "handshake\n +5 C 100\n +0 S 1024 more\n".to_owned()
        + &"+0 C ack\n +0 S 1024 more\n".repeat(4)
        + "+0 C ack win=65536\n +0 S 1448x2\n +0 C ack";
    log(text).rtt(rtt).window(End::Client, 1_024).both_ends(|seen| {
        assert!(seen.spent(Cause::ReceiveWindow, Client) >= rtt.times(4), "{seen}");
    });
}

/// TLS records of two segments each, the second one with PSH (frames 1078 to 1147 of a browser's
/// connection): the segments are full, and a window of as many holds the next ones.
#[test]
fn segments_between_pushed_ones_are_as_long_as_the_path_allows() {
    let rtt = ms(40);
    let pair = "+0 S 1220 more\n +0 S 1220\n";
    let rounds = [5, 10, 3].map(|pairs| pair.repeat(pairs) + "+0 C ack\n");
    log(format!("handshake\n +5 C 471\n {}", rounds.concat())).rtt(rtt).both_ends(|seen| {
        seen.exchange(1).is(&[(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt.times(2))]);
    });
}

/// ICMP asks for segments of 1,452 bytes instead of 1,460, and the sender sends its first ones again
/// (frames 22 to 45 of a mail): from then on each acknowledgement releases two full segments, and none
/// is held back. What acknowledges the first bytes of an original segment answers the second one.
#[test]
fn segments_that_are_sent_again_shorter_are_as_long_as_the_path_allows() {
    let rtt = ms(340);
    let text = "handshake
         +5 C 1448x4 more lost
         +3 C 0..1440 more
         +0 S ack
         +0 C 1440..2880 more
         +0 C 2880..4320 more
         +0 S ack
         +0 C 4320..5760 more
         +0 C 5760..7200 more
         +0 S ack ack=5760
         +0 C 7200..8640 more
         +0 C 8640..10080 more
         +0 S ack
         +0 C 10080..11000
         +0 S 100";
    log(text).rtt(rtt).both_ends(|seen| {
        let wrong = seen.spent(Cause::Cork, Client) + seen.spent(Cause::DelayedAckCwnd, Server);
        assert_eq!(wrong, ms(0), "{seen}");
    });
}
