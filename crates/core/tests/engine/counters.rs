//! Hosts that number all their packets from one counter (IPv4's identification): packets to others
//! are not lost ones.

use tcpwhy_core::Form;
use tcpwhy_core::cause::Cause;
use tcpwhy_core::cause::Side::{Path, Server};
use tcpwhy_core::report::Confidence::{Likely, Possible};
use tcpwhy_wire::Segment;

use crate::packet_log::{CLIENT, End, each, log, ms, settled};
use crate::seen::Seen;

/// Windows numbers all packets of the host from one counter: a pause in which it talked to others
/// is no lost tail.
#[test]
fn a_host_that_numbers_all_its_packets_in_one_row_has_lost_nothing() {
    let pushes = settled(8) + &each(1..12, |n| format!("+{} S 100 \n +0 C ack", n * 700));
    for end in End::BOTH {
        let mut segments = log(pushes.clone()).rtt(ms(30)).without_timestamps().capture(end);
        let mut others = 0_u16;
        let mut before = segments[0].at;
        for segment in &mut segments {
            if segment.at - before > ms(500) {
                others += 1 + others % 4;
            }
            before = segment.at;
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "a host with one counter");
        let lines = seen.connection().exchanges.iter().flat_map(|exchange| &exchange.bill);
        let lost = lines.filter(|line| matches!(line.cause, Cause::Rto | Cause::Loss));
        assert_eq!(lost.count(), 0, "{seen}");
    }
}

/// A server that takes three seconds and is busy elsewhere meanwhile has retransmitted nothing.
#[test]
fn a_long_think_is_not_shortened_by_packets_to_others() {
    let slow = settled(8) + "+5 C 100\n +3000 S 100 \n +0 C ack";
    for end in End::BOTH {
        let mut segments = log(slow.clone()).rtt(ms(30)).without_timestamps().capture(end);
        let last = segments.iter().rposition(|segment| segment.src != CLIENT).expect("a reply");
        for segment in segments[last..].iter_mut().filter(|segment| segment.src != CLIENT) {
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(5));
        }
        let seen = Seen::of(segments, "a busy server");
        seen.exchange(9).is(&[(Cause::RoundTrip, Path, ms(30)), (Cause::ServerThink, Server, ms(3000))]);
    }
}

/// A printer that reads one buffer a second, and a host that talks to others meanwhile: data that
/// leaves as the window opens was waiting for that, and near its sender no retransmission can have
/// gone unseen.
#[test]
fn what_an_opening_window_lets_go_is_no_repair() {
    let job =
        each(0..6, |n| format!("+1300 S ack win=4380 \n +0 C 1460x3 more #page{n} \n +150 S ack win=0"));
    for end in End::BOTH {
        let text = format!("{}+5 C 1460x3 more\n +1 S ack win=0\n {job}", settled(8));
        let printer = log(text).rtt(ms(1)).window(End::Server, 4380);
        let mut segments = printer.without_timestamps().capture(end);
        let mut others = 0;
        let mut before = segments[0].at;
        for segment in segments.iter_mut().filter(|segment| segment.src == CLIENT) {
            others += u16::from(segment.at - before > ms(500)) * 2;
            before = segment.at;
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "a slow printer");
        let bill = &seen.connection().bill;
        assert!(!bill.iter().any(|line| matches!(line.cause, Cause::Rto | Cause::Loss)), "{end:?}: {seen}");
    }
}

/// Windows and a NAT number all packets of a host from one counter, and a reply whose second half
/// came as late as a timer looked repaired. Data a minute later is no retransmission: a keep-alive
/// was acknowledged with the next sequence number in between.
#[test]
fn nothing_is_lost_that_was_not_sent_yet() {
    for keep_alive in ["", "+40000 C 899..900\n +0 S ack\n"] {
        let text = settled(8)
            + "+5 C 100\n +0 S 274 #a\n a+281 S 396\n +0 C ack\n"
            + keep_alive
            + "+20000 S 31\n +0 S fin\n +0 C ack";
        let mut segments = log(text).rtt(ms(30)).without_timestamps().capture(End::Client);
        let (mut others, mut before) = (0_u16, segments[0].at);
        for segment in segments.iter_mut().filter(|segment| segment.src != CLIENT) {
            others += if segment.at - before > ms(200) { 5 } else { 0 };
            before = segment.at;
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "a shared counter");
        assert!(seen.lost() <= ms(300), "{seen}");
        seen.exchange(9).elapsed(ms(311), ms(40));
    }
}

