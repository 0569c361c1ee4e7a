//! Which rules exist for what few captures contain? One log for each, of a sender or a path that is
//! rare but real.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_core::report::Line;
use tcpwhy_wire::Duration;

use crate::packet_log::{End, MSS, SERVER, each, log, ms};
use crate::seen::Seen;

/// TCP_NODELAY and an initial window of three packets (RFC 3390; Linux until 2.6.38): three small
/// ones are sent; later writes are joined and leave as a full segment with the first ACK. No
/// program paused.
#[test]
fn a_window_of_three_counts_small_packets_too() {
    let rtt = ms(20);
    let small = log("handshake
         +5 C 100
         +0 S 50 #first
         first+0.01 S 50x2 #rest
         first+0 C ack
         +0 S 1448
         rest+0.5 C ack
         +0 C ack");
    // At the client the ACKs pass before it shows how many packets the server still had in flight.
    let bill = [(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt)];
    small.rtt(rtt).seen_at(End::Server).exchange(1).is(&bill);
}

/// A server writes TLS records of 16 KB with TCP_NODELAY, so that the last packet of each is small
/// and pushed. Its window ends after such a record, and the ACK of its first two segments lets it
/// continue a round trip later: due to its window, not its program.
#[test]
fn a_window_that_ends_behind_a_record_is_a_window_all_the_same() {
    let rtt = ms(60);
    let record = "+0 S 4344x3 more\n +0 S 3381";
    let text = format!(
        "handshake
         +5 C 100
         +0 S 1448x10 more
         +0 C ack
         +0 S 1933
         {record} #end
         end+0 C ack ack={}
         {record}
         {record}
         +0 C ack",
        12 * MSS
    );
    log(text).rtt(rtt).both_ends(|seen| {
        let bill = [(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt.times(2))];
        seen.exchange(1).is(&bill);
    });
}

/// A receiver whose program has stopped reading has less room than a segment. Its sender waits for
/// more (RFC 9293, 3.8.6.2.1) until its timer makes it send what fits: it waits for the receiver,
/// not for its own program.
#[test]
fn a_window_smaller_than_a_segment_is_the_reader_s() {
    let rtt = ms(20);
    let slow = log("handshake
         +5 C 100
         +0 S 1448x48 more
         +0 C ack win=512
         +220 S 512
         +0 C ack win=512
         +220 S 512
         +0 C ack");
    slow.rtt(rtt).window(End::Client, 48 * MSS as u32).both_ends(|seen| {
        let bill = seen.exchange(1);
        bill.is(&[(Cause::RoundTrip, Path, rtt), (Cause::ReceiverThink, Client, (rtt + ms(220)).times(2))]);
        assert_eq!(bill.of(Cause::ReceiverThink).detail.form, Some(Form::SmallWindow));
    });
}

/// The client's SYN waits for its neighbour's address until that is queried again, a second later:
/// a thousand of its stamps have passed by the next packet, and its clock seems to count
/// microseconds. The client pauses for 700 ms; its request travels no longer than the others.
#[test]
fn a_syn_that_waited_a_second_makes_no_request_late() {
    let rtt = ms(4);
    let text = "@0 C syn late=1000
         +0 S syn
         +0 C ack
         +700 C 100
         +0 S 200
         +0 C ack
         +700 C 100
         +0 S 200
         +0 C ack";
    let seen = log(text).rtt(rtt).seen_at(End::Server);
    for n in [1, 2] {
        seen.exchange(n).never(Cause::Queueing).elapsed(rtt, ms(3.5));
    }
}

/// One connection carries two kinds of requests. The short ones pause for 30 ms between their two
/// writes, as their quick ACKs show; the long ones do not, and their rest is held for as long as
/// the server delays its ACK.
#[test]
fn a_pause_in_one_kind_of_request_is_none_in_another() {
    let rtt = ms(2);
    let short = "+5 C 20 #head\n head+0 S ack\n head+30 C 100\n +0 S 64\n +0 C ack\n";
    let long = "+5 C 400\n +40 S ack\n +0 C 100\n +0 S 64\n +0 C ack\n";
    log(format!("handshake\n {}{}", short.repeat(3), long.repeat(2))).rtt(rtt).both_ends(|seen| {
        for n in [4, 5] {
            seen.exchange(n)
                .is(&[(Cause::RoundTrip, Path, rtt), (Cause::NagleDelayedAck, Client, rtt + ms(40))]);
        }
    });
}

/// In the middle of a path whose ACKs are held up for 300 ms: the server's RTO expires and it
/// retransmits all of the last flight, most of which passes the capture after everything was
/// acknowledged. The link is then busy with retransmissions; the reply was over.
#[test]
fn copies_behind_the_last_acknowledgement_are_no_part_of_the_reply() {
    let singles = each(0..30, |n| {
        let when = if n < 10 { "@200".to_owned() } else { format!("a{}+0", n - 10) };
        format!("{when} S 1448 more #p{n}\n p{n}+0 C ack #a{n}")
    });
    let copies = each(30..40, |n| format!("last+280 S {}..{} #c{n}", n * MSS, (n + 1) * MSS));
    let heard = each(30..40, |n| format!("c{n}+0 C ack"));
    let text = format!(
        "handshake\n +5 C 100\n {singles}\n a29+0 S 1448x9 more\n +0 S 1448 #last\n last+0 C ack late=300\n {copies}\n last+23 C 100 late=299\n +0 S 100\n {heard}"
    );
    let path = log(text).rtt(ms(100)).bottleneck(End::Server, 2_000_000);
    let seen = Seen::of(path.capture_at(9), "the middle");
    // Of the last flight, the capture sees the growing queue before the link, and what is left of
    // it.
    let (bandwidth, link) = (seen.exchange(1).ns(Cause::Bandwidth, Path), ms(40.0 * 1448.0 * 8.0 / 2e3));
    assert!(bandwidth <= link, "{bandwidth} {link}{seen}");
}

/// A bare ACK has the sequence number after 24 bytes that come 235 ms later, less than a round trip
/// (frames 374 to 1979 of a browser's capture): they had left by then. The time was not the
/// server's: they are a retransmission of a timer that had begun before, or the original late on
/// the path. Data a few ms later was overtaken.
#[test]
fn what_an_acknowledgement_has_counted_had_been_answered() {
    for (late, whose) in [(235, Cause::Rto), (177, Cause::Rto), (30, Cause::Queueing)] {
        let text = format!(
            "handshake\n +0 C 239\n +0 S 264\n +54 C ack\n +6715 C 145 #q\n q+43 S 24 lost\n q+43 S ack\n q+{} S 264..288\n \
             +0.8 C 28\n +0 S ack",
            43 + late
        );
        let log = log(text).rtt(ms(544)).without_timestamps().without_ip_ids();
        let seen = Seen::of(log.capture(End::Client).split_off(3), "the client, midway");
        let bill = seen.exchange(2);
        assert!(bill.ns(Cause::ServerThink, Server) <= ms(43), "{late}: {seen}");
        let line = bill.of(whose);
        assert!(line.ns >= ms(late) && line.side == Path, "{late}: {seen}");
        assert_eq!(line.confidence == Possible, whose == Cause::Rto, "{late}: {seen}");
    }
}

/// In a download over a lossy path two segments are lost, and three retransmissions of the first
/// (frames 54 to 1524 of one captured from the middle on): full segments before and after a silence
/// of 3.9 s with all acknowledged, and five numbers missing in it. The sender's timer ran four
/// times.
#[test]
fn full_segments_around_a_silence_with_numbers_missing_are_of_one_message() {
    let flights = "+0 S 1448x2 more\n +0 C ack\n ".repeat(8);
    let [first, second] = [16 * MSS, 17 * MSS];
    let copies = each([250, 760, 1780], |at| format!("a+{at} S {first}..{second} more lost"));
    for timer in [true, false] {
        let rest = if timer {
            format!("+0 S 1448x2 more lost #a\n {copies}\n a+3820 S {first}..{second} more")
        } else {
            "+3820 S 1448 more".to_owned()
        };
        let text = format!("handshake\n {flights}\n {rest}\n +0 C ack\n +0 S 1448x2 more\n +0 C ack");
        let segments = log(text).rtt(ms(50)).capture(End::Client).split_off(3);
        let seen = Seen::of(segments, &format!("the client, midway, {timer}"));
        assert_eq!(seen.spent(Cause::Rto, Path) >= ms(3700), timer, "{seen}");
        assert!(seen.lines(Cause::Rto, Path).iter().all(|line| line.confidence <= Likely), "{seen}");
    }
}

/// A reply of four segments is lost as a whole, and a probe brings the last one 600 ms later
/// (frames 283 to 522 of a browser's capture). No two of the server's packets were consecutive by
/// then; but as many numbers are missing as bytes account for, and one more.
#[test]
fn a_tail_that_comes_first_and_again_had_left_with_its_flight() {
    for flight in [true, false] {
        let first = if flight {
            "a+2 S 1448x3 more lost\n +0 S 527 lost #t\n"
        } else {
            "a+2 S 1448x3 more lost #t\n"
        };
        let text = format!(
            "handshake\n +1 C 1448 more\n +0 C 360 #a\n a+0 S ack\n {first} t+600 S 4344..4871\n +0 C ack\n t+1520 S 0..1448 more\n +0 C ack\n +0 S 1448..2896 more\n \
             +0 S 2896..4344\n +0 C ack"
        );
        let seen = log(text).rtt(ms(264)).seen_at(End::Client);
        let bill = seen.exchange(1);
        assert_eq!(bill.ns(Cause::ServerThink, Server) < ms(3), flight, "{seen}");
        let repaired = bill.ns(Cause::Rto, Path);
        assert_eq!(repaired >= ms(1500), flight, "{seen}");
        assert!(!flight || bill.of(Cause::Rto).confidence == Likely, "{seen}");
    }
}

/// Only the server's packets, of which the first data and a byte behind it come at once over a link that is busy for
/// 0.7 ms (found by `no_interval_is_billed_twice`): no message is billed beyond the start of the next one.
#[test]
fn what_one_direction_shows_ends_before_the_next_message_begins() {
    let text = "handshake\n +0 C ack\n +0 C ack\n +0 S 1448x2\n +0 C 1\n +0 S 1 late=1\n +0 S ack\n +0 C ack\n +0 S ack lost";
    let log = log(text).rtt(ms(2. * 4.279)).bottleneck(End::Server, 31_609_768);
    let mut segments = log
        .first_seq(End::Client, 0)
        .first_seq(End::Server, 0)
        .without_ip_ids()
        .without_window_scale()
        .capture_at(1);
    segments.retain(|segment| segment.src == SERVER);
    let seen = Seen::of(segments, "the server's packets");
    let exchanges = &seen.connection().exchanges;
    for pair in exchanges.windows(2) {
        let way = |line: &&Line| matches!(line.cause, Cause::RoundTrip | Cause::Handshake | Cause::Queueing);
        let way: Duration = pair[0].bill.iter().filter(way).map(|line| line.ns).sum();
        assert!(pair[0].start + (pair[0].elapsed - way) <= pair[1].start, "{seen}");
    }
}
