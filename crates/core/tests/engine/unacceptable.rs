//! Packets that no handshake accepts: their hosts ignore them.

use tcpwhy_core::cause::{
    Cause,
    Side::{Client, Path},
};
use tcpwhy_core::report::Kind;
use tcpwhy_wire::{Duration, Seq};

use crate::packet_log::{End, log, ms};
use crate::seen::Seen;
use crate::taken_late::off;

/// A bit of the first ACK is damaged on the path, and the server retransmits its SYN-ACK until it
/// gets one (frames 18 to 34 of a mail server's capture): the setup lasts until then.
#[test]
fn an_acknowledgement_of_what_was_never_sent_ends_no_setup() {
    let text = "@0 C syn #syn
         syn+0 S syn #first
         first+0 C ack ack=2048 #bad
         first+1010 S syn lost
         first+3030 S syn lost
         first+7100 S syn lost
         first+15300 S syn #last
         last+0 C ack
         last+10 S 44 #hello
         hello+0 C ack
         +5 C 19
         +1 S 100
         +0 C ack";
    let seen = log(text).rtt(ms(0.1)).seen_at(End::Server);
    let copies = seen.spent(Cause::SynRetransmit, Path);
    assert!(off(copies, ms(15_300)) <= ms(1), "{seen}");
    assert!(off(seen.setup().exchange.elapsed, ms(15_300)) <= ms(1), "{seen}");
}

/// A SYN meets an older connection of its ports at the server, which acknowledges that; the
/// client's reset has the number of this ACK, and its SYN is retransmitted after 1 and 3 s (frames
/// 198 to 221 of a file exchange): it asked from the first one on. A reset with the client's own
/// number ends that.
#[test]
fn a_reset_against_an_older_connections_acknowledgement_ends_no_setup() {
    for (number, waited) in [(Some(700_001), 3_000), (None, 2_000)] {
        let text = "@0 C syn #syn
             syn+0 S ack ack=700000 damaged #older
             older+0.1 C rst
             syn+1000 C syn lost
             syn+3000 C syn #last
             last+0 S syn
             +0 C ack
             +1 C 385
             +0 S ack
             +1 S 139
             +0 C ack";
        let mut segments = log(text).rtt(ms(30)).without_timestamps().capture(End::Client);
        for segment in &mut segments {
            segment.damaged = false;
            if let Some(number) = number.filter(|_| segment.flags.rst()) {
                segment.seq = Seq(number);
            }
        }
        let seen = Seen::of(segments, "older");
        let lost = seen.report.bill.iter().filter(|line| line.cause == Cause::SynRetransmit);
        let lost: Duration = lost.map(|line| line.ns).sum();
        assert!(off(lost, ms(waited)) <= ms(1), "{seen}");
    }
}

/// A server goes on retransmitting the SYN-ACK of an older connection of the same ports, 45 ms after the SYN
/// of the next one: the client's answer to that would be a reset, and the setup takes until the SYN-ACK that
/// acknowledges this SYN (RFC 9293, 3.10.7.3).
#[test]
fn a_syn_ack_of_another_syn_ends_no_setup() {
    for both in [false, true] {
        let text = "@0 C syn #syn
             @25 S syn #older
             syn+50 S syn
             +0 C ack
             +0.1 C 385
             +0 S ack
             +1 S 139
             +0 C ack";
        let mut segments = log(text).rtt(ms(40)).capture(End::Client);
        segments
            .iter_mut()
            .find(|segment| segment.flags.syn() && segment.flags.ack())
            .expect("it is there")
            .ack = Seq(900_000_000);
        if !both {
            segments.retain(|segment| !segment.flags.ack() || segment.ack == Seq(900_000_000));
        }
        let seen = Seen::of(segments, "another SYN");
        let [way, queue] = [seen.lines(Cause::Handshake, Client), seen.lines(Cause::Queueing, Path)];
        let handshake: Duration = way.iter().chain(&queue).map(|line| line.ns).sum();
        assert_eq!(seen.count(Kind::Setup), usize::from(both), "{seen}");
        assert!(!both || off(handshake, ms(90)) <= ms(1), "{seen}");
        assert_eq!(seen.connection().rtt_min.is_some(), both, "{seen}");
    }
}