/// Windows counts the packets of all connections together, and sends with a TTL of 128 (two
/// connections of a game between two such hosts, captured where one of them receives).
#[test]
fn numbers_of_a_host_that_counts_all_its_packets_tell_of_no_loss() {
    let text = "handshake\n +0.1 C 32\n +1.9 C 134\n +0 S ack\n +3 C 32\n +0.7 C 144\n +0 S ack\n +98 C 76\n +0.3 C 76\n +0 S ack\n \
                +0.3 C 76\n +170 S ack\n +600 C 72\n +0.4 C 72\n +0 S ack";
    for (ttl, lost) in [(64, true), (128, false)] {
        let mut elsewhere = 0;
        let numbered = |mut segment: Segment| {
            if segment.src == CLIENT {
                elsewhere += u16::from(segment.payload_len == 72) * 9;
                segment.ip_id = segment.ip_id.map(|id| id + elsewhere);
                segment.ttl = ttl;
            }
            segment
        };
        let segments = log(text).rtt(ms(0.7)).capture(End::Server).into_iter().map(numbered).collect();
        let seen = Seen::of(segments, "the server");
        let timeouts = seen.report.bill.iter().any(|line| line.cause == Cause::Rto);
        assert_eq!(timeouts, lost, "{ttl}: {seen}");
    }
}

/// An audio processor reports by its own timer, and numbers all its packets from one counter
/// (frames 4 to 9 of a subscription to it): a small report that was lost twice cannot account for
/// five missing packets.
#[test]
fn more_packets_than_timers_ran_are_no_copies_of_a_small_one() {
    let text = "handshake
         +3 C 17
         +14 S ack
         +3 C 17
         +14 S ack
         +31 S 18 #a
         a+200 C ack
         a+1905 S 17
         +51 S 17
         +0 C ack";
    for (others, sure) in [(5_u16, Possible), (2, Likely)] {
        let mut segments = log(text).rtt(ms(3)).without_timestamps().capture(End::Client);
        let late = segments.iter().rposition(|segment| segment.payload_len == 18).expect("a report") + 1;
        for segment in segments[late..].iter_mut().filter(|segment| segment.src != CLIENT) {
            segment.ip_id = segment.ip_id.map(|id| id.wrapping_add(others));
        }
        let seen = Seen::of(segments, "the client");
        let lost = seen.lines(Cause::Rto, Path).into_iter().map(|line| line.confidence).max();
        assert_eq!(lost, Some(sure), "{others}: {seen}");
    }
}

/// A virtual machine's NAT numbers all its packets from one counter, the SYN-ACK included, and
/// acknowledges for the servers beyond it, 268 ms away (frames 158 to 186 of a virtual machine's
/// capture): its packets to others in between are no lost transmission of a reply.
#[test]
fn who_numbers_its_syn_ack_counts_what_it_sends_to_others() {
    let text = "@0 C syn\n +268 S syn\n +0 C ack\n +3 C 675 #a\n +0 S ack\n a+296 S 1300\n +0 C ack\n +0.4 S 1440\n +0 C ack\n +9 C 126 #b\n \
                b+0 S ack\n b+260 S 51\n +0 C ack";
    let mut segments = log(text).rtt(ms(0.5)).without_timestamps().capture(End::Client);
    let mut others = 0;
    for segment in segments.iter_mut().filter(|segment| segment.src != CLIENT) {
        others += match segment.payload_len {
            1300 => 4,
            51 => 2,
            _ => 0,
        };
        segment.ip_id = if segment.flags.syn() { Some(699) } else { segment.ip_id.map(|id| id + others) };
    }
    let seen = Seen::of(segments, "the virtual machine");
    seen.exchange(2).never(Cause::Rto);
}

/// Two numbers are missing in front of an answer that comes 548 ms after its request's acknowledgement (frames 20 to 28 of a phone's
/// capture): the server may have taken its time, or lost copies of the answer.
#[test]
fn numbers_missing_before_an_answer_may_be_lost_copies_of_it() {
    let text = "handshake\n +0.2 C 74 #q\n +0 S ack\n q+40 S 732 lost\n q+210 S 0..732 lost\n q+548 S 0..732\n +0.7 C fin\n +0 S fin\n +0 C ack";
    let seen = log(text).rtt(ms(37)).without_timestamps().seen_at(End::Client);
    let bill = seen.exchange(1);
    let line = bill.of(Cause::ServerThink);
    assert_eq!((line.confidence, line.detail.form), (Possible, Some(Form::OrLost)), "{seen}");
}
