//! What is a rule for that few captures need? One log for each, of a sender or a path that is rare and real.

use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Client, Path, Server};

use crate::packet_log::{End, MSS, log, ms};

/// TCP_NODELAY and an initial window of three packets (RFC 3390; Linux until 2.6.38): three small ones are out, what is written
/// from then on is joined and leaves as a full segment with the first acknowledgement. No program paused.
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
    // At the client the acknowledgements pass before it can be seen how many packets the server still had out.
    let bill = [(Cause::RoundTrip, Path, rtt), (Cause::SlowStart, Server, rtt)];
    small.rtt(rtt).seen_at(End::Server).exchange(1).is(&bill);
}

/// A server writes TLS records of 16 KB with TCP_NODELAY, so that the last packet of each is small and pushed. Its window ends behind
/// such a record, and the acknowledgement of its first two segments lets it go on a round trip later: its window, not its program.
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

/// A reader that has stopped leaves less room than a segment. Its sender holds out for more (RFC 9293, 3.8.6.2.1) until its timer
/// makes it send what fits: the reader is what it waits for, not the program behind it.
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
        assert_eq!(bill.of(Cause::ReceiverThink).detail.form, Some("small-window"));
    });
}

/// The client's SYN waits for its neighbour's address until that is asked for again, a second later: a thousand of its stamps have
/// passed by the next packet, and its clock seems to count microseconds. The client pauses for 700 ms; its request is on its way for no
/// longer than the others.
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

/// One connection carries two kinds of requests. The short ones pause for 30 ms between their two writes, as their quick
/// acknowledgements show; the long ones do not, and their rest is held for as long as the server holds its acknowledgement.
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
